// element_writer.h: writes the graph in its new order, with the regions over elements that were chosen (elements.h).
// Contract: every node is added once, after what it reads. A number that chains compute for themselves is added in each
// of them: what is stored stands for the node, otherwise the first copy does; other copies get a name of their own, and
// the host does not read them.
// Leaves to others: the order, and what is in a chain (elements.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/element_members.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"

namespace graphrun {

// Nodes in order, those of a chain or by themselves. A chain has copies of numbers that it computes for itself, each
// before its first reader.
struct ChainItem {
  ir::NodeId node = ir::kNoNode;
  bool copy = false;
};
struct ChainNodes {
  std::vector<ChainItem> items;
  std::set<ir::NodeId> copies, operands;  // operands: what lies in memory, by root
  std::size_t steps = 0;
};
// What follows in the new order: a region over rows of the given graph, chains that are one region, or neither.
struct ElementUnit {
  const ir::Region* over_rows = nullptr;
  std::vector<ChainNodes> chains = {};
  bool is_region = false;
};

class ElementWriter {
 public:
  // Both outlive it.
  ElementWriter(const ElementFacts& facts, const ElementMembers& members);

  void add(ir::NodeId id);  // a node by itself
  void add(const ir::Region& over_rows);
  void add(std::uint32_t phase, const ElementUnit& unit);
  Rewritten finish();  // once

 private:
  using Anew = std::map<ir::NodeId, ir::NodeId>;  // of a chain: its own of a number

  ir::NodeId add_copy(ir::NodeId id, Anew& anew);
  ir::NodeId append(ir::Node node, Anew& anew);
  ir::NodeId in_chain(ir::NodeId id, Anew& anew);
  std::string name_of_copy(const std::string& name);

  const ElementFacts& facts_;
  const ElementMembers& members_;
  Rewritten result_;
  std::vector<ir::NodeId> to_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, int> copies_;
};

}  // namespace graphrun
