// Schedules steps (orders.h).
#include "compiler/budget/orders.h"

#include <map>
#include <set>

#include "base/checked.h"
#include "graph/ops/op_def.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::kShared, ir::Node, ir::NodeId;

enum class Choice { frees_early, takes_least };

// Schedules the steps of one phase. A unit is a single node or a whole region.
class PhaseScheduler {
 public:
  PhaseScheduler(const Graph& graph, const Layouts& layouts, std::uint32_t phase)
      : graph_(graph), layouts_(layouts), phase_(phase), unit_of_(graph.size(), kNone) {
    make_units();
    after_.resize(units_.size());
    waits_for_.assign(units_.size(), 0);
    find_edges();
    find_readers();
  }

  void schedule(Choice choice, std::vector<NodeId>& order) {
    std::set<std::size_t> ready;
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (waits_for_[u] == 0) ready.insert(u);
    while (!ready.empty()) {
      std::size_t best = *ready.begin();
      std::int64_t least = choice == Choice::frees_early ? 0 : growth(best);
      for (const std::size_t u : ready) {
        if (const std::int64_t bytes = growth(u); bytes < least) {
          least = bytes;
          best = u;
        }
      }
      ready.erase(best);
      for (const NodeId value : reads_[best]) --readers_[value];
      for (const std::size_t next : after_[best])
        if (--waits_for_[next] == 0) ready.insert(next);
      for (NodeId id = units_[best].first; id < units_[best].last; ++id)
        if (graph_[id].phase == phase_) order.push_back(id);
    }
  }

 private:
  struct Unit {
    NodeId first, last;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  void make_units() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].phase != phase_) continue;
      const std::uint32_t region = layouts_.analysis.places[id].region;
      const NodeId last = region == ir::kNoNode ? id + 1 : graph_.regions[region].last;
      for (NodeId i = id; i < last; ++i)
        if (graph_[i].phase == phase_) unit_of_[i] = units_.size();
      units_.push_back({id, last});
      id = last - 1;
    }
  }

  void before(NodeId earlier, NodeId later) {
    const std::size_t from = unit_of_[earlier], to = unit_of_[later];
    if (from != to && after_[from].insert(to).second) ++waits_for_[to];
  }

  // Edges from operands, between readers and writers of a state, and from the row count to all later nodes.
  void find_edges() {
    std::map<NodeId, std::vector<NodeId>> readers;  // per state, since its last write
    std::map<NodeId, NodeId> writer;
    const auto written = [&](NodeId state, NodeId by) {
      for (const NodeId reader : readers[state]) before(reader, by);
      if (const auto found = writer.find(state); found != writer.end()) before(found->second, by);
    };
    const NodeId count = graph_.phases[phase_].row_count;
    for (const NodeId id : nodes_of(graph_, phase_)) {
      const Node& node = graph_[id];
      if (count != ir::kNoNode && count < id && graph_[count].phase == phase_) before(count, id);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (graph_[node.inputs[i]].phase == phase_) before(node.inputs[i], id);
        const NodeId state = layouts_.views.root[node.inputs[i]];
        if (graph_[state].phase != kShared) continue;
        if (i == 0 && layouts_.analysis.overlays[id] == Overlay::state) {
          written(state, id);
          // A value computed in the state's storage comes after the readers of the old value.
          if (node.def->effect && layouts_.storage.root[node.inputs[1]] == state && unit_of_[node.inputs[1]] != kNone)
            written(state, node.inputs[1]);
          continue;
        }
        if (const auto found = writer.find(state); found != writer.end()) before(found->second, id);
        readers[state].push_back(id);
      }
      if (layouts_.analysis.overlays[id] == Overlay::state) {
        const NodeId state = layouts_.views.root[node.inputs[0]];
        writer[state] = id;
        readers[state].clear();
      }
    }
  }

  // Values that each unit reads, and the number of units that read each value; one more if it is live to the end.
  void find_readers() {
    reads_.resize(units_.size());
    readers_.assign(graph_.size(), 0);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      std::set<NodeId> reads;
      for (NodeId id = units_[u].first; id < units_[u].last; ++id) {
        if (graph_[id].phase != phase_ || layouts_.analysis.is_view(id) || layouts_.views.shown[id]) continue;
        for (const NodeId input : graph_[id].inputs) {
          const NodeId value = layouts_.views.root[input];
          if (unit_of_[value] != kNone && unit_of_[value] != u) reads.insert(value);
        }
      }
      reads_[u].assign(reads.begin(), reads.end());
      for (const NodeId value : reads) ++readers_[value];
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].keep || graph_[id].poll || id == graph_.phases[phase_].row_count)
        ++readers_[layouts_.views.root[id]];
    }
  }

  // Change in live bytes when the unit runs.
  std::int64_t growth(std::size_t u) const {
    std::int64_t bytes = 0;
    for (NodeId id = units_[u].first; id < units_[u].last; ++id)
      if (graph_[id].phase == phase_ && readers_[id] > 0) bytes += bytes_of(id);
    for (const NodeId value : reads_[u])
      if (readers_[value] == 1) bytes -= bytes_of(value);
    return bytes;
  }
  std::int64_t bytes_of(NodeId id) const {
    const Storage& storage = layouts_.storage;
    if (storage.no_step[id] || layouts_.in_tile_only[id] || graph_[storage.root[id]].phase == kShared) return 0;
    return static_cast<std::int64_t>(round_up(graph_[id].type.bytes(), kAlignment));
  }

  const Graph& graph_;
  const Layouts& layouts_;
  std::uint32_t phase_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_;          // per node
  std::vector<std::set<std::size_t>> after_;  // per unit
  std::vector<std::size_t> waits_for_;        // per unit: predecessors that have not run
  std::vector<std::vector<NodeId>> reads_;    // per unit
  std::vector<std::size_t> readers_;          // per value: readers that have not run
};

}  // namespace

std::vector<std::vector<NodeId>> other_orders(const Graph& graph, const Layouts& layouts) {
  std::vector<std::vector<NodeId>> orders;
  for (const Choice choice : {Choice::frees_early, Choice::takes_least}) {
    std::vector<NodeId>& order = orders.emplace_back(nodes_of(graph, kShared));
    for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase)
      PhaseScheduler(graph, layouts, phase).schedule(choice, order);
  }
  return orders;
}

}  // namespace graphrun::plan
