#include "graph/frontend/composed.h"

#include <fmt/format.h>

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

ir::AttrSchema reduction_attrs() {
  return {{.name = "axis", .fallback = Axes{}, .doc = "axis or list of axes, negative from the end; none: all"},
          {.name = "keepdims", .fallback = false, .doc = "keep reduced axes with extent 1"}};
}

}  // namespace

const std::vector<Composed>& composed() {
  static const std::vector<Composed> table = {
      {"sum", "sum over axes; bool counts as 0 and 1", {"x"}, reduction_attrs(), sum},
      {"mean",
       "sum over axes / number of elements; over rows: of the samples in the batch",
       {"x"},
       reduction_attrs(),
       mean},
      {"mse", "mean((prediction - target)^2)", {"prediction", "target"}, {}, mse},
      {"mae", "mean(|prediction - target|)", {"prediction", "target"}, {}, mae},
  };
  return table;
}

}  // namespace graphrun
