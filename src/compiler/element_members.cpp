#include "compiler/element_members.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/ops/op_def.h"

namespace graphrun {

using ir::kNoNode;
using ir::kShared;
using ir::Node;
using ir::NodeId;

std::vector<NodeId> ElementFacts::reads(NodeId id) const {
  std::vector<NodeId> roots;
  for (std::size_t i = writes_state(id) ? 1 : 0; i < graph[id].inputs.size(); ++i)
    roots.push_back(analysis.roots[graph[id].inputs[i]]);
  return roots;
}

NodeId ElementFacts::source_of(NodeId id) const {
  if (analysis.is_view(id)) return analysis.roots[id];
  if (!graph[id].def->effect) return kNoNode;
  const NodeId value = analysis.roots[graph[id].inputs[1]];
  return writes_state(value) ? value : kNoNode;
}

namespace {

class MemberFinder {
 public:
  MemberFinder(const ElementFacts& facts, const RegionOptions& options, const ElementLimits& limits)
      : facts_(facts), options_(options), limits_(limits), may_be_number_(facts.graph.size(), false) {
    members_.in_chain.assign(facts.graph.size(), false);
    members_.numbers.resize(facts.graph.size());
    members_.stored.assign(facts.graph.size(), true);
  }

  ElementMembers run() {
    for (NodeId id = 0; id < facts_.graph.size(); ++id) {
      if (facts_.graph[id].phase != kShared && facts_.region_of(id) == nullptr) find_member(id);
    }
    find_numbers();
    find_stored();
    return std::move(members_);
  }

 private:
  void find_member(NodeId id) {
    if (!is_elementwise(facts_.graph[id].op) || facts_.source_of(id) != kNoNode || facts_.count(id) == 0) return;
    const bool large = facts_.count(id) >= limits_.least;
    const bool number = limits_.numbers > 0 && is_number(id);
    if (!large && !number) return;
    RegionQuestion question(facts_.graph, facts_.graph[id].phase);
    question.add_chain({&id, 1});
    if (!question.ask(options_.plan).yes) return;
    members_.in_chain[id] = large;
    may_be_number_[id] = number;
  }

  // A single element that is a function of other values.
  bool is_number(NodeId id) const {
    return facts_.count(id) == 1 && !facts_.has_rows(id) && !facts_.writes_state(id) &&
           facts_.graph[id].def->rows != RowRule::scalar;
  }

  // Finds the scalars for which no state that they depend on is written before their last reader.
  void find_numbers() {
    using At = std::pair<std::uint32_t, NodeId>;  // phase and node
    std::map<At, NodeId> written;                 // writer, by phase and state
    std::map<NodeId, NodeId> last_reader;         // keyed by scalar: last reader, directly or through other scalars
    for (NodeId id = facts_.graph.size(); id-- > 0;) {
      if (facts_.writes_state(id)) written[{facts_.graph[id].phase, facts_.state_of(id)}] = id;
      const auto own = last_reader.find(id);
      const NodeId last = may_be_number_[id] && own != last_reader.end() ? own->second : id;
      for (const NodeId read : facts_.reads(id)) last_reader[read] = std::max(last_reader[read], last);
    }
    for (NodeId id = 0; id < facts_.graph.size(); ++id) {
      if (!may_be_number_[id]) continue;
      std::set<NodeId> all{id};
      bool can = true;
      for (const NodeId read : facts_.reads(id)) {
        const auto writer = written.find({facts_.graph[id].phase, read});
        can = can && (writer == written.end() || writer->second < id || last_reader[id] <= writer->second);
        all.insert(members_.numbers[read].begin(), members_.numbers[read].end());
      }
      if (can && all.size() <= limits_.numbers) members_.numbers[id].assign(all.begin(), all.end());
    }
  }

  void find_stored() {
    std::set<NodeId> row_counts;
    for (const ir::Phase& phase : facts_.graph.phases) row_counts.insert(phase.row_count);
    for (NodeId id = facts_.graph.size(); id-- > 0;) {
      const Node& node = facts_.graph[id];
      const std::vector<NodeId>& readers = facts_.analysis.consumers[id];
      const bool number = members_.is_number(facts_.analysis.roots[id]);  // or a view of one
      members_.stored[id] = !number || node.keep || node.poll || row_counts.count(id) > 0 || readers.empty() ||
                            !std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
                              return members_.in_chain[reader] || !members_.stored[reader];
                            });
    }
    for (NodeId id = 0; id < facts_.graph.size(); ++id)
      if (facts_.analysis.is_view(id)) members_.stored[id] = members_.stored[facts_.analysis.roots[id]];
  }

  const ElementFacts& facts_;
  const RegionOptions& options_;
  const ElementLimits& limits_;
  std::vector<bool> may_be_number_;
  ElementMembers members_;
};

}  // namespace

ElementMembers find_element_members(const ElementFacts& facts, const RegionOptions& options,
                                    const ElementLimits& limits) {
  return MemberFinder(facts, options, limits).run();
}

}  // namespace graphrun
