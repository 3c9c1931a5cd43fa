#include "compiler/budget/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "base/checked.h"
#include "compiler/budget/orders.h"
#include "graphrun/op.h"
#include "graphrun/partial_results.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::NodeId;

constexpr std::uint64_t kMaxWork = 3'000'000;  // nodes of all evaluated graphs: a second or two
constexpr std::size_t kMaxTried = 16;          // recomputations per batch, of which the best is taken
constexpr int kMaxPackings = 6;

// A graph that differs from the given one only in the order and repetition of steps.
struct Draft {
  Graph graph;
  IdMap ids;                    // from the given graph
  std::vector<NodeId> origins;  // per node: its node in the given graph
  Layouts layouts;
  bool reordered = false;
};

class MemoryFitter {
 public:
  MemoryFitter(Plan plan, const CompileOptions& options)
      : options_(options),
        draft_{std::move(plan.graph), std::move(plan.ids), {}, std::move(plan.layouts)},
        plan_(std::move(plan)) {
    draft_.origins.resize(draft_.graph.size());
    std::iota(draft_.origins.begin(), draft_.origins.end(), NodeId{0});
  }

  // The bytes that packing adds to the live bytes are subtracted from the target of the next attempt.
  Plan run() {
    const std::uint64_t limit = options_.max_memory - std::min(options_.max_memory, plan_.state_bytes);
    std::uint64_t target = limit;
    std::optional<std::pair<Draft, Arena>> smallest;
    for (int i = 0; i < kMaxPackings; ++i) {
      const std::uint64_t excess_left = lower_peaks(target);
      for (const bool shares : {false, true}) {
        if (shares && plan_.apart == 0) continue;
        Arena arena = pack_arena(draft_.graph, draft_.layouts, given_for(target), shares ? 0 : plan_.apart);
        if (smallest && arena.packing.height >= smallest->second.packing.height) continue;
        smallest.emplace(draft_, std::move(arena));
        plan_.budget.shares_all = shares;
        if (smallest->second.packing.height <= limit) break;
      }
      const std::uint64_t total = smallest->second.packing.height;
      if (total <= limit || excess_left > 0) break;
      target -= std::min(target, total - limit);
    }
    draft_ = std::move(smallest->first);
    plan_.arena = std::move(smallest->second);
    name_and_list();
    plan_.graph = std::move(draft_.graph);
    plan_.ids = std::move(draft_.ids);
    plan_.layouts = std::move(draft_.layouts);
    return std::move(plan_);
  }

 private:
  // ---- bytes of the draft

  const Support& support_of(const Draft& draft, NodeId step) const {
    return plan_.supports[draft.origins[step]].value();
  }

  // Bytes that steps and regions get in addition to their operands: as much as the target allows, but at least their
  // minimum. Regions come last: in smaller groups fewer threads share the work.
  GivenBytes given_for(std::uint64_t target) const {
    const Layouts& layouts = draft_.layouts;
    GivenBytes given = min_given(draft_);
    std::vector<std::uint64_t> live = live_bytes(draft_, given);
    const auto space_next_to = [&](std::uint64_t others) {
      return (target - std::min(target, others)) / kAlignment * kAlignment;
    };
    for (NodeId id = 0; id < given.steps.size(); ++id) {
      std::uint64_t& bytes = given.steps[id];
      if (!is_plain_step(draft_.graph, layouts, id)) continue;
      const std::uint64_t wanted = support_of(draft_, id).workspace_bytes;
      if (wanted == bytes) continue;
      std::uint64_t& at = live[layouts.storage.time[id]];
      at -= round_up(bytes, kAlignment);
      bytes = std::clamp(space_next_to(at), bytes, wanted);
      at += round_up(bytes, kAlignment);
    }
    for (std::size_t r = 0; r < given.regions.size(); ++r) {
      const Tiling& tiling = layouts.regions[r].plan.tiling;
      const auto* host = std::get_if<HostTiling>(&tiling);
      if (host == nullptr || given.regions[r] == accumulator_bytes(tiling)) continue;
      const Interval interval = accumulator_interval(draft_.graph.regions[r], tiling, 0, layouts.storage);
      const auto first = live.begin() + interval.first, end = live.begin() + interval.last + 1;
      const std::uint64_t min = round_up(given.regions[r], kAlignment),
                          space = space_next_to(*std::max_element(first, end) - min);
      const std::uint64_t sets = std::max(space / host->accumulator_bytes, min_sets(host->partitions));
      given.regions[r] = host->accumulator_bytes * sets_for(host->partitions, largest_group(host->partitions, sets));
      std::for_each(first, end, [&](std::uint64_t& at) { at += round_up(given.regions[r], kAlignment) - min; });
    }
    return given;
  }
  GivenBytes min_given(const Draft& draft) const {
    GivenBytes given{std::vector<std::uint64_t>(draft.graph.size(), 0), {}};
    for (NodeId id = 0; id < draft.graph.size(); ++id)
      if (is_plain_step(draft.graph, draft.layouts, id))
        given.steps[id] = support_of(draft, id).workspace_bytes - support_of(draft, id).spare_workspace_bytes;
    for (const RegionLayout& region : draft.layouts.regions) {
      const auto* host = std::get_if<HostTiling>(&region.plan.tiling);
      given.regions.push_back(host != nullptr ? host->accumulator_bytes * min_sets(host->partitions)
                                              : accumulator_bytes(region.plan.tiling));
    }
    return given;
  }

  // Live bytes at each time, with padding.
  static std::vector<std::uint64_t> live_bytes(const Draft& draft, const GivenBytes& given) {
    const std::size_t times =
        draft.layouts.storage.ends.empty() ? 1 : draft.layouts.storage.ends.back() + std::size_t{1};
    std::vector<std::uint64_t> live(times + 1, 0);  // differences first
    for (const LiveRange& range : find_live_ranges(draft.graph, draft.layouts, given)) {
      const std::uint64_t bytes = round_up(range.interval.size, kAlignment);
      live[range.interval.first] += bytes;
      live[range.interval.last + std::size_t{1}] -= bytes;
    }
    std::partial_sum(live.begin(), live.end(), live.begin());
    live.pop_back();
    return live;
  }

  // ---- lower peaks of live bytes

  // Bytes above the target at each time, even if steps and regions get only their minimum.
  std::vector<std::uint64_t> excess(const Draft& draft, std::uint64_t target) {
    work_ += draft.graph.size();
    std::vector<std::uint64_t> live = live_bytes(draft, min_given(draft));
    for (std::uint64_t& bytes : live) bytes -= std::min(bytes, target);
    return live;
  }
  static std::uint64_t sum_of(const std::vector<std::uint64_t>& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  }

  // Changes the draft. Returns the excess that remains, summed over time.
  std::uint64_t lower_peaks(std::uint64_t target) {
    std::vector<std::uint64_t> now = excess(draft_, target);
    if (sum_of(now) > 0) borrow(target, now);
    for (bool better = true; better && sum_of(now) > 0;) {
      better = reorder(target, now);
      for (const bool costly : {false, true})
        while (sum_of(now) > 0 && work_ < kMaxWork && recompute_one(target, costly, now)) better = true;
      better = better && work_ < kMaxWork;
    }
    return sum_of(now);
  }

  void borrow(std::uint64_t target, std::vector<std::uint64_t>& now) {
    draft_.layouts = lay_out(draft_.graph, options_, true);
    std::vector<std::uint64_t> then = excess(draft_, target);
    plan_.budget.borrows = plan_.budget.borrows || sum_of(then) < sum_of(now);
    now = std::move(then);
  }

  bool reorder(std::uint64_t target, std::vector<std::uint64_t>& now) {
    for (const std::vector<NodeId>& order : other_orders(draft_.graph, draft_.layouts)) {
      std::optional<Draft> draft = draft_of(order);
      if (!draft) continue;
      std::vector<std::uint64_t> then = excess(*draft, target);
      if (sum_of(then) >= sum_of(now)) continue;
      draft_ = std::move(*draft);
      draft_.reordered = true;
      now = std::move(then);
      return true;
    }
    return false;
  }

  bool recompute_one(std::uint64_t target, bool costly, std::vector<std::uint64_t>& now) {
    const std::vector<Recomputation> all = recomputations(draft_.graph, draft_.layouts, now, costly);
    for (std::size_t first = 0; first < all.size() && work_ < kMaxWork; first += kMaxTried) {
      std::uint64_t min = sum_of(now);
      std::optional<Draft> best;
      for (std::size_t i = first; i < std::min(all.size(), first + kMaxTried); ++i) {
        std::optional<Draft> draft = draft_of(order_with(all[i], draft_.graph.size()));
        if (!draft) continue;
        const std::uint64_t sum = sum_of(excess(*draft, target));
        if (sum >= min) continue;
        min = sum;
        best = std::move(draft);
      }
      if (!best) continue;
      draft_ = std::move(*best);
      now = excess(draft_, target);
      return true;
    }
    return false;
  }

  // Draft with another order of steps. Returns nullopt if it needs a step that no executor was asked about: a copy of a
  // state.
  std::optional<Draft> draft_of(const std::vector<NodeId>& order) const {
    Rewritten next = reordered(draft_.graph, order);
    Draft draft;
    draft.graph = std::move(next.graph);
    draft.ids = draft_.ids.then(next.ids);
    for (const NodeId id : order) draft.origins.push_back(draft_.origins[id]);
    draft.reordered = draft_.reordered;
    draft.layouts = lay_out(draft.graph, options_, true);
    for (std::size_t r = 0; r < draft.graph.regions.size(); ++r) {
      if (draft.graph.regions[r].plan && draft.layouts.regions[r].plan.tiling != draft.graph.regions[r].plan->tiling)
        throw std::logic_error("fit_memory: a budget has changed a tiling");
    }
    for (NodeId id = 0; id < draft.graph.size(); ++id) {
      if (is_plain_step(draft.graph, draft.layouts, id) && !plan_.supports[draft.origins[id]]) return std::nullopt;
    }
    return draft;
  }

  // ---- the summary

  bool is_recomputed(NodeId id) const { return draft_.ids[draft_.origins[id]] != id; }

  void name_and_list() {
    Graph& graph = draft_.graph;
    BudgetSummary& budget = plan_.budget;
    const GivenBytes& given = plan_.arena.given;
    const auto list_workspace = [&](std::uint32_t phase, const std::string& name, std::uint64_t bytes,
                                    std::uint64_t wanted) {
      if (bytes < wanted) budget.workspaces.push_back({graph.phases[phase].name, name, bytes, wanted});
    };
    budget.reordered = draft_.reordered;
    for (std::size_t r = 0; r < graph.regions.size(); ++r) {
      const Tiling& tiling = draft_.layouts.regions[r].plan.tiling;
      list_workspace(graph.regions[r].phase, accumulators_name(r, tiling), given.regions[r], accumulator_bytes(tiling));
    }
    std::set<std::string> names;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (is_recomputed(id)) continue;
      names.insert(graph[id].name);
      if (is_plain_step(graph, draft_.layouts, id))
        list_workspace(graph[id].phase, graph[id].name, given.steps[id], support_of(draft_, id).workspace_bytes);
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!is_recomputed(id)) continue;
      ir::Node& node = graph[id];
      const std::string value = node.name;
      for (int i = 1; !names.insert(node.name).second; ++i)
        node.name = i == 1 ? value + ":again" : fmt::format("{}:again_{}", value, i);
      if (!is_plain_step(graph, draft_.layouts, id)) continue;
      NodeId reader = id + 1;  // skip other values that are recomputed for the same step
      while (reader < graph.size() && is_recomputed(reader)) ++reader;
      budget.recomputed.push_back({graph.phases[node.phase].name, value,
                                   reader < graph.size() ? graph[reader].name : std::string(), node.type.bytes()});
    }
  }

  const CompileOptions& options_;
  Draft draft_;
  Plan plan_;  // its graph, ids and layouts are those of the draft until run() ends
  std::uint64_t work_ = 0;
};

}  // namespace

Plan fit_memory(Plan plan, const CompileOptions& options) {
  return MemoryFitter(std::move(plan), options).run();
}

}  // namespace graphrun::plan
