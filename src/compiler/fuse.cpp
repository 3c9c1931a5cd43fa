// Fuses row steps of a region: a product takes the addition of a bias and then one more step on its
// result, and does both before it stores anything (FusedSteps of program.h, regions.md).
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

}  // namespace

Graph fuse(Graph graph, const RegionOptions& options) {
  const Fuser fuser(graph, options);
  for (ir::Region& region : graph.regions)
    for (ir::RegionStage& stage : region.stages) stage.fused = fuser.run(stage);
  return graph;
}

}  // namespace graphrun
