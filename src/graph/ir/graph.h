// graph.h: the intermediate representation: typed nodes in topological order, each with one value.
// Contract: a node's id is its index; its inputs have smaller ids; side tables are vectors indexed by id. A graph has
// states shared by all phases (phase == kShared) and, for each phase, the nodes of its step in insertion order.
// A node has one value, so node ids identify values too; an operation with several results needs several ops.
// Defined elsewhere: the ops (ops/), adding nodes (builder.h), invariants (verifier.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/attributes.h"
#include "graphrun/executor.h"
#include "graphrun/types.h"

namespace graphrun {
struct OpDef;
}

namespace graphrun::ir {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};
inline constexpr std::uint32_t kShared = ~std::uint32_t{0};

// Position of a node's definition in the model file; line 0: built in C++.
struct SourceRef {
  std::string pointer;
  int line = 0, column = 0;

  friend bool operator==(const SourceRef&, const SourceRef&) = default;
};

struct Node {
  Op op = {};
  const OpDef* def = nullptr;
  std::vector<NodeId> inputs;
  Attrs attrs;
  TensorType type;
  std::string name;  // unique; derived from the op if the user gave none
  std::uint32_t phase = kShared;
  bool poll = false;  // the host reads it during a run
  bool keep = false;  // the host reads it after a step, so it is live without a reader
  SourceRef source;

  friend bool operator==(const Node&, const Node&) = default;
};

struct Phase {
  std::string name;
  std::int64_t capacity = 0;   // samples of a full batch; 0: symbolic (compiler/bind_batch.cpp)
  NodeId row_count = kNoNode;  // i32 scalar; kNoNode: every batch is full
  // Nodes that depend on the batch size: the constant with the steps per epoch, and ring buffers with one element per
  // step of an epoch. Until the batch is bound, the extent of a ring is its maximum.
  NodeId epoch_steps = kNoNode;
  std::vector<NodeId> rings = {};
  std::int64_t shards = 1;  // shards of a batch (compiler/share_rows.cpp); a step then has the rows of one

  friend bool operator==(const Phase&, const Phase&) = default;
};

// Nodes that run as one region of a Program (program.h, regions.md), found by regions.h. Each stage runs nodes
// [first, rows) once and [rows, last) over rows; nodes [stages.back().last, last) then run once.
struct FusedNodes : FusedSteps {  // ids of nodes
  bool in_place = false;          // the result may overwrite the epilogue's other operand
};
struct RegionStage {
  NodeId first = 0, rows = 0, last = 0;
  std::vector<FusedNodes> fused = {};
};
struct Region {
  std::uint32_t phase = 0;
  std::vector<RegionStage> stages;
  NodeId last = 0;
  std::vector<ElementChain> chains = {};  // element region (elements.cpp): chains instead of stages
  std::optional<RegionPlan> plan = {};    // row regions, once memory has been planned (arena.h)
  // Index of the stage whose row step the node is.
  std::optional<std::uint32_t> stage_of(NodeId id) const {
    for (std::uint32_t s = 0; s < stages.size(); ++s)
      if (id >= stages[s].rows && id < stages[s].last) return s;
    return std::nullopt;
  }
  NodeId first() const { return chains.empty() ? stages.front().first : chains.front().first; }
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Phase> phases;
  std::vector<Region> regions;  // disjoint, in node order

  const Node& operator[](NodeId id) const { return nodes[id]; }
  Node& operator[](NodeId id) { return nodes[id]; }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }
};

std::vector<TensorType> input_types(const Graph& graph, const Node& node);

// One line per node: "%3 h1 = tanh(%2 z1) : f32(batch, 6)"; states first, then each phase under its name.
std::string to_string(const Graph& graph);

}  // namespace graphrun::ir
