#include "graph/frontend/library/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/frontend/library/convolution.h"
#include "graph/frontend/library/recurrent.h"
#include "graph/ops/make.h"
#include "graphrun/error.h"

namespace graphrun {

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

Var activated(const Function* function, Var y) {
  return function ? Var{y.make, graphrun::call(*y.make, *function, {&y.id, 1})} : y;
}

namespace {

using ir::NodeId;
using make::op;
using Axes = std::vector<std::int64_t>;

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

  const NodeId weight = call.parameter("W", {in, units}, *call.options.inits.at("init"));
  NodeId y = call.graph.builder.add("matmul", {x, weight});
  if (const std::optional<Init>& bias = call.options.inits.at("bias")) {
    y = call.graph.builder.add("add", {y, call.parameter("b", {units}, *bias)});
  }
  return activated(function, {&call.graph.builder, y}).id;
}

// The rows of the table E at the class indices x.
NodeId embedding(const LayerCall& call) {
  const NodeId table =
      call.parameter("E", {call.attrs.integer("entries"), call.attrs.integer("units")}, *call.options.inits.at("init"));
  return call.graph.builder.add("gather", {table, call.operands[0]});
}

// The operand, f32 and with columns.
Var normalized(const LayerCall& call, std::string_view layer) {
  const NodeId x = call.operands[0];
  const TensorType type = call.graph.builder.type(x);
  if (type.shape.rank() < 2 || type.dtype != DType::f32) {
    throw Error(ErrorKind::input, type.dtype != DType::f32 ? "dtype.float" : "shape.rank",
                fmt::format("{}: {} needs x of shape (batch, columns) in f32, got {} {}", call.name, layer,
                            call.graph.graph[x].name, to_string(type)));
  }
  return {&call.graph.builder, x};
}

std::int64_t columns_of(Var x) {
  const TensorType type = x.type();
  return type.shape[type.shape.rank() - 1];
}

Var mean(Var x, const Axes& axes, bool keepdims) {
  return {x.make, call(*x.make, "mean", {&x.id, 1}, {{"axis", axes}, {"keepdims", keepdims}})};
}

// x / sqrt(square + eps) * scale + b, without the parameters that the layer omits.
NodeId scaled(const LayerCall& call, Var x, Var square) {
  x = x * op("rsqrt", {square + call.attrs.real("eps")});
  const Shape columns = {columns_of(x)};
  if (const std::optional<Init>& scale = call.options.inits.at("scale"))
    x = x * Var{x.make, call.parameter("scale", columns, *scale)};
  const auto bias = call.options.inits.find("bias");
  if (bias != call.options.inits.end() && bias->second)
    x = x + Var{x.make, call.parameter("b", columns, *bias->second)};
  return x.id;
}

// Estimates the variance of all rows from that of a batch: multiplies it by n / (n - 1) for n numbers in a column, or
// by 1 if n is 1.
Var unbiased(Var variance, Var x) {
  const TensorType type = x.type();
  double others = 1;  // numbers of a column in one row of the batch
  for (int axis = 1; axis < type.shape.rank() - 1; ++axis) others *= static_cast<double>(type.shape[axis]);
  const bool rows = type.rows > 0;
  const Var count = rows ? Var{x.make, x.make->sample_count(DType::f32)} * others
                         : make::like(static_cast<double>(type.shape[0]) * others, variance);
  const Var one = make::like(1, variance);
  return variance * (count / op("maximum", {count - 1.0, one}));
}

NodeId layer_norm(const LayerCall& call) {
  const Var x = normalized(call, "layer_norm");
  const Var centred = x - mean(x, {-1}, true);
  return scaled(call, centred, mean(make::square(centred), {-1}, true));
}

NodeId rms_norm(const LayerCall& call) {
  const Var x = normalized(call, "rms_norm");
  return scaled(call, x, mean(make::square(x), {-1}, true));
}

NodeId batch_norm(const LayerCall& call) {
  const Var x = normalized(call, "batch_norm");
  call.graph.batch_norms.emplace_back(call.name, x.id);
  Axes rows;
  for (int axis = 0; axis < x.type().shape.rank() - 1; ++axis) rows.push_back(axis);
  const Var of_batch = mean(x, rows, false);
  const Var spread = mean(make::square(x - of_batch), rows, false);

  const Shape columns = {columns_of(x)};
  const Var running_mean{x.make, call.state("mean", columns, Init::zeros())};
  const Var running_variance{x.make, call.state("variance", columns, Init::constant(1))};
  call.follow(running_mean.id, of_batch.id, call.attrs.real("momentum"));
  call.follow(running_variance.id, unbiased(spread, x).id, call.attrs.real("momentum"));

  const auto chosen = [&](Var in_training, Var otherwise) {
    return op("where", {{x.make, x.make->training()}, in_training, otherwise});
  };
  const Var centred = x - chosen(of_batch, running_mean);
  return scaled(call, centred, chosen(spread, running_variance));
}

Layer layer(std::string_view name, std::string_view doc, ir::AttrSchema attributes, std::vector<LayerInit> inits,
            NodeId (*build)(const LayerCall&)) {
  return {{{name, doc, std::move(attributes)}, {"x"}}, std::move(inits), build};
}

}  // namespace

const std::vector<Layer>& layers() {
  // The lists of a row have names: g++ 12 destroys a list inside a row twice if an allocation fails after it.
  static const std::vector<Layer> table = [] {
    const ir::AttrDef units{
        .name = "units", .fallback = std::int64_t{16}, .doc = "number of output columns", .required = true, .low = 1};
    const ir::AttrDef function{
        .name = "activation", .fallback = std::string(), .doc = "name of a function of one operand, such as relu"};
    ir::AttrDef entries = units;
    entries.name = "entries", entries.doc = "number of rows of the table";
    const ir::AttrDef eps{
        .name = "eps", .fallback = 1e-5, .doc = "added to the variance, for stability", .low = 0, .above = true};
    ir::AttrDef eps_of_squares = eps;
    eps_of_squares.doc = "added to the mean square, for stability";
    const ir::AttrDef momentum{
        .name = "momentum", .fallback = 0.1, .doc = "weight of a step in the running statistics", .low = 0, .high = 1};
    const ir::AttrSchema of_dense = {units, function}, of_embedding = {entries, units}, of_norm = {eps},
                         of_rms_norm = {eps_of_squares}, of_batch_norm = {eps, momentum};
    const std::vector<LayerInit> weights = {{"init", Init::glorot_uniform()}, {"bias", Init::zeros(), true}},
                                 entry = {{"init", Init::normal(1)}}, scale = {{"scale", Init::constant(1), true}},
                                 affine = {{"scale", Init::constant(1), true}, {"bias", Init::zeros(), true}};
    std::vector<Layer> rows;
    rows.push_back(
        layer("dense", "computes activation(x @ W + b): x (batch, in), W (in, units), b (units); result (batch, units)",
              of_dense, weights, dense));
    for (Layer& row : convolution_layers(function, weights)) rows.push_back(std::move(row));
    rows.push_back(
        layer("embedding",
              "looks up E[x]: the row of the table E (entries, units) for each class index in x, i32 of any shape",
              of_embedding, entry, embedding));
    rows.push_back(layer(
        "layer_norm",
        "computes (x - mean) / sqrt(variance + eps) * scale + b, with the statistics of each row; scale, b (columns)",
        of_norm, affine, layer_norm));
    rows.push_back(layer("rms_norm",
                         "computes x / sqrt(mean(x^2) + eps) * scale, with the mean of each row; scale (columns)",
                         of_rms_norm, scale, rms_norm));
    rows.push_back(
        layer("batch_norm",
              "computes (x - mean) / sqrt(variance + eps) * scale + b by column: with statistics of the batch "
              "in training, running ones otherwise",
              of_batch_norm, affine, batch_norm));
    for (Layer& row : recurrent_layers()) rows.push_back(std::move(row));
    return rows;
  }();
  return table;
}

NodeId LayerCall::shared(std::string_view part, const Shape& shape) const {
  const NodeId id = graph.names.at(fmt::format("{}.{}", options.share, part));
  if (graph.graph[id].type.shape == shape) return id;
  throw ir::AttrError(
      "share", "shape.share",
      fmt::format("{} cannot share the parameters of {}: {}.{} is {}, here it would be {}", name, options.share,
                  options.share, part, to_string(graph.graph[id].type.shape), to_string(shape)));
}

NodeId LayerCall::parameter(std::string_view part, const Shape& shape, const Init& init, bool decay) const {
  if (!options.share.empty()) return shared(part, shape);
  return graph.parameter(fmt::format("{}.{}", name, part), shape,
                         {.init = init, .decay = decay, .trainable = options.trainable});
}

NodeId LayerCall::state(std::string_view part, const Shape& shape, const Init& init) const {
  return options.share.empty() ? graph.state(fmt::format("{}.{}", name, part), shape, init) : shared(part, shape);
}

void LayerCall::follow(NodeId state, NodeId value, double part) const {
  const auto before = std::find_if(graph.assignments.begin(), graph.assignments.end(),
                                   [&](const auto& one) { return one.state == state; });
  const bool is_first = before == graph.assignments.end();
  const Var stays = Var{&graph.builder, is_first ? state : before->value} * (1 - part);
  const Var next = stays + Var{&graph.builder, value} * part;
  if (is_first) {
    graph.assign(state, next.id, false);
  } else {
    before->value = next.id;
  }
}

const ir::AttrSchema& common_layer_attributes() {
  static const ir::AttrSchema table = {
      {.name = "share",
       .fallback = std::string(),
       .doc = "name of an earlier layer of the same kind, to share its parameters and attributes"},
      {.name = "trainable", .fallback = true, .doc = "if false, freezes the layer's parameters"}};
  return table;
}

const Callable& layer_in_text(const Layer& layer) {
  static const std::map<std::string_view, Callable> table = [] {
    std::map<std::string_view, Callable> rows;
    for (const Layer& row : layers()) {
      Callable& text = rows[row.name] = row;
      text.attributes.push_back({.name = "name",
                                 .fallback = std::string(),
                                 .doc = "prefix of its parameter names, if no assignment names it"});
      for (const ir::AttrDef& def : common_layer_attributes()) text.attributes.push_back(def);
      for (const LayerInit& init : row.inits) {
        if (init.optional) {
          text.attributes.push_back({.name = init.name, .fallback = true, .doc = "if false, omits this parameter"});
        }
      }
      for (ir::AttrDef& def : text.attributes) def.required = false;  // a layer that shares has them
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
// Copies attributes and initial values from the layer that it shares with.
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
  if (other->second.first != layer.name) {
    fail("layer.share", fmt::format("{} is a layer {}, this is a layer {}: they have not the same parameters",
                                    options.share, other->second.first, layer.name));
  }
  if (!options.attributes.empty() || !options.inits.empty() || !options.trainable) {
    const std::string own = !options.attributes.empty() ? options.attributes.front().first
                            : !options.inits.empty()    ? options.inits.begin()->first
                                                        : "trainable";
    throw ir::AttrError(own, "layer.share",
                        fmt::format("{} is what it is in {}, whose parameters are shared", own, options.share),
                        "leave it out");
  }
  options.attributes = other->second.second.attributes;
  options.inits = other->second.second.inits;
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
  const NodeId y = layer.build({graph, name, operands, values, options});
  if (options.share.empty()) graph.layers[std::string(name)] = {layer.name, std::move(options)};
  return y;
}

NodeId add_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name, std::span<const NodeId> operands,
                 LayerOptions options) {
  const NodeId y = build_layer(graph, layer, name, operands, std::move(options));
  graph.define(name, y);
  return y;
}

const Callable& assign_call() {
  static const ir::AttrSchema attributes = {
      {"after", false, "true: read parameters after their update; false: before it"}};
  static const Callable row{
      {"assign", "sets the state for the next training step; evaluation and prediction do not change it", attributes},
      {"state", "value"}};
  return row;
}

const Callable* find_callable(std::string_view name) {
  if (const Function* function = find_function(name)) return function;
  if (const Layer* layer = find_layer(name)) return &layer_in_text(*layer);
  return name == assign_call().name ? &assign_call() : nullptr;
}

std::vector<std::string> callable_names() {
  std::vector<std::string> names = names_of(functions());
  for (const Layer& layer : layers()) names.emplace_back(layer.name);
  return names;
}

}  // namespace graphrun
