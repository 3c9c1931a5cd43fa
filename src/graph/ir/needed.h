// needed.h: ancestors and descendants of nodes.
// Contract: needed_by() and depending_on() take time linear in the graph; needed_nodes() in its result, so that a
// caller may query many nodes.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_set>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun::ir {

// Marks the roots and their ancestors; indexed by node.
inline std::vector<bool> needed_by(const Graph& graph, std::span<const NodeId> roots) {
  std::vector<bool> needed(graph.size(), false);
  for (const NodeId id : roots) needed[id] = true;
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (const NodeId input : graph[id].inputs) needed[input] = true;
  }
  return needed;
}

// Marks the roots and their descendants; indexed by node.
inline std::vector<bool> depending_on(const Graph& graph, std::span<const NodeId> roots) {
  std::vector<bool> depends(graph.size(), false);
  for (const NodeId id : roots) depends[id] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const NodeId input : graph[id].inputs) depends[id] = depends[id] || depends[input];
  }
  return depends;
}

// `wanted` and its ancestors, in ascending order. The search does not go beyond nodes where `ends(id)` is true.
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
