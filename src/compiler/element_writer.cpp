#include "compiler/element_writer.h"

#include <fmt/format.h>

#include <utility>

namespace graphrun {

using ir::kNoNode;
using ir::Node;
using ir::NodeId;

ElementWriter::ElementWriter(const ElementFacts& facts, const ElementMembers& members)
    : facts_(facts), members_(members), to_(facts.graph.size(), kNoNode) {
  for (const Node& node : facts.graph.nodes) names_.insert(node.name);
}

Rewritten ElementWriter::finish() {
  result_.ids = IdMap(std::move(to_));
  result_.graph.phases = renumbered(facts_.graph.phases, result_.ids);
  return std::move(result_);
}

void ElementWriter::add(std::uint32_t phase, const ElementUnit& unit) {
  if (unit.over_rows != nullptr) return add(*unit.over_rows);
  ir::Region region;
  region.phase = phase;
  for (const ChainNodes& chain : unit.chains) {
    const NodeId first = result_.graph.size();
    OwnCopies own_copies;
    for (const ChainItem& item : chain.items) {
      if (item.copy)
        own_copies[item.node] = add_copy(item.node, own_copies);
      else
        to_[item.node] = append(facts_.graph[item.node], own_copies);
    }
    region.chains.push_back({first, result_.graph.size()});
  }
  region.last = result_.graph.size();
  if (unit.is_region) result_.graph.regions.push_back(std::move(region));
}

void ElementWriter::add(const ir::Region& over_rows) {
  const NodeId first = result_.graph.size();
  for (NodeId id = over_rows.first(); id < over_rows.last; ++id) add(id);
  result_.graph.regions.push_back(moved(over_rows, first));
}

void ElementWriter::add(NodeId id) {
  OwnCopies none;
  to_[id] = append(facts_.graph[id], none);
}

NodeId ElementWriter::add_copy(NodeId id, OwnCopies& own_copies) {
  const bool first = !members_.stored[id] && to_[id] == kNoNode;
  Node node = facts_.graph[id];
  if (!first) {
    node.name = name_of_copy(node.name);
    node.keep = node.poll = false;
  }
  const NodeId placed = append(std::move(node), own_copies);
  if (first) to_[id] = placed;
  return placed;
}

NodeId ElementWriter::append(Node node, OwnCopies& own_copies) {
  for (NodeId& input : node.inputs) input = in_chain(input, own_copies);
  result_.graph.nodes.push_back(std::move(node));
  return result_.graph.size() - 1;
}

// Returns the chain's own copy of a scalar, if any. A view of a scalar is copied into each chain that reads it.
NodeId ElementWriter::in_chain(NodeId id, OwnCopies& own_copies) {
  if (const auto own = own_copies.find(id); own != own_copies.end()) return own->second;
  if (!facts_.analysis.is_view(id)) return to_[id];
  const bool shows_own = own_copies.count(facts_.analysis.roots[id]) > 0;
  return shows_own || to_[id] == kNoNode ? own_copies[id] = add_copy(id, own_copies) : to_[id];
}

std::string ElementWriter::name_of_copy(const std::string& name) {
  for (int& copy = copies_[name];;) {
    std::string made = fmt::format("{}.copy{}", name, ++copy);
    if (names_.insert(made).second) return made;
  }
}

}  // namespace graphrun
