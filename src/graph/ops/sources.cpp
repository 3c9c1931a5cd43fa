// sources.cpp: inputs, constants, states, minibatches and step counters; also assign, the only op with a side effect.
#include <fmt/format.h>

#include <cmath>

#include "graph/ops/infer.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::ops {
namespace {

TensorType declare(const OpCall& call) {
  return {infer::dtype_attribute(call), infer::declared_shape(call), 0};
}

TensorType declare_input(const OpCall& call) {
  TensorType type = declare(call);
  type.rows = call.attrs.integer("rows");
  return type;
}

// Whether the value is in the range of the dtype. A finite value must stay finite after rounding.
bool represents(DType dtype, double value) {
  if (dtype == DType::f64) return true;
  if (dtype == DType::f32) return !std::isfinite(value) || std::isfinite(static_cast<float>(value));
  if (dtype == DType::i32) return value >= -0x1p31 && value < 0x1p31;
  if (dtype == DType::u64) return value >= 0 && value < 0x1p64;
  return value == 0 || value == 1;
}

TensorType declare_constant(const OpCall& call) {
  TensorType type = declare(call);
  const auto given = static_cast<std::int64_t>(call.attrs.reals("values").size());
  if (given != type.shape.elements()) {
    call.fail("shape.constant", fmt::format("{} values do not fill the shape {}", given, to_string(type.shape)));
  }
  for (const double value : call.attrs.reals("values")) {
    if (!represents(type.dtype, value)) {
      call.fail("constant.range", fmt::format("{} is not representable as {}", value, name_of(type.dtype)));
    }
  }
  return type;
}

// One unshuffled batch of all rows is the data set itself, so the output can be a view.
bool is_whole(const ir::Attrs& attrs, std::span<const TensorType> inputs) {
  return inputs[0].shape[0] == attrs.integer("capacity") && !attrs.boolean("shuffle") && attrs.integer("shards") == 1;
}

Params pack_minibatch(const OpCall& call) {
  const ir::Attrs& attrs = call.attrs;
  const Shape& data = call.inputs[0].shape;
  return MinibatchParams{data.rank() == 0 ? 0 : data[0], attrs.integer("capacity"),
                         attrs.boolean("shuffle"),       static_cast<std::uint64_t>(attrs.integer("key")),
                         attrs.boolean("drop_last"),     static_cast<std::int32_t>(attrs.integer("shards"))};
}

Params pack_row_count(const OpCall& call) {
  const ir::Attrs& attrs = call.attrs;
  return MinibatchParams{attrs.integer("total"),
                         attrs.integer("capacity"),
                         false,
                         0,
                         attrs.boolean("drop_last"),
                         static_cast<std::int32_t>(attrs.integer("shards"))};
}

Params pack_shards(const OpCall& call) {
  return ShardParams{static_cast<std::int32_t>(call.attrs.integer("shards")),
                     static_cast<std::int32_t>(call.attrs.integer("combine"))};
}

constexpr std::string_view kNotFloat = "its operands are counters, not functions of the weights";

OpDef source(Op op, std::string_view doc, DeclareFn declare, StateFn state, std::vector<ir::AttrDef> own = {}) {
  OpDef def{.op = op, .doc = doc, .declare = declare, .no_gradient = "a state: gradients end here"};
  def.attrs = {{"dtype", std::string("f32"), "element type", false, {}, {}, {"f32", "f64", "i32", "u64", "bool"}},
               {"shape", std::vector<std::int64_t>{}, "extents"}};
  def.attrs.insert(def.attrs.end(), own.begin(), own.end());
  def.rows = RowRule::state;
  def.state = state;
  return def;
}

}  // namespace

std::vector<OpDef> sources() {
  const ir::AttrDef capacity{"capacity", std::int64_t{0}, "rows of a full batch; 0: the batch", false, 0.0};
  const ir::AttrDef drop_last{"drop_last", false, "leave out a last batch that is not full"};
  const ir::AttrDef shards{"shards", std::int64_t{1}, "shards of a batch", false, 1.0, kMaxShards};
  const ir::AttrDef combine{"combine", std::int64_t{0}, "0: sum, 1: product, 2: max, 3: min", false, 0.0, 3.0};
  const ir::AttrSchema of_minibatch = {capacity,
                                       {"shuffle", false, "take the rows in another order each epoch"},
                                       {"key", std::int64_t{0}, "of the order"},
                                       drop_last,
                                       shards};
  const ir::AttrSchema of_count = {
      {"total", std::int64_t{1}, "samples of the data set", true, 1.0}, capacity, drop_last, shards};
  std::vector<OpDef> list = {
      source(Op::input, "what the host writes: a data set, or a batch of samples (rows > 0)", declare_input,
             [](const ir::Attrs&) { return BufferKind::data; },
             {{"rows", std::int64_t{0}, "rows a sample, 0 = no batch", false, 0.0}}),
      source(Op::parameter, "a trainable state", declare, [](const ir::Attrs&) { return BufferKind::parameter; }),
      source(Op::state, "an optimizer's slot, a counter, or a metric", declare,
             [](const ir::Attrs& attrs) {
               const std::string& kind = attrs.string("kind");
               return kind == "slot" ? BufferKind::slot : kind == "counter" ? BufferKind::counter : BufferKind::metric;
             },
             {{"kind", std::string("slot"), "slot, counter or metric", false, {}, {}, {"slot", "counter", "metric"}}}),
      source(Op::constant, "numbers known when the graph is built", declare_constant,
             [](const ir::Attrs&) { return BufferKind::constant; },
             {{"values", std::vector<double>{}, "the elements in row-major order", true}}),
      {.op = Op::minibatch,
       .doc = "rows [b*capacity, b*capacity + count) of a data set, b = step mod batches; the rest is zero",
       .operands = {"data", "step"},
       .attrs = of_minibatch,
       .no_gradient = "data is not trained",
       .rows = RowRule::select,
       .view = is_whole,
       .pack = pack_minibatch},
      {.op = Op::row_count,
       .doc = "samples in the batch of this step: min(capacity, total - b*capacity), b = step mod batches",
       .operands = {"step"},
       .attrs = of_count,
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar,
       .pack = pack_row_count},
      {.op = family_op::varying_minibatch,
       .doc = "minibatch of the first `rows` rows of the data set",
       .operands = {"data", "step", "rows"},
       .attrs = of_minibatch,
       .no_gradient = "data is not trained",
       .rows = RowRule::select,
       .pack = pack_minibatch},
      {.op = family_op::varying_row_count,
       .doc = "row_count of the first `rows` rows of the data set",
       .operands = {"step", "rows"},
       .attrs = of_count,
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar,
       .pack = pack_row_count},
      {.op = Op::shard_step,
       .doc = "step * shards + shard: the counter of a shard's rows and random samples",
       .operands = {"step", "shard"},
       .attrs = {shards, combine},
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar,
       .pack = pack_shards},
      {.op = Op::combine_shards,
       .doc = "x of all shards of the batch, combined in a fixed tree by the host; a kernel only copies x",
       .operands = {"x"},
       .attrs = {shards, combine},
       .no_gradient = "shards are made from a step that has its gradients",
       .rows = RowRule::scalar,
       .pack = pack_shards},
      {.op = family_op::divide_step,
       .doc = "step / every, rounded down: the counter of random samples that are kept for several steps",
       .operands = {"step"},
       .attrs = {{"every", 1.0, "steps", true, 1.0}},
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar,
       .pack = [](const OpCall& call) -> Params {
         return ScalarParams{call.attrs.real("every"), 0};
       }},
      {.op = Op::increment, .doc = "step + 1", .operands = {"step"}, .no_gradient = kNotFloat, .rows = RowRule::scalar},
      {.op = Op::record,
       .doc = "ring with element (step mod size) replaced by value",
       .operands = {"ring", "value", "step"},
       .no_gradient = "a record is for the host to read",
       .rows = RowRule::scalar},
      {.op = Op::assign,
       .doc = "the state's value from the next step on",
       .operands = {"state", "value"},
       .no_gradient = "an effect, not a value",
       .rows = RowRule::state,
       .effect = true}};
  for (OpDef& def : list) def.internal = true;
  return list;
}

}  // namespace graphrun::ops
