// rewrite.h: a pass gives a new graph, and where each node of the old one went. Contract: maps compose, so that an id
// of the graph that compilation began with leads to what it is afterwards; nobody looks for a node by its name.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun {

// From nodes of one graph to those of another; kNoNode: nothing is left of it.
class IdMap {
 public:
  IdMap() = default;
  explicit IdMap(std::vector<ir::NodeId> to) : to_(std::move(to)) {}
  static IdMap identity(ir::NodeId nodes);

  ir::NodeId operator[](ir::NodeId id) const { return id == ir::kNoNode ? id : to_.at(id); }
  ir::NodeId size() const { return static_cast<ir::NodeId>(to_.size()); }
  IdMap then(const IdMap& next) const;  // next[(*this)[id]]

 private:
  std::vector<ir::NodeId> to_;
};

struct Rewritten {
  ir::Graph graph;
  IdMap ids;  // from the graph that was rewritten
};

// The nodes of `order` and no others, in that order, which has what a node reads before it.
Rewritten reordered(const ir::Graph& graph, std::span<const ir::NodeId> order);

// The phases of a rewritten graph.
std::vector<ir::Phase> renumbered(std::vector<ir::Phase> phases, const IdMap& ids);

// Its regions, of which none was taken apart; they may have come into another order than their nodes.
std::vector<ir::Region> renumbered(std::vector<ir::Region> regions, const IdMap& ids);

}  // namespace graphrun
