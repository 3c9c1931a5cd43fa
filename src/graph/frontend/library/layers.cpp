#include "graph/frontend/library/layers.h"

#include <fmt/format.h>

#include "graph/frontend/library/functions.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using ir::NodeId;

std::string part(const LayerCall& call, std::string_view name) {
  return fmt::format("{}.{}", call.name, name);
}

// Null: none.
const Function* activation(const LayerCall& call) {
  const std::string& name = call.attrs.string("activation");
  if (name.empty()) return nullptr;
  const Function* function = find_function(name);
  if (function == nullptr) {
    const Diagnostic d = unknown("function", name, names_of(functions())).diagnostics().front();
    throw ir::AttrError("activation", d.code, d.message, d.hint);
  }
  if (function->operands.size() != 1) {
    throw ir::AttrError("activation", "layer.activation",
                        fmt::format("an activation takes one operand, {} takes {}", name, function->operands.size()),
                        "for instance relu, tanh or sigmoid");
  }
  return function;
}

// activation(x @ W + b)
NodeId dense(const LayerCall& call) {
  const NodeId x = call.operands[0];
  const TensorType type = call.graph.builder.type(x);
  if (type.shape.rank() < 2) {
    throw Error(ErrorKind::input, "shape.rank",
                fmt::format("{}: dense needs x of shape (batch, in), got {} {}", call.name, call.graph.graph[x].name,
                            to_string(type)));
  }
  const Function* function = activation(call);
  const std::int64_t in = type.shape[type.shape.rank() - 1];
  const std::int64_t units = call.attrs.integer("units");

  const NodeId weight = call.graph.parameter(part(call, "W"), {in, units}, *call.inits.at("init"), true);
  NodeId y = call.graph.builder.add("matmul", {x, weight});
  if (const std::optional<Init>& bias = call.inits.at("bias")) {
    y = call.graph.builder.add("add", {y, call.graph.parameter(part(call, "b"), {units}, *bias, true)});
  }
  return function ? graphrun::call(call.graph.builder, *function, std::span(&y, 1)) : y;
}

}  // namespace

const std::vector<Layer>& layers() {
  // The lists of a row have names: g++ 12 destroys a list inside a row twice if an allocation fails after it.
  static const std::vector<Layer> table = [] {
    const ir::AttrDef units{
        .name = "units", .fallback = std::int64_t{16}, .doc = "columns of the result", .required = true, .low = 1};
    const ir::AttrDef function{
        .name = "activation", .fallback = std::string(), .doc = "a function of one operand; none by default"};
    Layer row;
    row.name = "dense";
    row.doc = "activation(x @ W + b): x (batch, in), W (in, units), b (units), the result (batch, units)";
    row.attributes = {units, function};
    row.operands = {"x"};
    row.inits = {{"init", Init::glorot_uniform()}, {"bias", Init::zeros(), true}};
    row.build = dense;
    return std::vector<Layer>{row};
  }();
  return table;
}

NodeId add_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name, std::span<const NodeId> operands,
                 const AttrList& attrs, std::map<std::string, std::optional<Init>, std::less<>> inits) {
  graph.check_new_name(name);
  if (std::string message = wrong_count(layer, operands.size()); !message.empty()) {
    throw Error(ErrorKind::input, "function.operands", std::move(message));
  }
  for (const LayerInit& init : layer.inits) inits.try_emplace(std::string(init.name), init.fallback);
  const ir::Attrs values(layer.attributes, attrs);
  const NodeId y = layer.build({graph, name, operands, values, inits});
  graph.define(name, y);
  return y;
}

}  // namespace graphrun
