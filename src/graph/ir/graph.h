// graph.h: the intermediate representation: typed nodes in topological order, each with one value.
// Contract: a node's id is its index; its inputs have smaller ids; side tables are vectors indexed by id. A graph holds
// states shared by all phases (phase == kShared) and, for each phase, the nodes of its step in insertion order.
// A node gives one value, so node id and value id are the same thing; an op with several results is several ops.
// Leaves to others: what ops mean (ops/), how nodes are added (builder.h), rules (verifier.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/attributes.h"
#include "graphrun/types.h"

namespace graphrun {
struct OpDef;
}

namespace graphrun::ir {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};
inline constexpr std::uint32_t kShared = ~std::uint32_t{0};

// Where a node came from in the model file; line 0 = from C++.
struct SourceRef {
  std::string pointer;
  int line = 0, column = 0;
};

struct Node {
  Op op = {};
  const OpDef* def = nullptr;  // of the op
  std::vector<NodeId> inputs;
  Attrs attrs;
  TensorType type;
  std::string name;  // unique; made from the op's name when the user gave none
  std::uint32_t phase = kShared;
  bool poll = false;  // the host reads it during a run
  bool keep = false;  // read by the host after a step: stays though no node reads it
  SourceRef source;
};

struct Phase {
  std::string name;
  std::int64_t capacity = 0;   // samples of a full batch; 0: the batch is a symbol yet (compiler/bind_batch.h)
  NodeId row_count = kNoNode;  // i32 scalar; kNoNode: every batch is full
  // What is known with the batch only: the constant of the steps of an epoch, and rings that hold a number of each of
  // them, with as many elements as they have at most.
  NodeId epoch_steps = kNoNode;
  std::vector<NodeId> rings = {};
};

// Nodes that run as one region of a Program (program.h, regions.md), found by regions.h: in stages, nodes
// [first, rows) once and [rows, last) over rows; then [stages.back().last, last) once.
struct FusedNodes {  // FusedSteps of program.h
  NodeId product = kNoNode, bias = kNoNode, epilogue = kNoNode;
  bool in_place = false;  // the result may lie where the epilogue's other operand is
  NodeId last() const { return epilogue != kNoNode ? epilogue : bias; }
};
struct RegionStage {
  NodeId first = 0, rows = 0, last = 0;
  std::vector<FusedNodes> fused = {};
};
struct NodeRange {
  NodeId first = 0, last = 0;
};
struct Region {
  std::uint32_t phase = 0;
  std::vector<RegionStage> stages;
  NodeId last = 0;
  std::vector<NodeRange> chains = {};  // over elements: instead of stages, found by elements.h
};
inline NodeId first_of(const Region& region) {
  return region.chains.empty() ? region.stages.front().first : region.chains.front().first;
}

struct Graph {
  std::vector<Node> nodes;
  std::vector<Phase> phases;
  std::vector<Region> regions;  // in order of their nodes, which they do not share

  const Node& operator[](NodeId id) const { return nodes[id]; }
  Node& operator[](NodeId id) { return nodes[id]; }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }
};

std::vector<TensorType> input_types(const Graph& graph, const Node& node);

// One line a node: "%3 h1 = tanh(%2 z1) : f32(batch, 6)"; states first, then each phase under its name.
std::string to_string(const Graph& graph);

}  // namespace graphrun::ir
