// op_rules_test.cpp: the table of what steps look like beside the registry of ops, and rules of single rows.
#include "types/op_rules.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/checked.h"
#include "graph/ops/op_def.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

TEST(OpRules, NamesAndNumbersGoTogether) {
  for (std::size_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(find_op(name_of(op)), name_of(op) == "?" ? std::nullopt : std::optional(op)) << name_of(op);
  }
  EXPECT_EQ(find_op("no_such_op"), std::nullopt);
  EXPECT_EQ(find_op("?"), std::nullopt);
  EXPECT_EQ(name_of(static_cast<Op>(kOps)), "?");
  EXPECT_TRUE(traits_of(static_cast<Op>(kOps)).dtypes.empty());
  EXPECT_NE(step_fault(static_cast<Op>(kOps), {}, {}, {}), "");
}

TEST(OpRules, TraitsAgreeWithTheRegistry) {
  for (const OpDef& op : all_ops()) {
    const OpTraits& traits = traits_of(op.op);
    EXPECT_EQ(traits.dtypes.empty(), op.state != nullptr) << op.name() << ": a state, or a step";
    if (op.state != nullptr) continue;
    const std::string_view operands = traits.dtypes.substr(0, traits.dtypes.find('>'));
    EXPECT_EQ(operands.size(), op.operands.size() + (op.variadic ? 1 : 0)) << op.name();
    EXPECT_EQ(operands.back() == '+', op.variadic) << op.name();
    EXPECT_EQ(traits.params != params_kind<NoParams>, op.pack != nullptr) << op.name() << ": parameters";
  }
}

std::string fault(Op op, const std::vector<TensorType>& inputs, const TensorType& output, const Params& params = {}) {
  return step_fault(op, inputs, output, params);
}
TensorType f32(Shape shape, std::int64_t rows = 0) {
  return {DType::f32, shape, rows};
}

TEST(OpRules, ShapesAndRowsAreHeldTogether) {
  EXPECT_EQ(fault(Op::add, {f32({4, 3}, 1), f32({3})}, f32({4, 3}, 1)), "");
  EXPECT_NE(fault(Op::add, {f32({4, 3}, 1), f32({3})}, f32({4, 3})), "");        // loses the batch
  EXPECT_NE(fault(Op::add, {f32({1, 3}), f32({3})}, f32({4, 3})), "");           // larger than its operands
  EXPECT_NE(fault(Op::add, {f32({4, 3}, 1), f32({4, 3})}, f32({4, 3}, 1)), "");  // no batch, but its extent
  EXPECT_NE(fault(Op::add, {f32({2})}, f32({2})), "");
  EXPECT_EQ(fault(Op::matmul, {f32({4, 2}, 1), f32({4, 3}, 1)}, f32({2, 3}), MatmulParams{true, false}), "");
  EXPECT_NE(fault(Op::matmul, {f32({4, 2}, 1), f32({4, 3})}, f32({2, 3}), MatmulParams{true, false}), "");
  EXPECT_EQ(fault(family_op::solve_spd, {f32({3, 3}), f32({3}), f32({})}, f32({3})), "");
  EXPECT_NE(fault(family_op::solve_spd, {f32({3, 2}), f32({3}), f32({})}, f32({3})), "") << "not square";
  EXPECT_NE(fault(family_op::solve_spd, {f32({3}), f32({3}), f32({})}, f32({3})), "") << "not a matrix";
  EXPECT_NE(fault(family_op::solve_spd, {f32({3, 3}), f32({2}), f32({})}, f32({2})), "");
  EXPECT_NE(fault(family_op::solve_spd, {f32({3, 3}), f32({3, 1}), f32({})}, f32({3, 1})), "");
  EXPECT_NE(fault(family_op::solve_spd, {f32({3, 3}), f32({3}), f32({1})}, f32({3})), "");
  EXPECT_NE(fault(family_op::solve_spd, {f32({3, 3}, 1), f32({3}), f32({})}, f32({3})), "") << "the batch";
  EXPECT_NE(fault(family_op::solve_spd, {f32({3, 3}), {DType::f64, {3}, 0}, f32({})}, f32({3})), "");
  EXPECT_EQ(fault(Op::slice, {f32({5})}, f32({2}), SliceParams{0, 3}), "");
  EXPECT_NE(fault(Op::slice, {f32({5})}, f32({2}), SliceParams{0, 4}), "");
  EXPECT_NE(fault(Op::slice, {f32({5})}, f32({2}), SliceParams{0, std::numeric_limits<std::int64_t>::max()}), "");
  EXPECT_NE(fault(Op::pad, {f32({2})}, f32({5}), PadParams{0, 4, 0}), "");
  EXPECT_NE(fault(Op::pad, {f32({2})}, f32({5}), PadParams{0, std::numeric_limits<std::int64_t>::min(), 0}), "");
  EXPECT_NE(fault(Op::concat, {f32({2}), f32({2})}, f32({5}), AxisParams{0}), "");
  EXPECT_EQ(fault(*find_op("stop_gradient"), {f32({4, 3}, 1)}, f32({4, 3}, 1)), "");
  EXPECT_NE(fault(*find_op("stop_gradient"), {f32({4, 3}, 1)}, f32({3, 4}, 1)), "");
  const WindowParams three{.axes = 1, .size = {3, 1, 1}};
  EXPECT_EQ(fault(family_op::windows, {f32({2, 5, 4})}, f32({2, 3, 3, 4}), three), "");
  EXPECT_EQ(fault(family_op::fold, {f32({2, 3, 3, 4})}, f32({2, 5, 4}), three), "");
  EXPECT_NE(fault(family_op::windows, {f32({2, 5, 4})}, f32({2, 4, 3, 4}), three), "");
  EXPECT_NE(fault(family_op::windows, {f32({2, 2, 4})}, f32({2, 0, 3, 4}), three), "") << "it does not fit";
  EXPECT_NE(fault(family_op::windows, {f32({5})}, f32({3, 3}), three), "") << "no axis of columns";
  EXPECT_NE(fault(family_op::windows, {TensorType{DType::f32, {5, 4}, 1}}, f32({3, 3, 4}), three), "") << "the batch";
  EXPECT_NE(fault(family_op::windows, {f32({1, 1, 1, 1, 1, 1, 1, 5})}, f32({1}), three), "") << "too many axes";
  EXPECT_NE(fault(family_op::fold, {f32({2, 3, 3, 4})}, f32({2, 6, 4}), three), "") << "four windows fit";
  EXPECT_NE(fault(family_op::fold, {f32({2, 3, 3, 4})}, f32({2, 5}), three), "");
  for (const WindowParams& bad :
       {WindowParams{.axes = 0}, WindowParams{.axes = 4}, WindowParams{.axes = 1, .size = {0, 1, 1}},
        WindowParams{.axes = 1, .stride = {0, 1, 1}}, WindowParams{.axes = 1, .dilation = {-1, 1, 1}}})
    EXPECT_NE(fault(family_op::windows, {f32({2, 5, 4})}, f32({2, 5, 1, 4}), bad), "");
  EXPECT_NE(fault(Op::transpose, {f32({2, 2})}, f32({2, 2}), PermuteParams{{1, 1}}), "");
  EXPECT_NE(fault(Op::transpose, {f32({2, 2})}, f32({2, 2}), PermuteParams{{0, -1}}), "");
  EXPECT_NE(fault(Op::sum, {f32({2, 2})}, f32({}), ReduceParams{7, false}), "");
  EXPECT_NE(fault(Op::argmax, {f32({2, 0})}, {DType::i32, {2}, 0}, AxisParams{1}), "");
  EXPECT_NE(fault(*find_op("softmax"), {f32({4, 3}, 1)}, f32({4, 3}, 1), AxisParams{0}), "");
  EXPECT_NE(fault(*find_op("clip"), {f32({2})}, f32({2}), ScalarParams{1, 0}), "");
  const TensorType step{DType::u64, {}, 0};
  EXPECT_EQ(fault(Op::minibatch, {f32({9, 2}), step}, f32({4, 2}, 1), MinibatchParams{9, 4}), "");
  EXPECT_NE(fault(Op::minibatch, {f32({9, 2}), step}, f32({4, 2}, 1), MinibatchParams{10, 4}), "");
  EXPECT_NE(fault(Op::minibatch, {f32({3, 2}), step}, f32({4, 2}, 1), MinibatchParams{3, 4, false, 0, true}), "");
  EXPECT_NE(fault(Op::dropout, {f32({4}), step}, f32({4}), RandomParams{0, 1, 0}), "");
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
