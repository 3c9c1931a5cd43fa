#include "graph/frontend/library/normalization.h"

#include <fmt/format.h>

#include "graph/frontend/library/functions.h"
#include "graph/ops/make.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using ir::NodeId;
using make::op;
using Axes = std::vector<std::int64_t>;

// The operand, f32 and with columns.
Var normalized(const LayerCall& call, std::string_view layer) {
  const NodeId x = call.operands[0];
  const TensorType type = call.graph.builder.type(x);
  if (type.shape.rank() < 2 || type.dtype != DType::f32) {
    throw Error(ErrorKind::input, type.dtype != DType::f32 ? "dtype.float" : "shape.rank",
                fmt::format("{}: {} needs x of shape (batch, columns) in f32, got {} {}", call.name, layer,
                            call.graph.graph[x].name, to_string(type)));
  }
  return {&call.graph.builder, x};
}

std::int64_t columns_of(Var x) {
  const TensorType type = x.type();
  return type.shape[type.shape.rank() - 1];
}

Var mean(Var x, const Axes& axes, bool keepdims) {
  const NodeId operand[] = {x.id};
  return {x.make, call(*x.make, *find_function("mean"), operand, {{"axis", axes}, {"keepdims", keepdims}})};
}

Var inverse_root(Var square, double eps) {
  return op("rsqrt", {square + eps});
}

// x * scale + b, without the parameters that the layer omits.
NodeId with_scale(const LayerCall& call, Var x) {
  const Shape columns = {columns_of(x)};
  if (const std::optional<Init>& scale = call.inits.at("scale"))
    x = x * Var{x.make, call.parameter("scale", columns, *scale)};
  const auto bias = call.inits.find("bias");
  if (bias != call.inits.end() && bias->second) x = x + Var{x.make, call.parameter("b", columns, *bias->second)};
  return x.id;
}

// Estimates the variance of all rows from that of a batch: multiplies it by n / (n - 1) for n numbers in a column, or
// by 1 if n is 1.
Var unbiased(Var variance, Var x) {
  const TensorType type = x.type();
  double others = 1;  // numbers of a column in one row of the batch
  for (int axis = 1; axis < type.shape.rank() - 1; ++axis) others *= static_cast<double>(type.shape[axis]);
  const bool rows = type.rows > 0;
  const Var count = rows ? Var{x.make, x.make->sample_count(DType::f32)} * others
                         : make::like(static_cast<double>(type.shape[0]) * others, variance);
  const Var one = make::like(1, variance);
  return variance * (count / op("maximum", {count - 1.0, one}));
}

}  // namespace

NodeId layer_norm(const LayerCall& call) {
  const Var x = normalized(call, "layer_norm");
  const Var centred = x - mean(x, {-1}, true);
  return with_scale(call, centred * inverse_root(mean(make::square(centred), {-1}, true), call.attrs.real("eps")));
}

NodeId rms_norm(const LayerCall& call) {
  const Var x = normalized(call, "rms_norm");
  return with_scale(call, x * inverse_root(mean(make::square(x), {-1}, true), call.attrs.real("eps")));
}

NodeId batch_norm(const LayerCall& call) {
  const Var x = normalized(call, "batch_norm");
  call.graph.batch_norms.emplace_back(call.name, x.id);
  Axes rows;
  for (int axis = 0; axis < x.type().shape.rank() - 1; ++axis) rows.push_back(axis);
  const Var of_batch = mean(x, rows, false);
  const Var spread = mean(make::square(x - of_batch), rows, false);

  const Shape columns = {columns_of(x)};
  const Var running_mean{x.make, call.state("mean", columns, Init::zeros())};
  const Var running_variance{x.make, call.state("variance", columns, Init::constant(1))};
  call.follow(running_mean.id, of_batch.id, call.attrs.real("momentum"));
  call.follow(running_variance.id, unbiased(spread, x).id, call.attrs.real("momentum"));

  const auto chosen = [&](Var in_training, Var otherwise) {
    const NodeId operands[] = {in_training.id, otherwise.id};
    return Var{x.make, graphrun::call(*x.make, *find_function("in_training"), operands, {})};
  };
  const Var centred = x - chosen(of_batch, running_mean);
  return with_scale(call, centred * inverse_root(chosen(spread, running_variance), call.attrs.real("eps")));
}

}  // namespace graphrun
