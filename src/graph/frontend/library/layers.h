// layers.h: layers: functions that bring their own parameters, named after the layer ("h2.W").
// Contract: one row of the table and one build function each; help, schema, page and every way to write a model follow.
// Out of scope: the syntax of layers in a model file (model_file.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/entry.h"
#include "graph/frontend/library/functions.h"
#include "graph/ops/op_def.h"

namespace graphrun {

struct LayerCall {
  GraphBuilder::Impl& graph;
  std::string_view name;
  std::span<const ir::NodeId> operands;
  const ir::Attrs& attrs;
  const LayerOptions& options;  // with all attributes and inits, also if it shares those of another layer

  // The parameter "<layer>.<part>": created here, or that of the layer in `share`, which must have this shape.
  ir::NodeId parameter(std::string_view part, const Shape& shape, const Init& init, bool decay = true) const;
  // As parameter(). Each use of a shared state continues from the value that the previous use assigned.
  ir::NodeId state(std::string_view part, const Shape& shape, const Init& init) const;
  // Moving average: in each training step the state becomes (1 - part) * state + part * value.
  void follow(ir::NodeId state, ir::NodeId value, double part) const;

 private:
  ir::NodeId shared(std::string_view part, const Shape& shape) const;
};

// The function in the attribute "activation"; null if there is none. Throws AttrError.
const Function* activation(const LayerCall& call);
Var activated(const Function* function, Var y);  // y if there is none

struct LayerInit {
  std::string_view name;  // attribute that sets it
  Init fallback;
  bool optional = false;  // the attribute may be false, which omits the parameter
};

struct Layer : Callable {
  std::vector<LayerInit> inits;
  // Returns the value, which has no name yet. Throws Error, or AttrError if one attribute is invalid.
  ir::NodeId (*build)(const LayerCall& call) = nullptr;
};

const std::vector<Layer>& layers();
inline const Layer* find_layer(std::string_view name) {
  return find_row(layers(), name);
}

// Attributes of every layer, in addition to those in its row.
const ir::AttrSchema& common_layer_attributes();
// The layer as a callable in expressions: its row, the common attributes, and a flag for each optional parameter.
const Callable& layer_in_text(const Layer& layer);
// Everything that an expression may call, with unique names: functions, layers as in layer_in_text(), and assign().
const Callable* find_callable(std::string_view name);  // null if there is none
std::vector<std::string> callable_names();

// assign(state, value, after=false), an entry of a model's graph.
const Callable& assign_call();

// Splits attributes of layer_in_text(). Throws Error for an unknown one.
LayerOptions split_layer_attributes(const Layer& layer, const AttrList& attributes);

// Checks the operand count, fills in defaults, and builds the layer. add_layer() also names the value.
ir::NodeId build_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name,
                       std::span<const ir::NodeId> operands, LayerOptions options);
ir::NodeId add_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name,
                     std::span<const ir::NodeId> operands, LayerOptions options);

}  // namespace graphrun
