// sources.cpp: inputs, constants, states, minibatches and step counters; also assign, the only op with a side effect.
#include <fmt/format.h>

#include <cmath>

#include "graph/ops/infer.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::ops {
namespace {

TensorType declared(const InferContext& context) {
  return {infer::dtype_attribute(context), infer::declared_shape(context), 0};
}

TensorType infer_input(const InferContext& context) {
  TensorType type = declared(context);
  type.rows = context.attrs.integer("rows");
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

TensorType infer_constant(const InferContext& context) {
  TensorType type = declared(context);
  const auto given = static_cast<std::int64_t>(context.attrs.reals("values").size());
  if (given != type.shape.elements()) {
    context.fail("shape.constant", fmt::format("{} values do not fill the shape {}", given, to_string(type.shape)));
  }
  for (const double value : context.attrs.reals("values")) {
    if (!represents(type.dtype, value)) {
      context.fail("constant.range", fmt::format("{} is not representable as {}", value, name_of(type.dtype)));
    }
  }
  return type;
}

TensorType infer_minibatch(const InferContext& context) {
  for (std::size_t i = 1; i < context.inputs.size(); ++i) infer::require_scalar(context, i, DType::u64);
  TensorType type = context.inputs[0];
  if (type.shape.rank() == 0 || type.rows != 0) {
    context.fail("shape.data", fmt::format("{} must be a data set with samples along dimension 0", context.operand(0)));
  }
  const std::int64_t samples = type.shape[0];
  const std::int64_t capacity = context.attrs.integer("capacity");
  if (samples == 0 || (context.attrs.boolean("drop_last") && samples < capacity)) {
    context.fail("shape.data", fmt::format("{} has {} samples, which make no batch of {}", context.operand(0), samples,
                                           extent_text(capacity > 0 ? capacity : kBatch)));
  }
  type.shape[0] = capacity > 0 ? capacity : kBatch;
  type.rows = 1;
  return type;
}

// One unshuffled batch of all rows is the data set itself, so the output can be a view.
bool is_whole(const ir::Attrs& attrs, std::span<const TensorType> inputs) {
  return inputs[0].shape[0] == attrs.integer("capacity") && !attrs.boolean("shuffle");
}

Params pack_minibatch(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  return MinibatchParams{inputs[0].shape[0], attrs.integer("capacity"), attrs.boolean("shuffle"),
                         static_cast<std::uint64_t>(attrs.integer("key")), attrs.boolean("drop_last")};
}

TensorType infer_row_count(const InferContext& context) {
  for (std::size_t i = 0; i < context.inputs.size(); ++i) infer::require_scalar(context, i, DType::u64);
  return {DType::i32, {}, 0};
}

Params pack_row_count(const ir::Attrs& attrs, std::span<const TensorType>, const TensorType&) {
  return MinibatchParams{attrs.integer("total"), attrs.integer("capacity"), false, 0, attrs.boolean("drop_last")};
}

TensorType infer_increment(const InferContext& context) {
  infer::require_scalar(context, 0, DType::u64);
  return context.inputs[0];
}

TensorType infer_record(const InferContext& context) {
  const TensorType& ring = context.inputs[0];
  if (ring.dtype != DType::f32 || ring.shape.rank() != 1 || ring.shape[0] == 0) {
    context.fail("shape.ring", fmt::format("{} must be f32 with one dimension that is not empty", context.operand(0)));
  }
  infer::require_scalar(context, 1, DType::f32);
  infer::require_scalar(context, 2, DType::u64);
  return ring;
}

TensorType infer_assign(const InferContext& context) {
  if (!(context.inputs[0] == context.inputs[1])) {
    context.fail("shape.assign", fmt::format("{} cannot take {}", context.operand(0), context.operand(1)));
  }
  return context.inputs[0];
}

constexpr std::string_view kNotFloat = "its operands are counters, not functions of the weights";

OpDef source(Op op, std::string_view doc, InferFn infer, StateFn state, std::vector<ir::AttrDef> own = {}) {
  OpDef def{.op = op, .doc = doc, .infer = infer, .no_gradient = "a state: gradients end here"};
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
  const ir::AttrSchema of_minibatch = {capacity,
                                       {"shuffle", false, "take the rows in another order each epoch"},
                                       {"key", std::int64_t{0}, "of the order"},
                                       drop_last};
  const ir::AttrSchema of_count = {
      {"total", std::int64_t{1}, "samples of the data set", true, 1.0}, capacity, drop_last};
  std::vector<OpDef> list = {
      source(Op::input, "what the host writes: a data set, or a batch of samples (rows > 0)", infer_input,
             [](const ir::Attrs&) { return BufferKind::data; },
             {{"rows", std::int64_t{0}, "rows a sample, 0 = no batch", false, 0.0}}),
      source(Op::parameter, "a trainable state", declared, [](const ir::Attrs&) { return BufferKind::parameter; }),
      source(Op::state, "an optimizer's slot, a counter, or a metric", declared,
             [](const ir::Attrs& attrs) {
               const std::string& kind = attrs.string("kind");
               return kind == "slot" ? BufferKind::slot : kind == "counter" ? BufferKind::counter : BufferKind::metric;
             },
             {{"kind", std::string("slot"), "slot, counter or metric", false, {}, {}, {"slot", "counter", "metric"}}}),
      source(Op::constant, "numbers known when the graph is built", infer_constant,
             [](const ir::Attrs&) { return BufferKind::constant; },
             {{"values", std::vector<double>{}, "the elements in row-major order", true}}),
      {.op = Op::minibatch,
       .doc = "rows [b*capacity, b*capacity + count) of a data set, b = step mod batches; the rest is zero",
       .operands = {"data", "step"},
       .attrs = of_minibatch,
       .infer = infer_minibatch,
       .no_gradient = "data is not trained",
       .rows = RowRule::select,
       .view = is_whole,
       .pack = pack_minibatch},
      {.op = Op::row_count,
       .doc = "samples in the batch of this step: min(capacity, total - b*capacity), b = step mod batches",
       .operands = {"step"},
       .attrs = of_count,
       .infer = infer_row_count,
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar,
       .pack = pack_row_count},
      {.op = family_op::varying_minibatch,
       .doc = "minibatch of the first `rows` rows of the data set",
       .operands = {"data", "step", "rows"},
       .attrs = of_minibatch,
       .infer = infer_minibatch,
       .no_gradient = "data is not trained",
       .rows = RowRule::select,
       .pack = pack_minibatch},
      {.op = family_op::varying_row_count,
       .doc = "row_count of the first `rows` rows of the data set",
       .operands = {"step", "rows"},
       .attrs = of_count,
       .infer = infer_row_count,
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar,
       .pack = pack_row_count},
      {.op = Op::increment,
       .doc = "step + 1",
       .operands = {"step"},
       .infer = infer_increment,
       .no_gradient = kNotFloat,
       .rows = RowRule::scalar},
      {.op = Op::record,
       .doc = "ring with element (step mod size) replaced by value",
       .operands = {"ring", "value", "step"},
       .infer = infer_record,
       .no_gradient = "a record is for the host to read",
       .rows = RowRule::scalar},
      {.op = Op::assign,
       .doc = "the state's value from the next step on",
       .operands = {"state", "value"},
       .infer = infer_assign,
       .no_gradient = "an effect, not a value",
       .rows = RowRule::state}};
  for (OpDef& def : list) def.internal = true;
  return list;
}

}  // namespace graphrun::ops
