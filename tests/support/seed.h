// seed.h: reports the current seed if a test throws. Contract: one object in the body of the loop over seeds.
// SCOPED_TRACE does not work here: it is gone when gtest catches. Leaves to others: failures that do not throw.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>

namespace graphrun::test {

struct AtSeed {
  std::uint64_t seed;

  ~AtSeed() {
    if (std::uncaught_exceptions() > 0) ADD_FAILURE() << "seed " << seed << " throws";
  }
};

}  // namespace graphrun::test
