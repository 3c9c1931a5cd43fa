// Inference of each op: the type of the result, the row rules, and what is refused with which words.
#include <gtest/gtest.h>

#include <set>

#include "graph/builder.h"
#include "graph/ops/op_def.h"
#include "graphrun/op.h"
namespace graphrun {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;

class Ops : public ::testing::Test {
 protected:
  NodeId input(Extents shape, std::int64_t rows = 0, const char* dtype = "f32") {
    return builder_.add("input", {}, {{"shape", std::move(shape)}, {"rows", rows}, {"dtype", std::string(dtype)}});
  }
  NodeId boolean(Extents shape, std::int64_t rows = 0) { return input(std::move(shape), rows, "bool"); }
  NodeId counter() { return input({}, 0, "u64"); }

  // The type of the result as text, or "code: ..." of the error.
  std::string infer(std::string_view op, std::vector<NodeId> inputs, const AttrList& attrs = {}) {
    try {
      return to_string(builder_.type(builder_.add(op, std::move(inputs), attrs)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_EQ(error.diagnostics().size(), 1u);
      message_ = error.diagnostics().front().message + " | " + error.diagnostics().front().hint;
      return error.diagnostics().front().code;
    }
  }
  bool said(std::string_view part) const { return message_.find(part) != std::string::npos; }

  ir::Graph graph_;
  ir::Builder builder_{graph_};
  std::string message_;
};

// ---- the registry

TEST_F(Ops, HaveADescriptionThatFits) {
  std::set<std::string_view> names;
  for (const OpDef& op : all_ops()) {
    EXPECT_TRUE(names.insert(op.name()).second) << op.name();
    EXPECT_FALSE(op.doc.empty()) << op.name();
    EXPECT_TRUE(op.declare != nullptr || op.state == nullptr) << op.name() << ": a source declares its type";
    EXPECT_TRUE((op.grad == nullptr) != op.no_gradient.empty()) << op.name() << ": a gradient, or the reason for none";
    EXPECT_EQ(op.state != nullptr, op.operands.empty()) << op.name() << ": states have no operands, steps have some";
    EXPECT_EQ(find_op_def(op.name()), &op);
    EXPECT_EQ(&op_def(op.op), &op);
    for (const ir::AttrDef& attribute : op.attrs)
      EXPECT_FALSE(attribute.doc.empty()) << op.name() << "." << attribute.name;
  }
  EXPECT_EQ(find_op_def("no_such_op"), nullptr);
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < kOps; ++i) numbers += find_op(name_of(static_cast<Op>(i))).has_value() ? 1 : 0;
  EXPECT_EQ(numbers, all_ops().size());
}

TEST_F(Ops, UnknownNamesGetTheNearest) {
  EXPECT_EQ(infer("matmull", {input({2})}), "op.unknown");
  EXPECT_TRUE(said("'matmul'")) << message_;
}

TEST_F(Ops, TakeTheirNumberOfOperands) {
  EXPECT_EQ(infer("add", {input({2})}), "op.arity");
  EXPECT_TRUE(said("add takes 2 operands (x, y), got 1")) << message_;
  EXPECT_EQ(infer("tanh", {input({2}), input({2})}), "op.arity");
  EXPECT_TRUE(said("1 operand (x)")) << message_;
}

TEST_F(Ops, ErrorsNameOpAndOperandsWithTheirTypes) {
  const NodeId x = input({5, 3}, 1);
  const NodeId w = input({4});
  builder_.rename(x, "x");
  builder_.rename(w, "w");
  EXPECT_EQ(infer("add", {x, w}), "shape.mismatch");
  EXPECT_TRUE(said("add: x f32(batch, 3) and w f32(4)")) << message_;
}

// ---- elementwise

TEST_F(Ops, EveryScalarOpKeepsShapeRowsAndDType) {
  for (const OpDef& op : all_ops()) {
    if (op.rows != RowRule::elementwise || op.state != nullptr || op.internal) continue;
    const bool logical = op.name().substr(0, 7) == "logical";
    AttrList attrs;
    if (op.op == *find_op("clip")) attrs = {{"low", 0.0}, {"high", 1.0}};
    if (op.op == Op::cast) continue;
    for (const char* dtype : {"f32", "f64"}) {
      if (logical && dtype == std::string("f64")) continue;
      std::vector<NodeId> inputs(op.operands.size(), input({10, 3}, 2, logical ? "bool" : dtype));
      if (op.op == Op::where) inputs[0] = boolean({10, 3}, 2);
      const bool to_bool = logical || op.no_gradient == "its result is bool";
      EXPECT_EQ(infer(op.name(), inputs, attrs), (to_bool ? "bool" : dtype) + std::string("(2*batch, 3)")) << op.name();
    }
  }
}

TEST_F(Ops, FloatOpsRefuseIntegers) {
  EXPECT_EQ(infer("tanh", {input({2}, 0, "i32")}), "dtype.float");
  EXPECT_TRUE(said("cast")) << message_;
  EXPECT_EQ(infer("add", {input({2}, 0, "i32"), input({2}, 0, "i32")}), "dtype.float");
  EXPECT_EQ(infer("add", {input({2}), input({2}, 0, "f64")}), "dtype.mismatch");
  EXPECT_EQ(infer("sum", {boolean({2})}), "dtype.float");
}

TEST_F(Ops, BroadcastAsNumPyDoes) {
  EXPECT_EQ(infer("add", {input({4, 1}), input({3})}), "f32(4, 3)");
  EXPECT_EQ(infer("add", {input({}), input({2, 3})}), "f32(2, 3)");
  EXPECT_EQ(infer("add", {input({2, 1, 3}), input({5, 1})}), "f32(2, 5, 3)");
  EXPECT_EQ(infer("add", {input({0, 3}), input({1, 3})}), "f32(0, 3)");
  EXPECT_EQ(infer("add", {input({2, 0}), input({2, 1})}), "f32(2, 0)");
  EXPECT_EQ(infer("add", {input({}), input({})}), "f32()");
  EXPECT_EQ(infer("add", {input({2, 3}), input({2})}), "shape.mismatch");
  EXPECT_EQ(infer("add", {input({0}), input({2})}), "shape.mismatch");
}

TEST_F(Ops, RowsMeetAtDimensionZeroOnly) {
  const NodeId x = input({5, 3}, 1);
  EXPECT_EQ(infer("add", {x, input({3})}), "f32(batch, 3)");
  EXPECT_EQ(infer("add", {input({}), x}), "f32(batch, 3)");
  EXPECT_EQ(infer("add", {x, input({1, 3})}), "f32(batch, 3)");
  EXPECT_EQ(infer("add", {x, input({5, 1}, 1)}), "f32(batch, 3)");
  // (batch) beside (batch, 1) would be every sample with every other.
  EXPECT_EQ(infer("sub", {input({5, 1}, 1), input({5}, 1)}), "shape.rows");
  EXPECT_TRUE(said("reshape")) << message_;
  // Sizes that happen to be equal do not make a batch.
  EXPECT_EQ(infer("add", {x, input({5, 3})}), "shape.rows");
  EXPECT_TRUE(said("has no batch dimension")) << message_;
  EXPECT_EQ(infer("add", {input({10, 3}, 2), input({10, 3}, 1)}), "shape.rows");
  EXPECT_EQ(infer("add", {x, input({2, 5, 3})}), "shape.rows");
}

TEST_F(Ops, ComparisonsGiveBooleans) {
  EXPECT_EQ(infer("less", {input({5, 3}, 1), input({3})}), "bool(batch, 3)");
  EXPECT_EQ(infer("equal", {input({3}, 0, "i32"), input({3}, 0, "i32")}), "bool(3)");
  EXPECT_EQ(infer("equal", {input({3}), input({3}, 0, "i32")}), "dtype.mismatch");
}

TEST_F(Ops, LogicTakesBooleans) {
  EXPECT_EQ(infer("logical_and", {boolean({5, 3}, 1), boolean({3})}), "bool(batch, 3)");
  EXPECT_EQ(infer("logical_not", {boolean({3})}), "bool(3)");
  EXPECT_EQ(infer("logical_or", {boolean({3}), input({3})}), "dtype.bool");
  EXPECT_TRUE(said("x > 0")) << message_;
}

TEST_F(Ops, WhereChecksConditionAndValues) {
  EXPECT_EQ(infer("where", {boolean({5, 1}, 1), input({3}), input({})}), "f32(batch, 3)");
  EXPECT_EQ(infer("where", {boolean({3}), input({3}, 0, "u64"), input({}, 0, "u64")}), "u64(3)");
  EXPECT_EQ(infer("where", {input({3}), input({3}), input({3})}), "dtype.bool");
  EXPECT_EQ(infer("where", {boolean({3}), input({3}), input({3}, 0, "f64")}), "dtype.mismatch");
  EXPECT_EQ(infer("where", {boolean({4}), input({3}), input({3})}), "shape.mismatch");
}

TEST_F(Ops, AttributesAreChecked) {
  const NodeId x = input({3});
  EXPECT_EQ(infer("clip", {x}, {{"low", 2.0}, {"high", 1.0}}), "attribute.range");
  EXPECT_NE(infer("clip", {x}, {{"low", 2.0}}), "f32(3)") << "'high' is required";
  EXPECT_NE(infer("leaky_relu", {x}, {{"slop", 0.1}}), "f32(3)");
  EXPECT_TRUE(said("slope")) << message_;
  EXPECT_NE(infer("elu", {x}, {{"alpha", std::string("one")}}), "f32(3)");
  EXPECT_EQ(infer("elu", {x}, {{"alpha", std::int64_t{2}}}), "f32(3)") << "an integer is a number";
}

// ---- matmul

TEST_F(Ops, MatmulShapes) {
  const auto product = [&](Extents a, Extents b, bool ta, bool tb) {
    return infer("matmul", {input(a), input(b)}, {{"transpose_a", ta}, {"transpose_b", tb}});
  };
  EXPECT_EQ(product({2, 3}, {3, 4}, false, false), "f32(2, 4)");
  EXPECT_EQ(product({3, 2}, {3, 4}, true, false), "f32(2, 4)");
  EXPECT_EQ(product({2, 3}, {4, 3}, false, true), "f32(2, 4)");
  EXPECT_EQ(product({3, 2}, {4, 3}, true, true), "f32(2, 4)");
  EXPECT_EQ(product({2, 0}, {0, 4}, false, false), "f32(2, 4)");
  EXPECT_EQ(product({2, 3}, {4, 3}, false, false), "shape.mismatch");
  EXPECT_TRUE(said("3 against 4")) << message_;
  EXPECT_EQ(product({3}, {3, 4}, false, false), "shape.rank");
  EXPECT_TRUE(said("reshape")) << message_;
  EXPECT_EQ(infer("matmul", {input({2, 3}), input({3, 4}, 0, "f64")}), "dtype.mismatch");
  EXPECT_EQ(infer("matmul", {input({2, 3}, 0, "i32"), input({3, 4}, 0, "i32")}), "dtype.float");
}

TEST_F(Ops, MatmulRows) {
  const NodeId x = input({5, 3}, 1);
  const NodeId g = input({5, 4}, 1);
  const AttrList ta = {{"transpose_a", true}};
  EXPECT_EQ(infer("matmul", {x, input({3, 4})}), "f32(batch, 4)");
  EXPECT_EQ(infer("matmul", {x, input({4, 3})}, {{"transpose_b", true}}), "f32(batch, 4)");
  EXPECT_EQ(infer("matmul", {x, g}, ta), "f32(3, 4)") << "summed over the batch";
  EXPECT_EQ(infer("matmul", {input({10, 3}, 2), input({3, 4})}), "f32(2*batch, 4)");
  EXPECT_EQ(infer("matmul", {input({3, 5}), x}), "shape.rows");
  EXPECT_TRUE(said("x @ W")) << message_;
  EXPECT_EQ(infer("matmul", {x, input({5, 4})}, ta), "shape.rows");
  EXPECT_EQ(infer("matmul", {input({10, 3}, 2), input({10, 4}, 1)}, ta), "shape.rows");
  EXPECT_EQ(infer("matmul", {x, input({5, 3}, 1)}, {{"transpose_b", true}}), "shape.rows") << "batch x batch";
}

TEST_F(Ops, MatmulLeadingDimensionsBroadcast) {
  const auto product = [&](Extents a, Extents b, bool ta = false, bool tb = false) {
    return infer("matmul", {input(a), input(b)}, {{"transpose_a", ta}, {"transpose_b", tb}});
  };
  EXPECT_EQ(product({7, 2, 3}, {7, 3, 4}), "f32(7, 2, 4)");
  EXPECT_EQ(product({7, 2, 3}, {3, 4}), "f32(7, 2, 4)");
  EXPECT_EQ(product({2, 3}, {7, 3, 4}), "f32(7, 2, 4)");
  EXPECT_EQ(product({7, 3, 2}, {7, 4, 3}, true, true), "f32(7, 2, 4)");
  EXPECT_EQ(product({6, 1, 2, 3}, {7, 3, 4}), "f32(6, 7, 2, 4)");
  EXPECT_EQ(product({0, 2, 3}, {1, 3, 4}), "f32(0, 2, 4)");
  EXPECT_EQ(product({6, 2, 3}, {7, 3, 4}), "shape.mismatch");
  EXPECT_TRUE(said("the leading dimensions do not broadcast, 6 against 7")) << message_;
}

TEST_F(Ops, MatmulBatchOfMatrices) {
  const NodeId x = input({5, 2, 3}, 1);
  EXPECT_EQ(infer("matmul", {x, input({5, 3, 4}, 1)}), "f32(batch, 2, 4)");
  EXPECT_EQ(infer("matmul", {x, input({3, 4})}), "f32(batch, 2, 4)");
  EXPECT_EQ(infer("matmul", {x, input({1, 3, 4})}), "f32(batch, 2, 4)");
  EXPECT_EQ(infer("matmul", {input({4, 2}), x}), "f32(batch, 4, 3)");
  EXPECT_EQ(infer("matmul", {input({5, 6, 2, 3}, 1), input({6, 3, 4})}), "f32(batch, 6, 2, 4)");
  EXPECT_EQ(infer("matmul", {x, input({5, 2, 4}, 1)}, {{"transpose_a", true}}), "f32(batch, 3, 4)")
      << "each sample's own product";
  // The batch would meet something else.
  EXPECT_EQ(infer("matmul", {x, input({5, 3, 4})}), "shape.rows");
  EXPECT_EQ(infer("matmul", {x, input({6, 5, 3, 4})}), "shape.rows");
  EXPECT_EQ(infer("matmul", {x, input({10, 3, 4}, 2)}), "shape.mismatch");
  EXPECT_EQ(infer("matmul", {x, input({3, 4}, 1)}), "shape.rows");
  EXPECT_EQ(infer("matmul", {input({5, 3}, 1), input({6, 3, 4})}), "shape.rows");
  EXPECT_TRUE(said("would no longer be dimension 0")) << message_;
}

// ---- reductions

TEST_F(Ops, SumShapesAndRows) {
  const auto sum = [&](NodeId x, Extents axes, bool keepdims) {
    return infer("sum", {x}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
  };
  const NodeId plain = input({2, 3, 4});
  EXPECT_EQ(sum(plain, {}, false), "f32()");
  EXPECT_EQ(sum(plain, {}, true), "f32(1, 1, 1)");
  EXPECT_EQ(sum(plain, {1}, false), "f32(2, 4)");
  EXPECT_EQ(sum(plain, {-1, 0}, true), "f32(1, 3, 1)");
  EXPECT_EQ(sum(input({}), {}, false), "f32()");
  const NodeId x = input({5, 3}, 1);
  EXPECT_EQ(sum(x, {0}, false), "f32(3)");
  EXPECT_EQ(sum(x, {0}, true), "f32(1, 3)");
  EXPECT_EQ(sum(x, {1}, false), "f32(batch)");
  EXPECT_EQ(sum(x, {-1}, true), "f32(batch, 1)");
  EXPECT_EQ(sum(plain, {3}, false), "attribute.axis");
  EXPECT_EQ(sum(plain, {-4}, false), "attribute.axis");
  EXPECT_EQ(sum(plain, {1, -2}, false), "attribute.axis") << "the same axis twice";
}

TEST_F(Ops, ReductionsAreAlike) {
  for (const char* op : {"max", "min", "prod", "logsumexp"}) {
    EXPECT_EQ(infer(op, {input({5, 3}, 1)}, {{"axes", Extents{-1}}}), "f32(batch)") << op;
    EXPECT_EQ(infer(op, {input({5, 3}, 1)}, {{"axes", Extents{0}}, {"keepdims", true}}), "f32(1, 3)") << op;
    EXPECT_EQ(infer(op, {input({2, 0}, 0, "f64")}), "f64()") << op << " of nothing";
    EXPECT_EQ(infer(op, {input({2, 3})}, {{"axes", Extents{2}}}), "attribute.axis") << op;
    EXPECT_EQ(infer(op, {input({2, 3}, 0, "i32")}), "dtype.float") << op;
  }
}

TEST_F(Ops, PositionsAreIntegers) {
  for (const char* op : {"argmax", "argmin"}) {
    const auto position = [&](NodeId x, std::int64_t axis) { return infer(op, {x}, {{"axis", axis}}); };
    EXPECT_EQ(infer(op, {input({5, 3}, 1)}), "i32(batch)") << "the last axis unless told";
    EXPECT_EQ(position(input({5, 3, 4}, 1), 1), "i32(batch, 4)");
    EXPECT_EQ(position(input({2, 3}, 0, "f64"), 0), "i32(3)");
    EXPECT_EQ(position(input({7}), -1), "i32()");
    EXPECT_EQ(position(input({0, 3}), 1), "i32(0)");
    EXPECT_EQ(position(input({5, 3}, 1), 0), "shape.rows");
    EXPECT_EQ(position(input({5, 3}, 1), -2), "shape.rows");
    EXPECT_EQ(position(input({2, 0}), 1), "shape.empty");
    EXPECT_EQ(position(input({2, 3}), 2), "attribute.axis");
    EXPECT_EQ(position(input({}), 0), "attribute.axis");
    EXPECT_EQ(position(input({2, 3}, 0, "i32"), 1), "dtype.float");
  }
}

// ---- softmax and its kin

TEST_F(Ops, SoftmaxLooksAlongOneAxis) {
  for (const char* op : {"softmax", "log_softmax"}) {
    const auto along = [&](NodeId x, std::int64_t axis) { return infer(op, {x}, {{"axis", axis}}); };
    EXPECT_EQ(infer(op, {input({5, 3}, 1)}), "f32(batch, 3)");
    EXPECT_EQ(along(input({5, 3}, 0, "f64"), 0), "f64(5, 3)");
    EXPECT_EQ(along(input({5, 3}, 1), 0), "shape.rows");
    EXPECT_TRUE(said("axis 0 is the batch")) << message_;
    EXPECT_EQ(along(input({5}, 1), -1), "shape.rows");
    EXPECT_EQ(along(input({5, 3}), 2), "attribute.axis");
    EXPECT_EQ(along(input({}), -1), "attribute.axis");
    EXPECT_EQ(along(input({5, 3}, 0, "i32"), 1), "dtype.float");
  }
}

TEST_F(Ops, CrossEntropyTakesOneHotOrClassNumbers) {
  const auto entropy = [&](NodeId x, NodeId t) { return infer("softmax_cross_entropy", {x, t}); };
  const NodeId x = input({5, 3}, 1);
  EXPECT_EQ(entropy(x, input({5, 3}, 1)), "f32(batch)");
  EXPECT_EQ(entropy(x, input({5}, 1, "i32")), "f32(batch)");
  EXPECT_EQ(entropy(input({5, 2, 3}, 1), input({5, 2}, 1, "i32")), "f32(batch, 2)");
  EXPECT_EQ(entropy(input({3}), input({3})), "f32()");
  EXPECT_EQ(entropy(input({3}), input({}, 0, "i32")), "f32()");
  EXPECT_EQ(entropy(x, input({5, 4}, 1)), "shape.mismatch");
  EXPECT_TRUE(said("one-hot f32(batch, 3) or class numbers i32(batch)")) << message_;
  EXPECT_EQ(entropy(x, input({5}, 1)), "shape.mismatch") << "class numbers are integers";
  EXPECT_EQ(entropy(x, input({5, 1}, 1, "i32")), "shape.mismatch");
  EXPECT_EQ(entropy(x, input({5, 3})), "shape.mismatch") << "targets of another batch";
  EXPECT_EQ(entropy(x, input({5, 3}, 1, "f64")), "shape.mismatch");
  EXPECT_EQ(entropy(input({}), input({})), "shape.rank");
  EXPECT_EQ(entropy(input({5}, 1), input({5}, 1)), "shape.rank") << "a batch is no axis of classes";
}

// ---- movement

TEST_F(Ops, ReshapeFillsTheOpenExtentAndKeepsWholeRows) {
  const auto reshape = [&](NodeId x, Extents shape) { return infer("reshape", {x}, {{"shape", std::move(shape)}}); };
  EXPECT_EQ(reshape(input({2, 6}), {-1, 4}), "f32(3, 4)");
  EXPECT_EQ(reshape(input({1}), {}), "f32()");
  EXPECT_EQ(reshape(input({2, 6}), {5, 2}), "shape.mismatch");
  EXPECT_EQ(reshape(input({2, 6}), {-1, 5}), "shape.mismatch");
  EXPECT_EQ(reshape(input({2, 6}), {-1, -1}), "shape.extent");
  const NodeId x = input({5, 6}, 1);
  EXPECT_EQ(reshape(x, {5, 2, 3}), "f32(batch, 2, 3)");
  EXPECT_EQ(reshape(x, {10, 3}), "f32(2*batch, 3)");
  EXPECT_EQ(reshape(input({10, 3}, 2), {5, 6}), "f32(batch, 6)");
  EXPECT_EQ(reshape(x, {3, 10}), "shape.rows");
  EXPECT_EQ(reshape(x, {1, 30}), "shape.rows");
}

TEST_F(Ops, BroadcastToDeclaresRows) {
  const auto broadcast = [&](NodeId x, Extents shape, std::int64_t rows) {
    return infer("broadcast_to", {x}, {{"shape", std::move(shape)}, {"rows", rows}});
  };
  EXPECT_EQ(broadcast(input({3}), {5, 3}, 1), "f32(batch, 3)");
  EXPECT_EQ(broadcast(input({5, 1}, 1), {5, 3}, 1), "f32(batch, 3)");
  EXPECT_EQ(broadcast(input({2, 1}), {4, 2, 3}, 0), "f32(4, 2, 3)");
  EXPECT_EQ(broadcast(input({3}), {5, 4}, 0), "shape.mismatch");
  EXPECT_EQ(broadcast(input({2, 3}), {3}, 0), "shape.mismatch");
  EXPECT_EQ(broadcast(input({5, 1}, 1), {5, 3}, 0), "shape.mismatch") << "rows do not get lost";
  EXPECT_EQ(broadcast(input({5}, 1), {5, 5}, 1), "shape.mismatch");
}

TEST_F(Ops, CastTakesAKnownDType) {
  EXPECT_EQ(infer("cast", {input({5, 2}, 1)}, {{"dtype", std::string("i32")}}), "i32(batch, 2)");
  EXPECT_NE(infer("cast", {input({5, 2}, 1)}, {{"dtype", std::string("f16")}}), "f16(batch, 2)");
  EXPECT_TRUE(said("f32")) << message_;
}

TEST_F(Ops, TransposeNamesEachAxisOnce) {
  const auto transpose = [&](NodeId x, Extents axes) { return infer("transpose", {x}, {{"axes", std::move(axes)}}); };
  EXPECT_EQ(transpose(input({2, 3, 4}), {}), "f32(4, 3, 2)");
  EXPECT_EQ(transpose(input({2, 3, 4}), {1, -1, 0}), "f32(3, 4, 2)");
  EXPECT_EQ(transpose(input({}), {}), "f32()");
  EXPECT_EQ(transpose(input({2, 3}, 0, "bool"), {}), "bool(3, 2)");
  EXPECT_EQ(transpose(input({5, 2, 3}, 1), {0, 2, 1}), "f32(batch, 3, 2)");
  EXPECT_EQ(transpose(input({5, 3}, 1), {}), "shape.rows");
  EXPECT_EQ(transpose(input({2, 3}), {0}), "attribute.axis");
  EXPECT_EQ(transpose(input({2, 3}), {0, 0}), "attribute.axis");
  EXPECT_EQ(transpose(input({2, 3}), {0, 2}), "attribute.axis");
  EXPECT_EQ(transpose(input({2, 3}), {0, -3}), "attribute.axis");
}

TEST_F(Ops, SliceTakesARange) {
  const auto slice = [&](NodeId x, std::int64_t axis, std::int64_t start, std::int64_t stop) {
    return infer("slice", {x}, {{"axis", axis}, {"start", start}, {"stop", stop}});
  };
  const NodeId x = input({5, 7}, 1);
  EXPECT_EQ(slice(x, 1, 2, 5), "f32(batch, 3)");
  EXPECT_EQ(slice(x, -1, -3, -1), "f32(batch, 2)");
  EXPECT_EQ(slice(x, 1, 4, 99), "f32(batch, 3)");
  EXPECT_EQ(slice(x, 1, 7, 7), "f32(batch, 0)");
  EXPECT_EQ(infer("slice", {x}, {{"start", std::int64_t{4}}}), "f32(batch, 3)") << "to the end of the last axis";
  EXPECT_EQ(slice(x, 1, 5, 2), "attribute.range");
  EXPECT_TRUE(said("[5, 2)")) << message_;
  EXPECT_EQ(slice(x, 1, 8, 9), "attribute.range");
  EXPECT_EQ(slice(x, 1, -8, 2), "attribute.range");
  EXPECT_EQ(slice(x, 0, 0, 2), "shape.rows");
  EXPECT_EQ(slice(x, 2, 0, 1), "attribute.axis");
  EXPECT_EQ(slice(input({}), -1, 0, 1), "attribute.axis");
}

TEST_F(Ops, PadGrowsAnAxis) {
  const auto pad = [&](NodeId x, std::int64_t axis, std::int64_t before, std::int64_t after) {
    return infer("pad", {x}, {{"axis", axis}, {"before", before}, {"after", after}});
  };
  EXPECT_EQ(pad(input({5, 7}, 1), 1, 1, 2), "f32(batch, 10)");
  EXPECT_EQ(pad(input({5, 0}, 0, "f64"), -1, 1, 0), "f64(5, 1)");
  EXPECT_EQ(pad(input({5, 7}, 1), 0, 1, 2), "shape.rows");
  EXPECT_EQ(pad(input({5, 7}), 2, 1, 2), "attribute.axis");
  EXPECT_NE(pad(input({5, 7}), 1, -1, 2), "f32(5, 8)");
  EXPECT_TRUE(said("before")) << message_;
  EXPECT_EQ(pad(input({5, 7}, 0, "i32"), 1, 1, 2), "dtype.float");
}

TEST_F(Ops, ConcatTakesSeveral) {
  const auto concat = [&](std::vector<NodeId> parts, std::int64_t axis) {
    return infer("concat", std::move(parts), {{"axis", axis}});
  };
  const NodeId x = input({5, 3}, 1);
  EXPECT_EQ(concat({x}, 1), "f32(batch, 3)");
  EXPECT_EQ(concat({x, input({5, 2}, 1), input({5, 0}, 1)}, -1), "f32(batch, 5)");
  EXPECT_EQ(concat({input({2, 3}, 0, "i32"), input({4, 3}, 0, "i32")}, 0), "i32(6, 3)");
  EXPECT_EQ(concat(std::vector<NodeId>(8, x), 1), "f32(batch, 24)");
  EXPECT_EQ(concat(std::vector<NodeId>(9, x), 1), "op.arity");
  EXPECT_EQ(concat({}, 1), "op.arity");
  EXPECT_EQ(concat({x, x}, 0), "shape.rows");
  EXPECT_EQ(concat({x, input({5, 3})}, 1), "shape.mismatch") << "no batch beside a batch";
  EXPECT_EQ(concat({x, input({5, 2, 3}, 1)}, 1), "shape.mismatch");
  EXPECT_EQ(concat({input({2, 3}), input({4, 2})}, 0), "shape.mismatch");
  EXPECT_EQ(concat({input({2, 3}), input({2, 3}, 0, "f64")}, 0), "shape.mismatch");
  EXPECT_EQ(concat({input({2, 3})}, 2), "attribute.axis");
}

TEST_F(Ops, WindowsFitIntoTheAxesBeforeTheLast) {
  const auto windows = [&](NodeId x, Extents size, Extents stride = {}, Extents dilation = {}) {
    return infer("windows", {x},
                 {{"size", std::move(size)}, {"stride", std::move(stride)}, {"dilation", std::move(dilation)}});
  };
  const NodeId image = input({5, 28, 20, 3}, 1);
  EXPECT_EQ(windows(image, {5, 3}), "f32(batch, 24, 18, 5, 3, 3)");
  EXPECT_EQ(windows(image, {5, 3}, {2}), "f32(batch, 12, 9, 5, 3, 3)");
  EXPECT_EQ(windows(image, {5, 3}, {2, 1}, {1, 2}), "f32(batch, 12, 16, 5, 3, 3)");
  EXPECT_EQ(windows(image, {28, 20}), "f32(batch, 1, 1, 28, 20, 3)");
  EXPECT_EQ(windows(input({7, 2}, 0, "i32"), {3}), "i32(5, 3, 2)");
  EXPECT_EQ(windows(image, {29, 3}), "shape.mismatch");
  EXPECT_TRUE(said("29 elements")) << message_;
  EXPECT_EQ(windows(image, {3, 3}, {}, {1, 10}), "shape.mismatch");
  EXPECT_EQ(windows(image, {3, 3, 3}), "shape.rank") << "the batch has no windows";
  EXPECT_EQ(windows(input({5, 3}, 1), {3}), "shape.rank");
  EXPECT_EQ(windows(image, {}), "attribute.value");
  EXPECT_EQ(windows(image, {1, 1, 1, 1}), "attribute.value");
  EXPECT_EQ(windows(image, {3, 3}, {1, 1, 1}), "attribute.value");
  EXPECT_EQ(windows(image, {0, 3}), "attribute.range");
  EXPECT_EQ(windows(image, {3, 3}, {-1}), "attribute.range");
  EXPECT_EQ(windows(image, {3, 3}, {}, {std::int64_t{1} << 31}), "attribute.range");
  EXPECT_EQ(windows(image, {3, 3}, {}, {(std::int64_t{1} << 31) - 1}), "shape.mismatch");
}

TEST_F(Ops, FoldTakesTheWindowsOfItsResult) {
  const auto fold = [&](NodeId x, Extents extents, Extents size, Extents stride = {}) {
    return infer("fold", {x},
                 {{"extents", std::move(extents)}, {"size", std::move(size)}, {"stride", std::move(stride)}});
  };
  const NodeId x = input({5, 12, 9, 5, 3, 2}, 1);
  EXPECT_EQ(fold(x, {27, 19}, {5, 3}, {2}), "f32(batch, 27, 19, 2)");
  EXPECT_EQ(fold(x, {28, 20}, {5, 3}, {2}), "f32(batch, 28, 20, 2)") << "the last elements are in no window";
  EXPECT_EQ(fold(x, {29, 20}, {5, 3}, {2}), "shape.mismatch");
  EXPECT_EQ(fold(x, {28, 20}, {5, 3}), "shape.mismatch");
  EXPECT_EQ(fold(x, {28, 20}, {3, 5}, {2}), "shape.mismatch");
  EXPECT_EQ(fold(x, {28}, {5, 3}, {2}), "shape.rank");
  EXPECT_EQ(fold(x, {0, 20}, {5, 3}, {2}), "shape.extent");
  EXPECT_EQ(fold(x, {-1, 20}, {5, 3}, {2}), "shape.extent");
  EXPECT_EQ(fold(input({5, 3}, 1), {5}, {3}), "shape.rank");
}

TEST_F(Ops, OneHotAddsAnAxisOfClasses) {
  const auto one_hot = [&](NodeId x, std::int64_t classes) { return infer("one_hot", {x}, {{"classes", classes}}); };
  EXPECT_EQ(one_hot(input({5}, 1, "i32"), 10), "f32(batch, 10)");
  EXPECT_EQ(one_hot(input({}, 0, "i32"), 3), "f32(3)");
  EXPECT_EQ(one_hot(input({5}, 1), 10), "dtype.i32");
  EXPECT_NE(one_hot(input({5}, 1, "i32"), 0), "f32(batch, 0)");
  EXPECT_TRUE(said("classes")) << message_;
  EXPECT_NE(one_hot(input({1, 1, 1, 1, 1, 1, 1, 1}, 0, "i32"), 2).substr(0, 3), "f32") << "nine dimensions";
}

TEST_F(Ops, GatherReadsATableWithoutABatch) {
  const auto gather = [&](NodeId table, NodeId indices) { return infer("gather", {table, indices}); };
  const NodeId table = input({7, 3});
  EXPECT_EQ(gather(table, input({5}, 1, "i32")), "f32(batch, 3)");
  EXPECT_EQ(gather(table, input({5, 4}, 1, "i32")), "f32(batch, 4, 3)");
  EXPECT_EQ(gather(table, input({}, 0, "i32")), "f32(3)");
  EXPECT_EQ(gather(input({7, 3}, 0, "i32"), input({2}, 0, "i32")), "i32(2, 3)");
  EXPECT_EQ(gather(table, input({5}, 1)), "dtype.i32");
  EXPECT_EQ(gather(input({7}), input({5}, 1, "i32")), "shape.rank");
  EXPECT_EQ(gather(input({7, 3}, 1), input({5}, 1, "i32")), "shape.rank");

  const auto scatter = [&](NodeId indices, NodeId updates, std::int64_t rows = 7) {
    return infer("scatter_add", {indices, updates}, {{"entries", rows}});
  };
  EXPECT_EQ(scatter(input({5}, 1, "i32"), input({5, 3}, 1)), "f32(7, 3)");
  EXPECT_EQ(scatter(input({5, 4}, 1, "i32"), input({5, 4, 3}, 1)), "f32(7, 3)");
  EXPECT_EQ(scatter(input({}, 0, "i32"), input({3}), 0), "f32(0, 3)");
  EXPECT_EQ(scatter(input({5}, 1), input({5, 3}, 1)), "dtype.i32");
  EXPECT_EQ(scatter(input({5}, 1, "i32"), input({5, 3}, 1, "i32")), "dtype.float");
  EXPECT_EQ(scatter(input({5}, 1, "i32"), input({5}, 1)), "shape.mismatch");
  EXPECT_EQ(scatter(input({5}, 1, "i32"), input({6, 3}, 1)), "shape.mismatch");
  EXPECT_EQ(scatter(input({5}, 1, "i32"), input({5, 3}, 0)), "shape.mismatch") << "rows for what has none";
}

// ---- draws

TEST_F(Ops, DrawsHaveTheirShape) {
  for (const char* op : {"random_uniform", "random_normal"}) {
    const auto draw = [&](NodeId step, Extents shape, std::int64_t rows) {
      return infer(op, {step}, {{"shape", std::move(shape)}, {"rows", rows}});
    };
    EXPECT_EQ(draw(counter(), {2, 3}, 0), "f32(2, 3)");
    EXPECT_EQ(draw(counter(), {10, 3}, 2), "f32(2*batch, 3)");
    EXPECT_EQ(draw(counter(), {2, -3}, 0), "shape.extent");
    EXPECT_EQ(draw(input({}), {2}, 0), "shape.scalar");
  }
  const Extents two = {2};
  EXPECT_EQ(infer("random_uniform", {counter()}, {{"shape", two}, {"low", 1.0}, {"high", 0.5}}), "attribute.range");
  EXPECT_NE(infer("random_normal", {counter()}, {{"shape", two}, {"deviation", -1.0}}), "f32(2)");
}

TEST_F(Ops, PermutationsAreIntegers) {
  EXPECT_EQ(infer("permutation", {counter()}, {{"n", std::int64_t{7}}}), "i32(7)");
  EXPECT_EQ(infer("permutation", {counter()}, {{"n", std::int64_t{0}}}), "i32(0)");
  EXPECT_EQ(infer("permutation", {input({})}, {{"n", std::int64_t{7}}}), "shape.scalar");
  EXPECT_NE(infer("permutation", {counter()}, {{"n", std::int64_t{-1}}}), "i32(-1)");
  EXPECT_NE(infer("permutation", {counter()}, {{"n", std::int64_t{1} << 32}}).substr(0, 3), "i32")
      << "more than an i32 can number";
}

TEST_F(Ops, DropoutKeepsTheType) {
  const auto dropout = [&](NodeId x, double rate) { return infer("dropout", {x, counter()}, {{"rate", rate}}); };
  EXPECT_EQ(dropout(input({5, 3}, 1), 0.5), "f32(batch, 3)");
  EXPECT_EQ(dropout(input({3}, 0, "f64"), 0), "f64(3)");
  EXPECT_EQ(dropout(input({3}, 0, "i32"), 0.5), "dtype.float");
  EXPECT_NE(dropout(input({3}), 1.0), "f32(3)") << "nothing would be left";
  EXPECT_NE(dropout(input({3}), -0.1), "f32(3)");
  EXPECT_EQ(infer("dropout", {input({3}), input({})}, {{"rate", 0.5}}), "shape.scalar");
}

// ---- the data set and the states

TEST_F(Ops, MinibatchMakesRows) {
  const auto minibatch = [&](NodeId data, NodeId step) {
    return infer("minibatch", {data, step}, {{"capacity", std::int64_t{4}}});
  };
  EXPECT_EQ(minibatch(input({11, 3}), counter()), "f32(batch, 3)");
  EXPECT_EQ(minibatch(input({11}, 0, "i32"), counter()), "i32(batch)");
  EXPECT_EQ(minibatch(input({}), counter()), "shape.data");
  EXPECT_EQ(minibatch(input({5, 3}, 1), counter()), "shape.data");
  EXPECT_EQ(minibatch(input({11, 3}), input({})), "shape.scalar");
  EXPECT_NE(infer("minibatch", {input({11, 3}), counter()}, {{"capacity", std::int64_t{-1}}}), "f32(batch, 3)");
}

TEST_F(Ops, MinibatchNeedsABatch) {
  const auto minibatch = [&](std::int64_t samples, bool drop_last) {
    return infer("minibatch", {input({samples, 3}), counter()},
                 {{"capacity", std::int64_t{4}}, {"drop_last", drop_last}, {"shuffle", true}});
  };
  EXPECT_EQ(minibatch(11, true), "f32(batch, 3)");
  EXPECT_EQ(minibatch(3, false), "f32(batch, 3)");
  EXPECT_EQ(minibatch(3, true), "shape.data");
  EXPECT_TRUE(said("3 samples")) << message_;
  EXPECT_EQ(minibatch(0, false), "shape.data");
}

TEST_F(Ops, CountersAndRecords) {
  EXPECT_EQ(infer("row_count", {counter()}, {{"total", std::int64_t{11}}, {"capacity", std::int64_t{4}}}), "i32()");
  EXPECT_EQ(infer("row_count", {input({})}, {{"total", std::int64_t{11}}, {"capacity", std::int64_t{4}}}),
            "shape.scalar");
  EXPECT_EQ(infer("increment", {counter()}), "u64()");
  EXPECT_EQ(infer("increment", {input({2}, 0, "u64")}), "shape.scalar");
  EXPECT_EQ(infer("record", {input({8}), input({}), counter()}), "f32(8)");
  EXPECT_EQ(infer("record", {input({0}), input({}), counter()}), "shape.ring");
  EXPECT_EQ(infer("record", {input({2, 4}), input({}), counter()}), "shape.ring");
  EXPECT_EQ(infer("record", {input({8}), input({1}), counter()}), "shape.scalar");
}

TEST_F(Ops, AssignWantsTheSameType) {
  EXPECT_EQ(infer("assign", {input({2, 3}), input({2, 3})}), "f32(2, 3)");
  EXPECT_EQ(infer("assign", {input({2, 3}), input({3, 2})}), "shape.assign");
  EXPECT_EQ(infer("assign", {input({2, 3}), input({2, 3}, 0, "f64")}), "shape.assign");
  EXPECT_EQ(infer("assign", {input({2, 3}), input({2, 3}, 2)}), "shape.assign") << "a state has no rows";
}

TEST_F(Ops, StatesAreAsDeclared) {
  EXPECT_EQ(infer("parameter", {}, {{"shape", Extents{2, 3}}}), "f32(2, 3)");
  EXPECT_EQ(infer("parameter", {}, {{"shape", Extents{-2}}}), "shape.extent");
  EXPECT_EQ(infer("constant", {}, {{"values", std::vector<double>{1, 2}}, {"shape", Extents{2}}}), "f32(2)");
  EXPECT_EQ(infer("constant", {}, {{"values", std::vector<double>{1, 2}}, {"shape", Extents{3}}}), "shape.constant");
  EXPECT_EQ(infer("state", {}, {{"kind", std::string("counter")}, {"dtype", std::string("u64")}}), "u64()");
  EXPECT_NE(infer("state", {}, {{"kind", std::string("thing")}}), "f32()");
}

}  // namespace
}  // namespace graphrun
