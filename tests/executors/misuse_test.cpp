// misuse_test.cpp: what a program can do wrong with the API: each is an Error that says what, none goes on.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"

namespace graphrun {
namespace {

constexpr std::int64_t kLineRows = 8;

Model line() {
  GraphBuilder graph(4);
  const Value x = graph.input("x", {kBatch, 3});
  graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", x, 1);
  graph.name(p, "prediction");
  const Value loss = graph.expression("loss = mean((prediction - y) ^ 2)");
  Model model(std::move(graph));
  model.name = "line";
  model.outputs = {{p, "prediction", "y"}};
  model.train.minimize = loss;
  model.data.splits = {
      {"train", {{"x", HostTensor(DType::f32, {kLineRows, 3})}, {"y", HostTensor(DType::f32, {kLineRows, 1})}}}};
  return model;
}

Diagnostic rejection(const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.diagnostics().front();
  }
  ADD_FAILURE() << "it was accepted";
  return {};
}
std::string code(const std::function<void(Model&)>& change) {
  return rejection([&] {
           Model model = line();
           change(model);
           Session session(std::move(model));
         })
      .code;
}

TEST(Misuse, TheModelItselfIsSound) {
  Session session(line());
  session.train();
}

TEST(Misuse, ValuesOfNobodyAndOfOthers) {
  GraphBuilder other(4);
  const Value foreign = other.input("x", {kBatch, 2});
  EXPECT_EQ(code([&](Model& m) { m.outputs[0].value = foreign; }), "value.invalid");
  EXPECT_EQ(code([&](Model& m) { m.graph.op("tanh", {foreign}); }), "value.invalid");
  EXPECT_EQ(code([&](Model& m) { m.outputs[0].value = {m.outputs[0].value.id}; }), "value.invalid");
  EXPECT_EQ(code([](Model& m) { m.outputs[0].value = {}; }), "value.invalid");
  EXPECT_EQ(code([](Model& m) { m.train.minimize = {9999}; }), "value.invalid");
  EXPECT_EQ(code([](Model& m) { m.train.metrics = {{"far", {9999}}}; }), "value.invalid");
}

TEST(Misuse, SplitsThatDoNotFit) {
  const auto column = [](Model& m, std::size_t i) -> HostTensor& { return m.data.splits[0].columns[i].second; };
  EXPECT_EQ(code([&](Model& m) { column(m, 1) = HostTensor(DType::f32, {5, 1}); }), "data.rows");
  EXPECT_EQ(code([&](Model& m) { column(m, 0) = HostTensor(DType::f32, {kLineRows, 2}); }), "data.shape");
  EXPECT_EQ(code([&](Model& m) { column(m, 0) = HostTensor(DType::f32, {}); }), "data.shape");
  EXPECT_EQ(code([&](Model& m) { column(m, 0) = HostTensor(DType::i32, {kLineRows, 3}); }), "data.dtype");
  EXPECT_EQ(code([&](Model& m) { const HostTensor taken = std::move(column(m, 0)); }), "data.shape");
  EXPECT_EQ(code([&](Model& m) { m.data.splits[0].columns.push_back(m.data.splits[0].columns[0]); }), "data.column");
  EXPECT_EQ(code([&](Model& m) { m.data.splits.push_back(m.data.splits[0]); }), "data.split");
  EXPECT_EQ(code([&](Model& m) { m.data.splits[0].columns.clear(), m.data.splits[0].declared = -1; }), "data.rows");
}

TEST(Misuse, FittedNumbers) {
  const std::vector<double> three = {1, 1, 1};
  for (const Standardization& fitted :
       {Standardization{"x", {}, {}}, Standardization{"x", {0}, three}, Standardization{"x", three, {1, 1}},
        Standardization{"x", three, {1, 0, 1}}, Standardization{"x", {0, std::nan(""), 0}, three},
        Standardization{"z", three, three}}) {
    EXPECT_EQ(code([&](Model& m) { m.data.standardizations = {fitted}; }), "data.standardization");
  }
}

TEST(Misuse, NumbersOfTraining) {
  EXPECT_EQ(code([](Model& m) { m.train.epochs = -1; }), "train.range");
  EXPECT_EQ(code([](Model& m) { m.train.log_every = -1; }), "train.range");
  EXPECT_EQ(code([](Model& m) { m.train.evaluate_every = -5; }), "train.range");
  EXPECT_EQ(code([](Model& m) { m.train.clip_norm = std::nan(""); }), "train.range");
  EXPECT_EQ(code([](Model& m) { m.train.metrics = {{"loss", m.train.minimize}}; }), "metric.name");
  EXPECT_EQ(code([](Model& m) { m.train.metrics = {{"mse", {}}, {"mse", {}}}; }), "metric.name");
  EXPECT_EQ(code([](Model& m) { m.train.metrics = {{"nothing", {}}}; }), "metric.unknown");
  EXPECT_EQ(code([](Model& m) { m.outputs[0].target = "z"; }), "output.target");
  const double tolerance = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {tolerance, -1.0}) {
    VerifyOptions options;
    options.trajectory = true;
    options.tolerance = bad;
    EXPECT_EQ(rejection([&] { verify(line(), options); }).code, "verify.tolerance");
  }
}

TEST(Misuse, BatchesThatNoRowCountCounts) {
  EXPECT_EQ(rejection([] { GraphBuilder(0); }).code, "batch.size");
  EXPECT_EQ(rejection([] { GraphBuilder(std::int64_t{1} << 31); }).code, "batch.size");
  EXPECT_EQ(rejection([] { GraphBuilder{std::numeric_limits<std::int64_t>::max()}; }).code, "batch.size");
  GraphBuilder largest((std::int64_t{1} << 31) - 1);
  EXPECT_NO_THROW(largest.input("x", {kBatch, 3}));
}

TEST(Misuse, TargetsOfOtherMachines) {
  for (const char* executor : {"cpu", "ref"}) {
    SessionOptions options;
    options.executor = executor;
    options.target = "h200";
    const Diagnostic told = rejection([&] { plan_program(line(), options); });
    EXPECT_EQ(told.code, "target.executor");
    EXPECT_NE(told.message.find("h200"), std::string::npos) << told.message;
    EXPECT_EQ(told.hint, "its targets: host");
  }
}

TEST(Misuse, ConstantsAreNotWritten) {
  Session session(line());
  std::string constant;
  for (const Buffer& buffer : session.program().buffers) {
    if (buffer.kind == BufferKind::constant) constant = buffer.name;
  }
  ASSERT_FALSE(constant.empty());
  const HostTensor value = session.read(constant);
  EXPECT_EQ(rejection([&] { session.write(constant, value); }).code, "state.constant");
  HostTensor gone = session.read("p.W");
  const HostTensor taken = std::move(gone);
  EXPECT_EQ(rejection([&] { session.write("p.W", gone); }).code, "state.shape");
}

TEST(Misuse, WhatWasMovedAway) {
  Session session(line());
  Session other(std::move(session));
  EXPECT_EQ(rejection([&] { session.train(); }).code, "session.moved");
  EXPECT_EQ(rejection([&] { session.program(); }).code, "session.moved");
  EXPECT_EQ(rejection([&] { session.evaluate("train"); }).code, "session.moved");
  EXPECT_EQ(rejection([&] { session.read("p.W"); }).code, "session.moved");
  EXPECT_EQ(session.step(), 0u);
  session.cancel();
  other.train();

  Model model = line();
  const Session first(std::move(model));
  EXPECT_EQ(rejection([&] { Session second(std::move(model)); }).code, "builder.moved");
  GraphBuilder graph(4);
  const Value x = graph.input("x", {kBatch, 2});
  const GraphBuilder taken(std::move(graph));
  const std::function<void()> calls[] = {
      [&] { (void)graph.batch(); },    [&] { graph.input("y", {kBatch}); }, [&] { graph.parameter("W", {2, 1}); },
      [&] { graph.constant(1); },      [&] { graph.op("tanh", {x}); },      [&] { graph.expression("h = 1"); },
      [&] { graph.dense("h", x, 2); }, [&] { graph.name(x, "z"); },         [&] { (void)graph.find("x"); },
      [&] { (void)graph.type(x); },    [&] { (void)graph.print(); },        [&] { (void)graph.impl(); }};
  for (const std::function<void()>& call : calls) EXPECT_EQ(rejection(call).code, "builder.moved");
}

}  // namespace
}  // namespace graphrun
