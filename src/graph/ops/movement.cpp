// movement.cpp: ops that change the shape, type, order or position of elements; also one_hot, gather, scatter_add.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/movement.h"

namespace graphrun::ops {
namespace {

using List = std::vector<std::int64_t>;

// ---- reshape, broadcast_to

TensorType infer_reshape(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const List& wanted = context.attrs.integers("shape");
  // A symbolic batch is excluded on both sides: element counts are per sample.
  const bool symbolic = in.shape.rank() > 0 && batch_rows(in.shape[0]) > 0;
  std::int64_t known = 1;
  int open = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1 && open < 0) {
      open = static_cast<int>(i);
    } else if (symbolic && i == 0 && batch_rows(wanted[i]) > 0) {
      known = batch_rows(wanted[i]);
    } else if (wanted[i] < 0) {
      context.fail("shape.extent", "an extent must be >= 0, and only one may be -1 (inferred)");
    } else {
      known = checked_mul(known, wanted[i]);
    }
  }
  TensorType out{in.dtype, Shape(wanted), 0};
  const std::int64_t elements = in.shape.with_batch(1).elements();
  if (open >= 0 && known != 0 && elements % known == 0) out.shape[open] = elements / known;
  if (open >= 0 ? out.shape[open] < 0 : known != elements) {
    context.fail("shape.mismatch",
                 fmt::format("{} has {} elements, they do not fill {}", context.operand(0),
                             extent_text(symbolic ? batch_extent(elements) : elements), to_string(Shape(wanted))),
                 symbolic ? "-1 as the first extent is inferred, the batch included" : "");
  }
  if (symbolic && open == 0 && out.shape[0] > 0) out.shape[0] = batch_extent(out.shape[0]);
  out.rows = infer::regrouped_rows(context, in, out.shape);
  return out;
}

TensorType infer_broadcast_to(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const TensorType out{in.dtype, Shape(context.attrs.integers("shape")), context.attrs.integer("rows")};
  const int shift = out.shape.rank() - in.shape.rank();
  bool fits = shift >= 0 && (in.rows == 0 || (shift == 0 && in.rows == out.rows));
  for (int axis = 0; fits && axis < in.shape.rank(); ++axis) {
    fits = in.shape[axis] == 1 || in.shape[axis] == out.shape[axis + shift];
  }
  if (!fits) {
    context.fail("shape.mismatch", fmt::format("{} does not broadcast to {}", context.operand(0), to_string(out)));
  }
  return out;
}

// ---- cast

TensorType infer_cast(const InferContext& context) {
  TensorType out = context.inputs[0];
  out.dtype = infer::dtype_attribute(context);
  return out;
}

void grad_cast(GradContext& c) {
  const DType from = c.inputs[0].type().dtype;
  if (is_float(from)) c.result[0] = make::cast(c.gradient, from);
}

// ---- transpose

List permutation(const ir::Attrs& attrs, int rank) {
  List order;
  for (const std::int64_t axis : attrs.integers("axes")) order.push_back(axis < 0 ? axis + rank : axis);
  if (order.empty()) {
    for (int axis = rank; axis-- > 0;) order.push_back(axis);
  }
  return order;
}

TensorType infer_transpose(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const int rank = in.shape.rank();
  const List order = permutation(context.attrs, rank);
  infer::axes(context.attrs.integers("axes"), rank, context);  // fails on duplicates and out-of-range axes
  if (static_cast<int>(order.size()) != rank)
    context.fail("attribute.axis", fmt::format("'axes' must name each axis of {} once", context.operand(0)));
  if (in.rows > 0 && order.front() != 0) {
    context.fail("shape.rows", fmt::format("{}: the batch must stay dimension 0", context.operand(0)));
  }
  TensorType out{in.dtype, {}, in.rows};
  for (const std::int64_t axis : order) out.shape.push_back(in.shape[static_cast<int>(axis)]);
  return out;
}

void grad_transpose(GradContext& c) {
  const List order = permutation(c.attrs, c.inputs[0].type().shape.rank());
  List inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  c.result[0] = make::op("transpose", {c.gradient}, {{"axes", inverse}});
}

Params pack_transpose(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  PermuteParams params;
  const List order = permutation(attrs, inputs[0].shape.rank());
  for (std::size_t i = 0; i < order.size(); ++i) params.axes[i] = static_cast<std::int32_t>(order[i]);
  return params;
}

// ---- slice, pad, concat: one axis at a time

int axis_cut(const InferContext& context) {
  return infer::one_axis(context, ", it cannot be cut or extended");
}

struct Range {
  std::int64_t start, stop;
};
Range slice_range(const ir::Attrs& attrs, std::int64_t extent) {
  Range range{attrs.integer("start"), attrs.integer("stop")};
  if (range.start < 0) range.start += extent;
  if (range.stop < 0) range.stop += extent;
  return {range.start, std::min(range.stop, extent)};
}

TensorType infer_slice(const InferContext& context) {
  const int axis = axis_cut(context);
  TensorType out = context.inputs[0];
  const Range range = slice_range(context.attrs, out.shape[axis]);
  if (range.start < 0 || range.start > range.stop) {
    context.fail("attribute.range", fmt::format("[{}, {}) is invalid for axis {} of {}", context.attrs.integer("start"),
                                                context.attrs.integer("stop"), axis, context.operand(0)));
  }
  out.shape[axis] = range.stop - range.start;
  return out;
}

Params pack_slice(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  const int axis = infer::axis_of(attrs, inputs[0].shape.rank());
  return SliceParams{axis, slice_range(attrs, inputs[0].shape[axis]).start};
}

void grad_slice(GradContext& c) {
  const TensorType in = c.inputs[0].type();
  const int axis = infer::axis_of(c.attrs, in.shape.rank());
  const Range range = slice_range(c.attrs, in.shape[axis]);
  c.result[0] =
      make::op("pad", {c.gradient},
               {{"axis", std::int64_t{axis}}, {"before", range.start}, {"after", in.shape[axis] - range.stop}});
}

TensorType infer_pad(const InferContext& context) {
  infer::require_float(context, 0);
  TensorType out = context.inputs[0];
  std::int64_t& extent = out.shape[axis_cut(context)];
  extent = checked_add(extent, checked_add(context.attrs.integer("before"), context.attrs.integer("after")));
  return out;
}

Params pack_pad(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  return PadParams{infer::axis_of(attrs, inputs[0].shape.rank()), attrs.integer("before"), attrs.real("value")};
}

Var slice(Var x, std::int64_t axis, std::int64_t start, std::int64_t stop) {
  return make::op("slice", {x}, {{"axis", axis}, {"start", start}, {"stop", stop}});
}

void grad_pad(GradContext& c) {
  const TensorType in = c.inputs[0].type();
  const int axis = infer::axis_of(c.attrs, in.shape.rank());
  const std::int64_t before = c.attrs.integer("before");
  c.result[0] = slice(c.gradient, axis, before, before + in.shape[axis]);
}

TensorType infer_concat(const InferContext& context) {
  TensorType out = context.inputs[0];
  const int axis = axis_cut(context);
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    TensorType other = context.inputs[i];
    const bool same_rank = other.shape.rank() == out.shape.rank();
    const std::int64_t extent = same_rank ? other.shape[axis] : 0;
    if (same_rank) other.shape[axis] = out.shape[axis];
    if (!(other == out)) {
      context.fail("shape.mismatch",
                   fmt::format("{} and {} must agree but for axis {}", context.operand(0), context.operand(i), axis));
    }
    out.shape[axis] = checked_add(out.shape[axis], extent);
  }
  return out;
}

void grad_concat(GradContext& c) {
  const int axis = infer::axis_of(c.attrs, c.inputs[0].type().shape.rank());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const std::int64_t stop = start + c.inputs[i].type().shape[axis];
    if (c.wanted[i]) c.result[i] = slice(c.gradient, axis, start, stop);
    start = stop;
  }
}

// ---- one_hot, gather, scatter_add

TensorType infer_one_hot(const InferContext& context) {
  TensorType out = context.inputs[0];
  if (out.dtype != DType::i32) context.fail("dtype.i32", context.operand(0) + " must be i32 class numbers");
  out.dtype = DType::f32;
  out.shape.push_back(context.attrs.integer("classes"));
  return out;
}

TensorType infer_gather(const InferContext& context) {
  const TensorType& table = context.inputs[0];
  const TensorType& indices = context.inputs[1];
  if (table.shape.rank() != 2 || table.rows > 0) {
    context.fail("shape.rank", fmt::format("{} must be a table (entries, width) without a batch", context.operand(0)));
  }
  if (indices.dtype != DType::i32) context.fail("dtype.i32", context.operand(1) + " must be i32 indices");
  TensorType out{table.dtype, indices.shape, indices.rows};
  out.shape.push_back(table.shape[1]);
  return out;
}

// The gradient of a table row is the sum over all reads of it.
void grad_gather(GradContext& c) {
  const std::int64_t entries = c.inputs[0].type().shape[0];
  c.result[0] = make::op("scatter_add", {c.inputs[1], c.gradient}, {{"entries", entries}});
}

TensorType infer_scatter_add(const InferContext& context) {
  const TensorType& indices = context.inputs[0];
  const TensorType& updates = context.inputs[1];
  if (indices.dtype != DType::i32) context.fail("dtype.i32", context.operand(0) + " must be i32 indices");
  infer::require_float(context, 1);
  const int rank = indices.shape.rank();
  bool each = updates.shape.rank() == rank + 1 && updates.rows == indices.rows;
  for (int axis = 0; each && axis < rank; ++axis) each = updates.shape[axis] == indices.shape[axis];
  if (!each) {
    context.fail("shape.mismatch", fmt::format("{} must have the shape of {} and one axis more: a row for each index",
                                               context.operand(1), context.operand(0)));
  }
  return {updates.dtype, {context.attrs.integer("entries"), updates.shape[rank]}, 0};
}

}  // namespace

std::vector<OpDef> movement() {
  const ir::AttrDef axis{"axis", std::int64_t{-1}, "the axis; negative counts from the end"};
  std::vector<OpDef> list = {
      {.op = Op::reshape,
       .doc = "the same elements in row-major order with another shape",
       .operands = {"x"},
       .attrs = {{"shape", List{-1, 4}, "the new extents; one may be -1: inferred", true}},
       .infer = infer_reshape,
       .grad = [](GradContext& c) { c.result[0] = make::reshape(c.gradient, c.inputs[0].type().shape); },
       .rows = RowRule::regroup,
       .view = [](const ir::Attrs&, std::span<const TensorType>) { return true; }},
      {.op = family_op::stop_gradient,
       .doc = "x, with a gradient of zero",
       .operands = {"x"},
       .infer = [](const InferContext& context) { return context.inputs[0]; },
       .grad = [](GradContext&) {},
       .rows = RowRule::regroup,
       .view = [](const ir::Attrs&, std::span<const TensorType>) { return true; }},
      {.op = Op::broadcast_to,
       .doc = "x repeated along axes of extent 1 and new leading axes",
       .operands = {"x"},
       .attrs = {{"shape", List{}, "the new extents", true},
                 {"rows", std::int64_t{0}, "rows a sample of the result, 0 = no batch", false, 0.0}},
       .infer = infer_broadcast_to,
       .grad = [](GradContext& c) { c.result[0] = c.gradient; },  // the reverse sweep un-broadcasts it
       .rows = RowRule::broadcast,
       .internal = true},
      {.op = Op::cast,
       .doc = "x converted to another dtype; bool gives 0 and 1",
       .operands = {"x"},
       .attrs = {{"dtype", std::string("f32"), "the new dtype", true, {}, {}, {"f32", "f64", "i32", "u64", "bool"}}},
       .infer = infer_cast,
       .grad = grad_cast},
      {.op = Op::transpose,
       .doc = "permutes the axes",
       .operands = {"x"},
       .attrs = {{"axes", List{}, "axis i of the result is axis axes[i] of x; none: reversed"}},
       .infer = infer_transpose,
       .grad = grad_transpose,
       .rows = RowRule::rowwise,
       .pack = pack_transpose},
      {.op = Op::slice,
       .doc = "elements [start, stop) along the axis",
       .operands = {"x"},
       .attrs = {axis,
                 {"start", std::int64_t{0}, "first element; negative counts from the end"},
                 {"stop", std::numeric_limits<std::int64_t>::max(), "end; negative counts from the end; default: all"}},
       .infer = infer_slice,
       .grad = grad_slice,
       .rows = RowRule::rowwise,
       .pack = pack_slice},
      {.op = Op::pad,
       .doc = "pads x with value along the axis",
       .operands = {"x"},
       .attrs = {axis,
                 {"before", std::int64_t{0}, "elements put before", false, 0.0},
                 {"after", std::int64_t{0}, "elements put after", false, 0.0},
                 {"value", 0.0, "value of the new elements"}},
       .infer = infer_pad,
       .grad = grad_pad,
       .rows = RowRule::rowwise,
       .pack = pack_pad},
      {.op = Op::concat,
       .doc = "concatenates the operands along the axis",
       .operands = {"x"},
       .variadic = true,
       .attrs = {axis},
       .infer = infer_concat,
       .grad = grad_concat,
       .rows = RowRule::rowwise,
       .pack = infer::pack_axis},
      {.op = family_op::one_hot,
       .doc = "1 at the class index along a new last axis, else 0; all 0 for a computed index out of range",
       .operands = {"x"},
       .attrs = {{"classes", std::int64_t{10}, "extent of the new axis", true, 1.0}},
       .infer = infer_one_hot,
       .no_gradient = "its operand is a class index",
       .rows = RowRule::rowwise,
       .classes = [](const ir::Attrs& attrs, std::span<const TensorType>) -> std::optional<Classes> {
         return Classes{0, attrs.integer("classes")};
       }},
      {.op = family_op::gather,
       .doc = "row indices[i] of the table for each index; zeros for a computed index out of range",
       .operands = {"table", "indices"},
       .infer = infer_gather,
       .grad = grad_gather,
       .rows = RowRule::rowwise,
       .classes = [](const ir::Attrs&, std::span<const TensorType> inputs) -> std::optional<Classes> {
         return Classes{1, inputs[0].shape[0], "index"};
       }},
      {.op = Op::scatter_add,
       .doc = "row r of a table is the sum of the updates[i] with indices[i] = r; a computed index out of range adds "
              "nothing",
       .operands = {"indices", "updates"},
       .attrs = {{"entries", std::int64_t{10}, "rows of the table", true, 0.0}},
       .infer = infer_scatter_add,
       .grad =
           [](GradContext& c) {
             if (c.wanted[1]) c.result[1] = make::op("gather", {c.gradient, c.inputs[0]});
           },
       .rows = RowRule::scatter,
       .classes = [](const ir::Attrs& attrs, std::span<const TensorType>) -> std::optional<Classes> {
         return Classes{0, attrs.integer("entries"), "index"};
       }}};
  for (OpDef& def : list) {
    if (def.rows == RowRule::rowwise) def.agreement = Agreement::exact;  // they only copy values
  }
  return list;
}

}  // namespace graphrun::ops
