#include "graph/frontend/library/functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/ops/make.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using ir::NodeId;
using Axes = std::vector<std::int64_t>;

// bool counts as 0 and 1 where numbers are added up.
NodeId counted(NodeFactory& make, NodeId x) {
  return make.type(x).dtype == DType::boolean ? make.add("cast", {x}, {{"dtype", std::string("f32")}}) : x;
}

NodeId sum(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  return make.add("sum", {counted(make, operands[0])},
                  {{"axes", attrs.integers("axis")}, {"keepdims", attrs.boolean("keepdims")}});
}

NodeId mean_over(NodeFactory& make, NodeId x, const Axes& axes, bool keepdims) {
  x = counted(make, x);
  const TensorType type = make.type(x);
  if (type.shape.rank() == 0 && axes.empty()) return x;
  const NodeId total = make.add("sum", {x}, {{"axes", axes}, {"keepdims", keepdims}});

  // What one sample contributes is known now; how many samples the batch holds only the step knows.
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
  if (!over_rows) return make.add("div", {total, make.scalar(count, type.dtype)});
  NodeId samples = make.sample_count(type.dtype);
  if (count != 1) samples = make.add("mul", {samples, make.scalar(count, type.dtype)});
  return make.add("div", {total, samples});
}

NodeId mean(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  return mean_over(make, operands[0], attrs.integers("axis"), attrs.boolean("keepdims"));
}

// Losses compare like with like: broadcasting (batch, 1) against (batch) would silently compare all pairs.
NodeId difference(NodeFactory& make, std::string_view loss, std::span<const NodeId> operands) {
  const TensorType& a = make.type(operands[0]);
  const TensorType& b = make.type(operands[1]);
  if (!(a.shape == b.shape) || a.rows != b.rows) {
    throw Error(
        ErrorKind::input, "shape.mismatch",
        fmt::format("{}: prediction {} and target {} must have the same shape", loss, to_string(a), to_string(b)));
  }
  return make.add("sub", {operands[0], operands[1]});
}

NodeId mse(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs&) {
  return mean_over(make, make.add("square", {difference(make, "mse", operands)}), {}, false);
}

NodeId mae(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs&) {
  return mean_over(make, make.add("abs", {difference(make, "mae", operands)}), {}, false);
}

// The share of samples whose class is right: the largest of several columns, or a probability on the right side of 1/2.
NodeId accuracy(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs&) {
  const TensorType prediction = make.type(operands[0]);
  const TensorType target = make.type(operands[1]);
  const auto largest = [&](NodeId x) { return make.add("argmax", {x}, {{"axis", std::int64_t{-1}}}); };
  NodeId hit = ir::kNoNode;
  if (target.dtype == DType::i32) {
    hit = make.add("equal", {largest(operands[0]), operands[1]});
  } else {
    difference(make, "accuracy", operands);
    const bool several = prediction.shape.rank() > 1 && prediction.shape[prediction.shape.rank() - 1] > 1;
    const auto side = [&](NodeId x) { return make.add("greater", {x, make::like(make, 0.5, x)}); };
    hit = several ? make.add("equal", {largest(operands[0]), largest(operands[1])})
                  : make.add("equal", {make::cast(make, side(operands[0]), DType::f32),
                                       make::cast(make, side(operands[1]), DType::f32)});
  }
  return mean_over(make, hit, {}, false);
}

NodeId variance(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  const Axes& axes = attrs.integers("axis");
  const NodeId centred = make::sub(make, operands[0], mean_over(make, operands[0], axes, true));
  return mean_over(make, make::square(make, centred), axes, attrs.boolean("keepdims"));
}

// log(1 + exp(z)) - z t, which neither overflows nor cancels.
NodeId sigmoid_cross_entropy(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs&) {
  difference(make, "sigmoid_cross_entropy", operands);
  return make::sub(make, make.add("softplus", {operands[0]}), make::mul(make, operands[0], operands[1]));
}

NodeId split(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  const TensorType type = make.type(operands[0]);
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
  return make.add("slice", {operands[0]}, {{"axis", axis}, {"start", index * size}, {"stop", (index + 1) * size}});
}

NodeId dropout(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  return make.add("dropout", {operands[0], make.step()}, {{"rate", attrs.real("rate")}});
}

// Draws of the operand's shape.
NodeId draw(NodeFactory& make, std::string_view op, NodeId like, AttrList attrs) {
  const TensorType type = make.type(like);
  attrs.emplace_back("shape", make::dims(type.shape));
  attrs.emplace_back("rows", type.rows);
  return make.add(op, {make.step()}, attrs);
}
NodeId random_uniform(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  return draw(make, "random_uniform", operands[0], {{"low", attrs.real("low")}, {"high", attrs.real("high")}});
}
NodeId random_normal(NodeFactory& make, std::span<const NodeId> operands, const ir::Attrs& attrs) {
  return draw(make, "random_normal", operands[0],
              {{"mean", attrs.real("mean")}, {"deviation", attrs.real("deviation")}});
}

ir::AttrSchema reduction_attrs() {
  return {{.name = "axis", .fallback = Axes{}, .doc = "axis or list of axes, negative from the end; none: all"},
          {.name = "keepdims", .fallback = false, .doc = "keep reduced axes with extent 1"}};
}

std::vector<Function> made_of_ops() {
  return {
      {{"sum", "sum over axes; bool counts as 0 and 1", reduction_attrs()}, {"x"}, sum},
      {{"mean", "sum over axes / number of elements; over rows: of the samples in the batch", reduction_attrs()},
       {"x"},
       mean},
      {{"variance", "mean((x - mean(x))^2) over axes", reduction_attrs()}, {"x"}, variance},
      {{"sigmoid_cross_entropy", "log(1 + exp(logits)) - logits * target"},
       {"logits", "target"},
       sigmoid_cross_entropy},
      {{"split",
        "part number index of x cut into equal parts along the axis",
        {{.name = "parts", .fallback = std::int64_t{2}, .doc = "how many", .required = true, .low = 1.0},
         {.name = "index", .fallback = std::int64_t{0}, .doc = "which, from 0", .required = true, .low = 0.0},
         {.name = "axis", .fallback = std::int64_t{-1}, .doc = "the axis; negative counts from the end"}}},
       {"x"},
       split},
      {{"dropout",
        "0 with probability rate, else x / (1 - rate); the identity outside training",
        {{.name = "rate", .fallback = 0.5, .doc = "probability of 0", .required = true, .low = 0.0, .high = 0.999999}}},
       {"x"},
       dropout},
      {{"random_uniform",
        "numbers in [low, high) in the shape of `like`, new ones each step",
        {{.name = "low", .fallback = 0.0, .doc = "smallest"},
         {.name = "high", .fallback = 1.0, .doc = "upper end, not reached"}}},
       {"like"},
       random_uniform},
      {{"random_normal",
        "numbers of the normal distribution in the shape of `like`, new ones each step",
        {{.name = "mean", .fallback = 0.0, .doc = "mean"},
         {.name = "deviation", .fallback = 1.0, .doc = "standard deviation", .low = 0.0}}},
       {"like"},
       random_normal},
      {{"mse", "mean((prediction - target)^2)"}, {"prediction", "target"}, mse},
      {{"accuracy",
        "share of samples whose class is right: argmax of several columns, or one probability on the right side of "
        "1/2"},
       {"prediction", "target"},
       accuracy},
      {{"mae", "mean(|prediction - target|)"}, {"prediction", "target"}, mae},
  };
}

std::vector<Function> all_functions() {
  std::vector<Function> made = made_of_ops(), all;
  for (const OpDef& op : all_ops()) {
    if (op.internal) continue;
    const auto same = std::find_if(made.begin(), made.end(), [&](const Function& f) { return f.name == op.name(); });
    if (same == made.end()) {
      all.push_back({{op.name(), op.doc, op.attrs}, op.operands, nullptr, op.variadic});
    } else {
      all.push_back(std::move(*same));
      made.erase(same);
    }
  }
  all.insert(all.end(), made.begin(), made.end());
  return all;
}

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> table = all_functions();
  return table;
}

std::string wrong_count(const Function& function, std::size_t got) {
  const std::size_t wanted = function.operands.size();
  if (wanted == got || (function.variadic && got > wanted)) return {};
  return fmt::format("{} takes {} operand{} ({}), got {}", function.name, wanted, wanted == 1 ? "" : "s",
                     fmt::join(function.operands, ", "), got);
}

NodeId call(NodeFactory& make, const Function& function, std::span<const NodeId> operands, AttrList attrs) {
  if (std::string message = wrong_count(function, operands.size()); !message.empty()) {
    throw Error(ErrorKind::input, "function.operands", std::move(message));
  }
  for (auto& [name, value] : attrs) {
    const ir::AttrDef* wanted = ir::find_attr(function.attributes, name);
    if (wanted == nullptr) continue;  // the op says so
    name = wanted->name;
    value = ir::coerce(*wanted, value);
  }
  if (function.build == nullptr) return make.add(function.name, {operands.begin(), operands.end()}, attrs);
  return function.build(make, operands, ir::Attrs(function.attributes, attrs));
}

}  // namespace graphrun
