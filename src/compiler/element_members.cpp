#include "compiler/element_members.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/ops/op_def.h"

namespace graphrun {

using ir::kNoNode, ir::kShared, ir::Node, ir::NodeId;

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

// A single element that is a function of other values.
bool is_function_of_values(const ElementFacts& facts, NodeId id) {
  return facts.count(id) == 1 && !facts.has_rows(id) && !facts.writes_state(id) &&
         facts.graph[id].def->rows != RowRule::scalar;
}

// Finds the scalars for which no state that they depend on is written before their last reader.
void find_numbers(const ElementFacts& facts, const std::vector<bool>& may_be_number, std::size_t max,
                  ElementMembers& members) {
  using At = std::pair<std::uint32_t, NodeId>;  // phase and node
  std::map<At, NodeId> written;                 // writer, by phase and state
  std::map<NodeId, NodeId> last_reader;         // keyed by scalar: last reader, directly or through other scalars
  for (NodeId id = facts.graph.size(); id-- > 0;) {
    if (facts.writes_state(id)) written[{facts.graph[id].phase, facts.state_of(id)}] = id;
    const auto own = last_reader.find(id);
    const NodeId last = may_be_number[id] && own != last_reader.end() ? own->second : id;
    for (const NodeId read : facts.reads(id)) last_reader[read] = std::max(last_reader[read], last);
  }
  for (NodeId id = 0; id < facts.graph.size(); ++id) {
    if (!may_be_number[id]) continue;
    std::set<NodeId> all{id};
    bool can = true;
    for (const NodeId read : facts.reads(id)) {
      const auto writer = written.find({facts.graph[id].phase, read});
      can = can && (writer == written.end() || writer->second < id || last_reader[id] <= writer->second);
      all.insert(members.numbers[read].begin(), members.numbers[read].end());
    }
    if (can && all.size() <= max) members.numbers[id].assign(all.begin(), all.end());
  }
}

void find_stored(const ElementFacts& facts, ElementMembers& members) {
  std::set<NodeId> row_counts;
  for (const ir::Phase& phase : facts.graph.phases) row_counts.insert(phase.row_count);
  for (NodeId id = facts.graph.size(); id-- > 0;) {
    const Node& node = facts.graph[id];
    const std::vector<NodeId>& readers = facts.analysis.consumers[id];
    const bool number = members.is_number(facts.analysis.roots[id]);  // or a view of one
    members.stored[id] = !number || node.keep || node.poll || row_counts.count(id) > 0 || readers.empty() ||
                         !std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
                           return members.in_chain[reader] || !members.stored[reader];
                         });
  }
  for (NodeId id = 0; id < facts.graph.size(); ++id)
    if (facts.analysis.is_view(id)) members.stored[id] = members.stored[facts.analysis.roots[id]];
}

}  // namespace

ElementMembers find_element_members(const ElementFacts& facts, const RegionOptions& options,
                                    const ElementLimits& limits) {
  const ir::Graph& graph = facts.graph;
  ElementMembers members{std::vector<bool>(graph.size(), false), std::vector<std::vector<NodeId>>(graph.size()),
                         std::vector<bool>(graph.size(), true)};
  std::vector<bool> may_be_number(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].phase == kShared || facts.region_of(id) != nullptr || !is_elementwise(graph[id].op) ||
        facts.source_of(id) != kNoNode || facts.count(id) == 0)
      continue;
    const bool large = facts.count(id) >= limits.least;
    const bool number = limits.numbers > 0 && is_function_of_values(facts, id);
    if (!large && !number) continue;
    RegionQuestion question(graph, facts.analysis, graph[id].phase);
    question.add_chain({&id, 1});
    if (!question.ask(options.plan).yes) continue;
    members.in_chain[id] = large;
    may_be_number[id] = number;
  }
  find_numbers(facts, may_be_number, limits.numbers, members);
  find_stored(facts, members);
  return members;
}

}  // namespace graphrun
