// element_members.h: which nodes of a phase may be in a chain of elementwise steps, and which of them are scalars that
// may be recomputed wherever they are read. Contract: a pure function of the graph; asks the executor about each step.
// Not here: order, chains and regions (elements.cpp).
#pragma once

#include <vector>

#include "compiler/graph_analysis.h"
#include "compiler/regions.h"
#include "graph/ir/graph.h"
#include "graphrun/target.h"

namespace graphrun {

// Reads and writes of values and states, through views: the basis of order and chains.
struct ElementFacts {
  const ir::Graph& graph;
  GraphAnalysis analysis;

  explicit ElementFacts(const ir::Graph& of) : graph(of), analysis(analyze(of)) {}
  std::int64_t count(ir::NodeId id) const { return elements_of(graph[id]); }
  const ir::Region* region_of(ir::NodeId id) const {  // a row region, or null
    const std::uint32_t region = analysis.places[id].region;
    return region == ir::kNoNode ? nullptr : &graph.regions[region];
  }
  bool has_rows(ir::NodeId id) const { return graph[id].type.rows > 0; }
  // An assign and a record name the state that they write.
  bool writes_state(ir::NodeId id) const { return analysis.overlays[id] == Overlay::state; }
  ir::NodeId state_of(ir::NodeId id) const { return graph[id].inputs[0]; }
  std::vector<ir::NodeId> reads(ir::NodeId id) const;
  // Node that a view or an in-place assign goes with: the root or the written value. Other nodes: kNoNode.
  ir::NodeId source_of(ir::NodeId id) const;
};

// Indexed by node of the graph.
struct ElementMembers {
  std::vector<bool> in_chain;  // may be in a chain
  std::vector<std::vector<ir::NodeId>>
      numbers;               // for a scalar that may be recomputed: those it needs and itself, in order
  std::vector<bool> stored;  // false: such a scalar, and only chains read it

  bool is_number(ir::NodeId id) const { return !numbers[id].empty(); }
};

ElementMembers find_element_members(const ElementFacts& facts, const RegionOptions& options,
                                    const ElementLimits& limits);

}  // namespace graphrun
