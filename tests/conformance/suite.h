// suite.h: the tests of the conformance suite, registered by name: "Values.cpu/matmul/transpose_a_partial_rows".
// Contract: each register_ function adds its tests before RUN_ALL_TESTS(); names are stable.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/sample.h"
#include "graphrun/executor.h"

namespace graphrun::test {

void register_values();
void register_aliases();
void register_gradients();
void register_runs();

// Restricts the suite to this executor, which may leave any op unsupported.
void test_only(std::shared_ptr<Executor> executor);
bool is_only_one();

// The named executors that work here and one whose ops fall back to the library's kernels; or the only one.
std::vector<std::pair<std::string, std::shared_ptr<Executor>>> tested_executors();

// Checks of a "Values" test on one sample.
void check_values(const std::shared_ptr<Executor>& machine, const Sample& sample);

// Registers one test with the given body.
inline void register_test(const char* suite, const std::string& name, const char* file, int line,
                          std::function<void()> body) {
  struct Body final : ::testing::Test {
    explicit Body(std::function<void()> f) : run(std::move(f)) {}
    void TestBody() override { run(); }
    std::function<void()> run;
  };
  ::testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, file, line,
                          [body = std::move(body)]() -> ::testing::Test* { return new Body(body); });
}

}  // namespace graphrun::test
