#include "compiler/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <variant>

#include "graph/ops/op_def.h"
#include "graphrun/op.h"
#include "graphrun/program.h"

namespace graphrun {
namespace {

using ir::Graph, ir::kNoNode, ir::kShared, ir::Node, ir::NodeId;

// Position at which a node runs. Positions are ordered; within a level, stage s has its once-nodes at 2s and its row
// nodes at 2s + 1; cuts come after them.
struct Place {
  std::uint32_t level = 0;
  std::uint32_t at = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};
constexpr std::uint32_t kCombined = std::numeric_limits<std::uint32_t>::max(), kCut = kCombined - 1;

class RegionFinder {
 public:
  RegionFinder(const Graph& graph, const RegionOptions& options)
      : graph_(graph), options_(options), kinds_(row_kinds(graph)), analysis_(analyze(graph)) {
    const std::size_t n = graph.size();
    cut_.assign(n, false);
    waits_.resize(n);
    place_.resize(n);
  }

  Regions run() {
    order_ = nodes_of(graph_, kShared);
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) order_phase(phase);
    Rewritten ordered = reordered(graph_, order_);
    ordered.graph.regions = std::move(result_.graph.regions);
    result_.graph = std::move(ordered.graph);
    result_.ids = std::move(ordered.ids);
    return std::move(result_);
  }

 private:
  bool is_view(NodeId id) const { return analysis_.is_view(id); }
  // Whether the node runs over rows if it is in a region.
  bool over_rows(NodeId id) const { return kinds_[id] == RowKind::row || kinds_[id] == RowKind::reduced; }
  void note(NodeId id, std::string text) {
    result_.notes.push_back({graph_[id].phase, graph_[id].name, std::move(text)});
  }

  void order_phase(std::uint32_t phase) {
    const std::vector<NodeId> nodes = nodes_of(graph_, phase);
    const std::size_t start = order_.size();
    order_.insert(order_.end(), nodes.begin(), nodes.end());
    if (nodes.empty() || graph_.phases[phase].capacity == 0) return;
    find_cuts(nodes);
    find_waits(phase, nodes);
    const std::size_t before = result_.graph.regions.size();
    std::size_t notes = result_.notes.size();
    lost_sums_ = combines_last_ = false;
    make_regions(phase, nodes, start);
    while (!left_out_.empty()) {
      result_.graph.regions.resize(before);
      result_.notes.resize(notes++);
      note(left_out_.back(), std::exchange(why_left_out_, {}));
      for (const NodeId id : std::exchange(left_out_, {})) cut_[id] = true;
      spread_cuts(nodes);
      make_regions(phase, nodes, start);
    }
    if (result_.graph.regions.size() != before) return;
    // Without regions, the given order is as good as any, but few messages between shards are better than many.
    std::copy(nodes.begin(), nodes.end(), order_.begin() + static_cast<std::ptrdiff_t>(start));
    if (graph_.phases[phase].shards == 1) {
      if (options_.early_reductions) reduce_early(nodes, start);
      return;
    }
    combines_last_ = true;
    find_places(phase, nodes);
    std::ranges::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(start), order_.end(), {},
                             [&](NodeId id) { return place_[id]; });
  }

  // Moves reductions, and the elementwise steps that only lead to them, up to their operands: the gradient of a pooling
  // then waits for the gradient of its result only, and not for the places of the maxima.
  void reduce_early(const std::vector<NodeId>& nodes, std::size_t start) {
    std::vector<bool> moves(graph_.size(), false);
    std::vector<NodeId> after(graph_.size());  // the node moves up to this one
    std::iota(after.begin(), after.end(), NodeId{0});
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      const Node& node = graph_[*id];
      const std::vector<NodeId>& readers = analysis_.consumers[*id];
      const bool leads = (is_view(*id) || is_elementwise(node.op)) && !node.def->effect;
      moves[*id] = node.def->rows == RowRule::reduction ||
                   (leads && std::ranges::any_of(readers, [&](NodeId reader) { return moves[reader]; }));
    }
    for (const NodeId id : nodes) {
      if (!moves[id]) continue;
      after[id] = 0;
      for (const NodeId input : graph_[id].inputs)
        if (graph_[input].phase != kShared) after[id] = std::max(after[id], after[input]);
      for (const NodeId before : waits_[id]) after[id] = std::max(after[id], after[before]);
    }
    std::ranges::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(start), order_.end(), {},
                             [&](NodeId id) { return after[id]; });
  }

  // ---- rule 1: cuts

  void find_cuts(const std::vector<NodeId>& nodes) {
    std::string last;
    for (NodeId id : nodes) {
      cut_[id] = graph_[id].op == Op::combine_shards;  // between the members of a batch
      if (is_view(id) || kinds_[id] == RowKind::shared) continue;
      std::string reason;
      if (kinds_[id] == RowKind::opaque) {
        reason = fmt::format("'{}' cannot compute it row by row", name_of(graph_[id].op));
      } else {
        RegionQuestion question(graph_, analysis_, graph_[id].phase);
        question.add(id, 0);
        reason = question.ask(options_.plan).reason;
      }
      cut_[id] = !reason.empty();
      if (cut_[id] && reason != last) note(id, "a cut: " + reason);  // a sequence of equal reasons gets one note
      last = std::move(reason);
    }
    spread_cuts(nodes);
  }

  void spread_cuts(const std::vector<NodeId>& nodes) {
    const std::vector<bool> is_read_by_cut = read_by_cuts(nodes);
    for (NodeId id : nodes) {
      if (is_view(id) || graph_[id].def->rows != RowRule::select || cut_[id] || !is_read_by_cut[id]) continue;
      cut_[id] = true;
      note(id, "a cut: an op that is not fused reads its rows");
    }
    for (NodeId id : nodes) {
      if (is_view(id)) cut_[id] = cut_[graph_[id].inputs[0]];
    }
  }

  // Whether a cut reads the node or a view of it, by node.
  std::vector<bool> read_by_cuts(const std::vector<NodeId>& nodes) const {
    std::vector<bool> read(graph_.size(), false);
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      read[*id] = std::ranges::any_of(analysis_.consumers[*id],
                                      [&](NodeId reader) { return is_view(reader) ? read[reader] : cut_[reader]; });
    }
    return read;
  }

  // ---- order of states: an assign comes after the readers of the old value

  void find_waits(std::uint32_t phase, const std::vector<NodeId>& nodes) {
    std::vector<std::vector<NodeId>> readers(graph_.size());
    std::vector<NodeId> assigned(graph_.size(), kNoNode);
    for (NodeId id : nodes) {
      const bool assigns = graph_[id].def->effect;
      for (std::size_t i = assigns ? 1 : 0; i < graph_[id].inputs.size(); ++i) {
        const NodeId read = analysis_.roots[graph_[id].inputs[i]];
        readers[read].push_back(id);
        if (assigned[read] != kNoNode) waits_[id].push_back(assigned[read]);
      }
      if (!assigns) continue;
      waits_[id] = readers[graph_[id].inputs[0]];
      assigned[graph_[id].inputs[0]] = id;
    }
    const NodeId count = graph_.phases[phase].row_count;
    for (NodeId id : nodes) {
      if (count < id && graph_[count].phase == phase && !is_view(id) && kinds_[id] != RowKind::shared) {
        waits_[id].push_back(count);
      }
    }
  }

  // ---- rules 2 and 3: places

  // First place at which a node of the given kind (over rows, a cut) can read the value of `id`.
  Place available(NodeId id, bool to_rows, bool to_cut) const {
    const Place from = place_[id];
    if (from.at == kCombined) return {from.level + 1, to_cut ? kCut : 0};
    if (to_cut) return {from.level, kCut};
    if (from.at == kCut) return {from.level + 1, 0};
    if (kinds_[id] == RowKind::reduced) return {from.level, from.at + 1};
    if (!to_rows && from.at % 2 != 0) return {from.level, from.at + 1};  // after the rows of that stage
    return from;
  }

  void find_places(std::uint32_t phase, const std::vector<NodeId>& nodes) {
    std::vector<bool> needed(graph_.size(), false);  // needed by rows or cuts, directly or indirectly
    if (graph_.phases[phase].row_count != kNoNode) needed[graph_.phases[phase].row_count] = true;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const NodeId id = nodes[i];
      if (cut_[id]) needed[id] = true;
      if (!needed[id] && kinds_[id] == RowKind::shared) continue;
      for (NodeId input : graph_[id].inputs) needed[input] = true;
      for (NodeId before : waits_[id]) needed[before] = true;
    }
    Place end;
    for (NodeId id : nodes) {
      if (kinds_[id] == RowKind::shared && !needed[id]) continue;
      place_[id] = earliest(id);
      const Place after =
          place_[id].at >= kCut ? Place{place_[id].level + 1, 0} : Place{place_[id].level, (place_[id].at + 1) / 2 * 2};
      end = std::max(end, after);
    }
    for (NodeId id : nodes) {
      if (kinds_[id] == RowKind::shared && !needed[id]) place_[id] = end;
    }
    generated_.assign(graph_.size(), false);
    for (NodeId id : nodes) {
      const std::vector<NodeId>& inputs = graph_[id].inputs;
      generated_[id] = kinds_[id] == RowKind::row && !cut_[id] && std::ranges::all_of(inputs, [&](NodeId input) {
                         return generated_[input] || graph_[input].phase == kShared || place_[input] == Place{};
                       });
    }
    for (std::size_t i = nodes.size(); i-- > 0;) delay_generated(nodes[i]);
  }

  // Rows without row operands (a minibatch, random numbers), and values made only from them, are computed where they
  // are read, if that is one place: then they are not stored in the arena.
  void delay_generated(NodeId id) {
    if (!generated_[id] || cut_[id] || graph_[id].keep || analysis_.consumers[id].empty()) return;
    const Place place = place_[analysis_.consumers[id].front()];
    if (place < place_[id] || place.at >= kCut || place.at % 2 == 0) return;
    for (NodeId reader : analysis_.consumers[id]) {
      if (place_[reader] != place) return;
    }
    place_[id] = place;
  }

  Place earliest(NodeId id) const {
    const bool rows = over_rows(id) && !cut_[id];
    Place place;
    const auto after = [&](NodeId before) {
      if (graph_[before].phase != kShared) place = std::max(place, available(before, rows, cut_[id]));
    };
    for (NodeId input : graph_[id].inputs) after(input);
    for (NodeId before : waits_[id]) after(before);
    if (cut_[id]) return {place.level, combines_last_ && graph_[id].op == Op::combine_shards ? kCombined : kCut};
    if (rows != (place.at % 2 != 0)) ++place.at;
    return place;
  }

  // ---- rules 4 and 5: regions

  void make_regions(std::uint32_t phase, const std::vector<NodeId>& nodes, std::size_t start) {
    find_places(phase, nodes);
    std::copy(nodes.begin(), nodes.end(), order_.begin() + static_cast<std::ptrdiff_t>(start));
    std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(start), order_.end(),
                     [&](NodeId a, NodeId b) { return place_[a] < place_[b]; });
    for (std::size_t i = start; i < order_.size();) {
      const std::uint32_t level = place_[order_[i]].level;
      std::size_t end = i;
      while (end < order_.size() && place_[order_[end]].level == level && place_[order_[end]].at != kCut) ++end;
      if (end > i) make_region(phase, i, end, i == start && end == order_.size());
      while (end < order_.size() && place_[order_[end]].level == level) ++end;
      i = end;
    }
  }

  // A region of the steps; if the executor rejects it, one without the epilogue, such as an optimizer. If it rejects
  // that, too, some sums may have to be left out.
  void make_region(std::uint32_t phase, std::size_t begin, std::size_t end, bool is_phase) {
    const RegionPlan whole = try_region(phase, begin, end, is_phase);
    if (whole.yes) return;
    const auto at = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::size_t rows_end = end;
    while (place_[order_[rows_end - 1]].at % 2 == 0) --rows_end;
    const RegionPlan rows = rows_end < end ? try_region(phase, begin, rows_end, false) : whole;
    if (rows.yes) {
      note(*at(rows_end), "not in the region of the rows before it: " + whole.reason);
    } else if (!leave_out_sums({at(begin), at(rows_end)}, rows)) {
      note(*std::find_if(at(begin), at(end), [&](NodeId id) { return !is_view(id) && place_[id].at % 2 != 0; }),
           "region dissolved: " + whole.reason);
    }
  }

  // Makes a region of the steps if it saves something. Returns the executor's answer.
  RegionPlan try_region(std::uint32_t phase, std::size_t begin, std::size_t end, bool is_phase) {
    ir::Region region;
    region.phase = phase;
    region.last = static_cast<NodeId>(end);
    RegionQuestion question(graph_, analysis_, phase);
    NodeId first_row = kNoNode;
    for (std::size_t i = begin; i < end;) {
      const std::uint32_t stage = place_[order_[i]].at / 2;
      ir::RegionStage out;
      out.first = static_cast<NodeId>(i);
      while (i < end && place_[order_[i]].at == 2 * stage) ++i;
      out.rows = static_cast<NodeId>(i);
      while (i < end && place_[order_[i]].at == 2 * stage + 1) ++i;
      out.last = static_cast<NodeId>(i);
      if (out.rows == out.last) break;  // the epilogue
      region.stages.push_back(out);
    }
    for (std::size_t i = begin; i < end; ++i) {
      const NodeId id = order_[i];
      if (is_view(id) || graph_[id].def->effect) continue;
      const bool rows = place_[id].at % 2 != 0;
      if (rows && first_row == kNoNode) first_row = id;
      question.add(id, region.stage_of(static_cast<NodeId>(i)));
    }
    if (first_row == kNoNode) return RegionPlan::with({});
    const RegionPlan plan = question.ask(options_.plan);
    if (!plan.yes) return plan;
    // Rows pass from stage to stage through the arena; a kernel that is a whole phase saves launches, which cost more.
    // Rows that left-out sums read also pass through the arena.
    const bool is_kernel = is_phase && region.stages.size() > 1 && std::holds_alternative<StepTiling>(plan.tiling);
    const bool saves = (!options_.only_if_it_saves && !lost_sums_) || is_kernel;
    if (std::string reason = saves ? "" : saves_nothing(region); !reason.empty()) {
      note(first_row, "no region: " + reason);
      return plan;
    }
    result_.graph.regions.push_back(std::move(region));
    return plan;
  }

  // Chooses sums without which a rejected region may be accepted: products that sum several rows of a sample, which an
  // executor may run alone and still reject with the steps around it; then the largest ones, if the executor asks for
  // fewer. Returns whether there are any.
  bool leave_out_sums(std::span<const NodeId> nodes, const RegionPlan& plan) {
    std::vector<NodeId> parts, largest;
    const auto size = [&](NodeId id) { return graph_[id].type.shape.elements(); };
    for (const NodeId id : nodes) {
      if (kinds_[id] != RowKind::reduced || is_view(id)) continue;
      if (graph_[id].op == Op::matmul && graph_[graph_[id].inputs[0]].type.rows > 1) parts.push_back(id);
      if (!largest.empty() && size(id) > size(largest.front())) largest.clear();
      if (largest.empty() || size(id) == size(largest.front())) largest.push_back(id);
    }
    const std::vector<NodeId>& sums = !parts.empty() ? parts : largest;
    if (sums.empty() || (parts.empty() && !plan.too_many_sums)) return false;
    lost_sums_ = lost_sums_ || parts.empty();
    left_out_.insert(left_out_.end(), sums.begin(), sums.end());
    why_left_out_ = parts.empty() ? "a cut, like other sums of its size: the region has too many for one kernel"
                                  : "a cut, like other sums of several rows of a sample: " + plan.reason;
    return true;
  }

  // A region pays off if the bytes that stay in its tiles exceed those that it loads and stores.
  std::string saves_nothing(const ir::Region& region) const {
    std::uint64_t stays = 0, moves = 0;
    for (const ir::RegionStage& stage : region.stages) {
      const std::span<const NodeId> rows(order_.begin() + stage.rows, order_.begin() + stage.last);
      const std::set<NodeId> inside(rows.begin(), rows.end());
      const std::set<NodeId> leaves = leaving(graph_, analysis_, rows);
      std::set<NodeId> loaded;
      for (const NodeId id : rows) {
        for (NodeId input : graph_[id].inputs) {
          const NodeId from = analysis_.roots[input];
          const bool is_load =
              graph_[input].type.rows > 0 && !inside.contains(from) && graph_[from].def->state == nullptr;
          if (is_load && loaded.insert(from).second && graph_[from].def->rows != RowRule::select)
            moves += graph_[from].type.bytes();
        }
        if (is_view(id) || kinds_[id] != RowKind::row) continue;
        (leaves.contains(id) ? moves : stays) += graph_[id].type.bytes();
      }
    }
    if (stays > moves) return {};
    return fmt::format("fusion would move {} bytes to keep {} out of memory", moves, stays);
  }

  const Graph& graph_;
  const RegionOptions& options_;
  std::vector<RowKind> kinds_;
  GraphAnalysis analysis_;
  std::vector<bool> cut_;
  std::vector<std::vector<NodeId>> waits_;
  std::vector<Place> place_;
  bool combines_last_ = false;    // in their level, in a phase without regions
  std::vector<bool> generated_;   // rows that depend on no stored rows
  std::vector<NodeId> left_out_;  // sums to leave out of the regions of a phase
  std::string why_left_out_;
  bool lost_sums_ = false;  // whether that concerned sums of one row of a sample
  std::vector<NodeId> order_;
  Regions result_;
};

}  // namespace

Regions find_regions(const Graph& graph, const RegionOptions& options) {
  return RegionFinder(graph, options).run();
}

std::string to_string(const Regions& regions) {
  const Graph& graph = regions.graph;
  const std::vector<RowKind> kinds = row_kinds(graph);
  std::vector<std::string> where(graph.size(), "-");
  const std::vector<RegionPlace> places = analyze(graph).places;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (places[id].region == kNoNode) continue;
    const bool over_rows = graph.regions[places[id].region].chains.empty();
    where[id] = fmt::format("region {} {}", places[id].region + 1,
                            places[id].stage != kNoNode ? "rows"
                            : over_rows                 ? "once"
                                                        : "elements");
  }
  std::string text;
  for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase) {
    text += fmt::format("phase {}\n", graph.phases[phase].name);
    std::size_t number = 0;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph[id].phase != phase) continue;
      text += fmt::format("  {:>4}  {:<8} {:<14} {:<36} {} {}\n", ++number, name_of(kinds[id]), where[id],
                          graph[id].name, name_of(graph[id].op), to_string(graph[id].type));
    }
    for (const RegionNote& note : regions.notes) {
      if (note.phase == phase) text += fmt::format("  {}: {}\n", note.node, note.text);
    }
  }
  return text;
}

}  // namespace graphrun
