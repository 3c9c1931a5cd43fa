// graph_builder_test.cpp: building a model from C++: names, types, parameters, layers.
#include "graphrun/graph_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

template <class F>
Diagnostic failure(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics().front();
  }
  return {};
}

TEST(GraphBuilder, LinearRegression) {
  GraphBuilder g(32);
  const Value x = g.input("x", {kBatch, 6});
  g.input("y", {kBatch, 1});
  g.parameter("W", {6, 1});
  g.parameter("b", {1}, Init::zeros(), false);
  const Value y_hat = g.expression("y_hat = x @ W + b");
  const Value loss = g.expression("loss = mean(square(y_hat - y))");
  EXPECT_EQ(to_string(g.type(x)), "f32(batch, 6)");
  EXPECT_EQ(to_string(g.type(y_hat)), "f32(batch, 1)");
  EXPECT_EQ(g.type(loss).shape, Shape());
  EXPECT_EQ(g.find("y_hat"), y_hat);
  EXPECT_EQ(g.impl().graph[loss.id].name, "loss");
  EXPECT_EQ(g.impl().inputs.size(), 2u);
  EXPECT_EQ(g.impl().parameters.size(), 2u);
  EXPECT_EQ(std::ranges::count_if(g.impl().parameters, [](const auto& one) { return !one.second.decay; }), 1);
}

TEST(GraphBuilder, OperatorsOnValues) {
  Value lost;
  {
    GraphBuilder g(4);
    const Value x = g.input("x", {kBatch, 2});
    const Value w = g.parameter("w", {2});
    const auto said = [&](Value value) {
      const ir::Graph& graph = g.impl().graph;
      const ir::Node& node = graph[value.id];
      std::string text(name_of(node.op));
      for (const ir::NodeId input : node.inputs) {
        const ir::Node& operand = graph[input];
        text += " " + (operand.op == Op::constant ? std::to_string(operand.attrs.reals("values")[0]).substr(0, 3)
                                                  : operand.name);
      }
      return text;
    };
    EXPECT_EQ(said(x + w), "add x w");
    EXPECT_EQ(said(x - w), "sub x w");
    EXPECT_EQ(said(x * w), "mul x w");
    EXPECT_EQ(said(x / w), "div x w");
    EXPECT_EQ(said(-x), "neg x");
    EXPECT_EQ(said(x + 2), "add x 2.0");
    EXPECT_EQ(said(x - 2), "sub x 2.0");
    EXPECT_EQ(said(x * 2), "mul x 2.0");
    EXPECT_EQ(said(x / 2), "div x 2.0");
    EXPECT_EQ(said(2 + x), "add 2.0 x");
    EXPECT_EQ(said(2 - x), "sub 2.0 x");
    EXPECT_EQ(said(2 * x), "mul 2.0 x");
    EXPECT_EQ(said(2 / x), "div 2.0 x");
    GraphBuilder moved = std::move(g);
    EXPECT_EQ(to_string(moved.type(x * x + 1)), "f32(batch, 2)") << "values follow their builder";
    GraphBuilder other(4);
    EXPECT_EQ(failure([&] { x + other.input("x", {kBatch, 2}); }).message, "the value does not belong to this builder");
    EXPECT_EQ(failure([&] { x* moved.parameter("v", {3}); }).code, "shape.mismatch");
    lost = x;
  }
  EXPECT_EQ(failure([&] { lost + lost; }).message, "the value belongs to no builder that is there still");
  EXPECT_EQ(failure([] { -Value(); }).message, "the value is empty: it was never given one");
}

TEST(GraphBuilder, ErrorsOfStatesLayersAndGradients) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 2});
  const Value w = g.parameter("w", {2});
  const Value m = g.state("m", {2});
  const Value h = g.layer("dense", "h", {x}, {{"units", std::int64_t{3}}, {"bias", false}, {"trainable", false}});
  EXPECT_EQ(to_string(g.type(h)), "f32(batch, 3)");
  EXPECT_EQ(g.impl().trainable(), std::vector<ir::NodeId>{w.id});
  EXPECT_EQ(failure([&] { g.find("h.b"); }).code, "name.unknown");
  g.trainable(g.find("h.W"), true);
  EXPECT_EQ(g.impl().trainable().size(), 2u);
  EXPECT_EQ(failure([&] { g.trainable(m, true); }).code, "parameter.trainable");
  EXPECT_EQ(failure([&] { g.trainable(h, true); }).code, "parameter.trainable");
  EXPECT_EQ(failure([&] { g.assign(w, m); }).code, "assign.state");
  EXPECT_EQ(failure([&] { g.assign(m, x); }).code, "shape.assign");
  g.assign(m, m + 1);
  EXPECT_EQ(failure([&] { g.assign(m, m); }).code, "assign.twice");
  EXPECT_EQ(failure([&] { g.expression("assign(m, m)"); }).code, "assign.alone");
  EXPECT_EQ(failure([&] { g.layer("dens", "k", {x}); }).hint, "did you mean 'dense'?");
  EXPECT_EQ(failure([&] { g.layer("dense", "k", {x}, {{"share", "g"}}); }).code, "layer.share");
  EXPECT_EQ(failure([&] { g.layer("dense", "k", {h}, {{"share", "h"}}); }).code, "shape.share");
  EXPECT_EQ(failure([&] {
              g.layer("dense", "k", {x}, {{"share", "h"}, {"units", std::int64_t{3}}});
            }).code,
            "layer.share");
  EXPECT_EQ(failure([&] { g.gradient(g.op("sum", {h}), w); }).code, "gradient.independent");
  EXPECT_EQ(failure([&] { g.gradient(h, x); }).code, "shape.scalar");
  EXPECT_EQ(to_string(g.type(g.gradient(g.op("sum", {h}), x))), "f32(batch, 2)");
}

TEST(GraphBuilder, NamesAreGivenOnce) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 2});
  EXPECT_EQ(failure([&] { g.input("x", {kBatch}); }).code, "name.taken");
  EXPECT_EQ(failure([&] { g.expression("x = tanh(x)"); }).code, "name.taken");
  EXPECT_EQ(failure([&] { g.name(x, "not"); }).code, "name.invalid");
  EXPECT_EQ(failure([&] { g.name(x, "a b"); }).code, "name.invalid");
  EXPECT_EQ(failure([&] { g.name(x, "pi"); }).code, "name.taken");
  EXPECT_EQ(failure([&] { g.find("xx"); }).hint, "did you mean 'x'?");
}

// One node for all uses of a number, but -0 is not 0, and NaN is no number that came before.
TEST(GraphBuilder, AConstantIsFoundByItsBits) {
  GraphBuilder g(4);
  const Value zero = g.constant(0);
  const Value one = g.constant(1);
  const Value negative_zero = g.constant(-0.0);
  const Value nan = g.constant(std::nan(""));
  EXPECT_EQ(g.constant(1), one);
  EXPECT_EQ(g.constant(-0.0), negative_zero);
  const auto value = [&](Value of) { return g.impl().graph[of.id].attrs.reals("values").front(); };
  EXPECT_FALSE(std::signbit(value(zero)));
  EXPECT_TRUE(std::signbit(value(negative_zero)));
  EXPECT_TRUE(std::isnan(value(nan)));
  EXPECT_TRUE(std::isnan(value(g.constant(std::nan("")))));
}

TEST(GraphBuilder, ASecondNameIsAnAlias) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 2});
  EXPECT_EQ(g.expression("z = x"), x);
  EXPECT_EQ(g.find("z"), x);
  EXPECT_EQ(g.impl().graph[x.id].name, "x");
  g.expression("two = 2");
  g.expression("zwei = 2");
  EXPECT_EQ(g.find("two"), g.find("zwei"));
}

TEST(GraphBuilder, ANameGivenWinsOverOneMadeUp) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 2});
  const Value y = g.op("tanh", {x});
  const std::string made_up = g.impl().graph[y.id].name;
  const Value z = g.op("relu", {x});
  g.name(z, made_up);
  EXPECT_EQ(g.find(made_up), z);
  EXPECT_NE(g.impl().graph[y.id].name, made_up);
}

TEST(GraphBuilder, Dense) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 3});
  const Value h = g.dense("h", x, 5, "tanh");
  EXPECT_EQ(to_string(g.type(h)), "f32(batch, 5)");
  EXPECT_EQ(g.type(g.find("h.W")).shape, Shape({3, 5}));
  EXPECT_EQ(g.type(g.find("h.b")).shape, Shape({5}));
  EXPECT_EQ(g.impl().parameters.at(g.find("h.W").id).init.kind, Init::Kind::glorot_uniform);
  EXPECT_EQ(g.type(g.expression("x @ h.W")).shape, Shape({kBatch, 5}));  // tied weights
}

TEST(GraphBuilder, DenseErrors) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 3});
  const Value v = g.input("v", {kBatch});
  EXPECT_EQ(failure([&] { g.dense("h", x, 0); }).code, "attribute.value");
  EXPECT_EQ(failure([&] { g.dense("h", x, 5, "tanhh"); }).hint, "did you mean 'tanh'?");
  EXPECT_EQ(failure([&] { g.dense("h", x, 5, "add"); }).code, "layer.activation");
  EXPECT_EQ(failure([&] { g.dense("h", v, 5); }).code, "shape.rank");
  g.dense("h", x, 5);
  EXPECT_EQ(failure([&] { g.dense("h", x, 5); }).code, "name.taken");
}

TEST(GraphBuilder, Errors) {
  EXPECT_EQ(failure([] { GraphBuilder g(0); }).code, "batch.size");
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 3});
  EXPECT_EQ(failure([&] { g.input("z", {3, kBatch}); }).code, "shape.extent");
  EXPECT_EQ(failure([&] { g.parameter("p", {3}, Init::glorot_uniform()); }).code, "parameter.init");
  EXPECT_EQ(failure([&] {
              g.parameter("p", {3}, Init::values(HostTensor(Shape{2}, std::vector<float>{1, 2})));
            }).code,
            "parameter.init");
  EXPECT_EQ(failure([&] { g.op("tanhh", {x}); }).code, "function.unknown");
  EXPECT_EQ(failure([&] { g.op("add", {x}); }).code, "function.operands");
  EXPECT_EQ(failure([&] { g.op("tanh", {Value{}}); }).code, "value.invalid");
  EXPECT_EQ(failure([&] { g.op("sum", {x}, {{"axs", std::int64_t{0}}}); }).code, "attribute.unknown");
  const Diagnostic d = failure([&] { g.expression("h = x + y"); });
  EXPECT_EQ(d.column, 9);
  EXPECT_EQ(d.source_line, "h = x + y");
}

TEST(GraphBuilder, SumUnderstandsBothNamesOfItsAxes) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 3});
  EXPECT_EQ(g.type(g.op("sum", {x}, {{"axes", std::vector<std::int64_t>{1}}})).shape, Shape({kBatch}));
  EXPECT_EQ(g.type(g.op("sum", {x}, {{"axis", std::int64_t{1}}})).shape, Shape({kBatch}));
}

TEST(GraphBuilder, LossesCompareLikeWithLike) {
  GraphBuilder g(4);
  const Value a = g.input("a", {kBatch, 1});
  const Value b = g.input("b", {kBatch});
  EXPECT_EQ(failure([&] { g.op("mse", {a, b}); }).code, "shape.mismatch");
  EXPECT_EQ(g.type(g.op("mae", {a, a})).shape, Shape());
}

TEST(GraphBuilder, MovesKeepValues) {
  GraphBuilder g(4);
  const Value x = g.input("x", {kBatch, 3});
  GraphBuilder moved = std::move(g);
  EXPECT_EQ(moved.find("x"), x);
  EXPECT_EQ(to_string(moved.type(moved.expression("tanh(x)"))), "f32(batch, 3)");
}

}  // namespace
}  // namespace graphrun
