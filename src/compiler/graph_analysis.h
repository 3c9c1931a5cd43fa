// graph_analysis.h: what passes ask of a graph: who reads a node, what it may share memory with, and what a view shows,
// found once; and a node as executors are asked about it. Contract: pure functions of the graph; vectors by node id.
// Leaves to others: what follows from it: storage (storage.h), regions (regions.h), layouts.
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun {

struct GraphAnalysis {
  std::vector<std::vector<ir::NodeId>> consumers;  // in order
  std::vector<Alias> aliases;                      // by OpDef::view and the traits
  std::vector<ir::NodeId> roots;                   // what a view shows, through others; of any other node itself

  bool is_view(ir::NodeId id) const { return aliases[id] == Alias::view; }
};

std::int64_t elements_of(const ir::Node& node);  // that it computes: a record writes one

GraphAnalysis analyze(const ir::Graph& graph);

// What GraphAnalysis::roots says of one node.
ir::NodeId root_of(const ir::Graph& graph, ir::NodeId id);

std::vector<ir::NodeId> nodes_of(const ir::Graph& graph, std::uint32_t phase);

// Also while a pass still makes the graph, as long as it has the node's operands.
Params params_of(const ir::Graph& graph, const ir::Node& node);

// What a StepSignature of a node refers to.
struct NodeSignature {
  Op op = {};
  Params params;
  std::vector<TensorType> inputs;
  TensorType output;
  bool partial_rows = false;
  std::vector<View> views = {};
  bool in_chain = false;

  StepSignature get() const { return {op, params, inputs, output, partial_rows, views, in_chain}; }
};
NodeSignature signature_of(const ir::Graph& graph, ir::NodeId id);

// Puts the node's name, op and place in the model file to what was found about it.
void point_to(const ir::Node& node, Diagnostic& diagnostic);

}  // namespace graphrun
