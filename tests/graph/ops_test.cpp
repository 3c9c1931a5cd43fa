// Inference of each op: the type of the result, the row rules, and what is refused with which words.
#include <gtest/gtest.h>

#include <set>

#include "graph/builder.h"

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
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_FALSE(op.doc.empty()) << op.name;
    EXPECT_NE(op.infer, nullptr) << op.name;
    EXPECT_TRUE((op.grad == nullptr) != op.no_gradient.empty()) << op.name << ": a gradient, or the reason for none";
    EXPECT_EQ(op.state != nullptr, op.operands.empty()) << op.name << ": states have no operands, steps have some";
    EXPECT_EQ(find_op(op.name), &op);
    for (const ir::AttrDef& attribute : op.attrs)
      EXPECT_FALSE(attribute.doc.empty()) << op.name << "." << attribute.name;
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
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
    const bool logical = op.name.substr(0, 7) == "logical";
    AttrList attrs;
    if (op.name == "clip") attrs = {{"low", 0.0}, {"high", 1.0}};
    if (op.name == "cast") continue;
    for (const char* dtype : {"f32", "f64"}) {
      if (logical && dtype == std::string("f64")) continue;
      std::vector<NodeId> inputs(op.operands.size(), input({10, 3}, 2, logical ? "bool" : dtype));
      if (op.name == "where") inputs[0] = boolean({10, 3}, 2);
      const bool to_bool = logical || op.no_gradient == "its result is bool";
      EXPECT_EQ(infer(op.name, inputs, attrs), (to_bool ? "bool" : dtype) + std::string("(2*batch, 3)")) << op.name;
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
  EXPECT_NE(infer("minibatch", {input({11, 3}), counter()}, {{"capacity", std::int64_t{0}}}), "f32(batch, 3)");
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
