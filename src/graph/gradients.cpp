#include "graph/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "graph/ir/needed.h"
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;

// Shape of the gradients of each row by a shared value.
Shape shape_of_rows(std::int64_t rows, const Shape& shape) {
  Shape result{rows};
  for (const std::int64_t extent : shape.dims()) result.push_back(extent);
  return result;
}

// Sums over the axes along which the value was broadcast: leading axes that it does not have, and axes where its extent
// is 1. Rows are handled alike: the gradient of a shared value that was combined with rows is a sum over rows, or with
// `by_row` its terms.
Var unbroadcast(Var gradient, const TensorType& wanted, bool by_row) {
  const TensorType have = gradient.type();
  const bool keeps = by_row && have.rows > 0 && wanted.rows == 0;
  const int shift = have.shape.rank() - wanted.shape.rank();
  std::vector<std::int64_t> repeated;
  for (int axis = keeps ? 1 : 0; axis < have.shape.rank(); ++axis) {
    const bool added = axis < shift;
    const bool over_rows = axis == 0 && have.rows > 0 && wanted.rows == 0;
    if (added || over_rows || (wanted.shape[axis - shift] == 1 && have.shape[axis] != 1)) repeated.push_back(axis);
  }
  if (!repeated.empty()) gradient = make::sum(gradient, repeated, true);
  return make::reshape(gradient, keeps ? shape_of_rows(have.shape[0], wanted.shape) : wanted.shape);
}

// Gradients of each row by the weights of x @ W (or x @ W^T): outer products of x and g, both (rows, features).
Var outer_products(Var x, Var g, bool transposed) {
  const auto with = [](Var value, bool column) {
    const Shape& shape = value.type().shape;
    return make::reshape(value, column ? Shape{shape[0], shape[1], 1} : Shape{shape[0], 1, shape[1]});
  };
  const Var left = with(transposed ? g : x, true);
  return left * with(transposed ? x : g, false);
}

// Throws Error if gradients by row cannot pass the node.
void check_by_row(const ir::Graph& graph, const ir::Node& node, const std::vector<bool>& input_wanted) {
  const auto fail = [&](std::string_view why) {
    throw Error(ErrorKind::input, "gradient.rows",
                fmt::format("no gradients of single rows through '{}' ({}): {}", node.name, node.def->name(), why));
  };
  if (node.type.rows > 1) fail("a sample has several rows there");
  if (node.type.rows > 0) return;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (input_wanted[i] && graph[node.inputs[i]].type.rows > 0) fail("it combines rows");
  if (node.def->rows != RowRule::elementwise && node.op != Op::reshape && node.op != family_op::stop_gradient)
    fail("of parameters, only elementwise functions and reshape are supported");
}

}  // namespace

std::vector<NodeId> gradients(ir::Builder& make, NodeId loss, std::span<const NodeId> wanted) {
  const TensorType& type = make.type(loss);
  if (type.shape.rank() != 0 || !is_float(type.dtype)) {
    throw Error(ErrorKind::input, "gradient.scalar",
                fmt::format("'{}' cannot be minimised: it must be a float scalar, not {}", make.graph()[loss].name,
                            to_string(type)),
                "mean(...) makes a scalar");
  }
  return gradients(make, loss, make.scalar(1, type.dtype), wanted);
}

namespace {
Var padded(Var x, std::int64_t axis, std::int64_t before, std::int64_t after) {
  if (before == 0 && after == 0) return x;
  return make::op("pad", {x}, {{"axis", axis}, {"before", before}, {"after", after}});
}

// Sum of gradients of slices of one value: pads of what each slice got. Slices that do not overlap need no addition,
// because their gradients and the gaps between them are one concat.
Var sum_of_pads(const std::vector<Var>& pads) {
  struct Cut {
    Var gradient;
    std::int64_t axis, start, stop;
  };
  std::vector<Cut> cuts;
  for (const Var pad : pads) {
    const ir::Node& node = pad.make->graph()[pad.id];
    const Params params = infer::params_of(pad.make->graph(), node);
    const Var gradient{pad.make, node.inputs[0]};
    const auto& [axis, before, value] = params.as<PadParams>();
    cuts.push_back({gradient, axis, before, before + gradient.type().shape[axis]});
  }
  const auto before = [](const Cut& a, const Cut& b) {
    return std::pair(a.axis, a.start) < std::pair(b.axis, b.start);
  };
  std::stable_sort(cuts.begin(), cuts.end(), before);
  Var total;
  while (!cuts.empty()) {
    const std::int64_t axis = cuts.front().axis, first = cuts.front().start;
    std::vector<Cut> rest;
    std::vector<Var> parts;
    std::int64_t end = first;
    for (const Cut& cut : cuts) {
      if (cut.axis != axis || cut.start < end) {
        rest.push_back(cut);
        continue;
      }
      parts.push_back(padded(cut.gradient, axis, cut.start - end, 0));
      end = cut.stop;
    }
    const std::int64_t extent = pads.front().type().shape[static_cast<int>(axis)];
    const Var sum = padded(make::concat(parts, axis), axis, first, extent - end);
    total = total.id == kNoNode ? sum : total + sum;
    cuts = std::move(rest);
  }
  return total;
}

// Sum of products x^T g over rows: one product of the rows of all x and all g. One product reads each operand once and
// has one result, where many small ones need an accumulator each (the weights of an unrolled recurrence).
Var sum_of_products(ir::Builder& make, const std::vector<Var>& products) {
  const auto stacked = [&](std::size_t operand) {
    std::vector<Var> parts;
    for (const Var product : products) parts.push_back({&make, make.graph()[product.id].inputs[operand]});
    const TensorType type = parts.front().type();
    const auto count = static_cast<std::int64_t>(parts.size());
    return make::reshape(make::concat(parts, 1), {batch_extent(type.rows * count), type.shape[1]});
  };
  const Var x = stacked(0), g = stacked(1);
  return make::op("matmul", {x, g}, {{"transpose_a", true}});
}

// Whether the part is x^T g over rows, and sum_of_products() can add it to parts like the first one.
bool is_product_over_rows(const ir::Graph& graph, Var part, Var first) {
  const ir::Node& node = graph[part.id];
  if (node.op != Op::matmul || node.type.rows > 0 || !node.attrs.boolean("transpose_a") ||
      node.attrs.boolean("transpose_b"))
    return false;
  const TensorType& x = graph[node.inputs[0]].type;
  return x.rows > 0 && x.shape.rank() == 2 && x == graph[graph[first.id].inputs[0]].type;
}

// Fewer parts are added as they come. Sums of two or three weight gradients are common and have their accumulators.
constexpr std::size_t kMinSlices = 2, kMinProducts = 4;

// Gradient of a value that is the operand of several slices, or the weight of several products.
struct Parts {
  std::size_t slices = 0, products = 0;  // readers on the path
  std::vector<Var> of_slices, of_products;
};

// Gradients indexed by node, for the nodes that existed before the call; Var{} if no gradient reaches the node. With
// `by_row`, the gradient of a value without rows is that of each row, (rows, value's shape): terms of the sum.
std::vector<Var> sweep(ir::Builder& make, NodeId output, NodeId cotangent, std::span<const NodeId> wanted,
                       bool by_row = false) {
  // True for nodes on a path from a wanted node to the output.
  std::vector<bool> on_path = ir::needed_by(make.graph(), {&output, 1});
  const std::vector<bool> depends = ir::depending_on(make.graph(), wanted);
  std::transform(on_path.begin(), on_path.end(), depends.begin(), on_path.begin(), std::logical_and<>());
  std::vector<Var> gradient(on_path.size());
  std::vector<Parts> parts(on_path.size());  // not in `gradient` yet
  for (NodeId id = 0; id < on_path.size(); ++id) {
    const ir::Node& node = make.graph()[id];
    if (on_path[id] && node.op == Op::slice) ++parts[node.inputs[0]].slices;
    if (on_path[id] && node.op == Op::matmul) ++parts[node.inputs[1]].products;
  }
  gradient[output] = {&make, cotangent};
  const auto add = [&](NodeId id, Var part) {
    Var& total = gradient[id];
    total = total.id == kNoNode ? part : total + part;
  };

  for (NodeId id = output + 1; id-- > 0;) {
    if (!parts[id].of_slices.empty()) add(id, sum_of_pads(parts[id].of_slices));
    if (!parts[id].of_products.empty()) add(id, sum_of_products(make, parts[id].of_products));
    if (!on_path[id] || gradient[id].id == kNoNode) continue;
    const ir::Node node = make.graph()[id];  // a copy: adding nodes invalidates references
    std::vector<Var> inputs;
    std::vector<bool> input_wanted;
    for (const NodeId input : node.inputs) {
      inputs.push_back({&make, input});
      input_wanted.push_back(on_path[input] && is_float(make.type(input).dtype));
    }
    if (std::find(input_wanted.begin(), input_wanted.end(), true) == input_wanted.end()) continue;
    if (node.def->grad == nullptr) {
      throw Error(ErrorKind::input, "gradient.none",
                  fmt::format("no gradient through '{}' ({}): {}", node.name, node.def->name(), node.def->no_gradient));
    }
    if (by_row) check_by_row(make.graph(), node, input_wanted);
    const bool outer = by_row && node.op == Op::matmul && input_wanted[1] && inputs[0].type().rows > 0 &&
                       inputs[0].type().shape.rank() == 2 && inputs[1].type().rows == 0;
    if (outer) input_wanted[1] = false;
    GradContext context{inputs,       node.attrs,   infer::params_of(make.graph(), node), {&make, id},
                        gradient[id], input_wanted, std::vector<Var>(inputs.size())};
    if (by_row && node.op == Op::reshape && node.type.rows == 0) {
      const TensorType& in = inputs[0].type();
      context.result[0] = make::reshape(gradient[id], shape_of_rows(gradient[id].type().shape[0], in.shape));
    } else {
      node.def->grad(context);
    }
    if (outer) context.result[1] = outer_products(inputs[0], gradient[id], node.attrs.boolean("transpose_b"));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (context.result[i].id == kNoNode || !(input_wanted[i] || (outer && i == 1))) continue;
      if (by_row && context.result[i].type().rows == 0) {
        throw Error(ErrorKind::input, "gradient.rows",
                    fmt::format("no gradients of single rows through '{}' ({}): its gradient adds rows", node.name,
                                node.def->name()));
      }
      const Var part = unbroadcast(context.result[i], inputs[i].type(), by_row);
      Parts& others = parts[inputs[i].id];
      const Var first = others.of_products.empty() ? part : others.of_products.front();
      if (node.op == Op::slice && others.slices >= kMinSlices) {
        others.of_slices.push_back(part);
      } else if (node.op == Op::matmul && i == 1 && others.products >= kMinProducts &&
                 is_product_over_rows(make.graph(), part, first)) {
        others.of_products.push_back(part);
      } else {
        add(inputs[i].id, part);
      }
    }
  }
  return gradient;
}
}  // namespace

std::vector<NodeId> gradients(ir::Builder& make, NodeId output, NodeId cotangent, std::span<const NodeId> wanted) {
  const std::vector<Var> gradient = sweep(make, output, cotangent, wanted);
  std::vector<NodeId> result;
  for (const NodeId id : wanted) {
    const Var zero_of{&make, id};
    result.push_back(gradient.at(id).id != kNoNode ? gradient[id].id
                                                   : make::broadcast_to(make::like(0, zero_of), zero_of.type()).id);
  }
  return result;
}

NodeId gradients_by_row(ir::Builder& make, NodeId output, NodeId cotangent, std::span<const NodeId> wanted) {
  const std::vector<Var> gradient = sweep(make, output, cotangent, wanted, true);
  const TensorType rows = make.type(cotangent);
  std::vector<Var> parts;
  for (const NodeId id : wanted) {
    const Shape shape{rows.shape[0], make.type(id).shape.elements()};
    const Var zero = make::like(0, {&make, cotangent});
    parts.push_back(gradient[id].id != kNoNode ? make::reshape(gradient[id], shape)
                                               : make::broadcast_to(zero, {rows.dtype, shape, rows.rows}));
  }
  return make::concat(parts, 1).id;
}

NodeId gradient_or_none(ir::Builder& make, NodeId loss, NodeId wanted) {
  return sweep(make, loss, make.scalar(1, make.type(loss).dtype), {&wanted, 1})[wanted].id;
}

}  // namespace graphrun
