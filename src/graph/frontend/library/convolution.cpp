// convolution.cpp: convolutions as products of the windows of x, one row for each position, and W as a matrix.
// Transposed ones multiply the positions of x by W, which gives windows, and fold them.
#include "graph/frontend/library/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/make.h"

namespace graphrun {
namespace {

using List = std::vector<std::int64_t>;

constexpr std::int64_t kLargest = 1 << 20;  // limit of sizes, strides and dilations; their products stay far below 2^63

// Attributes of a convolution, checked, one number for each spatial axis.
struct Convolution {
  const LayerCall& call;
  int axes;
  Var x;
  List extents, size, stride, dilation;  // extents: of x
  std::int64_t channels, filters;
  const Function* function;
  Convolution(const LayerCall& layer_call, int spatial_axes, std::string_view layer)
      : call(layer_call), axes(spatial_axes) {
    const ir::NodeId id = call.operands[0];
    const TensorType type = call.graph.builder.type(id);
    if (type.shape.rank() != axes + 2 || type.dtype != DType::f32) {
      throw Error(ErrorKind::input, type.dtype != DType::f32 ? "dtype.float" : "shape.rank",
                  fmt::format("{}: {} needs x of shape (batch, {}, channels) in f32, got {} {}", call.name, layer,
                              axes == 1 ? "length" : "height, width", call.graph.graph[id].name, to_string(type)),
                  fmt::format("reshape(x, shape=[-1, {}]) adds the axis of channels",
                              axes == 1 ? "LENGTH, 1" : "HEIGHT, WIDTH, 1"));
    }
    x = {&call.graph.builder, id};
    for (int axis = 1; axis <= axes; ++axis) extents.push_back(type.shape[axis]);
    function = activation(call);
    channels = type.shape[axes + 1];
    filters = call.attrs.integer("filters");
    size = numbers("size"), stride = numbers("stride"), dilation = numbers("dilation");
  }
  List numbers(std::string_view name) const {
    List list = call.attrs.integers(name);
    if (list.size() == 1) list.resize(static_cast<std::size_t>(axes), list[0]);
    const bool valid = std::all_of(list.begin(), list.end(), [](auto n) { return n >= 1 && n <= kLargest; });
    if (list.size() != static_cast<std::size_t>(axes) || !valid) {
      throw ir::AttrError(name, "attribute.value",
                          fmt::format("'{}' must be a number from 1 to {}{}", name, kLargest,
                                      axes == 1 ? "" : fmt::format(", or a list of {} such numbers", axes)));
    }
    return list;
  }
  std::int64_t reach(int i) const { return dilation[at(i)] * (size[at(i)] - 1) + 1; }  // elements that a window spans
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  AttrList window_attributes() const { return {{"size", size}, {"stride", stride}, {"dilation", dilation}}; }

  Init init() const {
    Init init = *call.options.inits.at("init");
    for (int i = 0; i < axes && fan_init(init.kind) != nullptr; ++i) init.a *= static_cast<double>(size[at(i)]);
    return init;
  }
  Var weight(std::int64_t before_last, std::int64_t last) const {
    Shape shape;
    for (const std::int64_t extent : size) shape.push_back(extent);
    shape.push_back(before_last), shape.push_back(last);
    return {x.make, call.parameter("W", shape, init())};
  }
  // One row for each position, in `columns` columns.
  static Var rows(Var values, std::int64_t columns) {
    return make::op("reshape", {values}, {{"shape", List{-1, columns}}});
  }
  Var with_bias(Var y) const {
    if (const std::optional<Init>& bias = call.options.inits.at("bias"))
      y = y + Var{x.make, call.parameter("b", {filters}, *bias)};
    return activated(function, y);
  }
};

Var padded(const Convolution& c) {
  const std::string& padding = c.call.attrs.string("padding");
  Var x = c.x;
  for (int i = 0; i < c.axes && padding != "valid"; ++i) {
    const std::int64_t extent = c.extents[c.at(i)], stride = c.stride[c.at(i)];
    const std::int64_t last = (extent - 1) / stride * stride;  // start of the last window
    const std::int64_t total =
        padding == "causal" ? c.reach(i) - 1 : std::max<std::int64_t>(last + c.reach(i) - extent, 0);
    const std::int64_t before = padding == "causal" ? total : total / 2;
    if (total > 0)
      x = make::op("pad", {x}, {{"axis", std::int64_t{i + 1}}, {"before", before}, {"after", total - before}});
  }
  return x;
}

Var part(Var x, std::int64_t group, std::int64_t width) {
  const AttrList attrs = {{"axis", std::int64_t{-1}}, {"start", group * width}, {"stop", (group + 1) * width}};
  return x.type().shape[x.type().shape.rank() - 1] == width ? x : make::op("slice", {x}, attrs);
}

// windows(x) @ W, for each group of channels.
ir::NodeId convolve(const LayerCall& call, int axes, std::string_view layer) {
  const Convolution c(call, axes, layer);
  const std::int64_t groups = call.attrs.integer("groups");
  if (c.channels % groups != 0 || c.filters % groups != 0) {
    throw ir::AttrError("groups", "attribute.value",
                        fmt::format("'groups' must divide the {} channels of x and the {} filters, got {}", c.channels,
                                    c.filters, groups));
  }
  const Var x = padded(c), weight = c.weight(c.channels / groups, c.filters);
  List shape = {-1};
  for (int i = 0; i < axes; ++i) {
    const std::int64_t extent = x.type().shape[i + 1];
    if (extent < c.reach(i)) {
      throw ir::AttrError("size", "shape.mismatch",
                          fmt::format("{}: a window of {} elements does not fit into the {} of axis {}", call.name,
                                      c.reach(i), extent, i + 1),
                          "padding=same keeps the size of x");
    }
    shape.push_back((extent - c.reach(i)) / c.stride[c.at(i)] + 1);
  }
  std::vector<Var> parts;
  for (std::int64_t group = 0; group < groups; ++group) {
    const Var windows = make::op("windows", {part(x, group, c.channels / groups)}, c.window_attributes());
    const Var of_group = part(weight, group, c.filters / groups);
    const std::int64_t terms = of_group.type().shape.elements() / (c.filters / groups);
    const Var matrix = make::reshape(of_group, {terms, c.filters / groups});
    parts.push_back(make::op("matmul", {Convolution::rows(windows, terms), matrix}));
  }
  shape.push_back(c.filters);
  return make::op("reshape", {c.with_bias(make::concat(std::move(parts), -1))}, {{"shape", shape}}).id;
}

// fold(x @ transpose(W)), cropped to stride times the extents of x if the padding is "same".
ir::NodeId convolve_transposed(const LayerCall& call, int axes, std::string_view layer) {
  const Convolution c(call, axes, layer);
  const Var weight = c.weight(c.filters, c.channels);
  const std::int64_t terms = weight.type().shape.elements() / c.channels;
  const Var matrix = make::reshape(weight, {terms, c.channels});
  const Var products = make::op("matmul", {Convolution::rows(c.x, c.channels), matrix}, {{"transpose_b", true}});
  List shape = {-1}, extents;
  for (int i = 0; i < axes; ++i) {
    shape.push_back(c.extents[c.at(i)]);
    extents.push_back((c.extents[c.at(i)] - 1) * c.stride[c.at(i)] + c.reach(i));
  }
  shape.insert(shape.end(), c.size.begin(), c.size.end());
  shape.push_back(c.filters);
  AttrList attrs = c.window_attributes();
  attrs.emplace_back("extents", extents);
  Var y = make::op("fold", {make::op("reshape", {products}, {{"shape", shape}})}, attrs);
  for (int i = 0; i < axes && call.attrs.string("padding") == "same"; ++i) {
    const std::int64_t wanted = c.extents[c.at(i)] * c.stride[c.at(i)], axis = i + 1;
    const std::int64_t surplus = extents[c.at(i)] - wanted, before = std::max<std::int64_t>(surplus, 0) / 2;
    if (surplus > 0) y = make::op("slice", {y}, {{"axis", axis}, {"start", before}, {"stop", before + wanted}});
    if (surplus < 0) y = make::op("pad", {y}, {{"axis", axis}, {"after", -surplus}});
  }
  return c.with_bias(y).id;
}

template <int axes>
ir::NodeId conv(const LayerCall& call) {
  return convolve(call, axes, axes == 1 ? "conv1d" : "conv2d");
}
template <int axes>
ir::NodeId conv_transpose(const LayerCall& call) {
  return convolve_transposed(call, axes, axes == 1 ? "conv_transpose1d" : "conv_transpose2d");
}

}  // namespace

std::vector<Layer> convolution_layers(const ir::AttrDef& activation, const std::vector<LayerInit>& inits) {
  const ir::AttrDef filters{
      .name = "filters", .fallback = std::int64_t{8}, .doc = "number of output channels", .required = true, .low = 1};
  const ir::AttrDef size{.name = "size",
                         .fallback = List{3},
                         .doc = "size of a window along each axis; one number applies to all axes",
                         .required = true};
  const ir::AttrDef stride{
      .name = "stride", .fallback = List{1}, .doc = "distance between windows; one number applies to all axes"};
  const ir::AttrDef dilation{.name = "dilation",
                             .fallback = List{1},
                             .doc = "distance between window elements; one number applies to all axes"};
  ir::AttrDef padding{.name = "padding",
                      .fallback = std::string("valid"),
                      .doc = "valid: no zeros; same: zeros on both sides, so that stride 1 keeps the size",
                      .one_of = {"valid", "same"}};
  const ir::AttrDef groups{
      .name = "groups",
      .fallback = std::int64_t{1},
      .doc = "number of groups of channels that are convolved separately; equal to the channels: depthwise",
      .low = 1};
  const ir::AttrSchema of_conv2d = {filters, size, stride, dilation, padding, groups, activation};
  ir::AttrDef transposed = padding;
  transposed.doc = "valid: all of the result; same: crops it to stride times the extents of x";
  const ir::AttrSchema of_transposed = {filters, size, stride, dilation, transposed, activation};
  padding.doc = "valid: no zeros; same: zeros on both sides, so that stride 1 keeps the length; causal: zeros before x";
  padding.one_of.push_back("causal");
  const ir::AttrSchema of_conv1d = {filters, size, stride, dilation, padding, groups, activation};
  std::vector<Layer> rows;
  const auto add = [&](std::string_view name, std::string_view doc, const ir::AttrSchema& attributes,
                       ir::NodeId (*build)(const LayerCall&)) {
    rows.push_back({{{name, doc, attributes}, {"x"}}, inits, build});
  };
  add("conv1d",
      "computes activation(windows(x) @ W + b): x (batch, length, channels), W (size, channels / groups, filters)",
      of_conv1d, conv<1>);
  add("conv2d",
      "computes activation(windows(x) @ W + b): x (batch, height, width, channels), W (height and width of a window, "
      "channels / groups, filters)",
      of_conv2d, conv<2>);
  add("conv_transpose1d",
      "adjoint of conv1d, from channels to filters: x (batch, length, channels), W (size, filters, channels)",
      of_transposed, conv_transpose<1>);
  add("conv_transpose2d",
      "adjoint of conv2d, from channels to filters: x (batch, height, width, channels), W (height and width of a "
      "window, filters, channels)",
      of_transposed, conv_transpose<2>);
  return rows;
}

}  // namespace graphrun
