#include "graph/frontend/library/recurrent.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "graph/ops/make.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;
using make::op;

// Gate `index` of all gates next to each other: (batch, units) of (batch, gates * units).
Var gate(Var all, std::int64_t units, std::int64_t index) {
  if (all.type().shape[1] == units) return all;
  return op("slice", {all}, {{"axis", std::int64_t{1}}, {"start", index * units}, {"stop", (index + 1) * units}});
}
Var sigmoid(Var x) {
  return op("sigmoid", {x});
}
Var tanh(Var x) {
  return op("tanh", {x});
}

// One time step. The first one starts from zeros: `h`, `of_h` and `memory` have no node.
struct TimeStep {
  std::int64_t units = 0;
  Var of_x = {};            // x W + b, this time step: (batch, gates * units)
  Var of_h = {};            // h R, previous time step: (batch, gates * units)
  Var h = {};               // previous time step: (batch, units)
  Var recurrent_bias = {};  // gru: c, (batch, units)
  Var memory = {};          // lstm: c, (batch, units)
  bool is_first() const { return h.id == kNoNode; }
  Var sum() const { return is_first() ? of_x : of_x + of_h; }
};
using Cell = Var (*)(TimeStep& step);  // returns h of this time step

Var rnn_cell(TimeStep& step) {
  return tanh(step.sum());
}

Var gru_cell(TimeStep& step) {
  const auto from_x = [&](int index) { return gate(step.of_x, step.units, index); };
  const auto opened = [&](int index) {
    const Var x = from_x(index);
    return sigmoid(step.is_first() ? x : x + gate(step.of_h, step.units, index));
  };
  const Var r = opened(0), z = opened(1);
  Var n = from_x(2);
  Var kept = step.is_first() ? step.recurrent_bias : gate(step.of_h, step.units, 2);
  if (!step.is_first() && step.recurrent_bias.id != kNoNode) kept = kept + step.recurrent_bias;
  if (kept.id != kNoNode) n = n + r * kept;
  n = tanh(n);
  return step.is_first() ? n - z * n : n + z * (step.h - n);
}

Var lstm_cell(TimeStep& step) {
  const Var all = step.sum();
  const Var i = sigmoid(gate(all, step.units, 0));
  const Var g = tanh(gate(all, step.units, 2));
  Var c = i * g;
  if (!step.is_first()) c = sigmoid(gate(all, step.units, 1)) * step.memory + c;
  step.memory = c;
  const Var o = sigmoid(gate(all, step.units, 3));
  return o * tanh(c);
}

// Checks x and returns its number of time steps.
std::int64_t time_steps(const LayerCall& call, const TensorType& type, std::string_view layer) {
  const auto x = [&] { return fmt::format("{} {}", call.graph.graph[call.operands[0]].name, to_string(type)); };
  if (type.dtype != DType::f32 || type.shape.rank() != 3 || type.shape[1] < 1) {
    throw Error(
        ErrorKind::input, type.dtype != DType::f32 ? "dtype.float" : "shape.rank",
        fmt::format("{}: {} needs x of shape (batch, time steps, features) in f32, got {}", call.name, layer, x()),
        "reshape(x, shape=[-1, T, f]) makes T time steps of f features");
  }
  if (type.shape[1] > kMaxTimeSteps) {
    throw Error(
        ErrorKind::input, "layer.time_steps",
        fmt::format("{}: {} unrolls at most {} time steps, {} has {}", call.name, layer, kMaxTimeSteps, x(),
                    type.shape[1]),
        fmt::format("slice(x, axis=1, start=-{0}) keeps the last {0}; a mean of neighbouring time steps shortens "
                    "the sequence",
                    kMaxTimeSteps));
  }
  return type.shape[1];
}

NodeId unrolled(const LayerCall& call, std::string_view layer, std::int64_t gates, Cell cell) {
  const Var x{&call.graph.builder, call.operands[0]};
  const TensorType type = x.type();
  const std::int64_t steps = time_steps(call, type, layer), features = type.shape[2];
  const std::int64_t units = call.attrs.integer("units"), columns = checked_mul(gates, units);

  const Var weight{x.make, call.parameter("W", {features, columns}, *call.options.inits.at("init"))};
  const Var recurrent{x.make, call.parameter("R", {units, columns}, *call.options.inits.at("recurrent"))};
  // Products with x do not depend on h: one product for all time steps, with their rows next to each other.
  const std::int64_t rows = type.rows > 0 ? batch_extent(type.rows * steps) : type.shape[0] * steps;
  Var of_x = op("matmul", {make::reshape(x, {rows, features}), weight});
  if (const std::optional<Init>& bias = call.options.inits.at("bias"))
    of_x = of_x + Var{x.make, call.parameter("b", {columns}, *bias)};
  of_x = make::reshape(of_x, {type.shape[0], steps * columns});

  TimeStep step{.units = units};
  const auto bias = call.options.inits.find("recurrent_bias");
  if (bias != call.options.inits.end() && bias->second) {
    // One broadcast for all time steps, so that its gradient is one sum over rows.
    const Var c{x.make, call.parameter("c", {units}, *bias->second)};
    step.recurrent_bias = make::broadcast_to(c, {DType::f32, {type.shape[0], units}, type.rows});
  }
  std::vector<Var> values(static_cast<std::size_t>(steps));  // h of each time step
  const bool reverse = call.attrs.boolean("reverse");
  for (std::int64_t n = 0; n < steps; ++n) {
    const std::int64_t t = reverse ? steps - 1 - n : n;
    step.of_x = gate(of_x, columns, t);
    if (n > 0) step.of_h = op("matmul", {step.h, recurrent});
    values[static_cast<std::size_t>(t)] = step.h = cell(step);
  }
  if (call.attrs.string("return") == "last") return step.h.id;
  return make::reshape(make::concat(values, 1), {type.shape[0], steps, units}).id;
}

NodeId rnn(const LayerCall& call) {
  return unrolled(call, "rnn", 1, rnn_cell);
}
NodeId gru(const LayerCall& call) {
  return unrolled(call, "gru", 3, gru_cell);
}
NodeId lstm(const LayerCall& call) {
  return unrolled(call, "lstm", 4, lstm_cell);
}

}  // namespace

std::vector<Layer> recurrent_layers() {
  const ir::AttrDef size{
      .name = "units", .fallback = std::int64_t{16}, .doc = "size of the state h", .required = true, .low = 1};
  const ir::AttrDef result{
      .name = "return",
      .fallback = std::string("last"),
      .doc = "h of the last time step (batch, units), or of every time step (batch, time steps, units)",
      .one_of = {"last", "sequence"}};
  const ir::AttrDef reverse{.name = "reverse",
                            .fallback = false,
                            .doc = "if true, starts at the last time step; the results keep the order of x"};
  const ir::AttrSchema attributes = {size, result, reverse};
  const std::vector<LayerInit> inits = {
      {"init", Init::glorot_uniform()}, {"recurrent", Init::glorot_uniform()}, {"bias", Init::zeros(), true}};
  std::vector<LayerInit> of_gru = inits;
  of_gru.push_back({"recurrent_bias", Init::zeros(), true});
  std::vector<Layer> rows;
  const auto add = [&](std::string_view name, std::string_view doc, const std::vector<LayerInit>& of_layer,
                       NodeId (*build)(const LayerCall&)) {
    rows.push_back({{{name, doc, attributes}, {"x"}}, of_layer, build});
  };
  add("rnn", "computes h = tanh(x W + b + h R) over the time steps of x (batch, time steps, features); b (units)",
      inits, rnn);
  add("gru",
      "computes h = (1 - z) n + z h with n = tanh(n_x + r (n_h + c)) over the time steps of x (batch, time steps, "
      "features); gates r, z, n of x W + b and h R; W (features, 3 units), R (units, 3 units), c (units)",
      of_gru, gru);
  add("lstm",
      "computes c = f c + i g and h = o tanh(c) over the time steps of x (batch, time steps, features); gates i, f, g, "
      "o of x W + b + h R; W (features, 4 units), R (units, 4 units)",
      inits, lstm);
  return rows;
}

}  // namespace graphrun
