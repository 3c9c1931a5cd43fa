// rewrite.h: a pass returns a new graph and a map from the old nodes to the new ones. Contract: maps compose, so an id
// of the first graph leads to its node in the last one; no pass looks up a node by name.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun {

// Map from the nodes of one graph to those of another; kNoNode: the node was removed.
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
  IdMap ids;  // from the old graph
};

// Returns the nodes of `order` and no others, in that order, with the regions, which must be whole. Operands must come
// before their readers. A node may be repeated: later nodes read the repetition, which the host does not read.
Rewritten reordered(const ir::Graph& graph, std::span<const ir::NodeId> order);

// Returns the phases of a rewritten graph.
std::vector<ir::Phase> renumbered(std::vector<ir::Phase> phases, const IdMap& ids);

// Returns a region, moved whole so that it begins at `first`.
ir::Region moved(ir::Region region, ir::NodeId first);

}  // namespace graphrun
