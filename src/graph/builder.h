// builder.h: adds nodes to a graph: looks up the op, fills in attributes, infers the type, names the node.
// Contract: if operands do not fit, add() throws Error (kind input) with the node's name and the operands' names and
// types.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun::ir {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  NodeId add(std::string_view op, std::vector<NodeId> inputs, const AttrList& attrs = {});
  TensorType type(NodeId id) const { return graph_[id].type; }  // a copy: adding a node invalidates references
  NodeId scalar(double value, DType dtype);                     // a constant; one node per value
  // Samples in this batch as a scalar of the given float type: the divisor of a mean over rows.
  NodeId sample_count(DType dtype);
  // The counter of finished steps (u64 scalar), which gives random ops new samples each step.
  NodeId step();
  // Whether the phase is training, as a bool scalar; created on first use.
  NodeId training();

  void will_widen() { widens_ = true; }                       // marks places for widen()
  void enter(std::uint32_t phase);                            // later nodes belong to this phase
  void count_steps(NodeId counter) { step_ = counter; }       // later step() calls return it
  void at(SourceRef source) { source_ = std::move(source); }  // source of later nodes
  void rename(NodeId id, std::string name);                   // throws Error if the name is taken
  NodeId find(std::string_view name) const;                   // kNoNode if there is none
  std::string unique(std::string_view stem) const;
  NodeId training_or_none() const { return training_; }  // kNoNode before the first training()
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

  std::vector<NodeId> slopes;  // results of gradient(y, x) in a model
  std::set<NodeId> kinks;      // its piecewise-linear activations that a second derivative passes

 private:
  Graph& graph_;
  std::uint32_t phase_ = kShared;
  bool widens_ = false;
  NodeId step_ = kNoNode, training_ = kNoNode;
  SourceRef source_;
  std::map<std::string, NodeId, std::less<>> names_;
  mutable std::map<std::string, int, std::less<>> counters_;
  std::map<std::pair<std::uint32_t, DType>, NodeId> sample_counts_;
  std::map<std::pair<std::uint64_t, DType>, NodeId> scalars_;  // keyed by bits: -0 != 0, and NaN == NaN
};

// Copies `wanted` and its ancestors from another graph, with f64 in place of f32, and returns the new node.
// `given` maps a node to an existing replacement, or to kNoNode.
NodeId copy_as_f64(Builder& builder, const Graph& from, NodeId wanted, const std::function<NodeId(NodeId)>& given);

// Makes every f32 of the graph f64, in place. Rings stay f32, and so do ops whose result is always f32, such as
// one_hot. The types meet in casts from f32 to f32: Builder::will_widen() adds one after each such op, and the caller
// one before each record.
void widen(Graph& graph);

}  // namespace graphrun::ir
