#include "graph/frontend/library/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/frontend/library/functions.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using ir::NodeId;

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

  const NodeId weight = call.parameter("W", {in, units}, *call.inits.at("init"));
  NodeId y = call.graph.builder.add("matmul", {x, weight});
  if (const std::optional<Init>& bias = call.inits.at("bias")) {
    y = call.graph.builder.add("add", {y, call.parameter("b", {units}, *bias)});
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

NodeId LayerCall::parameter(std::string_view part, const Shape& shape, const Init& init, bool decay) const {
  if (share.empty()) return graph.parameter(fmt::format("{}.{}", name, part), shape, init, decay, trainable);
  const NodeId id = graph.names.at(fmt::format("{}.{}", share, part));
  if (graph.graph[id].type.shape == shape) return id;
  throw ir::AttrError("share", "shape.share",
                      fmt::format("{} cannot share the parameters of {}: {}.{} is {}, here it would be {}", name, share,
                                  share, part, to_string(graph.graph[id].type.shape), to_string(shape)));
}

const ir::AttrSchema& common_layer_attributes() {
  static const ir::AttrSchema table = {
      {.name = "share",
       .fallback = std::string(),
       .doc = "a layer of the same kind, defined above: its parameters and attributes are used again"},
      {.name = "trainable", .fallback = true, .doc = "false: no optimizer moves its parameters"}};
  return table;
}

const Callable& layer_in_text(const Layer& layer) {
  static const std::map<std::string_view, Callable> table = [] {
    std::map<std::string_view, Callable> rows;
    for (const Layer& row : layers()) {
      Callable& text = rows[row.name] = row;
      text.attributes.push_back({.name = "name",
                                 .fallback = std::string(),
                                 .doc = "what its parameters are named after, where no assignment says it"});
      for (const ir::AttrDef& def : common_layer_attributes()) text.attributes.push_back(def);
      for (const LayerInit& init : row.inits) {
        if (init.optional) {
          text.attributes.push_back({.name = init.name, .fallback = true, .doc = "false: without that parameter"});
        }
      }
      for (ir::AttrDef& def : text.attributes) def.required = false;  // where it shares, it has them already
    }
    return rows;
  }();
  return table.at(layer.name);
}

LayerOptions split_layer_attributes(const Layer& layer, const AttrList& attributes) {
  LayerOptions options;
  for (const auto& attribute : attributes) {
    const std::string& name = attribute.first;
    const AttrValue& value = attribute.second;
    const auto is_named = [&](const LayerInit& one) { return one.name == name && one.optional; };
    if (const ir::AttrDef* common = ir::find_attr(common_layer_attributes(), name)) {
      const AttrValue fits = ir::coerce(*common, value);
      if (name == "share") options.share = std::get<std::string>(fits);
      if (name == "trainable") options.trainable = std::get<bool>(fits);
    } else if (std::any_of(layer.inits.begin(), layer.inits.end(), is_named)) {
      const ir::AttrDef flag{.name = name, .fallback = true, .doc = {}};
      if (!std::get<bool>(ir::coerce(flag, value))) options.inits.emplace(name, std::nullopt);
    } else {
      options.attributes.emplace_back(name, value);
    }
  }
  return options;
}

namespace {
// What the layer that it shares with has.
void take_from_shared(const GraphBuilder::Impl& graph, const Layer& layer, LayerOptions& options) {
  const auto fail = [](std::string code, std::string message, std::string hint = {}) {
    throw ir::AttrError("share", std::move(code), std::move(message), std::move(hint));
  };
  const auto other = graph.layers.find(options.share);
  if (other == graph.layers.end()) {
    std::vector<std::string> names;
    for (const auto& entry : graph.layers) names.push_back(entry.first);
    const Diagnostic d = unknown("layer", options.share, names).diagnostics().front();
    fail("layer.share", fmt::format("{} above whose parameters could be shared", d.message), d.hint);
  }
  if (other->second.op != layer.name) {
    fail("layer.share", fmt::format("{} is a layer {}, this is a layer {}: they have not the same parameters",
                                    options.share, other->second.op, layer.name));
  }
  if (!options.attributes.empty() || !options.inits.empty() || !options.trainable) {
    const std::string own = !options.attributes.empty() ? options.attributes.front().first
                            : !options.inits.empty()    ? options.inits.begin()->first
                                                        : "trainable";
    throw ir::AttrError(own, "layer.share",
                        fmt::format("{} is what it is in {}, whose parameters are shared", own, options.share),
                        "leave it out");
  }
  options.attributes = other->second.attributes;
  options.inits = other->second.inits;
}
}  // namespace

NodeId build_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name,
                   std::span<const NodeId> operands, LayerOptions options) {
  graph.check_new_name(name);
  if (std::string message = wrong_count(layer, operands.size()); !message.empty()) {
    throw Error(ErrorKind::input, "function.operands", std::move(message));
  }
  if (!options.share.empty()) take_from_shared(graph, layer, options);
  for (const LayerInit& init : layer.inits) options.inits.try_emplace(std::string(init.name), init.fallback);
  const ir::Attrs values(layer.attributes, options.attributes);
  const NodeId y = layer.build({graph, name, operands, values, options.inits, options.share, options.trainable});
  if (options.share.empty()) graph.layers[std::string(name)] = {layer.name, options.attributes, options.inits};
  return y;
}

NodeId add_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name, std::span<const NodeId> operands,
                 LayerOptions options) {
  const NodeId y = build_layer(graph, layer, name, operands, std::move(options));
  graph.define(name, y);
  return y;
}

}  // namespace graphrun
