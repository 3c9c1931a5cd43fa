#include "compiler/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "graph/ops/op_def.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::kShared, ir::Node, ir::NodeId;

bool is_state_node(const Node& node) {
  return node.def->state != nullptr;
}

class Assigner {
 public:
  Assigner(const Graph& graph, const GraphAnalysis& analysis, const Views& views, bool lend)
      : graph_(graph), analysis_(analysis), views_(views), lend_(lend) {
    storage_.root.resize(graph.size());
    storage_.time.assign(graph.size(), 0);
    storage_.first.assign(graph.size(), 0);
    storage_.last.assign(graph.size(), 0);
    storage_.no_step.assign(graph.size(), false);
    storage_.in_registers.assign(graph.size(), false);
  }

  Storage run() {
    number_the_steps();
    take_views();
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) update_states_in_place(phase);
    find_registers();
    measure_live_ranges();
    reuse_dying_operands();
    for (NodeId id = 0; id < graph_.size(); ++id) storage_.root[id] = root(id);
    return std::move(storage_);
  }

 private:
  NodeId chain(NodeId id) const { return analysis_.places[id].chain; }

  // storage_.root holds parents until run() ends, so that merging two storages is one write.
  NodeId root(NodeId id) const {
    while (storage_.root[id] != id) id = storage_.root[id];
    return id;
  }

  // All row steps of a region's stage share one time: a value that one of them reads stays live while any tile is left.
  // The steps of all chains of a region also share one time: they have no order.
  void number_the_steps() {
    std::uint32_t now = 0;
    storage_.ends.resize(graph_.phases.size());
    std::vector<bool> shares_time(graph_.size(), false);  // with the node before it
    for (const ir::Region& region : graph_.regions) {
      for (const ir::RegionStage& stage : region.stages)
        for (NodeId id = stage.rows + 1; id < stage.last; ++id) shares_time[id] = true;
      if (!region.chains.empty())
        std::fill(shares_time.begin() + region.first() + 1, shares_time.begin() + region.last, true);
    }
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) {
      for (const NodeId id : nodes_of(graph_, phase)) storage_.time[id] = shares_time[id] ? now - 1 : now++;
      storage_.ends[phase] = now++;  // a separate time: values that the host reads outlive the last step
    }
  }

  void take_views() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const bool view = analysis_.is_view(id) || views_.shown[id];
      const bool shares = view || analysis_.overlays[id] == Overlay::state;
      storage_.root[id] = shares ? root(graph_[id].inputs[0]) : id;
      storage_.no_step[id] = is_state_node(graph_[id]) || view;
    }
  }

  // Time of the last read of each state's old value in this phase, plus 1, by the state's id. An assign names the state
  // without reading it, and a value that an op wrote in place of a state is the new one.
  std::vector<std::uint32_t> last_reads(std::uint32_t phase) const {
    std::vector<std::uint32_t> last(graph_.size(), 0);
    for (const NodeId id : nodes_of(graph_, phase)) {
      for (std::size_t i = graph_[id].def->effect ? 1 : 0; i < graph_[id].inputs.size(); ++i) {
        const NodeId read = views_.root[graph_[id].inputs[i]];
        last[read] = std::max(last[read], storage_.time[id] + 1);  // 0 = never
      }
    }
    return last;
  }

  // assign(state, value) costs nothing if the value can be computed directly into the state: the value has its own
  // storage, nothing reads the old value later, and no other state claims it.
  void update_states_in_place(std::uint32_t phase) {
    const std::vector<std::uint32_t> last_read = last_reads(phase);
    for (const NodeId id : nodes_of(graph_, phase)) {
      const Node& node = graph_[id];
      if (!node.def->effect) continue;
      const NodeId state = node.inputs[0];
      const NodeId value = node.inputs[1];
      const NodeId written_to = root(value);
      storage_.root[id] = state;
      if (written_to == state) {  // written in place by an op with Overlay::state (record)
        check_last_word(value, state, last_read[state]);
        storage_.no_step[id] = true;
        continue;
      }
      const bool own = written_to == value && !is_state_node(graph_[value]);
      const std::uint32_t written = storage_.time[value] + 1;
      const bool last_word =
          last_read[state] < written || (last_read[state] == written && analysis_.overlays[value] == Overlay::reuse &&
                                         reads_whole(value, state) && reads_last(value, state));
      if (!own || !last_word) continue;
      storage_.root[value] = state;
      storage_.no_step[id] = true;
      if (lend_) lend(state, value, last_read[state]);
    }
  }

  // Moves into the state's storage the operand that `value` can overwrite, then that operand's operand, and so on.
  void lend(NodeId state, NodeId value, std::uint32_t last_read) {
    for (NodeId to = value; to != ir::kNoNode;) {
      const std::vector<NodeId>& inputs = graph_[to].inputs;
      const bool reuses = analysis_.overlays[to] == Overlay::reuse && !analysis_.in_chain(to) && !analysis_.in_rows(to);
      const auto from = std::find_if(inputs.begin(), inputs.end(),
                                     [&](NodeId input) { return reuses && may_borrow(input, to, state, last_read); });
      to = from == inputs.end() ? ir::kNoNode : *from;
      if (to != ir::kNoNode) storage_.root[to] = state;
    }
  }
  bool may_borrow(NodeId id, NodeId reader, NodeId state, std::uint32_t last_read) const {
    const Node& node = graph_[id];
    if (node.phase != graph_[reader].phase || !(node.type == graph_[reader].type) || node.keep || node.poll)
      return false;
    if (storage_.root[id] != id || storage_.no_step[id] || analysis_.in_chain(id) || analysis_.in_rows(id))
      return false;
    if (analysis_.consumers[id] != std::vector<NodeId>{reader}) return false;
    const std::uint32_t written = storage_.time[id] + 1;
    return last_read < written ||
           (last_read == written && analysis_.overlays[id] == Overlay::reuse && reads_whole(id, state));
  }

  // Whether all operands of `value` in the state's storage have the value's type and so are read element by element.
  bool reads_whole(NodeId value, NodeId state) const {
    for (NodeId input : graph_[value].inputs) {
      const bool whole = views_.view[input] == dense(graph_[input].type.shape);
      if (root(input) == state && !(whole && graph_[input].type == graph_[value].type)) return false;
    }
    return true;
  }

  // Whether all readers of `of` in the writer's region are in the writer's chain, not after the writer, and read
  // element by element, which products and readers through a shown view do not.
  bool reads_last(NodeId writer, NodeId of, bool by_element = true) const {
    if (!analysis_.in_chain(writer)) return true;
    const std::vector<NodeId>& readers = analysis_.consumers[of];
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      if (analysis_.is_view(reader)) return reads_last(writer, reader, by_element);
      if (views_.shown[reader]) return reads_last(writer, reader, false);
      const bool names = graph_[reader].def->effect && graph_[reader].inputs[0] == of;
      return names || storage_.time[reader] != storage_.time[writer] ||
             (by_element && is_elementwise(graph_[reader].op) && chain(reader) == chain(writer) && reader <= writer &&
              graph_[reader].type.shape.elements() == graph_[of].type.shape.elements());
    });
  }

  // Finds values that stay within a chain: neither the host nor any other step reads them.
  void find_registers() {
    std::vector<bool> leaves(graph_.size(), false), read(graph_.size(), false);
    for (const ir::Phase& phase : graph_.phases)
      if (phase.row_count != ir::kNoNode) leaves[phase.row_count] = true;
    for (NodeId id = graph_.size(); id-- > 0;) {
      const NodeId of = analysis_.roots[id];
      if (!analysis_.in_chain(of)) continue;
      for (NodeId reader : analysis_.consumers[id]) {
        const bool view = analysis_.is_view(reader);
        leaves[id] = leaves[id] || (view ? leaves[reader] : chain(reader) != chain(of));
        read[id] = read[id] || !view || read[reader];
      }
      leaves[id] = leaves[id] || graph_[id].keep || graph_[id].poll || storage_.root[of] != of;
      storage_.in_registers[id] = read[id] && !leaves[id];
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      storage_.in_registers[id] = storage_.in_registers[analysis_.roots[id]];
  }

  void check_last_word(NodeId writer, NodeId state, std::uint32_t last_read) const {
    if (last_read > storage_.time[writer] + 1) {
      throw std::logic_error(
          fmt::format("storage: {} overwrites {} before its last reader", graph_[writer].name, graph_[state].name));
    }
  }

  void measure_live_ranges() {
    std::vector<bool> seen(graph_.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].phase == kShared) continue;
      const std::uint32_t now = storage_.time[id];
      const NodeId own = root(id);
      if (!seen[own]) storage_.first[own] = now;
      seen[own] = true;
      storage_.last[own] = std::max(storage_.last[own], now);
      for (NodeId input : graph_[id].inputs) {
        const NodeId read = root(input);
        storage_.last[read] = std::max(storage_.last[read], now);
      }
      if (graph_[id].keep || graph_[id].poll) storage_.last[own] = storage_.ends[graph_[id].phase];
    }
    // The row count is read by every step over rows.
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) {
      const NodeId count = graph_.phases[phase].row_count;
      if (count != ir::kNoNode) storage_.last[root(count)] = storage_.ends[phase];
    }
  }

  void reuse_dying_operands() {
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) {
      for (NodeId id = 0; id < graph_.size(); ++id) {
        const bool may =
            analysis_.overlays[id] == Overlay::reuse && !analysis_.in_rows(id) && !storage_.in_registers[id];
        if (graph_[id].phase == phase && may && storage_.root[id] == id) reuse(id);
      }
    }
  }

  // Reuses the storage of an operand or, in a chain, of an operand of an earlier step of the chain.
  void reuse(NodeId id) {
    for (NodeId reader = id;; --reader) {
      for (NodeId input : graph_[reader].inputs) {
        if (take_place(id, input)) return;
      }
      if (!analysis_.in_chain(id) || reader == chain(id)) return;
    }
  }
  bool take_place(NodeId id, NodeId input) {
    const NodeId dying = root(input);
    if (is_state_node(graph_[dying]) || storage_.in_registers[dying] || storage_.last[dying] != storage_.time[id])
      return false;
    if (!(graph_[input].type == graph_[id].type) || graph_[dying].type.bytes() != graph_[id].type.bytes()) return false;
    if (dying == id || !reads_whole(id, dying) || !reads_last(id, views_.root[input])) return false;
    storage_.last[dying] = storage_.last[id];
    storage_.root[id] = dying;
    return true;
  }

  const Graph& graph_;
  const GraphAnalysis& analysis_;
  const Views& views_;
  bool lend_;
  Storage storage_;
};

}  // namespace

Storage assign_storage(const ir::Graph& graph, const GraphAnalysis& analysis, const Views& views, bool lend) {
  return Assigner(graph, analysis, views, lend).run();
}

}  // namespace graphrun::plan
