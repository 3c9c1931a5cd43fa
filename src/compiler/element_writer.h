// element_writer.h: writes the graph in its new order, with the chosen element regions (elements.h). Contract: every
// node is added once, after its operands. A scalar that chains compute for themselves is added to each of them. If it
// is also stored, the stored node keeps its id and name, otherwise the first copy does. Other copies get new names, and
// the host does not read them.
// Not here: the order, and the members of a chain (elements.h).
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

// Nodes in order, in a chain or single. A chain has copies of the scalars that it computes for itself, each before its
// first reader.
struct ChainItem {
  ir::NodeId node = ir::kNoNode;
  bool copy = false;
};
struct ChainNodes {
  std::vector<ChainItem> items;
  std::set<ir::NodeId> copies, operands;  // operands: values in memory, by root
  std::size_t steps = 0;
};
// Next unit of the new order: a row region of the given graph, chains that form one region, or steps without one.
struct ElementUnit {
  const ir::Region* over_rows = nullptr;
  std::vector<ChainNodes> chains = {};
  bool is_region = false;
};

class ElementWriter {
 public:
  // Both must outlive the writer.
  ElementWriter(const ElementFacts& facts, const ElementMembers& members);

  void add(ir::NodeId id);  // a single node
  void add(const ir::Region& over_rows);
  void add(std::uint32_t phase, const ElementUnit& unit);
  Rewritten finish();  // call once

 private:
  using OwnCopies = std::map<ir::NodeId, ir::NodeId>;  // from a scalar to the chain's own copy

  ir::NodeId add_copy(ir::NodeId id, OwnCopies& own_copies);
  ir::NodeId append(ir::Node node, OwnCopies& own_copies);
  ir::NodeId in_chain(ir::NodeId id, OwnCopies& own_copies);
  std::string name_of_copy(const std::string& name);

  const ElementFacts& facts_;
  const ElementMembers& members_;
  Rewritten result_;
  std::vector<ir::NodeId> to_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, int> copies_;
};

}  // namespace graphrun
