// Each sample on each executor: values against ref, guard bytes, rows past the batch, NaN, repeatability.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/gaps.h"
#include "conformance/harness.h"
#include "conformance/samples.h"
#include "conformance/suite.h"
#include "conformance/table.h"
#include "graphrun/error.h"
#include "support/matmul_executor.h"

namespace graphrun::test {
namespace {

HostTensor run_once(GraphRun& run, const SampleGraph& built, const Sample& sample,
                    const std::vector<HostTensor>& values) {
  run.spoil();
  write_operands(run, built, sample, values);
  run.run();
  return run.read(built.result);
}

// Checks the result where some operand is NaN. Samples with this rule have operands of one shape.
void check_nan(const Sample& sample, const std::vector<HostTensor>& values, const HostTensor& result) {
  std::vector<bool> operand_is_nan(static_cast<std::size_t>(result.shape().elements()), false);
  for (const HostTensor& tensor : values) {
    const std::vector<double> elements = to_doubles(tensor);
    ASSERT_EQ(elements.size(), operand_is_nan.size()) << "a sample with nan_spreads has operands of the result's shape";
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (std::isnan(elements[i])) operand_is_nan[i] = true;
    }
  }
  const std::vector<double> elements = to_doubles(result);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    EXPECT_TRUE(!operand_is_nan[i] || std::isnan(elements[i]))
        << sample.op << ": element " << i << " is " << elements[i] << " although an operand is NaN";
  }
  EXPECT_NE(std::find(operand_is_nan.begin(), operand_is_nan.end(), true), operand_is_nan.end());
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

// Reason why the executor does not support the sample's step, or "". Needs no device.
std::string declined(const Executor& machine, const Sample& sample) {
  try {
    lower_for(build(sample).graph, machine);
    return {};
  } catch (const Error& error) {
    if (error.diagnostics().front().code != "step.unsupported") throw;
    return error.diagnostics().front().message;
  }
}

// The dtype in which a sample is computed: f64 if it occurs at all, otherwise that of its last operand.
DType dtype_of(const Sample& sample) {
  const SampleGraph built = build(sample);
  bool any_double = built.graph[built.result].type.dtype == DType::f64;
  for (const Operand& operand : sample.operands) any_double = any_double || operand.type.dtype == DType::f64;
  return any_double ? DType::f64 : sample.operands.back().type.dtype;
}

void test_values(const std::string& name, const std::shared_ptr<Executor>& machine, const Sample& sample) {
  const std::string reason = declined(*machine, sample);
  if (!reason.empty()) {
    for (const Gap& gap : gaps()) {
      if (gap.covers(name, sample.op, dtype_of(sample))) return note(name, sample.op, Outcome::declined, gap.reason);
    }
    note(name, sample.op, Outcome::declined, reason);
    if (is_only_one()) return;
    FAIL() << name << " declines " << sample.op << " and gaps.h does not list it: " << reason;
  }
  check_values(machine, sample);
  note(name, sample.op, ::testing::Test::HasFailure() ? Outcome::failed : Outcome::run);
}

// An entry of gaps.h that no sample needs is obsolete.
TEST(Coverage, GapsAreStillGaps) {
  for (const Gap& gap : gaps()) {
    for (const auto& [name, machine] : executors().present) {
      if (name != gap.executor) continue;
      std::vector<std::string_view> closed = gap.ops;
      bool needed = false;
      for (const Sample& sample : all_samples()) {
        if (!gap.covers(name, sample.op, dtype_of(sample)) || declined(*machine, sample).empty()) continue;
        needed = true;
        closed.erase(std::remove(closed.begin(), closed.end(), sample.op), closed.end());
      }
      EXPECT_TRUE(needed) << gap.executor << ": no sample meets this gap any more: " << gap.reason;
      EXPECT_EQ(closed, std::vector<std::string_view>{}) << gap.executor << " supports these by now";
    }
  }
}

}  // namespace

void check_values(const std::shared_ptr<Executor>& machine, const Sample& sample) {
  const SampleGraph built = build(sample);
  const TensorType type = built.graph[built.result].type;
  const std::vector<HostTensor> values = operand_values(sample);

  GraphRun run(built.graph, machine);
  const HostTensor result = run_once(run, built, sample, values);
  GraphRun reference_run(built.graph, executor("ref"));
  const HostTensor reference = run_once(reference_run, built, sample, values);

  Tolerance tolerance = sample.tolerance;
  if (type.dtype == DType::f64) tolerance.relative = std::max(tolerance.relative, 1e-14);  // ref rounds in f64, too
  EXPECT_EQ(difference(result, reference, tolerance), "") << "against ref";
  if (!sample.expected.empty()) {
    ASSERT_EQ(sample.expected.size(), static_cast<std::size_t>(type.shape.elements()));
    const HostTensor expected = tensor_of(type.dtype, type.shape, sample.expected);
    EXPECT_EQ(difference(result, expected, sample.tolerance), "") << "against the definition";
  }
  if (sample.nan_spreads) check_nan(sample, values, result);
  EXPECT_EQ(stray_row(result, type, samples_in_batch(sample)), "");

  EXPECT_TRUE(same_bytes(run_once(run, built, sample, values), result)) << "a second run gives other bytes";

  GraphRun guarded(built.graph, machine, Layout::guarded);
  EXPECT_TRUE(same_bytes(run_once(guarded, built, sample, values), result)) << "another layout gives other bytes";
  EXPECT_EQ(guarded.broken_guard(), "");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (guarded.share_storage(built.operands[i], built.result)) continue;
    EXPECT_TRUE(same_bytes(guarded.read(built.operands[i]), values[i])) << "operand " << i << " was written";
  }
}

namespace {
std::shared_ptr<Executor> only_one;
}

void test_only(std::shared_ptr<Executor> executor) {
  only_one = std::move(executor);
}
bool is_only_one() {
  return only_one != nullptr;
}

std::vector<std::pair<std::string, std::shared_ptr<Executor>>> tested_executors() {
  if (only_one != nullptr) return {{std::string(only_one->name()), only_one}};
  auto tested = executors().present;
  tested.emplace_back("matmul_only", matmul_executor());
  return tested;
}

void register_values() {
  for (const auto& [name, machine] : tested_executors()) {
    for (const Sample& sample : all_samples()) {
      register_test("Values", full_name(name, sample), __FILE__, __LINE__,
                    [name = name, machine = machine, &sample] { test_values(name, machine, sample); });
    }
  }
  if (is_only_one()) return;
  for (const auto& [name, reason] : executors().missing) {
    register_test("Values", name, __FILE__, __LINE__, [reason = reason] { GTEST_SKIP() << reason; });
  }
}

}  // namespace graphrun::test
