// movement.cpp: ops that change the shape, type, order or position of elements; also one_hot, gather, scatter_add.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::ops {
namespace {

using List = std::vector<std::int64_t>;

// ---- reshape, broadcast_to

TensorType declare_reshape(const OpCall& call) {
  const TensorType& in = call.inputs[0];
  const List& wanted = call.attrs.integers("shape");
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
      call.fail("shape.extent", "an extent must be >= 0, and only one may be -1 (inferred)");
    } else {
      known = checked_mul(known, wanted[i]);
    }
  }
  TensorType out{in.dtype, Shape(wanted), 0};
  const std::int64_t elements = in.shape.with_batch(1).elements();
  if (open >= 0 && known != 0 && elements % known == 0) out.shape[open] = elements / known;
  if (open >= 0 ? out.shape[open] < 0 : known != elements) {
    call.fail("shape.mismatch",
              fmt::format("{} has {} elements, they do not fill {}", call.operand(0),
                          extent_text(symbolic ? batch_extent(elements) : elements), to_string(Shape(wanted))),
              symbolic ? "-1 as the first extent is inferred, the batch included" : "");
  }
  if (symbolic && open == 0 && out.shape[0] > 0) out.shape[0] = batch_extent(out.shape[0]);
  return out;
}

TensorType declare_broadcast_to(const OpCall& call) {
  return {call.inputs[0].dtype, Shape(call.attrs.integers("shape")), call.attrs.integer("rows")};
}

// ---- cast

TensorType declare_cast(const OpCall& call) {
  return {infer::dtype_attribute(call), {}, 0};
}

void grad_cast(GradContext& c) {
  const DType from = c.inputs[0].type().dtype;
  if (is_float(from)) c.result[0] = make::cast(c.gradient, from);
}

// ---- transpose

void grad_transpose(GradContext& c) {
  List inverse(static_cast<std::size_t>(c.inputs[0].type().shape.rank()));
  for (std::size_t i = 0; i < inverse.size(); ++i)
    inverse[static_cast<std::size_t>(c.params.as<PermuteParams>().axes[i])] = static_cast<std::int64_t>(i);
  c.result[0] = make::op("transpose", {c.gradient}, {{"axes", inverse}});
}

Params pack_transpose(const OpCall& call) {
  const int rank = call.inputs[0].shape.rank();
  const List& axes = call.attrs.integers("axes");
  infer::axes(axes, rank, call);  // fails on duplicates and out-of-range axes
  if (!axes.empty() && static_cast<int>(axes.size()) != rank)
    call.fail("attribute.axis", fmt::format("'axes' must name each axis of {} once", call.operand(0)));
  PermuteParams params;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t axis = axes.empty() ? rank - 1 - i : axes[static_cast<std::size_t>(i)];
    params.axes[i] = static_cast<std::int32_t>(infer::from_front(axis, rank));
  }
  return params;
}

// ---- slice, pad, concat: one axis at a time

int axis_cut(const OpCall& call) {
  const int axis = infer::one_axis(call);
  require_axis(call, axis, kNotCut);
  return axis;
}

TensorType declare_slice(const OpCall& call) {
  const int axis = axis_cut(call);
  TensorType out = call.inputs[0];
  const std::int64_t extent = out.shape[axis];
  const std::int64_t start = infer::from_front(call.attrs.integer("start"), extent);
  const std::int64_t stop = std::min(infer::from_front(call.attrs.integer("stop"), extent), extent);
  if (start < 0 || start > stop) {
    call.fail("attribute.range", fmt::format("[{}, {}) is invalid for axis {} of {}", call.attrs.integer("start"),
                                             call.attrs.integer("stop"), axis, call.operand(0)));
  }
  out.shape[axis] = stop - start;
  return out;
}

Params pack_slice(const OpCall& call) {
  const int axis = infer::one_axis(call);
  return SliceParams{axis, infer::from_front(call.attrs.integer("start"), call.inputs[0].shape[axis])};
}

void grad_slice(GradContext& c) {
  const auto& [axis, start] = c.params.as<SliceParams>();
  const std::int64_t after = c.inputs[0].type().shape[axis] - start - c.output.type().shape[axis];
  c.result[0] = make::op("pad", {c.gradient}, {{"axis", std::int64_t{axis}}, {"before", start}, {"after", after}});
}

TensorType declare_pad(const OpCall& call) {
  TensorType out = call.inputs[0];
  std::int64_t& extent = out.shape[axis_cut(call)];
  extent = checked_add(extent, checked_add(call.attrs.integer("before"), call.attrs.integer("after")));
  return out;
}

Params pack_pad(const OpCall& call) {
  return PadParams{infer::one_axis(call), call.attrs.integer("before"), call.attrs.real("value")};
}

Var slice(Var x, std::int64_t axis, std::int64_t start, std::int64_t stop) {
  return make::op("slice", {x}, {{"axis", axis}, {"start", start}, {"stop", stop}});
}

void grad_pad(GradContext& c) {
  const auto& [axis, before, value] = c.params.as<PadParams>();
  c.result[0] = slice(c.gradient, axis, before, before + c.inputs[0].type().shape[axis]);
}

void grad_concat(GradContext& c) {
  const int axis = c.params.as<AxisParams>().axis;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const std::int64_t stop = start + c.inputs[i].type().shape[axis];
    if (c.wanted[i]) c.result[i] = slice(c.gradient, axis, start, stop);
    start = stop;
  }
}

// ---- windows, fold

Params pack_windows(const OpCall& call) {
  const List& size = call.attrs.integers("size");
  if (size.empty() || size.size() > kMaxWindowAxes)
    call.fail("attribute.value", fmt::format("'size' must be 1 to {} extents, one for each axis", kMaxWindowAxes));
  WindowParams params{.axes = static_cast<std::int32_t>(size.size())};
  for (const auto& [name, field] :
       {std::pair{"size", params.size}, std::pair{"stride", params.stride}, std::pair{"dilation", params.dilation}}) {
    const List& given = call.attrs.integers(name);
    if (given.size() > 1 && given.size() != size.size())
      call.fail("attribute.value", fmt::format("'{}' must be one number, or one for each extent in 'size'", name));
    for (std::size_t i = 0; i < size.size() && !given.empty(); ++i) {
      const std::int64_t value = given[given.size() == 1 ? 0 : i];
      if (value < 1 || value > std::numeric_limits<std::int32_t>::max())
        call.fail("attribute.range", fmt::format("'{}' must be at least 1 and below 2^31, got {}", name, value));
      field[i] = static_cast<std::int32_t>(value);
    }
  }
  return params;
}

AttrList window_attributes(const WindowParams& params) {
  const auto list = [&](const std::int32_t* from) { return List(from, from + params.axes); };
  return {{"size", list(params.size)}, {"stride", list(params.stride)}, {"dilation", list(params.dilation)}};
}

TensorType declare_fold(const OpCall& call) {
  TensorType out = call.inputs[0];
  const List& extents = call.attrs.integers("extents");
  const int rank = out.shape.rank(), axes = static_cast<int>(call.attrs.integers("size").size());
  if (static_cast<int>(extents.size()) != axes || rank < 2 * axes + 1)
    call.fail("shape.rank",
              fmt::format("{} must be windows (…, positions, size, columns) over {} axes, one for each of "
                          "'extents' and 'size'",
                          call.operand(0), axes));
  Shape shape(out.shape.dims().first(static_cast<std::size_t>(rank - 2 * axes - 1)));
  for (const std::int64_t extent : extents) {
    if (extent < 1) call.fail("shape.extent", fmt::format("'extents' must be at least 1, got {}", extent));
    shape.push_back(extent);
  }
  shape.push_back(out.shape[rank - 1]);
  return {out.dtype, shape, out.rows};
}

void grad_windows(GradContext& c) {
  const auto& params = c.params.as<WindowParams>();
  const Shape shape = c.inputs[0].type().shape;
  AttrList attrs = window_attributes(params);
  List extents;
  for (int i = 0; i < params.axes; ++i) extents.push_back(shape[shape.rank() - 1 - params.axes + i]);
  attrs.emplace_back("extents", extents);
  c.result[0] = make::op("fold", {c.gradient}, attrs);
}

void grad_fold(GradContext& c) {
  c.result[0] = make::op("windows", {c.gradient}, window_attributes(c.params.as<WindowParams>()));
}

// ---- one_hot, gather, scatter_add

TensorType declare_one_hot(const OpCall& call) {
  TensorType out = call.inputs[0];
  out.shape.push_back(call.attrs.integer("classes"));
  return out;
}

// The gradient of a table row is the sum over all reads of it.
void grad_gather(GradContext& c) {
  const std::int64_t entries = c.inputs[0].type().shape[0];
  c.result[0] = make::op("scatter_add", {c.inputs[1], c.gradient}, {{"entries", entries}});
}

TensorType declare_scatter_add(const OpCall& call) {
  return {DType::f32, {call.attrs.integer("entries")}, 0};
}

}  // namespace

std::vector<OpDef> movement() {
  const ir::AttrDef axis{"axis", std::int64_t{-1}, "the axis; negative counts from the end"};
  const ir::AttrDef size{"size", List{2}, "elements of a window along each of the axes before the last", true};
  const ir::AttrDef stride{"stride", List{1}, "distance between windows; one number applies to all axes"};
  const ir::AttrDef dilation{"dilation", List{1}, "distance between window elements; one number applies to all axes"};
  std::vector<OpDef> list = {
      {.op = Op::reshape,
       .doc = "the same elements in row-major order with another shape",
       .operands = {"x"},
       .attrs = {{"shape", List{-1, 4}, "the new extents; one may be -1: inferred", true}},
       .declare = declare_reshape,
       .grad = [](GradContext& c) { c.result[0] = make::reshape(c.gradient, c.inputs[0].type().shape); },
       .rows = RowRule::regroup,
       .view = [](const ir::Attrs&, std::span<const TensorType>) { return true; }},
      {.op = family_op::stop_gradient,
       .doc = "x, with a gradient of zero",
       .operands = {"x"},
       .grad = [](GradContext&) {},
       .rows = RowRule::regroup,
       .view = [](const ir::Attrs&, std::span<const TensorType>) { return true; }},
      {.op = Op::broadcast_to,
       .doc = "x repeated along axes of extent 1 and new leading axes",
       .operands = {"x"},
       .attrs = {{"shape", List{}, "the new extents", true},
                 {"rows", std::int64_t{0}, "rows a sample of the result, 0 = no batch", false, 0.0}},
       .declare = declare_broadcast_to,
       .grad = [](GradContext& c) { c.result[0] = c.gradient; },  // the reverse sweep un-broadcasts it
       .rows = RowRule::broadcast,
       .internal = true},
      {.op = Op::cast,
       .doc = "x converted to another dtype; bool gives 0 and 1",
       .operands = {"x"},
       .attrs = {{"dtype", std::string("f32"), "the new dtype", true, {}, {}, {"f32", "f64", "i32", "u64", "bool"}}},
       .declare = declare_cast,
       .grad = grad_cast},
      {.op = Op::transpose,
       .doc = "permutes the axes",
       .operands = {"x"},
       .attrs = {{"axes", List{}, "axis i of the result is axis axes[i] of x; none: reversed"}},
       .grad = grad_transpose,
       .rows = RowRule::rowwise,
       .pack = pack_transpose},
      {.op = Op::slice,
       .doc = "elements [start, stop) along the axis",
       .operands = {"x"},
       .attrs = {axis,
                 {"start", std::int64_t{0}, "first element; negative counts from the end"},
                 {"stop", std::numeric_limits<std::int64_t>::max(), "end; negative counts from the end; default: all"}},
       .declare = declare_slice,
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
       .declare = declare_pad,
       .grad = grad_pad,
       .rows = RowRule::rowwise,
       .pack = pack_pad},
      {.op = Op::concat,
       .doc = "concatenates the operands along the axis",
       .operands = {"x"},
       .variadic = true,
       .attrs = {axis},
       .grad = grad_concat,
       .rows = RowRule::rowwise,
       .pack = infer::pack_axis},
      {.op = family_op::windows,
       .doc = "windows over the axes before the last: x (…, extents, c) becomes (…, positions, size, c)",
       .operands = {"x"},
       .attrs = {size, stride, dilation},
       .grad = grad_windows,
       .rows = RowRule::rowwise,
       .pack = pack_windows},
      {.op = family_op::fold,
       .doc = "adjoint of windows: each element is the sum of the elements of x (…, positions, size, c) that cover it",
       .operands = {"x"},
       .attrs =
           {{"extents", List{4}, "extents of the result along the axes before the last", true}, size, stride, dilation},
       .declare = declare_fold,
       .grad = grad_fold,
       .rows = RowRule::rowwise,
       .pack = pack_windows,
       .agreement = Agreement::scaled},
      {.op = family_op::one_hot,
       .doc = "1 at the class index along a new last axis, else 0; all 0 for a computed index out of range",
       .operands = {"x"},
       .attrs = {{"classes", std::int64_t{10}, "extent of the new axis", true, 1.0}},
       .declare = declare_one_hot,
       .no_gradient = "its operand is a class index",
       .rows = RowRule::rowwise,
       .classes = [](const ir::Attrs& attrs, std::span<const TensorType>) -> std::optional<Classes> {
         return Classes{0, attrs.integer("classes")};
       }},
      {.op = family_op::gather,
       .doc = "row indices[i] of the table for each index; zeros for a computed index out of range",
       .operands = {"table", "indices"},
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
       .declare = declare_scatter_add,
       .grad =
           [](GradContext& c) {
             if (c.wanted[1]) c.result[1] = make::op("gather", {c.gradient, c.inputs[0]});
           },
       .rows = RowRule::scatter,
       .classes = [](const ir::Attrs& attrs, std::span<const TensorType>) -> std::optional<Classes> {
         return Classes{0, attrs.integer("entries"), "index"};
       }}};
  for (OpDef& def : list) {
    if (def.rows == RowRule::rowwise && !def.agreement) def.agreement = Agreement::exact;  // they only copy values
  }
  return list;
}

}  // namespace graphrun::ops
