// layers.h: layers: functions that bring their own parameters, named after the layer ("h2.W").
// Contract: one row of the table and one build function each; help, schema, page and every way to write a model follow.
// Leaves to others: how layers are written in a model file (model_file.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/entry.h"

namespace graphrun {

using LayerInits = std::map<std::string, std::optional<Init>, std::less<>>;  // nothing: without that parameter

struct LayerCall {
  GraphBuilder::Impl& graph;
  std::string_view name;
  std::span<const ir::NodeId> operands;
  const ir::Attrs& attrs;
  const LayerInits& inits;
  std::string_view share = {};  // the layer whose parameters it takes; empty: it has its own
  bool trainable = true;

  // Named "<layer>.<part>": its own, or that of the layer it shares with, which must have that shape.
  ir::NodeId parameter(std::string_view part, const Shape& shape, const Init& init, bool decay = true) const;
  // The same of a state. Where it is shared, each use assigns on from what the one before it has assigned.
  ir::NodeId state(std::string_view part, const Shape& shape, const Init& init) const;
  // From the next step of training on the state is (1 - part) of what it was and `part` of the value.
  void follow(ir::NodeId state, ir::NodeId value, double part) const;

 private:
  ir::NodeId shared(std::string_view part, const Shape& shape) const;
};

struct LayerInit {
  std::string_view name;  // the attribute that changes it
  Init fallback;
  bool optional = false;  // may be false: without that parameter
};

struct Layer : Callable {
  std::vector<LayerInit> inits;
  // Throws Error, or AttrError when one attribute is at fault; gives the value but not its name.
  ir::NodeId (*build)(const LayerCall& call) = nullptr;
};

const std::vector<Layer>& layers();
inline const Layer* find_layer(std::string_view name) {
  return find_row(layers(), name);
}

// What is said of a layer beside its name and its operands.
struct LayerOptions {
  AttrList attributes = {};  // of its row
  LayerInits inits = {};
  std::string share = {};  // a layer of the same kind that was made before; then there are no attributes and no inits
  bool trainable = true;
};

// What every layer takes beside the attributes of its row.
const ir::AttrSchema& common_layer_attributes();
// How a text calls the layer: its row, what every layer takes, and a flag for each parameter that it can do without.
const Callable& layer_in_text(const Layer& layer);
// Of attributes as layer_in_text() has them. Throws Error for one that it does not have.
LayerOptions split_layer_attributes(const Layer& layer, const AttrList& attributes);

// Checks the operand count, fills in what the options leave out, and builds; add_layer() also names the value.
ir::NodeId build_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name,
                       std::span<const ir::NodeId> operands, LayerOptions options);
ir::NodeId add_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name,
                     std::span<const ir::NodeId> operands, LayerOptions options);

}  // namespace graphrun
