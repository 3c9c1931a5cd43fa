// Groups elementwise steps outside of row regions into element regions (ElementChain of program.h,
// regions.md) and reorders steps for that. Runs before memory is laid out: only dependencies through values and states
// restrict the order, and values that stay within a chain need no memory.
// Contract: the same nodes under the same names, in an order that gives the same bits; a scalar that several chains
// need has a copy in each. Other steps keep their order. Elementwise steps wait until one of those needs a waiting
// step; then all waiting steps run, together with later steps that can share a region with them. `plan` is asked about
// each step and each region. Not here: which values are in registers (storage.h), how a region runs (the executors).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "compiler/element_members.h"
#include "compiler/passes.h"
#include "graph/ops/op_def.h"

namespace graphrun {
namespace {

using ir::Graph, ir::kNoNode, ir::kShared, ir::Node, ir::NodeId;

// Nodes in order, in a chain or single. A chain has copies of the scalars that it computes for itself, each before its
// first reader.
struct ChainItem {
  NodeId node = kNoNode;
  bool copy = false;
};
struct ChainNodes {
  std::vector<ChainItem> items;
  std::set<NodeId> copies, operands;  // operands: values in memory, by root
  std::size_t steps = 0;
};
// Next unit of the new order: chains that form one region, or other nodes, such as those of a row region.
struct ElementUnit {
  std::vector<ChainNodes> chains = {};
  bool is_region = false;
};

// Writes the graph in its new order, with the chosen regions. Every node is added once, after its operands. A scalar
// that chains compute for themselves is added to each of them. If it is also stored, the stored node keeps its id and
// name, otherwise the first copy does. Other copies get new names, and the host does not read them.
class ElementWriter {
 public:
  // Both must outlive the writer.
  ElementWriter(const ElementFacts& facts, const ElementMembers& members)
      : facts_(facts), members_(members), to_(facts.graph.size(), kNoNode) {
    for (const Node& node : facts.graph.nodes) names_.insert(node.name);
  }

  Rewritten finish() {
    result_.ids = IdMap(std::move(to_));
    result_.graph.phases = renumbered(facts_.graph.phases, result_.ids);
    return std::move(result_);
  }

  void add(std::uint32_t phase, const ElementUnit& unit) {
    ir::Region region;
    region.phase = phase;
    for (const ChainNodes& chain : unit.chains) {
      const NodeId first = result_.graph.size();
      OwnCopies own_copies;
      for (const ChainItem& item : chain.items) {
        if (item.copy)
          own_copies[item.node] = add_copy(item.node, own_copies);
        else
          add(item.node, own_copies);
      }
      region.chains.push_back({first, result_.graph.size()});
    }
    region.last = result_.graph.size();
    if (unit.is_region) result_.graph.regions.push_back(std::move(region));
  }

  void add(NodeId id) {
    OwnCopies none;
    add(id, none);
  }

 private:
  using OwnCopies = std::map<NodeId, NodeId>;  // from a scalar to the chain's own copy

  // The nodes of a row region follow its first one.
  void add(NodeId id, OwnCopies& own_copies) {
    if (const ir::Region* region = facts_.region_of(id); region != nullptr && id == region->first())
      result_.graph.regions.push_back(moved(*region, result_.graph.size()));
    to_[id] = append(facts_.graph[id], own_copies);
  }

  NodeId add_copy(NodeId id, OwnCopies& own_copies) {
    const bool first = !members_.stored[id] && to_[id] == kNoNode;
    Node node = facts_.graph[id];
    if (!first) {
      node.name = name_of_copy(node.name);
      node.keep = node.poll = false;
    }
    const NodeId placed = append(std::move(node), own_copies);
    if (first) to_[id] = placed;
    return placed;
  }

  NodeId append(Node node, OwnCopies& own_copies) {
    for (NodeId& input : node.inputs) input = in_chain(input, own_copies);
    result_.graph.nodes.push_back(std::move(node));
    return result_.graph.size() - 1;
  }

  // Returns the chain's own copy of a scalar, if any. A view of a scalar is copied into each chain that reads it.
  NodeId in_chain(NodeId id, OwnCopies& own_copies) {
    if (const auto own = own_copies.find(id); own != own_copies.end()) return own->second;
    if (!facts_.analysis.is_view(id)) return to_[id];
    const bool shows_own = own_copies.count(facts_.analysis.roots[id]) > 0;
    return shows_own || to_[id] == kNoNode ? own_copies[id] = add_copy(id, own_copies) : to_[id];
  }

  std::string name_of_copy(const std::string& name) {
    for (int& copy = copies_[name];;) {
      std::string made = fmt::format("{}.copy{}", name, ++copy);
      if (names_.insert(made).second) return made;
    }
  }

  const ElementFacts& facts_;
  const ElementMembers& members_;
  Rewritten result_;
  std::vector<NodeId> to_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, int> copies_;
};

class Elements {
 public:
  Elements(const Graph& graph, const RegionOptions& options, const ElementLimits& limits)
      : graph_(graph),
        options_(options),
        limits_(limits),
        facts_(graph),
        members_(find_element_members(facts_, options, limits)),
        waits_(graph.size(), false),
        taken_(graph.size(), false),
        writer_(graph.size(), kNoNode),
        blocker_(graph.size(), kNoNode),
        blocks_(graph.size()),
        gathered_(graph.size(), 0),
        attached_(graph.size()),
        out_(facts_, members_) {}

  Rewritten run() {
    for (const NodeId id : nodes_of(graph_, kShared)) out_.add(id);
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) order_phase(phase);
    return out_.finish();
  }

 private:
  void order_phase(std::uint32_t phase) {
    const std::vector<NodeId> nodes = nodes_of(graph_, phase);
    row_count_ = graph_.phases[phase].row_count;
    units_.clear();
    std::fill(writer_.begin(), writer_.end(), kNoNode);
    for (const NodeId id : nodes) {
      if (!facts_.writes_state(id) || writer_[facts_.state_of(id)] != kNoNode) continue;
      writer_[facts_.state_of(id)] = id;
      due_.insert(facts_.state_of(id));
    }
    for (const NodeId id : nodes)
      if (!taken_[id]) take(id);
    flush();
    const bool any = std::ranges::any_of(units_, [](const ElementUnit& unit) { return unit.is_region; });
    if (!any)  // without regions, the given order is as good as any
      for (const NodeId id : nodes) out_.add(id);
    else
      for (const ElementUnit& unit : units_) out_.add(phase, unit);
  }

  // ---- waiting members

  void take(NodeId id) {
    place(id);
    taken_[id] = true;
    for (const NodeId state : std::exchange(blocks_[id], {})) due_.insert(state);
  }
  void place(NodeId id) {
    if (const ir::Region* region = facts_.region_of(id)) {
      if (id != region->first()) return;
      ChainNodes nodes;
      for (NodeId inside = id; inside < region->last; ++inside) nodes.items.push_back({inside});
      if (std::ranges::any_of(nodes.items, [&](const ChainItem& item) { return needs_waiting(item.node); })) flush();
      units_.push_back({{std::move(nodes)}});
    } else if (!members_.stored[id]) {
      return;  // computed where it is read
    } else if (const NodeId source = facts_.source_of(id); source != kNoNode && waits_[source]) {
      attached_[source].push_back(id);
    } else if (members_.in_chain[id]) {
      waits_[id] = true;
      waiting_.push_back(id);
      if (facts_.writes_state(id)) writes_wait_.insert(facts_.state_of(id));
      for (const NodeId read : facts_.reads(id)) {
        reads_wait_.insert(read);
        for (const NodeId number : members_.numbers[read])
          for (const NodeId leaf : facts_.reads(number)) reads_wait_.insert(leaf);
      }
    } else {
      if (needs_waiting(id)) flush();
      units_.push_back({{ChainNodes{{{id}}, {}, {}, 1}}});
    }
  }

  bool needs_waiting(NodeId id) const {
    const bool rows = facts_.has_rows(id) || reads_rows(graph_, graph_[id]);
    if (rows && row_count_ != kNoNode && waits_[row_count_]) return true;
    if (facts_.writes_state(id) && reads_wait_.count(facts_.state_of(id)) > 0) return true;
    const std::vector<NodeId> from = facts_.reads(id);
    return std::ranges::any_of(from, [&](NodeId read) { return waits_[read] || writes_wait_.count(read) > 0; });
  }

  // `later` must run after `earlier`: in the same chain (apart = 0) or in a later region (apart = 1).
  struct Edge {
    std::size_t earlier, later;
    std::uint32_t apart;
  };

  // Takes later steps now if they depend only on steps that have run or wait and can share a region: elementwise
  // readers of a waiting value, and a state's new value when no other reader of the old one is left. A blocked state is
  // checked again when its blocker is taken.
  void take_along() {
    for (std::size_t i = 0; i < waiting_.size(); ++i) take_readers(waiting_[i], waiting_[i]);
    std::vector<NodeId> after_this;  // states with a reader that waits in another chain
    bool grew = false;
    for (auto at = due_.begin(); !due_.empty();) {
      const NodeId state = *at, writer = writer_[state];
      due_.erase(at);
      std::vector<NodeId> steps;
      if (taken_[writer]) {
      } else if (!gather(writer, steps)) {
        blocks_[blocker_[writer]].push_back(state);
      } else if (const NodeId reader = other_reader(writer, state); reader == kNoNode) {
        for (const NodeId id : steps) take(id);
        grew = true;
      } else if (taken_[reader]) {
        after_this.push_back(state);
      } else {
        blocks_[reader].push_back(state);
      }
      at = due_.upper_bound(state);
      if (at == due_.end() && std::exchange(grew, false)) at = due_.begin();
      if (at == due_.end()) break;
    }
    due_.insert(after_this.begin(), after_this.end());
  }
  void take_readers(NodeId shown, NodeId value) {
    for (const NodeId reader : facts_.analysis.consumers[shown]) {
      if (facts_.region_of(reader) != nullptr) continue;
      if (facts_.analysis.is_view(reader)) {
        if (!taken_[reader]) take(reader);
        take_readers(reader, value);
      } else if (std::vector<NodeId> steps; !taken_[reader] && members_.stored[reader] &&
                                            !facts_.writes_state(reader) && alike(reader, value) &&
                                            gather(reader, steps)) {
        for (const NodeId id : steps) take(id);
      }
    }
  }
  bool alike(NodeId a, NodeId b) const {
    return facts_.count(a) == facts_.count(b) && facts_.has_rows(a) == facts_.has_rows(b);
  }
  // Adds the missing steps, each after its operands, and the node itself: all may be in one chain. Returns false if a
  // step cannot be in the chain, or not yet: it reads a step that cannot run yet, or a state that another step writes
  // before. That step must be taken first: it becomes the blocker of the node and of the nodes between them that go
  // into the same chains as the node.
  bool gather(NodeId wanted, std::vector<NodeId>& steps) {
    struct Visit {
      NodeId id;
      std::size_t input;
    };
    std::vector<Visit> path;
    ++round_;
    for (NodeId next = wanted;;) {
      NodeId blocker = kNoNode;
      if (blocker_[next] != kNoNode && !taken_[blocker_[next]])
        blocker = blocker_[next];
      else if (!may_follow(next, wanted))
        blocker = next;
      if (blocker != kNoNode) {
        blocker_[wanted] = blocker;
        for (const Visit& visit : path)
          if (members_.stored[visit.id] && members_.in_chain[visit.id]) blocker_[visit.id] = blocker;
        return false;
      }
      gathered_[next] = round_;
      path.push_back({next, 0});
      for (next = kNoNode; next == kNoNode;) {  // next missing input of the last node that has one
        Visit& visit = path.back();
        if (visit.input < graph_[visit.id].inputs.size()) {
          const NodeId input = graph_[visit.id].inputs[visit.input++];
          if (graph_[input].phase != kShared && !taken_[input] && gathered_[input] != round_) next = input;
          continue;
        }
        if (members_.stored[visit.id]) steps.push_back(visit.id);
        path.pop_back();
        if (path.empty()) return true;
      }
    }
  }
  bool may_follow(NodeId id, NodeId wanted) const {
    if (facts_.region_of(id) != nullptr) return false;
    if (members_.stored[id] && facts_.source_of(id) == kNoNode && !(members_.in_chain[id] && alike(id, wanted)))
      return false;
    return std::ranges::all_of(graph_[id].inputs, [&](NodeId input) {
      const NodeId writer = writer_[facts_.analysis.roots[input]];
      return writer == kNoNode || writer >= id;
    });
  }
  // Returns the last reader of the state that has not run and does not wait in a chain that the writer can join, except
  // those gathered last; kNoNode if there is none. Readers of a waiting scalar count, as they may recompute it.
  NodeId other_reader(NodeId writer, NodeId state) const {
    const std::vector<NodeId>& readers = facts_.analysis.consumers[state];
    for (auto at = readers.rbegin(); at != readers.rend(); ++at) {
      const NodeId reader = *at;
      if (graph_[reader].phase != graph_[writer].phase) continue;
      const bool seen_through = facts_.analysis.is_view(reader) || !members_.stored[reader];
      if (seen_through || (members_.is_number(reader) && (waits_[reader] || !taken_[reader]))) {
        if (const NodeId other = other_reader(writer, reader); other != kNoNode) return other;
      }
      if (seen_through) continue;
      if (gathered_[reader] != round_ && !(taken_[reader] && (!waits_[reader] || alike(reader, writer)))) return reader;
    }
    return kNoNode;
  }

  // Runs all waiting steps in as few successive regions as their order allows, each step in the last possible one.
  void flush() {
    take_along();
    const std::vector<Edge> edges = edges_of_waiting();
    std::vector<std::uint32_t> height(waiting_.size(), 0);  // number of regions after it
    std::vector<std::size_t> chain(waiting_.size());
    std::iota(chain.begin(), chain.end(), std::size_t{0});
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge)  // in descending order of `later`
      height[edge->earlier] = std::max(height[edge->earlier], height[edge->later] + edge->apart);
    const auto root = [&](std::size_t i) {
      while (chain[i] != i) i = chain[i] = chain[chain[i]];
      return i;
    };
    for (const Edge& edge : edges) {
      if (edge.apart > 0 || height[edge.earlier] != height[edge.later]) continue;
      const std::size_t a = root(edge.earlier), b = root(edge.later);
      chain[std::max(a, b)] = std::min(a, b);
    }
    std::map<std::pair<std::uint32_t, std::size_t>, std::vector<NodeId>> chains;  // key: height and first member
    for (std::size_t i = 0; i < waiting_.size(); ++i) chains[{height[i], root(i)}].push_back(waiting_[i]);
    std::map<std::uint32_t, std::vector<std::vector<ChainNodes>>, std::greater<>> levels;
    for (const auto& [key, members] : chains) {
      std::vector<std::vector<ChainNodes>>& rounds = levels[key.first];
      std::vector<ChainNodes> pieces = cut(members);
      if (rounds.size() < pieces.size()) rounds.resize(pieces.size());
      for (std::size_t i = 0; i < pieces.size(); ++i) rounds[i].push_back(std::move(pieces[i]));
    }
    for (auto& [level, rounds] : levels)
      for (std::vector<ChainNodes>& round : rounds) share_regions(std::move(round));
    for (const NodeId id : waiting_) {
      waits_[id] = false;
      attached_[id].clear();
    }
    waiting_.clear();
    writes_wait_.clear();
    reads_wait_.clear();
  }

  std::vector<Edge> edges_of_waiting() const {
    std::vector<Edge> edges;
    std::map<NodeId, std::size_t> at, writer;            // keyed by node; by state
    std::map<NodeId, std::vector<std::size_t>> readers;  // keyed by state
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const NodeId id = waiting_[i];
      const auto follows = [&](std::size_t earlier, bool may_share) {
        const NodeId other = waiting_[earlier];
        const bool same =
            may_share && facts_.count(other) == facts_.count(id) && facts_.has_rows(other) == facts_.has_rows(id);
        if (earlier != i) edges.push_back({earlier, i, same ? 0u : 1u});
      };
      const auto sees = [&](NodeId read) {
        if (const auto found = at.find(read); found != at.end()) follows(found->second, !facts_.writes_state(read));
        if (const auto found = writer.find(read); found != writer.end()) follows(found->second, false);
        if (graph_[read].phase == kShared) readers[read].push_back(i);
      };
      for (const NodeId read : facts_.reads(id)) {
        if (!is_copied(id, read))
          sees(read);
        else
          for (const NodeId number : members_.numbers[read])
            for (const NodeId leaf : facts_.reads(number))
              if (!members_.is_number(leaf)) sees(leaf);
      }
      if (facts_.has_rows(id) && row_count_ != kNoNode && at.count(row_count_) > 0) follows(at.at(row_count_), false);
      if (facts_.writes_state(id)) {
        for (const std::size_t reader : readers[facts_.state_of(id)])
          follows(reader, reads_alike(waiting_[reader], facts_.state_of(id)));
        writer[facts_.state_of(id)] = i;
      }
      at[id] = i;
    }
    return edges;
  }
  // Whether the node reads one element of the state for each of its own.
  bool reads_alike(NodeId id, NodeId state) const { return facts_.count(id) == graph_[state].type.shape.elements(); }
  // Whether the reader's chain has its own copy of the scalar.
  bool is_copied(NodeId reader, NodeId number) const {
    return members_.is_number(number) && (!members_.stored[number] || (waits_[number] && facts_.count(reader) > 1));
  }

  // ---- chains within the limits, and their regions

  std::vector<ChainNodes> cut(const std::vector<NodeId>& members) const {
    std::vector<ChainNodes> pieces(1);
    const std::set<NodeId> whole(members.begin(), members.end());
    std::set<NodeId> inside;
    for (const NodeId id : members) {
      std::vector<NodeId> numbers, operands;
      const auto add = [&](const ChainNodes& piece) {
        numbers.clear(), operands.clear();
        for (const NodeId read : facts_.reads(id)) {
          if (is_copied(id, read))
            copy(read, piece, inside, numbers, operands);
          else if (inside.count(read) == 0)
            operands.push_back(read);
        }
        if (facts_.writes_state(id))
          operands.push_back(facts_.state_of(id));
        else if (leaves(id, whole))
          operands.push_back(id);
      };
      add(pieces.back());
      if (pieces.back().steps > 0 && (pieces.back().steps + numbers.size() + 1 > limits_.steps ||
                                      pieces.back().operands.size() + operands.size() > limits_.operands)) {
        pieces.emplace_back();
        inside.clear();
        add(pieces.back());
      }
      ChainNodes& piece = pieces.back();
      for (const NodeId number : numbers) {
        if (!piece.copies.insert(number).second) continue;
        piece.items.push_back({number, true});
        ++piece.steps;
      }
      piece.operands.insert(operands.begin(), operands.end());
      piece.items.push_back({id});
      ++piece.steps;
      for (const NodeId attached : attached_[id]) piece.items.push_back({attached});
      inside.insert(id);
    }
    return pieces;
  }
  // Appends the scalar and, before it, the scalars that it needs, unless the chain has them; also their operands in
  // memory. A scalar that has run is read from memory: its state may have its new value by then (other_reader).
  void copy(NodeId number, const ChainNodes& chain, const std::set<NodeId>& inside, std::vector<NodeId>& numbers,
            std::vector<NodeId>& operands) const {
    if (chain.copies.count(number) > 0 || inside.count(number) > 0) return;
    if (std::ranges::find(numbers, number) != numbers.end()) return;
    for (const NodeId read : facts_.reads(number)) {
      if (members_.is_number(read) && (!members_.stored[read] || waits_[read]))
        copy(read, chain, inside, numbers, operands);
      else
        operands.push_back(read);
    }
    numbers.push_back(number);
  }
  bool leaves(NodeId id, const std::set<NodeId>& chain) const {
    const std::vector<NodeId>& readers = facts_.analysis.consumers[id];
    return graph_[id].keep || graph_[id].poll ||
           !std::ranges::all_of(readers, [&](NodeId reader) { return chain.count(reader) > 0; });
  }

  // Chains of a level in as few regions as the limits allow. With shards, one over a large value is a region of its
  // own, the last values first, whose gradients are complete first: an optimizer then starts while the gradients of
  // other parameters are on their way between ranks.
  void share_regions(std::vector<ChainNodes> chains) {
    constexpr std::int64_t kLarge = 4 << 20;  // smaller ones take less time than a launch saves
    const auto alone = [&](const ChainNodes& chain) {
      const NodeId last = chain.items.back().node;
      return limits_.chains > 1 && graph_.phases[graph_[last].phase].shards > 1 && facts_.count(last) >= kLarge;
    };
    std::reverse(chains.begin(), std::stable_partition(chains.begin(), chains.end(), alone));
    ElementUnit unit;
    std::size_t operands = 0, steps = 0;
    const auto close = [&] {
      unit.is_region = steps > 1 && accepted(unit.chains);
      if (!unit.chains.empty()) units_.push_back(std::exchange(unit, {}));
      operands = steps = 0;
    };
    for (ChainNodes& chain : chains) {
      const std::size_t limit = !unit.chains.empty() && alone(unit.chains.back()) ? 1 : limits_.chains;
      if (unit.chains.size() >= limit || operands + chain.operands.size() > limits_.operands) close();
      operands += chain.operands.size();
      steps += chain.steps;
      unit.chains.push_back(std::move(chain));
    }
    close();
  }

  bool accepted(const std::vector<ChainNodes>& chains) const {
    RegionQuestion question(graph_, facts_.analysis, graph_[chains.front().items.front().node].phase);
    for (const ChainNodes& chain : chains) {
      std::vector<NodeId> steps;
      for (const ChainItem& item : chain.items)
        if (facts_.source_of(item.node) == kNoNode) steps.push_back(item.node);
      question.add_chain(steps);
    }
    return question.ask(options_.plan).yes;
  }

  const Graph& graph_;
  const RegionOptions& options_;
  const ElementLimits& limits_;
  const ElementFacts facts_;
  const ElementMembers members_;
  std::vector<NodeId> waiting_;
  std::vector<bool> waits_, taken_;          // taken: waiting, or placed in the order
  std::vector<NodeId> writer_;               // per state: the first node that writes it in this phase
  std::set<NodeId> due_;                     // states whose writers may be taken now
  std::vector<NodeId> blocker_;              // per node: must be taken before it can be gathered
  std::vector<std::vector<NodeId>> blocks_;  // per node: states that are due when it is taken
  std::vector<std::uint32_t> gathered_;      // per node: last round of gather() that reached it
  std::uint32_t round_ = 0;
  std::set<NodeId> reads_wait_, writes_wait_;  // values with a waiting reader; states with a waiting writer
  std::vector<std::vector<NodeId>> attached_;  // per waiting node: views and assigns placed with it
  NodeId row_count_ = kNoNode;                 // current phase
  std::vector<ElementUnit> units_;             // current phase
  ElementWriter out_;
};

}  // namespace

Rewritten fuse_elements(const Graph& graph, const RegionOptions& options, const ElementLimits& limits) {
  return Elements(graph, options, limits).run();
}

}  // namespace graphrun
