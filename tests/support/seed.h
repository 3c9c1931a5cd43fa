// seed.h: which seed a test was at when something throws out of it. Contract: one in the body of the loop over seeds.
// SCOPED_TRACE would not say it: it is gone when gtest catches. Leaves to others: failures that do not throw.
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
