// device.h: the fixture of tests that need a device: skips with the reason where there is none, and compares with ref.
// Contract: GRAPHRUN_REQUIRE_DEVICE=1 in the environment makes a missing device a failure.
// Leaves to others: the Programs (programs.h).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "graphrun/error.h"
#include "programs.h"

namespace graphrun::testing {

// "" when there is a device, else why not.
inline std::string missing_device() {
  static const std::string reason = [] {
    Builder build("probe");
    build.state("x", f32({1}), {0.0f});
    try {
      const auto cuda = find_executor("cuda");
      cuda->load(build.finish(*cuda));
    } catch (const Error& error) {
      const std::string code = error.diagnostics().front().code;
      if (code == "cuda.driver" || code == "cuda.device") return std::string(error.what());
      throw;
    }
    return std::string();
  }();
  return reason;
}

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = missing_device();
    if (reason.empty()) return;
    if (std::getenv("GRAPHRUN_REQUIRE_DEVICE") != nullptr) FAIL() << reason;
    GTEST_SKIP() << reason;
  }

  std::shared_ptr<Executor> cuda = find_executor("cuda");
  std::shared_ptr<Executor> ref = find_executor("ref");

  // The Program of `build` on both, `steps` times; every element of `out` within `tolerance` of the other executor's,
  // relative to max(1, |ref|). NaN must meet NaN; with tolerance 0 values are equal.
  template <class T = float>
  void compare(Builder& build, BufferId out, float tolerance = 0.0f, std::uint64_t steps = 1,
               const std::shared_ptr<Executor>& other = nullptr) {
    const std::shared_ptr<Executor>& second = other ? other : ref;
    const Program program = build.finish(*cuda, second.get());
    const auto device = cuda->load(program);
    device->run(0, steps);
    Program host_program = program;
    if (other) host_program.target = std::string(other->default_target());
    const auto host = second->load(host_program);
    host->run(0, steps);
    const auto got = read<T>(*device, program, out);
    const auto want = read<T>(*host, host_program, out);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(close(got[i], want[i], tolerance)) << program.name << ": element " << i << " of " << got.size()
                                                     << " is " << +got[i] << ", the host has " << +want[i];
    }
  }

 private:
  template <class T>
  static bool close(T got, T want, float tolerance) {
    if (got == want) return true;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
      if (std::isinf(got) || std::isinf(want)) return false;
      return std::fabs(got - want) <= tolerance * std::max(1.0f, std::fabs(want));
    }
    return false;
  }
};

}  // namespace graphrun::testing
