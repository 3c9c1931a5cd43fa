#include "graph/frontend/library/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/gradients.h"
#include "graph/ir/needed.h"
#include "graph/ops/make.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

using make::op;
using Operands = std::span<const Var>;
using Axes = std::vector<std::int64_t>;

// Converts bool to 0 and 1 for sums.
Var counted(Var x) {
  return x.type().dtype == DType::boolean ? make::cast(x, DType::f32) : x;
}

Var mean_over(Var x, const Axes& axes = {}, bool keepdims = false) {
  x = counted(x);
  const TensorType type = x.type();
  if (type.shape.rank() == 0 && axes.empty()) return x;
  const Var total = make::sum(x, axes, keepdims);

  // The size of a sample is known here; the number of samples in the batch only in the step.
  bool over_rows = false;
  double count = 1;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    bool reduced = axes.empty();
    for (const std::int64_t a : axes) reduced = reduced || a == axis || a + type.shape.rank() == axis;
    if (!reduced) continue;
    const bool rows = axis == 0 && type.rows > 0;
    over_rows = over_rows || rows;
    count *= static_cast<double>(rows ? type.rows : type.shape[axis]);
  }
  if (!over_rows) return total / make::like(count, x);
  const Var samples{x.make, x.make->sample_count(type.dtype)};
  return total / (count == 1 ? samples : samples * count);
}

// Losses compare like with like: broadcasting (batch, 1) against (batch) would silently compare all pairs.
Var difference(std::string_view loss, Operands x) {
  const TensorType& a = x[0].type();
  const TensorType& b = x[1].type();
  if (!(a.shape == b.shape) || a.rows != b.rows) {
    throw Error(
        ErrorKind::input, "shape.mismatch",
        fmt::format("{}: prediction {} and target {} must have the same shape", loss, to_string(a), to_string(b)));
  }
  return x[0] - x[1];
}

// The product of c, the difference clipped to ±delta, and (difference - c / 2): quadratic inside, linear outside.
Var huber(Operands x, const ir::Attrs& attrs) {
  const double delta = attrs.real("delta");
  const Var d = difference("huber", x);
  const Var c = op("clip", {d}, {{"low", -delta}, {"high", delta}});
  const Var rest = d - c * 0.5;
  return mean_over(c * rest);
}

// Share of correctly classified samples: by argmax of several columns, or one probability against 1/2.
Var accuracy(Operands x, const ir::Attrs&) {
  const auto largest = [](Var scores) { return op("argmax", {scores}, {{"axis", std::int64_t{-1}}}); };
  if (x[1].type().dtype == DType::i32) return mean_over(op("equal", {largest(x[0]), x[1]}));
  difference("accuracy", x);
  const Shape shape = x[0].type().shape;
  const bool several = shape.rank() > 1 && shape[shape.rank() - 1] > 1;
  const auto side = [](Var p) { return make::cast(op("greater", {p, make::like(0.5, p)}), DType::f32); };
  return mean_over(several ? op("equal", {largest(x[0]), largest(x[1])}) : op("equal", {side(x[0]), side(x[1])}));
}

Var variance(Operands x, const ir::Attrs& attrs) {
  const Axes& axes = attrs.integers("axis");
  return mean_over(make::square(x[0] - mean_over(x[0], axes, true)), axes, attrs.boolean("keepdims"));
}

// log(1 + exp(z)) - z t, which neither overflows nor cancels.
Var sigmoid_cross_entropy(Operands x, const ir::Attrs&) {
  difference("sigmoid_cross_entropy", x);
  const Var chosen = x[0] * x[1];
  return op("softplus", {x[0]}) - chosen;
}

Var split(Operands x, const ir::Attrs& attrs) {
  const TensorType type = x[0].type();
  const std::int64_t axis = attrs.integer("axis") + (attrs.integer("axis") < 0 ? type.shape.rank() : 0);
  const std::int64_t parts = attrs.integer("parts");
  const std::int64_t index = attrs.integer("index");
  if (axis < 0 || axis >= type.shape.rank()) {
    throw Error(ErrorKind::input, "attribute.axis",
                fmt::format("split: axis {} is out of range for {}", axis, to_string(type)));
  }
  if (axis == 0 && type.rows > 0) {
    throw Error(ErrorKind::input, "shape.rows",
                fmt::format("split: axis 0 of {} is the batch, it cannot be cut", to_string(type)));
  }
  const std::int64_t extent = type.shape[static_cast<int>(axis)];
  if (extent % parts != 0 || index >= parts) {
    throw Error(ErrorKind::input, "attribute.range",
                fmt::format("split: part {} of {} of an axis of {} elements", index, parts, extent),
                "parts must divide the extent, index counts from 0");
  }
  const std::int64_t size = extent / parts;
  return op("slice", {x[0]}, {{"axis", axis}, {"start", index * size}, {"stop", (index + 1) * size}});
}

// x as windows, and the axes of a window. Windows next to each other are x itself in another shape.
struct Pooling {
  Var windows;
  Axes axes;
};
Pooling pooling(std::string_view name, Var x, const ir::Attrs& attrs) {
  const TensorType type = x.type();
  const int spatial = type.shape.rank() - 2;
  if (spatial < 1 || spatial > kMaxWindowAxes) {
    throw Error(ErrorKind::input, "shape.rank",
                fmt::format("{}: x must be (batch, length, channels) or have up to {} axes between batch and channels, "
                            "got {}",
                            name, kMaxWindowAxes, to_string(type)));
  }
  const auto numbers = [&](const Axes& given) {
    return given.size() == 1 ? Axes(static_cast<std::size_t>(spatial), given[0]) : given;
  };
  const Axes size = numbers(attrs.integers("size")), stride = numbers(attrs.integers("stride"));
  const bool valid =
      size.size() == static_cast<std::size_t>(spatial) && *std::min_element(size.begin(), size.end()) > 0;
  if (!valid || (!stride.empty() && stride != size)) {
    Pooling overlapping{op("windows", {x}, {{"size", size}, {"stride", stride.empty() ? size : stride}}), {}};
    for (int axis = 1; axis <= spatial; ++axis) overlapping.axes.push_back(spatial + axis);
    return overlapping;
  }
  Pooling result{x, {}};
  Axes shape = {-1};
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t extent = type.shape[i + 1], length = size[static_cast<std::size_t>(i)], count = extent / length;
    if (count == 0) {
      throw ir::AttrError(
          "size", "shape.mismatch",
          fmt::format("{}: a window of {} elements does not fit into the {} of axis {}", name, length, extent, i + 1));
    }
    if (count * length < extent)
      result.windows = op("slice", {result.windows}, {{"axis", std::int64_t{i + 1}}, {"stop", count * length}});
    shape.insert(shape.end(), {count, length});
    result.axes.push_back(2 * i + 2);
  }
  shape.push_back(type.shape[spatial + 1]);
  result.windows = op("reshape", {result.windows}, {{"shape", shape}});
  return result;
}

// One axis of the windows at a time, the outermost first: then the elements to combine are in long rows.
template <class Combine>
Var pool(std::string_view name, Operands x, const ir::Attrs& attrs, Combine&& combine) {
  Pooling over = pooling(name, x[0], attrs);
  for (std::size_t i = 0; i < over.axes.size(); ++i)
    over.windows = combine(over.windows, Axes{over.axes[i] - static_cast<std::int64_t>(i)});
  return over.windows;
}
Var max_pool(Operands x, const ir::Attrs& attrs) {
  return pool("max_pool", x, attrs, [](Var windows, const Axes& axes) {
    return op("max", {windows}, {{"axes", axes}});
  });
}
Var avg_pool(Operands x, const ir::Attrs& attrs) {
  return pool("avg_pool", x, attrs, [](Var windows, const Axes& axes) { return mean_over(windows, axes); });
}

// One row for each sample, or for each index of the first axis.
Var flatten(Operands x, const ir::Attrs&) {
  const TensorType type = x[0].type();
  if (type.shape.rank() == 0 || type.rows > 1) {
    throw Error(ErrorKind::input, "shape.rank",
                fmt::format("flatten: x must be (batch, ...) with one row a sample, got {}", to_string(type)));
  }
  std::int64_t columns = 1;
  for (int axis = 1; axis < type.shape.rank(); ++axis) columns *= type.shape[axis];
  return make::reshape(x[0], {type.shape[0], columns});
}

Var step_of(Var x) {
  return {x.make, x.make->step()};
}

// The runtime hyperparameter of that name.
Var set_at_run_time(std::string_view attribute, const std::string& name, ir::Builder& make) {
  std::vector<std::string> names;
  for (ir::NodeId id = 0; id < make.graph().size(); ++id) {
    const ir::Node& node = make.graph()[id];
    if (node.op != Op::state) continue;
    if (node.name == name) return {&make, id};
    names.push_back(node.name);
  }
  const std::string near = did_you_mean(name, names);
  throw ir::AttrError(attribute, "attribute.value",
                      fmt::format("'{}': there is no runtime hyperparameter named {}", attribute, name),
                      near.empty() ? R"(one is declared by "constants": {"NAME": {"runtime": 0.1}})" : near);
}

constexpr double kHighestRate = 0.999999;

// Compares and divides as the op does, with its own random samples.
Var dropout_at(Var x, Var rate) {
  const TensorType type = x.type();
  if (!is_float(type.dtype))
    throw Error(ErrorKind::input, "dtype.float", fmt::format("dropout: x must be a float, got {}", to_string(type)));
  const Var within = op("clip", {rate}, {{"low", 0.0}, {"high", kHighestRate}});
  const Var samples = op("random_uniform", {step_of(x)}, {{"shape", make::dims(type.shape)}, {"rows", type.rows}});
  const Var drops = op("less", {samples, within});
  const Var one = make::like(1, within);
  const Var kept = x / make::cast(one - within, type.dtype);
  const Var dropped = op("where", {drops, make::like(0, x), kept});
  return op("where", {{x.make, x.make->training()}, dropped, x});
}

Var dropout(Operands x, const ir::Attrs& attrs) {
  if (const std::string* name = attrs.name_at_run_time("rate"))
    return dropout_at(x[0], set_at_run_time("rate", *name, *x[0].make));
  return op("dropout", {x[0], step_of(x[0])}, attrs.list());
}

// Random samples in the operand's shape, or in extents of their own per row.
Var random_samples(std::string_view name, Operands x, const ir::Attrs& attrs) {
  TensorType type = x[0].type();
  AttrList all = attrs.list();
  std::erase_if(all, [](const auto& attr) { return attr.first == "shape" || attr.first == "every"; });
  if (const Axes& extents = attrs.integers("shape"); !extents.empty()) {
    if (*std::min_element(extents.begin(), extents.end()) < 1) {
      throw ir::AttrError("shape", "attribute.range", "'shape' must be extents >= 1", "the batch is not among them");
    }
    Axes whole = extents;
    if (type.rows > 0) whole.insert(whole.begin(), kBatch);
    type = {DType::f32, Shape(whole), type.rows > 0};
  }
  all.insert(all.end(), {{"shape", make::dims(type.shape)}, {"rows", type.rows}});
  Var step = step_of(x[0]);
  if (const std::int64_t every = attrs.integer("every"); every > 1)
    step = op("divide_step", {step}, {{"every", static_cast<double>(every)}});
  return op(name, {step}, all);
}

// Piecewise-linear activations through which derivatives within y depend on x: their second derivative is 0.
std::set<ir::NodeId> kinks_in(const ir::Builder& make, ir::NodeId y, ir::NodeId x) {
  const ir::Graph& graph = make.graph();
  std::set<ir::NodeId> kinks;
  if (make.slopes.empty() || graph[x].type.rows == 0) return kinks;
  std::vector<ir::NodeId> slopes, parameters;
  const std::vector<bool> in_y = ir::needed_by(graph, {&y, 1}), by_x = ir::depending_on(graph, {&x, 1});
  for (const ir::NodeId id : make.slopes)
    if (in_y[id] && by_x[id]) slopes.push_back(id);
  for (ir::NodeId id = 0; id < graph.size(); ++id)
    if (graph[id].op == Op::parameter) parameters.push_back(id);
  const std::vector<bool> in_slopes = ir::needed_by(graph, slopes), trained = ir::depending_on(graph, parameters);
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (!in_slopes[id] || !by_x[id] || !trained[id]) continue;
    for (const Op op : {Op(scalar_op::relu), Op(scalar_op::leaky_relu), Op(scalar_op::abs), Op(scalar_op::clip),
                        Op::minimum, Op::maximum})
      if (graph[id].op == op) kinks.insert(id);
  }
  return kinks;
}

// d(y)/d(x), as nodes: it can be differentiated again.
Var gradient(Operands x, const ir::Attrs&) {
  const TensorType y = x[0].type(), by = x[1].type();
  if (y.shape.rank() != 0 || !is_float(y.dtype)) {
    throw Error(ErrorKind::input, y.shape.rank() != 0 ? "shape.scalar" : "dtype.float",
                fmt::format("the gradient is of a float scalar, got {}", to_string(y)),
                "sum(...) makes one: of values that have nothing to do with each other, each has its own gradient");
  }
  if (!is_float(by.dtype)) {
    throw Error(ErrorKind::input, "dtype.float", fmt::format("the gradient is by a float, got {}", to_string(by)));
  }
  ir::Builder& make = *x[0].make;
  const std::set<ir::NodeId> kinks = kinks_in(make, x[0].id, x[1].id);
  const ir::NodeId found = gradient_or_none(make, x[0].id, x[1].id);
  if (found == ir::kNoNode && !kinks.empty()) {
    const ir::Node& kink = make.graph()[*kinks.begin()];
    throw Error(ErrorKind::input, "gradient.independent",
                fmt::format("the second derivative is 0 everywhere, because '{}' is a {}", kink.name, name_of(kink.op)),
                "tanh, softplus and sin have second derivatives");
  }
  make.kinks.insert(kinks.begin(), kinks.end());
  if (found == ir::kNoNode) {
    throw Error(ErrorKind::input, "gradient.independent",
                "the first operand does not depend on the second one: there is no gradient",
                "the second is a value that the first was computed from; stop_gradient ends a gradient");
  }
  make.slopes.push_back(found);
  return {&make, found};
}

Var in_training(Operands x, const ir::Attrs&) {
  const TensorType a = x[0].type(), b = x[1].type();
  if (!(a == b)) {
    throw Error(
        ErrorKind::input, "shape.mismatch",
        fmt::format("in_training: both operands must have the same type: {} and {}", to_string(a), to_string(b)));
  }
  return op("where", {{x[0].make, x[0].make->training()}, x[0], x[1]});
}

Function made(std::string_view name, std::string_view doc, std::vector<std::string_view> operands,
              Var (*build)(Operands, const ir::Attrs&), ir::AttrSchema attrs = {}) {
  return {{{name, doc, std::move(attrs)}, std::move(operands)}, build};
}

std::vector<Function> made_of_ops() {
  const ir::AttrSchema reduction = {
      {.name = "axis", .fallback = Axes{}, .doc = "axis or list of axes; negative counts from the end"},
      {.name = "keepdims", .fallback = false, .doc = "keep reduced axes with extent 1"}};
  const ir::AttrSchema pooling = {
      {.name = "size",
       .fallback = Axes{2},
       .doc = "size of a window along each axis; one number applies to all axes",
       .required = true},
      {.name = "stride", .fallback = Axes{}, .doc = "distance between consecutive windows (default: their size)"}};
  const ir::AttrDef every{.name = "every",
                          .fallback = std::int64_t{1},
                          .doc = "steps that keep the same samples",
                          .low = 1.0,
                          .high = 2147483647.0};
  const ir::AttrDef extents{.name = "shape", .fallback = Axes{}, .doc = "extents of a row, instead of those of `like`"};
  return {
      made(
          "sum", "sum over axes; bool counts as 0 and 1", {"x"},
          [](Operands x, const ir::Attrs& attrs) {
            return make::sum(counted(x[0]), attrs.integers("axis"), attrs.boolean("keepdims"));
          },
          reduction),
      made(
          "mean", "mean over axes; over rows, the mean of the samples in the batch", {"x"},
          [](Operands x, const ir::Attrs& attrs) {
            return mean_over(x[0], attrs.integers("axis"), attrs.boolean("keepdims"));
          },
          reduction),
      made("max_pool", "maximum over windows of x (batch, length or height and width, channels)", {"x"}, max_pool,
           pooling),
      made("avg_pool", "mean over windows of x (batch, length or height and width, channels)", {"x"}, avg_pool,
           pooling),
      made("flatten", "x with all axes but the batch as one", {"x"}, flatten),
      made("variance", "mean((x - mean(x))^2) over axes", {"x"}, variance, reduction),
      made("sigmoid_cross_entropy", "log(1 + exp(logits)) - logits * target", {"logits", "target"},
           sigmoid_cross_entropy),
      made("split", "one of the equal parts of x along the axis", {"x"}, split,
           {{.name = "parts", .fallback = std::int64_t{2}, .doc = "number of parts", .required = true, .low = 1.0},
            {.name = "index", .fallback = std::int64_t{0}, .doc = "part, from 0", .required = true, .low = 0.0},
            {.name = "axis", .fallback = std::int64_t{-1}, .doc = "axis; negative counts from the end"}}),
      made("dropout", "0 with probability rate, else x / (1 - rate); identity outside training", {"x"}, dropout,
           {{.name = "rate",
             .fallback = 0.5,
             .doc = "probability that an element is set to 0",
             .required = true,
             .low = 0.0,
             .high = kHighestRate,
             .at_run_time = true}}),
      made("random_uniform", "uniform random samples in [low, high), shaped like `like`, new in each step", {"like"},
           [](Operands x, const ir::Attrs& attrs) { return random_samples("random_uniform", x, attrs); },
           {{.name = "low", .fallback = 0.0, .doc = "lower bound"},
            {.name = "high", .fallback = 1.0, .doc = "upper bound, exclusive"},
            extents,
            every}),
      made("random_normal", "normal random samples, shaped like `like`, new in each step", {"like"},
           [](Operands x, const ir::Attrs& attrs) { return random_samples("random_normal", x, attrs); },
           {{.name = "mean", .fallback = 0.0, .doc = "mean of the distribution"},
            {.name = "deviation", .fallback = 1.0, .doc = "standard deviation", .low = 0.0},
            extents,
            every}),
      made("gradient", "gradient of the scalar y with respect to x; it can be differentiated again", {"y", "x"},
           gradient),
      made("in_training", "x in training steps, `otherwise` in evaluation and prediction", {"x", "otherwise"},
           in_training),
      made("mse", "mean((prediction - target)^2)", {"prediction", "target"},
           [](Operands x, const ir::Attrs&) { return mean_over(make::square(difference("mse", x))); }),
      made("accuracy",
           "fraction of correctly classified rows, by the largest of several columns or one probability above 1/2",
           {"prediction", "target"}, accuracy),
      made("mae", "mean(|prediction - target|)", {"prediction", "target"},
           [](Operands x, const ir::Attrs&) { return mean_over(op("abs", {difference("mae", x)})); }),
      made("huber", "mean of d^2 / 2 where |d| <= delta, else delta * (|d| - delta / 2); d = prediction - target",
           {"prediction", "target"}, huber,
           {{.name = "delta",
             .fallback = 1.0,
             .doc = "error above which the loss is linear",
             .low = 0.0,
             .above = true}}),
  };
}

std::vector<Function> all_functions() {
  const std::vector<Function> made = made_of_ops();
  std::vector<Function> all;
  for (const OpDef& op : all_ops()) {
    if (op.internal) continue;
    const Function* own = find_row(made, op.name());
    all.push_back(own ? *own : Function{{{op.name(), op.doc, op.attrs}, op.operands, op.variadic}});
  }
  for (const Function& function : made) {
    if (!find_row(all, function.name)) all.push_back(function);
  }
  return all;
}

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> table = all_functions();
  return table;
}

ir::NodeId call(ir::Builder& make, const Function& function, std::span<const ir::NodeId> operands, AttrList attrs) {
  if (std::string message = wrong_count(function, operands.size()); !message.empty()) {
    throw Error(ErrorKind::input, "function.operands", std::move(message));
  }
  for (auto& [name, value] : attrs) {
    const ir::AttrDef* wanted = ir::find_attr(function.attributes, name);
    if (wanted == nullptr) continue;  // the op reports it
    name = wanted->name;
    value = ir::coerce(*wanted, value);
  }
  if (function.build == nullptr) return make.add(function.name, {operands.begin(), operands.end()}, attrs);
  std::vector<Var> vars;
  for (const ir::NodeId operand : operands) vars.push_back({&make, operand});
  return function.build(vars, ir::Attrs(function.attributes, attrs)).id;
}

bool is_activation(const Function& f) {
  const OpDef* op = f.build == nullptr ? find_op_def(f.name) : nullptr;
  if (op == nullptr || !op->grad || f.operands.size() != 1 || f.variadic) return false;
  const bool computes = op->rows == RowRule::rowwise && op->agreement != Agreement::exact;
  return (op->rows == RowRule::elementwise || computes) &&
         std::ranges::none_of(f.attributes, [](const auto& def) { return def.required || def.name == "keepdims"; });
}

}  // namespace graphrun
