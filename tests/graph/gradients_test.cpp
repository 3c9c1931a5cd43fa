// The reverse sweep itself: what it adds to a graph, where it stops, what it refuses. The gradients of single ops are
// compared with differences in the conformance suite.
#include "graph/gradients.h"
#include "graph/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/verifier.h"
#include "graphrun/op.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using ir::NodeId;
using test::GraphRun;
using test::tensor_of;
using test::to_doubles;

class Gradients : public ::testing::Test {
 protected:
  Gradients() {
    graph_.phases.push_back({"test", 5, ir::kNoNode});
    builder_.enter(0);
  }

  NodeId input(std::vector<std::int64_t> shape, std::int64_t rows = 0, const char* dtype = "f32") {
    return builder_.add("input", {}, {{"shape", std::move(shape)}, {"rows", rows}, {"dtype", std::string(dtype)}});
  }
  NodeId add(std::string_view op, std::vector<NodeId> inputs, const AttrList& attrs = {}) {
    return builder_.add(op, std::move(inputs), attrs);
  }
  std::vector<NodeId> gradients_of(NodeId loss, std::vector<NodeId> wanted) {
    std::vector<NodeId> result = gradients(builder_, loss, wanted);
    for (const NodeId id : result) graph_[id].keep = true;
    verify(graph_);
    return result;
  }
  std::vector<double> value_of(NodeId node, const std::vector<std::pair<NodeId, std::vector<double>>>& inputs) {
    GraphRun run(graph_, test::executor("ref"));
    for (const auto& [id, values] : inputs)
      run.write(id, tensor_of(graph_[id].type.dtype, graph_[id].type.shape, values));
    run.run();
    return to_doubles(run.read(node));
  }
  std::string error_code(NodeId loss, std::vector<NodeId> wanted) {
    try {
      gradients(builder_, loss, wanted);
    } catch (const Error& error) {
      message_ = error.what();
      return error.diagnostics().front().code;
    }
    return "none";
  }

  ir::Graph graph_;
  ir::Builder builder_{graph_};
  std::string message_;
};

TEST_F(Gradients, AddsUpOverAllPaths) {
  const NodeId x = input({});
  const NodeId y = add("add", {add("mul", {x, x}), add("add", {x, x})});  // x^2 + 2x
  EXPECT_EQ(value_of(gradients_of(y, {x})[0], {{x, {3}}}), std::vector<double>{8});
}

TEST_F(Gradients, OfTheLossItselfIsOne) {
  const NodeId x = input({});
  EXPECT_EQ(value_of(gradients_of(x, {x})[0], {{x, {3}}}), std::vector<double>{1});
}

TEST_F(Gradients, OfAnInnerNodeStopsThere) {
  const NodeId x = input({2});
  const NodeId hidden = add("exp", {x});
  const NodeId loss = add("sum", {add("square", {hidden})});
  const NodeId gradient = gradients_of(loss, {hidden})[0];
  EXPECT_EQ(value_of(gradient, {{x, {0, 0}}}), (std::vector<double>{2, 2}));
}

TEST_F(Gradients, OfANodeThatDoesNotMatterIsZero) {
  const NodeId x = input({});
  const NodeId other = input({5, 2}, 1);
  const std::vector<NodeId> g = gradients_of(add("square", {x}), {other, x});
  EXPECT_EQ(graph_[g[0]].type, graph_[other].type);
  EXPECT_EQ(value_of(g[0], {{x, {3}}, {other, {1}}}), std::vector<double>(10, 0.0));
}

TEST_F(Gradients, ThroughFlatOpsIsZero) {
  const NodeId x = input({2});
  const NodeId loss = add("sum", {add("floor", {x})});
  EXPECT_EQ(value_of(gradients_of(loss, {x})[0], {{x, {1.5, 2.5}}}), (std::vector<double>{0, 0}));
}

TEST_F(Gradients, AreSummedOverWhatWasBroadcast) {
  const NodeId x = input({2, 3});
  const NodeId vector = input({3});
  const NodeId column = input({2, 1});
  const NodeId number = input({});
  NodeId y = add("mul", {x, vector});
  y = add("mul", {add("mul", {y, column}), number});
  const std::vector<NodeId> g = gradients_of(add("sum", {y}), {x, vector, column, number});
  const std::vector<std::pair<NodeId, std::vector<double>>> values = {
      {x, {1, 2, 3, 4, 5, 6}}, {vector, {1, 10, 100}}, {column, {2, 3}}, {number, {5}}};
  EXPECT_EQ(value_of(g[0], values), (std::vector<double>{10, 100, 1000, 15, 150, 1500}));
  EXPECT_EQ(value_of(g[1], values), (std::vector<double>{70, 95, 120}));
  EXPECT_EQ(value_of(g[2], values), (std::vector<double>{1605, 3270}));
  EXPECT_EQ(value_of(g[3], values), (std::vector<double>{2 * 321 + 3 * 654}));
}

// A shared value that met the batch is summed over it, also where the batch has one row.
TEST_F(Gradients, OfSharedValuesAreSummedOverTheBatch) {
  const NodeId x = input({5, 2}, 1);
  const NodeId one_row = input({1, 2});
  const NodeId loss = add("sum", {add("mul", {x, one_row})});
  const std::vector<NodeId> g = gradients_of(loss, {one_row, x});
  EXPECT_EQ(graph_[g[0]].type, graph_[one_row].type);
  EXPECT_EQ(graph_[g[1]].type, graph_[x].type);
  EXPECT_EQ(value_of(g[0], {{x, {1, 2}}, {one_row, {7}}}), (std::vector<double>{5, 10}));

  graph_.phases[0].capacity = 1;
  const NodeId single = input({1, 2}, 1);
  const NodeId shared = input({1, 2});
  const NodeId small = add("sum", {add("mul", {single, shared})});
  const NodeId gradient = gradients(builder_, small, std::vector<NodeId>{shared})[0];
  EXPECT_EQ(graph_[gradient].type, graph_[shared].type) << "no row flag on the gradient of a weight";
}

TEST_F(Gradients, StartFromAGivenCotangent) {
  const NodeId x = input({3});
  const NodeId cotangent = input({3});
  const NodeId y = add("square", {x});
  const NodeId gradient = gradients(builder_, y, cotangent, std::vector<NodeId>{x})[0];
  graph_[gradient].keep = true;
  EXPECT_EQ(value_of(gradient, {{x, {1, 2, 3}}, {cotangent, {1, 10, 100}}}), (std::vector<double>{2, 40, 600}));
}

// Row i of the Jacobian is the gradient with a cotangent that selects row i; differences of outputs agree.
class GradientsByRow : public Gradients, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  NodeId random_row(std::mt19937& dice, std::vector<NodeId>& rows, const std::vector<NodeId>& vectors,
                    const std::vector<NodeId>& weights, NodeId scalar) {
    const auto pick = [&](const std::vector<NodeId>& from) { return from[dice() % from.size()]; };
    switch (dice() % 9) {
      case 0:
        return add("tanh", {pick(rows)});
      case 1:
        return add("sin", {pick(rows)});
      case 2:
        return add("add", {pick(rows), pick(vectors)});
      case 3:
        return add("mul", {pick(rows), add("tanh", {pick(vectors)})});
      case 4:
        return add("mul", {pick(rows), add("exp", {scalar})});
      case 5:
        return add("matmul", {pick(rows), pick(weights)}, {{"transpose_b", dice() % 2 == 0}});
      case 6:
        return add("mul", {pick(rows),
                           add("sum", {pick(rows)}, {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", true}})});
      case 7:
        return add("concat",
                   {add("slice", {pick(rows)},
                        {{"axis", std::int64_t{1}}, {"start", std::int64_t{1}}, {"stop", std::int64_t{3}}}),
                    add("slice", {pick(rows)},
                        {{"axis", std::int64_t{1}}, {"start", std::int64_t{0}}, {"stop", std::int64_t{1}}})},
                   {{"axis", std::int64_t{1}}});
      default:
        return add("div", {pick(rows), add("add", {add("square", {pick(vectors)}), builder_.scalar(1, DType::f64)})});
    }
  }
};

TEST_P(GradientsByRow, AgreeWithGradientsOfOneRow) {
  std::mt19937 dice(GetParam());
  const auto real = [&](std::vector<std::int64_t> shape, std::int64_t rows = 0) {
    return input(std::move(shape), rows, "f64");
  };
  const NodeId x = real({5, 3}, 1), scalar = real({}), row = real({1, 3}), vector = real({3}), W = real({3, 3}),
               V = real({9});
  std::vector<NodeId> rows = {x};
  const std::vector<NodeId> vectors = {row, vector},
                            weights = {W, add("reshape", {V}, {{"shape", std::vector<std::int64_t>{3, 3}}})};
  for (int i = 0; i < 12; ++i) rows.push_back(random_row(dice, rows, vectors, weights, scalar));
  const NodeId output = rows.back(), selected = real({5, 3}, 1);
  const std::vector<NodeId> wanted = {scalar, row, vector, W, V};
  const std::vector<NodeId> sums = gradients(builder_, output, selected, wanted);
  const NodeId J = gradients_by_row(builder_, output, selected, wanted);
  EXPECT_EQ(graph_[J].type, (TensorType{DType::f64, {5, 25}, 1}));
  for (const NodeId id : {output, J}) graph_[id].keep = true;
  for (const NodeId id : sums) graph_[id].keep = true;
  verify(graph_);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::pair<NodeId, std::vector<double>>> values;
  for (const NodeId id : {x, scalar, row, vector, W, V, selected}) {
    std::vector<double> numbers(static_cast<std::size_t>(graph_[id].type.shape.elements()));
    for (double& number : numbers) number = uniform(dice);
    values.emplace_back(id, numbers);
  }
  std::vector<double>& cotangent = values.back().second;
  GraphRun run(graph_, test::executor("ref"));
  const auto evaluate = [&] {
    for (const auto& [id, numbers] : values) run.write(id, tensor_of(DType::f64, graph_[id].type.shape, numbers));
    run.run();
  };
  evaluate();
  const std::vector<double> jacobian = to_doubles(run.read(J)), all = cotangent;
  const auto weighted_output = [&](std::size_t r) {  // its part
    evaluate();
    const std::vector<double> y = to_doubles(run.read(output));
    return cotangent[3 * r] * y[3 * r] + cotangent[3 * r + 1] * y[3 * r + 1] + cotangent[3 * r + 2] * y[3 * r + 2];
  };
  for (std::size_t r = 0; r < 5; ++r) {
    for (std::size_t i = 0; i < all.size(); ++i) cotangent[i] = i / 3 == r ? all[i] : 0;
    evaluate();
    std::vector<double> expected;
    for (const NodeId id : sums)
      for (const double number : to_doubles(run.read(id))) expected.push_back(number);
    for (std::size_t i = 0; i < 25; ++i)
      EXPECT_NEAR(jacobian[25 * r + i], expected[i], 1e-12 * std::fmax(1, std::fabs(expected[i]))) << r << ", " << i;
  }
  cotangent = all;
  const std::size_t r = GetParam() % 5;
  std::size_t column = 0;
  for (std::size_t of = 1; of < values.size() - 1; ++of) {  // differences by the first element of each
    double& number = values[of].second[0];
    const double before = number, by = 1e-6;
    number = before + by;
    const double above = weighted_output(r);
    number = before - by;
    const double below = weighted_output(r);
    number = before;
    EXPECT_NEAR(jacobian[25 * r + column], (above - below) / (2 * by), 1e-5 * std::fmax(1, std::fabs(above)));
    column += values[of].second.size();
  }
}
INSTANTIATE_TEST_SUITE_P(RandomGraphs, GradientsByRow, ::testing::Range(1U, 201U));

TEST_F(Gradients, OfRowsNameTheOpThatCombinesThem) {
  const NodeId x = input({5, 3}, 1), W = input({3, 3}), b = input({3});
  const auto error = [&](NodeId output, NodeId wanted) {
    try {
      const NodeId ones = builder_.add("broadcast_to", {builder_.scalar(1, DType::f32)},
                                       {{"shape", std::vector<std::int64_t>{5, 3}}, {"rows", std::int64_t{1}}});
      gradients_by_row(builder_, output, ones, std::vector<NodeId>{wanted});
    } catch (const Error& failure) {
      return std::string(failure.what());
    }
    return std::string("none");
  };
  const NodeId y = add("add", {x, b});
  const NodeId centred = add("sub", {y, add("sum", {y}, {{"axes", std::vector<std::int64_t>{0}}, {"keepdims", true}})});
  EXPECT_NE(error(centred, b).find("(sum): it combines rows"), std::string::npos) << error(centred, b);
  const NodeId tied = add("matmul", {add("matmul", {x, W}), add("transpose", {W})});
  EXPECT_NE(error(tied, W).find("(transpose): of parameters, only"), std::string::npos) << error(tied, W);
}

TEST_F(Gradients, OfGradients) {
  const NodeId x = input({});
  const NodeId y = add("mul", {add("square", {x}), x});  // x^3
  const NodeId first = gradients_of(y, {x})[0];
  const NodeId second = gradients_of(first, {x})[0];
  const NodeId third = gradients_of(second, {x})[0];
  EXPECT_EQ(value_of(first, {{x, {2}}}), std::vector<double>{12});
  EXPECT_EQ(value_of(second, {{x, {2}}}), std::vector<double>{12});
  EXPECT_EQ(value_of(third, {{x, {2}}}), std::vector<double>{6});
}

// The gradient of a batch of inputs costs as much as the forward product: it is made only when it is asked for.
TEST_F(Gradients, MakeNothingForWhatIsNotWanted) {
  const NodeId x = input({5, 4}, 1);
  const NodeId w = input({4, 3});
  const NodeId loss = add("sum", {add("matmul", {x, w})});
  gradients_of(loss, {w});
  const auto products = std::count_if(graph_.nodes.begin(), graph_.nodes.end(),
                                      [](const ir::Node& node) { return node.op == Op::matmul; });
  EXPECT_EQ(products, 2) << "the forward product and that of w";
}

TEST_F(Gradients, PassThroughSelectionsButNotThroughConditions) {
  const NodeId x = input({3});
  const NodeId zero = builder_.scalar(0, DType::f32);
  const NodeId y = add("where", {add("greater", {x, zero}), add("square", {x}), x});
  const NodeId gradient = gradients_of(add("sum", {y}), {x})[0];
  EXPECT_EQ(value_of(gradient, {{x, {3, -2, 1}}}), (std::vector<double>{6, 1, 2}));
}

TEST_F(Gradients, OfSomethingThatIsNoScalarAreRejected) {
  const NodeId x = input({5, 2}, 1);
  EXPECT_EQ(error_code(add("square", {x}), {x}), "gradient.scalar");
  EXPECT_NE(message_.find("f32(batch, 2)"), std::string::npos) << message_;
  EXPECT_NE(message_.find("mean"), std::string::npos) << message_;
  const NodeId counter = input({}, 0, "u64");
  EXPECT_EQ(error_code(add("increment", {counter}), {counter}), "gradient.scalar");
}

TEST_F(Gradients, NameTheOpThatHasNone) {
  const NodeId data = input({5, 2});
  const NodeId step = input({}, 0, "u64");
  const NodeId batch = add("minibatch", {data, step}, {{"capacity", std::int64_t{5}}});
  EXPECT_EQ(error_code(add("sum", {batch}), {data}), "gradient.none");
  EXPECT_NE(message_.find("minibatch"), std::string::npos) << message_;
  EXPECT_NE(message_.find("not trained"), std::string::npos) << message_;
}

TEST_F(Gradients, DivideByTheSamplesOfTheBatch) {
  const NodeId count = input({}, 0, "i32");
  graph_.phases[0].row_count = count;
  const NodeId x = input({5, 2}, 1);
  const NodeId w = input({2});
  const NodeId mean = add("div", {add("sum", {add("mul", {x, w})}), builder_.sample_count(DType::f32)});
  const NodeId gradient = gradients_of(mean, {w})[0];
  // Three samples; the rows after them are zero, as in every batch.
  EXPECT_EQ(value_of(gradient, {{x, {1, 2, 3, 4, 5, 6, 0, 0, 0, 0}}, {w, {1}}, {count, {3}}}),
            (std::vector<double>{3, 4}));
}

}  // namespace
}  // namespace graphrun
