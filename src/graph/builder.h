// builder.h: adds nodes to a graph: looks the op up, fills in attributes, infers the type, names the node.
// Contract: add() throws Error (kind input) with the node's name and the operands' names and types when they do not
// fit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun::ir {

class Builder final : public NodeFactory {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  NodeId add(std::string_view op, std::vector<NodeId> inputs, const AttrList& attrs = {}) override;
  TensorType type(NodeId id) const override { return graph_[id].type; }
  NodeId scalar(double value, DType dtype) override;
  NodeId sample_count(DType dtype) override;

  NodeId step() override;
  NodeId training() override;  // made on first use: few models ask

  void enter(std::uint32_t phase);                            // nodes added from now on belong to it
  void count_steps(NodeId counter) { step_ = counter; }       // what step() gives from now on
  void at(SourceRef source) { source_ = std::move(source); }  // where nodes added from now on come from
  void rename(NodeId id, std::string name);                   // throws Error when the name is taken
  NodeId find(std::string_view name) const;                   // kNoNode
  std::string unique(std::string_view stem) const;
  NodeId training_or_none() const { return training_; }  // kNoNode: nobody has asked
  Graph& graph() { return graph_; }
  const Graph& graph() const override { return graph_; }

 private:
  Graph& graph_;
  std::uint32_t phase_ = kShared;
  NodeId step_ = kNoNode, training_ = kNoNode;
  SourceRef source_;
  std::map<std::string, NodeId, std::less<>> names_;
  mutable std::map<std::string, int, std::less<>> counters_;
  std::map<std::pair<std::uint32_t, DType>, NodeId> sample_counts_;
  std::map<std::pair<std::uint64_t, DType>, NodeId> scalars_;  // by their bits: -0 is not 0, and NaN is itself
};

// Adds what `wanted` of another graph is computed from, with f64 wherever f32 stood, and gives the node for it.
// `given`: the node that is there already; kNoNode: none.
NodeId copy_as_f64(Builder& builder, const Graph& from, NodeId wanted, const std::function<NodeId(NodeId)>& given);

}  // namespace graphrun::ir
