// Checks of the suite itself: every op has samples, every gradient is compared, names are unique.
#include <gtest/gtest.h>

#include <set>

#include "conformance/samples.h"
#include "graph/ops/op_def.h"
#include "graphrun/family_op.h"

namespace graphrun::test {
namespace {

// Ops of the registry without a sample (that satisfies the condition). States compute nothing.
template <class Condition>
std::vector<std::string> ops_without(const std::vector<Sample>& samples, Condition condition) {
  std::vector<std::string> missing;
  for (const OpDef& op : all_ops()) {
    if (op.state != nullptr) continue;
    bool found = false;
    for (const Sample& sample : samples) found = found || (sample.op == op.name() && condition(op, sample));
    if (!found) missing.emplace_back(op.name());
  }
  return missing;
}

const auto any = [](const OpDef&, const Sample&) { return true; };
const auto compared_gradient = [](const OpDef& op, const Sample& sample) {
  // stop_gradient has no gradient, whatever differences show (tests/executors/objectives_test.cpp).
  return op.grad == nullptr || sample.gradient || op.op == family_op::stop_gradient;
};
const auto defined_result = [](const OpDef&, const Sample& sample) { return !sample.expected.empty(); };

TEST(Coverage, EveryOpHasSamples) {
  EXPECT_EQ(ops_without(all_samples(), any), std::vector<std::string>{});
}

TEST(Coverage, EveryGradientIsCompared) {
  EXPECT_EQ(ops_without(all_samples(), compared_gradient), std::vector<std::string>{});
}

// Agreement with ref does not validate ref: each op has a result that follows from its definition.
TEST(Coverage, EveryOpHasAResultByDefinition) {
  EXPECT_EQ(ops_without(all_samples(), defined_result), std::vector<std::string>{});
}

TEST(Coverage, AnOpWithoutSamplesIsFound) {
  std::vector<Sample> without;
  for (const Sample& sample : all_samples()) {
    if (sample.op != "matmul") without.push_back(sample);
  }
  EXPECT_EQ(ops_without(without, any), std::vector<std::string>{"matmul"});
}

TEST(Coverage, SamplesNameOpsAndAreUnique) {
  std::set<std::pair<std::string, std::string>> names;
  for (const Sample& sample : all_samples()) {
    EXPECT_TRUE(find_op(sample.op).has_value()) << sample.op;
    EXPECT_TRUE(names.emplace(sample.op, sample.name).second) << sample.op << "/" << sample.name << " is there twice";
  }
}

}  // namespace
}  // namespace graphrun::test
