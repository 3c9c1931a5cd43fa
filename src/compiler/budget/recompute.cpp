// Finds values that may be recomputed (orders.h).
#include "compiler/budget/orders.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "graph/ops/op_def.h"
#include "graphrun/op.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::kNoNode, ir::kShared, ir::Node, ir::NodeId;

constexpr std::size_t kMaxNodes = 12;  // per recomputation, not counting views

// Whether the node costs about as much as writing its result or, with `costly`, is a product or a sum.
bool may_be_recomputed(const Node& node, bool costly) {
  switch (node.def->rows) {
    case RowRule::elementwise:
    case RowRule::rowwise:
    case RowRule::broadcast:
    case RowRule::select:
      return true;
    case RowRule::contraction:
    case RowRule::reduction:
      return costly;
    case RowRule::state:
    case RowRule::scatter:
    case RowRule::regroup:
    case RowRule::scalar:
      return false;
  }
  return false;
}

class RecomputationFinder {
 public:
  RecomputationFinder(const Graph& graph, const Layouts& layouts, const std::vector<std::uint64_t>& excess, bool costly)
      : graph_(graph), layouts_(layouts), excess_(excess), costly_(costly), first_(graph.size()) {
    for (NodeId id = 0; id < graph.size(); ++id)
      first_[id] = in_region(id) ? graph.regions[layouts.analysis.places[id].region].first() : id;
  }

  std::vector<Recomputation> run() {
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (can_be_recomputed(id)) consider(id);
    std::ranges::stable_sort(found_, std::ranges::greater{}, &Recomputation::worth);
    return std::move(found_);
  }

 private:
  bool in_region(NodeId id) const { return layouts_.analysis.places[id].region != kNoNode; }
  bool can_be_recomputed(NodeId id) const {
    const Node& node = graph_[id];
    const Storage& storage = layouts_.storage;
    const bool has_bytes = storage.root[id] == id || graph_[storage.root[id]].phase != kShared;
    return node.phase != kShared && !in_region(id) && may_be_recomputed(node, costly_) && has_bytes &&
           !storage.no_step[id] && !storage.in_registers[id] && !node.keep && !node.poll &&
           layouts_.analysis.overlays[id] != Overlay::state && graph_.phases[node.phase].row_count != id;
  }

  // Finds the steps that read `id`, for a step in a region the start of the region, and the views of `id`.
  void find_uses(NodeId id, std::set<NodeId>& uses, std::vector<NodeId>& shown) const {
    for (const NodeId reader : layouts_.analysis.consumers[id]) {
      if (in_region(reader) || !(layouts_.analysis.is_view(reader) || layouts_.views.shown[reader])) {
        uses.insert(first_[reader]);
      } else {
        shown.push_back(reader);
        if (graph_[reader].keep || graph_[reader].poll) uses.insert(graph_.size());
        find_uses(reader, uses, shown);
      }
    }
  }

  std::uint64_t worth(NodeId id, NodeId earlier, NodeId later) const {
    const std::uint64_t bytes = graph_[id].type.bytes();
    std::uint64_t sum = 0;
    for (std::uint32_t t = layouts_.storage.time[earlier] + 1; t < layouts_.storage.time[later]; ++t)
      sum += std::min(bytes, excess_[t]);
    return sum;
  }

  // Considers the time between two readers, and from the value's own step to its first reader.
  void consider(NodeId id) {
    std::set<NodeId> uses;
    std::vector<NodeId> shown;
    find_uses(id, uses, shown);
    NodeId earlier = id;
    for (const NodeId later : uses) {
      if (later == graph_.size()) break;  // the host reads the first computation
      if (const std::uint64_t bytes = worth(id, last_of(earlier), later); bytes > 0) add(id, shown, later, bytes);
      earlier = later;
    }
  }
  NodeId last_of(NodeId first) const {
    NodeId last = first;
    while (last + 1 < graph_.size() && in_region(first) && first_[last + 1] == first_[first]) ++last;
    return last;
  }

  void add(NodeId id, const std::vector<NodeId>& shown, NodeId before, std::uint64_t bytes) {
    std::vector<NodeId> nodes = {id};
    for (const NodeId view : shown) {
      const std::vector<NodeId>& readers = layouts_.analysis.consumers[view];
      const bool read_late = std::ranges::any_of(readers, [&](NodeId r) { return first_[r] >= before; });
      if (view < before && read_late) nodes.push_back(view);
    }
    if (!reads_the_same(nodes, before)) return;
    add_in_order(nodes, before, bytes);
    const std::size_t own = nodes.size();
    std::size_t computed = 1;
    for (std::size_t i = 0; i < nodes.size() && computed <= kMaxNodes; ++i)
      add_lost_operands(nodes, i, before, computed);
    if (nodes.size() > own && computed <= kMaxNodes && reads_the_same(nodes, before))
      add_in_order(nodes, before, bytes);
  }
  // Adds the node's operands that nothing else keeps live.
  void add_lost_operands(std::vector<NodeId>& nodes, std::size_t of, NodeId before, std::size_t& computed) const {
    for (const NodeId input : graph_[nodes[of]].inputs) {
      if (graph_[input].phase == kShared || std::ranges::find(nodes, input) != nodes.end()) continue;
      const NodeId value = layouts_.views.root[input];
      if (graph_[value].phase == kShared || is_read_from(value, before)) continue;
      const bool view = layouts_.analysis.is_view(input) || layouts_.views.shown[input];
      if (!view && !can_be_recomputed(input)) continue;
      nodes.push_back(input);
      if (!view) ++computed;
    }
  }
  bool is_read_from(NodeId value, NodeId on) const {
    std::set<NodeId> uses;
    std::vector<NodeId> shown;
    find_uses(value, uses, shown);
    return graph_[value].keep || graph_[value].poll || (!uses.empty() && *uses.rbegin() >= on);
  }
  void add_in_order(std::vector<NodeId> nodes, NodeId before, std::uint64_t bytes) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    found_.push_back({std::move(nodes), before, bytes});
  }

  // Whether no state that the nodes read is written in between.
  bool reads_the_same(const std::vector<NodeId>& nodes, NodeId before) const {
    return std::ranges::all_of(nodes, [&](NodeId id) {
      return std::ranges::all_of(graph_[id].inputs, [&](NodeId input) {
        const std::vector<NodeId>& writers = layouts_.analysis.writers[layouts_.analysis.roots[input]];
        return std::ranges::none_of(writers, [&](NodeId writer) {
          return graph_[writer].phase == graph_[id].phase && writer > id && writer < before;
        });
      });
    });
  }

  const Graph& graph_;
  const Layouts& layouts_;
  const std::vector<std::uint64_t>& excess_;
  bool costly_;
  std::vector<NodeId> first_;  // per node: first node of its region, or itself
  std::vector<Recomputation> found_;
};

}  // namespace

std::vector<Recomputation> recomputations(const Graph& graph, const Layouts& layouts,
                                          const std::vector<std::uint64_t>& excess, bool costly) {
  return RecomputationFinder(graph, layouts, excess, costly).run();
}

std::vector<NodeId> order_with(const Recomputation& what, NodeId nodes) {
  std::vector<NodeId> order(nodes);
  std::iota(order.begin(), order.end(), NodeId{0});
  order.insert(order.begin() + what.before, what.nodes.begin(), what.nodes.end());
  return order;
}

}  // namespace graphrun::plan
