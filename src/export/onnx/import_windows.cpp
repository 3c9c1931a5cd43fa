// Convolutions and pooling. ONNX puts the channels first, formulas put them last.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "export/onnx/import_ops.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::onnx {
namespace {

struct Windows {
  List size, stride, dilation, before, after, positions;
  std::string attributes() const {
    return fmt::format("size=[{}], stride=[{}], dilation=[{}]", listing(size), listing(stride), listing(dilation));
  }
};

// Reads the attributes of a node with windows over `extents`.
Windows read_windows(const Call& call, const List& extents, List size) {
  const std::size_t axes = extents.size();
  Windows to;
  to.size = call.list("kernel_shape", std::move(size));
  to.stride = call.list("strides", List(axes, 1)), to.dilation = call.list("dilations", List(axes, 1));
  const List pads = call.list("pads", List(2 * axes, 0));
  const std::string automatic = call.word("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (!same && automatic != "NOTSET" && automatic != "VALID")
    throw Rejection{fmt::format("its auto_pad is {}", printable(automatic))};
  const auto invalid = [](const List& list, std::size_t count, std::int64_t low) {
    return list.size() != count || std::any_of(list.begin(), list.end(), [&](auto n) { return n < low || n > 65536; });
  };
  if (invalid(to.size, axes, 1) || invalid(to.stride, axes, 1) || invalid(to.dilation, axes, 1) ||
      invalid(pads, 2 * axes, 0))
    throw Rejection{"its windows do not fit its input"};
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t reach = to.dilation[i] * (to.size[i] - 1) + 1;
    std::int64_t before = pads[i], after = pads[axes + i];
    if (same) {
      const std::int64_t last = (extents[i] - 1) / to.stride[i] * to.stride[i];
      const std::int64_t total = std::max<std::int64_t>(last + reach - extents[i], 0);
      before = automatic == "SAME_UPPER" ? total / 2 : (total + 1) / 2, after = total - before;
    }
    const std::int64_t rest = extents[i] + before + after - reach;
    if (rest < 0) throw Rejection{"its windows do not fit its input"};
    std::int64_t positions = rest / to.stride[i] + 1;
    if (call.integer("ceil_mode", 0) != 0 && rest % to.stride[i] != 0 &&
        positions * to.stride[i] < extents[i] + before) {
      after += to.stride[i] - rest % to.stride[i];  // the last window starts in the input
      ++positions;
    }
    to.before.push_back(before), to.after.push_back(after), to.positions.push_back(positions);
  }
  return to;
}

// Text of (rows, channels, extents) as (rows, extents, channels): a call's inputs have several rows of their own.
std::string channels_last(Call& call, const GraphValue& x) {
  std::string text = call.graph.text(x);
  const List inner(x.shape.begin() + 1, x.shape.end());
  if (call.graph.whole()) text = fmt::format("reshape({}, shape=[-1, {}])", text, listing(inner));
  List last = {0};
  for (const std::int64_t axis : axes_from(2, x.shape)) last.push_back(axis);
  last.push_back(1);
  return fmt::format("transpose({}, axes=[{}])", text, listing(last));
}

GraphValue channels_first(Call& call, const std::string& text, std::int64_t channels, const List& extents,
                          bool trained) {
  List first = {0, static_cast<std::int64_t>(extents.size()) + 1}, to = {call.x().shape[0], channels};
  for (std::size_t i = 0; i < extents.size(); ++i) first.push_back(static_cast<std::int64_t>(i) + 1);
  to.insert(to.end(), extents.begin(), extents.end());
  GraphValue made{fmt::format("transpose({}, axes=[{}])", text, listing(first)), to, DType::f32, true,
                  trained || call.x().trained};
  if (call.graph.whole()) made.text = fmt::format("reshape({}, shape=[{}])", made.text, call.graph.extents(made, to));
  return made;
}

std::string step(Call& call, const std::string& text) {
  return call.graph.named({text, {}}).text;
}

std::string padded(std::string text, const Windows& windows, const char* value) {
  for (std::size_t i = 0; i < windows.size.size(); ++i)
    if (windows.before[i] != 0 || windows.after[i] != 0)
      text = fmt::format("pad({}, axis={}, before={}, after={}{})", text, i + 1, windows.before[i], windows.after[i],
                         value);
  return text;
}

void require_channels(const Call& call) {
  const GraphValue& x = call.x();
  if (!x.by_sample || x.dtype != DType::f32 || x.shape.size() < 3 || x.shape.size() > 5 ||
      (!call.graph.whole() && x.shape[0] != kAnyRows))
    throw Rejection{"its input is not f32 (batch, channels, extents)"};
}

void require_weights(const Call& call) {
  if (call.x(1).by_sample || (call.has(2) && call.x(2).by_sample)) throw Rejection{"its weights are not constant"};
  if (call.rank(1) != call.rank()) throw Rejection{"its weights do not fit its input"};
}

GraphValue convolution(Call& call) {
  require_channels(call);
  require_weights(call);
  const List &of = call.x().shape, weights = call.x(1).shape;
  const List size(weights.begin() + 2, weights.end());
  const Windows windows = read_windows(call, {of.begin() + 2, of.end()}, size);
  const std::int64_t filters = weights[0], width = weights[1], groups = call.integer("group", 1);
  if (windows.size != size) throw Rejection{"its weights do not fit its input"};
  if (groups < 1 || groups > 64 || width < 1 || filters < 1 || width * groups != of[1] || filters % groups != 0)
    throw Rejection{"its groups do not fit its weights"};
  const std::string x = step(call, padded(channels_last(call, call.x()), windows, ""));
  const std::int64_t part = filters / groups;
  List order = axes_from(2, weights);
  order.push_back(1), order.push_back(0);
  std::string text;
  for (std::int64_t group = 0; group < groups; ++group) {
    GraphValue matrix =
        call.graph.take(call.x(1), 0, axes_from(group * part, List(static_cast<std::size_t>((group + 1) * part))));
    matrix = call.graph.reshape(call.graph.transpose(matrix, order), {elements_of(weights) / filters, part});
    const std::string source =
        groups == 1 ? x : fmt::format("slice({}, start={}, stop={})", x, group * width, (group + 1) * width);
    const std::string product = fmt::format("reshape(windows({}, {}), shape=[-1, {}]) @ {}", source,
                                            windows.attributes(), matrix.shape[0], call.graph.text(matrix));
    text = group == 0 ? product : fmt::format("concat({}, {})", step(call, text), step(call, product));
  }
  if (call.has(2)) text = fmt::format("{} + {}", text, call.graph.text(call.x(2)));
  text = fmt::format("reshape({}, shape=[-1, {}, {}])", text, listing(windows.positions), filters);
  return channels_first(call, text, filters, windows.positions, is_weights(call.x(1)) || call.x(1).trained);
}

// Rows times weights are windows, which fold adds. The result is then cropped.
GraphValue transposed_convolution(Call& call) {
  require_channels(call);
  require_weights(call);
  const List &of = call.x().shape, weights = call.x(1).shape;
  const std::size_t axes = of.size() - 2;
  const List extents(of.begin() + 2, of.end()), size(weights.begin() + 2, weights.end());
  const std::int64_t groups = call.integer("group", 1), part = weights[1];
  if (groups < 1 || groups > 64 || weights[0] != of[1] || of[1] % groups != 0)
    throw Rejection{"its groups do not fit its weights"};
  List reached;  // extents of the result before it is cropped
  Windows to;
  to.size = call.list("kernel_shape", size);
  to.stride = call.list("strides", List(axes, 1)), to.dilation = call.list("dilations", List(axes, 1));
  const List pads = call.list("pads", List(2 * axes, 0)), more = call.list("output_padding", List(axes, 0));
  const List wanted = call.list("output_shape", {});
  const std::string automatic = call.word("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  const auto invalid = [&](const List& list, std::size_t count, std::int64_t low) {
    return list.size() != count || std::any_of(list.begin(), list.end(), [&](auto n) { return n < low || n > 4096; });
  };
  if (invalid(size, axes, 1) || invalid(to.stride, axes, 1) || invalid(to.dilation, axes, 1) ||
      invalid(pads, 2 * axes, 0) || invalid(more, axes, 0) || to.size != size ||
      (!wanted.empty() && invalid(wanted, axes, 1)))
    throw Rejection{"its windows do not fit its input"};
  for (std::size_t i = 0; i < axes; ++i) {
    reached.push_back(to.stride[i] * (extents[i] - 1) + to.dilation[i] * (size[i] - 1) + 1);
    const std::int64_t all = reached[i] + more[i];
    std::int64_t before = pads[i];
    to.positions.push_back(all - pads[i] - pads[axes + i]);
    if (same || !wanted.empty()) {
      to.positions[i] = wanted.empty() ? extents[i] * to.stride[i] : wanted[i];
      const std::int64_t total = all - to.positions[i];
      if (total < 0) throw Rejection{"its padding is negative"};  // runtimes disagree on the result
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    if (to.positions[i] < 1) throw Rejection{"its windows do not fit its input"};
    to.before.push_back(before);
    to.after.push_back(std::max<std::int64_t>(before + to.positions[i] - reached[i], 0));
  }
  const std::string x = step(call, channels_last(call, call.x()));
  const std::int64_t width = of[1] / groups;
  List order = {0};
  for (const std::int64_t axis : axes_from(2, weights)) order.push_back(axis);
  order.push_back(1);
  std::string text;
  for (std::int64_t group = 0; group < groups; ++group) {
    GraphValue matrix =
        call.graph.take(call.x(1), 0, axes_from(group * width, List(static_cast<std::size_t>((group + 1) * width))));
    matrix = call.graph.reshape(call.graph.transpose(matrix, order), {width, elements_of(weights) / weights[0]});
    const std::string source =
        groups == 1 ? x : fmt::format("slice({}, start={}, stop={})", x, group * width, (group + 1) * width);
    const std::string rows = fmt::format("reshape({}, shape=[-1, {}]) @ {}", source, width, call.graph.text(matrix));
    const std::string sum = fmt::format("fold(reshape({}, shape=[-1, {}, {}, {}]), extents=[{}], {})", step(call, rows),
                                        listing(extents), listing(size), part, listing(reached), to.attributes());
    text = group == 0 ? sum : fmt::format("concat({}, {})", step(call, text), step(call, sum));
  }
  Windows end = to;
  end.before.assign(axes, 0);
  text = padded(step(call, text), end, "");
  for (std::size_t i = 0; i < axes; ++i)
    if (to.before[i] > 0 || to.positions[i] < reached[i])
      text = fmt::format("slice({}, axis={}, start={}, stop={})", text, i + 1, to.before[i],
                         to.before[i] + to.positions[i]);
  if (call.has(2)) text = fmt::format("{} + {}", text, call.graph.text(call.x(2)));
  return channels_first(call, step(call, text), part * groups, to.positions,
                        is_weights(call.x(1)) || call.x(1).trained);
}

// Taps of each window that count for a mean, as a factor of the mean over all taps.
std::string counted(Call& call, const Windows& windows, const List& extents, bool counts_pads) {
  const List pads = call.list("pads", List(2 * extents.size(), 0));
  const bool automatic = call.word("auto_pad", "NOTSET").starts_with("SAME");
  std::vector<double> factors = {1};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t low = counts_pads ? -windows.before[i] : 0;
    const std::int64_t high = extents[i] + (!counts_pads ? 0 : automatic ? windows.after[i] : pads[extents.size() + i]);
    std::vector<double> outer;
    if (windows.size[i] > 4096) throw Rejection{"its windows do not fit its input"};
    for (const double factor : factors)
      for (std::int64_t at = 0; at < windows.positions[i]; ++at) {
        std::int64_t count = 0;
        for (std::int64_t tap = 0; tap < windows.size[i]; ++tap) {
          const std::int64_t from = at * windows.stride[i] - windows.before[i] + tap * windows.dilation[i];
          count += from >= low && from < high ? 1 : 0;
        }
        if (count == 0 || outer.size() > 65536) throw Rejection{"its windows do not fit its input"};
        outer.push_back(factor * static_cast<double>(windows.size[i]) / static_cast<double>(count));
      }
    factors = std::move(outer);
  }
  if (std::all_of(factors.begin(), factors.end(), [](double x) { return x == 1; })) return "";
  List shape = windows.positions;
  shape.push_back(1);
  return " * " + call.graph.parameter(call.node.outputs[0] + "_counts",
                                      from_doubles(factors, {DType::f32, Shape(shape), 0}), false);
}

GraphValue pooling(Call& call) {
  require_channels(call);
  if (call.node.outputs.size() > 1) throw Rejection{"its second output is not supported"};
  const List& of = call.x().shape;
  const List extents(of.begin() + 2, of.end());
  const Windows windows = read_windows(call, extents, {});
  const bool largest = call.node.op == "MaxPool";
  const std::string x =
      step(call, padded(channels_last(call, call.x()), windows, largest ? ", value=-3.4028234e38" : ""));
  const std::string taps = fmt::format("windows({}, {})", x, windows.attributes());
  const std::string axes =
      listing(axes_from(static_cast<std::int64_t>(extents.size()) + 1, List(2 * extents.size() + 1)));
  std::string text = fmt::format("{}({}, axis=[{}])", largest ? "max" : "mean", taps, axes);
  if (call.node.op == "LpPool") {
    const std::int64_t p = call.integer("p", 2);
    if (p < 1) throw Rejection{"its p is not positive"};
    text = fmt::format("sum(abs({})^{}, axis=[{}])^{}", taps, p, axes, 1 / static_cast<double>(p));
  } else if (!largest)
    text += counted(call, windows, extents, call.integer("count_include_pad", 0) != 0);
  return channels_first(call, step(call, text), of[1], windows.positions, false);
}

GraphValue global_pooling(Call& call, const char* function) {
  if (call.rank() < 3) throw Rejection{"its input is not (batch, channels, extents)"};
  return call.graph.reduce(function, call.x(), axes_from(2, call.x().shape), true);
}

}  // namespace

Rules window_rules() {
  return {
      {"Conv", 2, 3, convolution},
      {"ConvTranspose", 2, 3, transposed_convolution},
      {"MaxPool", 1, 1, pooling},
      {"LpPool", 1, 1, pooling},
      {"AveragePool", 1, 1, pooling},
      {"GlobalAveragePool", 1, 1, [](Call& call) { return global_pooling(call, "mean"); }},
      {"GlobalMaxPool", 1, 1, [](Call& call) { return global_pooling(call, "max"); }},
  };
}

}  // namespace graphrun::onnx
