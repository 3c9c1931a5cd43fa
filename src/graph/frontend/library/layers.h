// layers.h: layers: functions that bring their own parameters, named after the layer ("h2.W").
// Contract: one row of the table and one build function each. build() throws Error, or AttrError when one attribute is
// at fault; it gives the value but not its name. Leaves to others: how layers are written in a model file
// (model_file.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/entry.h"

namespace graphrun {

struct LayerCall {
  GraphBuilder::Impl& graph;
  std::string_view name;
  std::span<const ir::NodeId> operands;
  const ir::Attrs& attrs;
  const std::map<std::string, std::optional<Init>, std::less<>>& inits;  // nothing: without that parameter
};

struct LayerInit {
  std::string_view name;  // the attribute that changes it
  Init fallback;
  bool optional = false;  // may be false: without that parameter
};

struct Layer : Callable {
  std::vector<LayerInit> inits;
  ir::NodeId (*build)(const LayerCall& call) = nullptr;
};

const std::vector<Layer>& layers();
inline const Layer* find_layer(std::string_view name) {
  return find_row(layers(), name);
}

// Checks the operand count, fills in what `inits` leaves out, builds, and names the value.
ir::NodeId add_layer(GraphBuilder::Impl& graph, const Layer& layer, std::string_view name,
                     std::span<const ir::NodeId> operands, const AttrList& attrs,
                     std::map<std::string, std::optional<Init>, std::less<>> inits = {});

}  // namespace graphrun
