// Fuses products with the steps that follow. A product in a region over rows takes the addition of a bias and then one
// more step on its result, and does both before it stores anything (FusedSteps of program.h, regions.md). Another
// product begins a region over elements (ElementChain), if the executor accepts that.
// Contract: the same graph, with RegionStage::fused filled in. Intermediate results have one reader and are neither
// kept nor polled, so they need no memory; this is decided before memory is laid out. `plan` of the region options is
// asked about each group, first whether its result may overwrite the last step's other operand.
// Not here: places in the tile (region_layout.h), sums over rows fused with weight gradients (also there: they depend
// on the tiling).
#include <algorithm>

#include "compiler/graph_analysis.h"
#include "compiler/passes.h"
#include "graph/ops/op_def.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::FusedNodes, ir::Graph, ir::kNoNode, ir::Node, ir::NodeId;

constexpr std::int64_t kManyElements = 1 << 16;  // results from which on a product saves traffic, not only a launch

class Fuser {
 public:
  Fuser(const Graph& graph, const RegionOptions& options)
      : graph_(graph), options_(options), analysis_(analyze(graph)) {}

  std::vector<FusedNodes> run(const ir::RegionStage& stage) const {
    std::vector<FusedNodes> fused;
    std::vector<bool> taken(stage.last - stage.rows, false);
    for (NodeId id = stage.rows; id < stage.last; ++id) {
      if (graph_[id].def->rows != RowRule::contraction || graph_[id].type.rows == 0) continue;
      FusedNodes group;
      group.product = id;
      NodeId last = id;
      if (const NodeId add = only_reader(last, stage); add != kNoNode && adds_bias(add, last)) {
        group.bias = add;
        last = add;
      }
      const NodeId next = only_reader(last, stage);
      if (next != kNoNode && !taken[next - stage.rows] && follows(next, last)) group.epilogue = next;
      if (group.epilogue != kNoNode && !accepted(group)) group.epilogue = kNoNode;
      if (group.epilogue == kNoNode && (group.bias == kNoNode || !accepted(group))) continue;
      taken[group.last() - stage.rows] = true;
      fused.push_back(group);
    }
    return fused;
  }

 private:
  // Returns the row step of the stage that is the only reader of `id`, or kNoNode if others see its value.
  NodeId only_reader(NodeId id, const ir::RegionStage& stage) const {
    const std::vector<NodeId>& readers = analysis_.consumers[id];
    if (graph_[id].keep || graph_[id].poll || readers.size() != 1) return kNoNode;
    const NodeId reader = readers.front();
    const std::vector<NodeId>& inputs = graph_[reader].inputs;
    if (reader < stage.rows || reader >= stage.last || std::ranges::count(inputs, id) != 1) return kNoNode;
    return analysis_.is_view(reader) ? kNoNode : reader;
  }

  bool adds_bias(NodeId add, NodeId product) const {
    const Node& node = graph_[add];
    if (node.op != Op::add || node.inputs[0] != product || node.type != graph_[product].type) return false;
    return is_bias(graph_[node.inputs[1]].type, node.type);
  }

  // Whether `next` is elementwise on operands of the type of `value`.
  bool follows(NodeId next, NodeId value) const {
    const Node& node = graph_[next];
    return node.def->rows == RowRule::elementwise && node.inputs.size() <= 2 &&
           std::ranges::all_of(node.inputs, [&](NodeId input) { return graph_[input].type == graph_[value].type; }) &&
           node.type == graph_[value].type;
  }

  bool accepted(FusedNodes& group) const {
    for (const bool in_place : {true, false}) {
      group.in_place = in_place;
      RegionQuestion question(graph_, analysis_, graph_[group.product].phase);
      question.add(group.product, 0);
      question.add(group);
      if (question.ask(options_.plan).yes) return true;
    }
    return false;
  }
  const Graph& graph_;
  const RegionOptions& options_;
  GraphAnalysis analysis_;
};

// Returns the step outside of regions that is the only reader of `value` and can run right after `product`: its other
// operands are older, and no state that it reads is written in between. kNoNode: no such step.
NodeId follower(const Graph& graph, const GraphAnalysis& analysis, NodeId value, NodeId product) {
  const std::vector<NodeId>& readers = analysis.consumers[value];
  if (graph[value].keep || graph[value].poll || readers.size() != 1) return kNoNode;
  const NodeId next = readers.front();
  const Node& node = graph[next];
  if (node.phase != graph[value].phase || analysis.places[next].region != kNoNode || !is_elementwise(node.op) ||
      analysis.is_view(next) || node.def->effect || std::ranges::count(node.inputs, value) != 1 ||
      !(node.type == graph[value].type))
    return kNoNode;
  const bool moves = std::ranges::all_of(node.inputs, [&](NodeId input) {
    const std::vector<NodeId>& writers = analysis.writers[analysis.roots[input]];
    return input == value || (input < product && std::ranges::none_of(writers, [&](NodeId writer) {
                                return writer > product && writer < next;
                              }));
  });
  return moves ? next : kNoNode;
}

// Whether an elementwise step could follow `value` in a launch after the product: the steps before it then cost nothing
// in that launch, too.
bool joins_later_launch(const Graph& graph, const GraphAnalysis& analysis, NodeId value, NodeId product) {
  return std::ranges::any_of(analysis.consumers[value], [&](NodeId reader) {
    const Node& node = graph[reader];
    if (analysis.is_view(reader)) return joins_later_launch(graph, analysis, reader, product);
    return is_elementwise(node.op) && !node.def->effect && analysis.places[reader].region == kNoNode &&
           node.type.shape.elements() == graph[value].type.shape.elements() &&
           std::ranges::all_of(node.inputs, [&](NodeId input) { return input == value || input < product; });
  });
}

}  // namespace

Rewritten fuse_products(const Graph& graph, const RegionOptions& options, std::int64_t least) {
  const GraphAnalysis analysis = analyze(graph);
  std::vector<std::vector<NodeId>> chains;
  std::vector<NodeId> order;
  std::vector<bool> taken(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (taken[id]) continue;
    std::vector<NodeId> chain{id};
    const bool can = graph[id].op == Op::matmul && graph[id].phase != ir::kShared &&
                     analysis.places[id].region == kNoNode && elements_of(graph[id]) >= least;
    while (can) {
      const NodeId next = follower(graph, analysis, chain.back(), id);
      if (next == kNoNode) break;
      chain.push_back(next);
      RegionQuestion question(graph, analysis, graph[id].phase);
      question.add_chain(chain);
      if (question.ask(options.plan).yes) continue;
      chain.pop_back();
      break;
    }
    if (elements_of(graph[id]) < kManyElements && joins_later_launch(graph, analysis, chain.back(), id))
      chain.resize(1);
    for (const NodeId step : chain) taken[step] = true;
    order.insert(order.end(), chain.begin(), chain.end());
    if (chain.size() > 1) chains.push_back(std::move(chain));
  }
  Rewritten result = reordered(graph, order);
  for (const std::vector<NodeId>& chain : chains) {
    const NodeId first = result.ids[chain.front()], last = first + static_cast<NodeId>(chain.size());
    result.graph.regions.push_back({graph[chain.front()].phase, {}, last, {{first, last}}});
  }
  std::ranges::sort(result.graph.regions, {}, &ir::Region::first);
  return result;
}

Graph fuse(Graph graph, const RegionOptions& options) {
  const Fuser fuser(graph, options);
  for (ir::Region& region : graph.regions)
    for (ir::RegionStage& stage : region.stages) stage.fused = fuser.run(stage);
  return graph;
}

}  // namespace graphrun
