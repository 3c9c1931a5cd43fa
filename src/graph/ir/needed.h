// needed.h: what nodes are computed from, and what from them.
// Contract: needed_by() and depending_on() take time in the graph; needed_nodes() in what it finds, so that a caller
// may ask for one node after another.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_set>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun::ir {

// By node: whether it is one of `roots`, or one of them is computed from it.
inline std::vector<bool> needed_by(const Graph& graph, std::span<const NodeId> roots) {
  std::vector<bool> needed(graph.size(), false);
  for (const NodeId id : roots) needed[id] = true;
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (const NodeId input : graph[id].inputs) needed[input] = true;
  }
  return needed;
}

// By node: whether it is one of `roots`, or computed from one of them.
inline std::vector<bool> depending_on(const Graph& graph, std::span<const NodeId> roots) {
  std::vector<bool> depends(graph.size(), false);
  for (const NodeId id : roots) depends[id] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const NodeId input : graph[id].inputs) depends[id] = depends[id] || depends[input];
  }
  return depends;
}

// `wanted` and what it is computed from, by rising id. `ends(id)`: what that one is computed from is not looked for.
template <class Ends>
std::vector<NodeId> needed_nodes(const Graph& graph, NodeId wanted, Ends ends) {
  std::vector<NodeId> found = {wanted};
  std::unordered_set<NodeId> seen = {wanted};
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (ends(found[i])) continue;
    for (const NodeId input : graph[found[i]].inputs) {
      if (seen.insert(input).second) found.push_back(input);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace graphrun::ir
