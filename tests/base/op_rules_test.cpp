// op_rules_test.cpp: the table of what steps look like beside the registry of ops, and rules of single rows.
#include "types/op_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/checked.h"
#include "graph/ops/infer.h"
#include "graph/ops/op_def.h"

namespace graphrun {
namespace {

TEST(OpRules, EveryOpThatRunsHasARowAndNoOther) {
  std::set<std::string_view> with_row;
  for (const OpRule& rule : op_rules()) {
    EXPECT_TRUE(with_row.insert(rule.op).second) << rule.op << " has two rows";
    const OpDef* op = find_op(rule.op);
    EXPECT_TRUE(op != nullptr && op->state == nullptr) << rule.op << " is no op that runs";
  }
  for (const OpDef& op : all_ops()) {
    if (op.state != nullptr) continue;
    EXPECT_EQ(with_row.count(op.name), 1u) << op.name << " has no row in src/types/op_rules.cpp";
  }
}

TEST(OpRules, RowsAgreeWithTheRegistry) {
  for (const OpRule& rule : op_rules()) {
    const OpDef* op = find_op(rule.op);
    if (op == nullptr) continue;
    const std::string_view operands = rule.dtypes.substr(0, rule.dtypes.find('>'));
    EXPECT_EQ(operands.size(), op->operands.size() + (op->variadic ? 1 : 0)) << rule.op;
    EXPECT_EQ(operands.back() == '+', op->variadic) << rule.op;
    EXPECT_EQ(rule.params != 0, op->pack != nullptr) << rule.op << ": parameters";
    const Overlay overlay = op->alias == &alias::reuse      ? Overlay::reuse
                            : op->alias == &alias::in_place ? Overlay::state
                                                            : Overlay::none;
    EXPECT_EQ(rule.overlay, overlay) << rule.op;
  }
}

std::string fault(std::string_view op, const std::vector<TensorType>& inputs, const TensorType& output,
                  const Params& params = {}) {
  return fault_of(*find_op_rule(op), inputs, output, params);
}
TensorType f32(Shape shape, std::int64_t rows = 0) {
  return {DType::f32, shape, rows};
}

TEST(OpRules, ShapesAndRowsAreHeldTogether) {
  EXPECT_EQ(fault("add", {f32({4, 3}, 1), f32({3})}, f32({4, 3}, 1)), "");
  EXPECT_NE(fault("add", {f32({4, 3}, 1), f32({3})}, f32({4, 3})), "");  // loses the batch
  EXPECT_NE(fault("add", {f32({1, 3}), f32({3})}, f32({4, 3})), "");     // larger than its operands
  EXPECT_NE(fault("add", {f32({2})}, f32({2})), "");
  EXPECT_EQ(fault("matmul", {f32({4, 2}, 1), f32({4, 3}, 1)}, f32({2, 3}), MatmulParams{true, false}), "");
  EXPECT_NE(fault("matmul", {f32({4, 2}, 1), f32({4, 3})}, f32({2, 3}), MatmulParams{true, false}), "");
  EXPECT_EQ(fault("slice", {f32({5})}, f32({2}), SliceParams{0, 3}), "");
  EXPECT_NE(fault("slice", {f32({5})}, f32({2}), SliceParams{0, 4}), "");
  EXPECT_NE(fault("slice", {f32({5})}, f32({2}), SliceParams{0, std::numeric_limits<std::int64_t>::max()}), "");
  EXPECT_NE(fault("pad", {f32({2})}, f32({5}), PadParams{0, 4, 0}), "");
  EXPECT_NE(fault("pad", {f32({2})}, f32({5}), PadParams{0, std::numeric_limits<std::int64_t>::min(), 0}), "");
  EXPECT_NE(fault("concat", {f32({2}), f32({2})}, f32({5}), AxisParams{0}), "");
  EXPECT_NE(fault("transpose", {f32({2, 2})}, f32({2, 2}), PermuteParams{{1, 1}}), "");
  EXPECT_NE(fault("transpose", {f32({2, 2})}, f32({2, 2}), PermuteParams{{0, -1}}), "");
  EXPECT_NE(fault("sum", {f32({2, 2})}, f32({}), ReduceParams{7, false}), "");
  EXPECT_NE(fault("argmax", {f32({2, 0})}, {DType::i32, {2}, 0}, AxisParams{1}), "");
  EXPECT_NE(fault("softmax", {f32({4, 3}, 1)}, f32({4, 3}, 1), AxisParams{0}), "");
  EXPECT_NE(fault("clip", {f32({2})}, f32({2}), ScalarParams{1, 0}), "");
  const TensorType step{DType::u64, {}, 0};
  EXPECT_EQ(fault("minibatch", {f32({9, 2}), step}, f32({4, 2}, 1), MinibatchParams{9, 4}), "");
  EXPECT_NE(fault("minibatch", {f32({9, 2}), step}, f32({4, 2}, 1), MinibatchParams{10, 4}), "");
  EXPECT_NE(fault("minibatch", {f32({3, 2}), step}, f32({4, 2}, 1), MinibatchParams{3, 4, false, 0, true}), "");
  EXPECT_NE(fault("dropout", {f32({4}), step}, f32({4}), RandomParams{0, 1, 0}), "");
}

TEST(Checked, SumsAndProductsStayAtTheEnd) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  static_assert(checked_add(most, most) == most &&
                checked_add(-most, -most) == std::numeric_limits<std::int64_t>::min());
  static_assert(checked_mul(most, 2) == most && checked_mul(most, -2) == std::numeric_limits<std::int64_t>::min());
  static_assert(checked_add(2, 3) == 5 && checked_mul(2, 3) == 6);
  static_assert(divide_up(most, 2) == most / 2 + 1 && divide_up(6, 3) == 2 && divide_up(0, 3) == 0);
}

}  // namespace
}  // namespace graphrun
