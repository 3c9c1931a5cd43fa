#include "compiler/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "base/checked.h"
#include "compiler/recompute.h"
#include "compiler/step_order.h"
#include "graphrun/op.h"
#include "graphrun/partial_results.h"
#include "graphrun/target.h"

namespace graphrun::plan {
namespace {

using ir::Graph;
using ir::NodeId;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxWork = 3'000'000;  // nodes of all evaluated graphs: a second or two
constexpr std::size_t kMaxTried = 16;          // recomputations per batch, of which the best is taken
constexpr int kMaxPackings = 6;

// A graph that differs from the given one only in the order and repetition of steps.
struct Draft {
  Graph graph;
  IdMap ids;                         // from the given graph
  std::vector<NodeId> origins;       // per node: its node in the given graph
  std::vector<std::size_t> regions;  // per region: its index in the given graph
  Layouts layouts;
  bool reordered = false;
};

class MemoryFitter {
 public:
  MemoryFitter(Graph graph, const CompileOptions& options) : options_(options) {
    draft_.graph = std::move(graph);
    draft_.ids = IdMap::identity(draft_.graph.size());
    draft_.origins.resize(draft_.graph.size());
    std::iota(draft_.origins.begin(), draft_.origins.end(), NodeId{0});
    draft_.layouts = lay_out(draft_.graph, options);
    regions_ = draft_.layouts.regions;
    draft_.regions.resize(regions_.size());
    std::iota(draft_.regions.begin(), draft_.regions.end(), std::size_t{0});
    same_ = draft_.regions;
    needs_ = ask_workspaces(draft_.graph, draft_.layouts, options);
    states_ = state_bytes(draft_.graph, draft_.layouts.data);
    apart_ = options.target.empty() ? 0 : find_target(options.target).apart;
  }

  FittedGraph run() {
    arena_ = arena_of(kNoLimit, apart_);
    budget_.limit = options_.max_memory;
    budget_.bytes_before = states_ + arena_.packing.total;
    if (options_.max_memory > 0 && budget_.bytes_before > options_.max_memory) make_smaller();
    return finished();
  }

 private:
  // The bytes that packing adds to the live bytes are subtracted from the target of the next attempt.
  void make_smaller() {
    const std::uint64_t limit = options_.max_memory - std::min(options_.max_memory, states_);
    std::uint64_t target = limit;
    std::optional<std::pair<Draft, Arena>> least;
    for (int i = 0; i < kMaxPackings; ++i) {
      const std::uint64_t still_too_much = lower_peaks(target);
      for (const bool shares : {false, true}) {
        if (shares && apart_ == 0) continue;
        Arena arena = arena_of(target, shares ? 0 : apart_);
        if (least && arena.packing.total >= least->second.packing.total) continue;
        least.emplace(draft_, std::move(arena));
        budget_.shares_all = shares;
        if (least->second.packing.total <= limit) break;
      }
      const std::uint64_t total = least->second.packing.total;
      if (total <= limit || still_too_much > 0) break;
      target -= std::min(target, total - limit);
    }
    draft_ = std::move(least->first);
    arena_ = std::move(least->second);
  }

  // ---- the arena of the draft

  // Bytes that steps and regions get in addition to their operands: all that they want, or as much as the target
  // allows, but at least their minimum. Regions come last: in smaller groups fewer threads share the work.
  GivenBytes given_for(std::uint64_t target) const {
    const Layouts& layouts = draft_.layouts;
    GivenBytes given = min_given(draft_);
    std::vector<std::uint64_t> live = live_bytes(draft_, given);
    const auto room_beside = [&](std::uint64_t others) {
      return (target - std::min(target, others)) / kAlignment * kAlignment;
    };
    for (NodeId id = 0; id < given.steps.size(); ++id) {
      std::uint64_t& bytes = given.steps[id];
      const std::uint64_t wanted = needs_.wanted[draft_.origins[id]];
      if (!is_plain_step(draft_.graph, layouts, id) || wanted == bytes) continue;
      std::uint64_t& at = live[layouts.storage.time[id]];
      at -= round_up(bytes, kAlignment);
      bytes = std::clamp(room_beside(at), bytes, wanted);
      at += round_up(bytes, kAlignment);
    }
    for (std::size_t r = 0; r < given.regions.size(); ++r) {
      const Tiling& tiling = layouts.regions[r].tiling;
      const auto* host = std::get_if<HostTiling>(&tiling);
      if (host == nullptr || given.regions[r] == accumulator_bytes(tiling)) continue;
      const Interval life = life_of_accumulators(draft_.graph.regions[r], tiling, 0, layouts.storage);
      const auto first = live.begin() + life.first, end = live.begin() + life.last + 1;
      const std::uint64_t least = given.regions[r],
                          room = room_beside(*std::max_element(first, end) - round_up(least, kAlignment));
      const std::uint64_t sets = std::max(room / host->accumulator_bytes, min_sets(host->partitions));
      given.regions[r] = host->accumulator_bytes * sets_for(host->partitions, largest_group(host->partitions, sets));
      std::for_each(first, end, [&](std::uint64_t& at) {
        at += round_up(given.regions[r], kAlignment) - round_up(least, kAlignment);
      });
    }
    return given;
  }
  GivenBytes min_given(const Draft& draft) const {
    GivenBytes given{std::vector<std::uint64_t>(draft.graph.size(), 0), {}};
    for (NodeId id = 0; id < draft.graph.size(); ++id)
      if (is_plain_step(draft.graph, draft.layouts, id)) given.steps[id] = needs_.least[draft.origins[id]];
    for (const RegionLayout& region : draft.layouts.regions)
      given.regions.push_back(min_accumulator_bytes(region.tiling));
    return given;
  }

  Arena arena_of(std::uint64_t target, std::uint64_t apart) const {
    Arena arena;
    arena.given = given_for(target);
    arena.lives = lives_of(draft_.graph, draft_.layouts, arena.given);
    keep_apart(arena.lives, draft_.layouts.storage, apart);
    std::vector<Interval> intervals;
    for (const Life& life : arena.lives) intervals.push_back(life.interval);
    arena.packing = pack(intervals, kAlignment);
    const std::string fault = validate(intervals, arena.packing.offsets, arena.packing.total, kAlignment);
    if (!fault.empty()) throw std::logic_error("plan: " + fault);
    return arena;
  }

  // Live bytes at each time, with padding.
  static std::vector<std::uint64_t> live_bytes(const Draft& draft, const GivenBytes& given) {
    const std::size_t times =
        draft.layouts.storage.ends.empty() ? 1 : draft.layouts.storage.ends.back() + std::size_t{1};
    std::vector<std::uint64_t> live(times + 1, 0);  // differences first
    for (const Life& life : lives_of(draft.graph, draft.layouts, given)) {
      const std::uint64_t bytes = round_up(life.interval.size, kAlignment);
      live[life.interval.first] += bytes;
      live[life.interval.last + std::size_t{1}] -= bytes;
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
      for (const bool dear : {false, true})
        while (sum_of(now) > 0 && work_ < kMaxWork && recompute_one(target, dear, now)) better = true;
      better = better && work_ < kMaxWork;
    }
    return sum_of(now);
  }

  void borrow(std::uint64_t target, std::vector<std::uint64_t>& now) {
    draft_.layouts = lay_out(draft_.graph, options_, draft_.layouts.regions);
    std::vector<std::uint64_t> then = excess(draft_, target);
    budget_.borrows = budget_.borrows || sum_of(then) < sum_of(now);
    now = std::move(then);
  }

  bool reorder(std::uint64_t target, std::vector<std::uint64_t>& now) {
    for (const std::vector<NodeId>& order : other_orders(draft_.graph, draft_.layouts)) {
      Rewritten next = reordered(draft_.graph, order);
      const std::vector<ir::Region> regions = renumbered(draft_.graph.regions, next.ids);
      std::vector<std::size_t> by_place(regions.size());
      std::iota(by_place.begin(), by_place.end(), std::size_t{0});
      std::sort(by_place.begin(), by_place.end(),
                [&](std::size_t a, std::size_t b) { return first_of(regions[a]) < first_of(regions[b]); });
      for (const std::size_t r : by_place) next.graph.regions.push_back(regions[r]);
      std::optional<Draft> draft = draft_of(std::move(next), order, by_place);
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

  bool recompute_one(std::uint64_t target, bool dear, std::vector<std::uint64_t>& now) {
    const std::vector<Recomputation> all = recomputations(draft_.graph, draft_.layouts, now, dear);
    for (std::size_t first = 0; first < all.size() && work_ < kMaxWork; first += kMaxTried) {
      std::uint64_t least = sum_of(now);
      std::optional<Draft> best;
      for (std::size_t i = first; i < std::min(all.size(), first + kMaxTried); ++i) {
        Recomputed next = recompute(draft_.graph, all[i]);
        std::optional<Draft> draft = draft_of({std::move(next.graph), std::move(next.ids)}, next.from, same_);
        if (!draft) continue;
        const std::uint64_t sum = sum_of(excess(*draft, target));
        if (sum >= least) continue;
        least = sum;
        best = std::move(draft);
      }
      if (!best) continue;
      draft_ = std::move(*best);
      now = excess(draft_, target);
      return true;
    }
    return false;
  }

  // Returns nullopt if it needs a step that no executor was asked about: a copy of a state.
  std::optional<Draft> draft_of(Rewritten next, const std::vector<NodeId>& from,
                                const std::vector<std::size_t>& regions) const {
    Draft draft;
    draft.graph = std::move(next.graph);
    draft.ids = draft_.ids.then(next.ids);
    for (const NodeId id : from) draft.origins.push_back(draft_.origins[id]);
    draft.reordered = draft_.reordered;
    std::vector<RegionLayout> before;
    for (const std::size_t r : regions) {
      draft.regions.push_back(draft_.regions[r]);
      before.push_back(regions_[draft.regions.back()]);
    }
    draft.layouts = lay_out(draft.graph, options_, before);
    for (NodeId id = 0; id < draft.graph.size(); ++id) {
      if (is_plain_step(draft.graph, draft.layouts, id) && !needs_.asked[draft.origins[id]]) return std::nullopt;
    }
    return draft;
  }

  // ---- the result

  FittedGraph finished() {
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      if (draft_.layouts.regions[r].tiling != regions_[draft_.regions[r]].tiling)
        throw std::logic_error("fit_memory: a budget has changed a tiling");
    }
    name_and_list();
    return {std::move(draft_.graph), std::move(draft_.ids), std::move(draft_.layouts), std::move(arena_),
            std::move(budget_)};
  }

  bool is_again(NodeId id) const { return draft_.ids[draft_.origins[id]] != id; }

  void name_and_list() {
    Graph& graph = draft_.graph;
    std::set<std::string> names;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (!is_again(id)) names.insert(graph[id].name);
    budget_.reordered = draft_.reordered;
    for (std::size_t r = 0; r < graph.regions.size(); ++r) {
      const Tiling& tiling = draft_.layouts.regions[r].tiling;
      const std::uint64_t wanted = accumulator_bytes(tiling);
      if (arena_.given.regions[r] < wanted)
        budget_.workspaces.push_back(
            {graph.phases[graph.regions[r].phase].name, accumulators_name(r, tiling), arena_.given.regions[r], wanted});
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
      ir::Node& node = graph[id];
      if (!is_again(id)) {
        const std::uint64_t wanted = needs_.wanted[draft_.origins[id]];
        if (is_plain_step(graph, draft_.layouts, id) && arena_.given.steps[id] < wanted)
          budget_.workspaces.push_back({graph.phases[node.phase].name, node.name, arena_.given.steps[id], wanted});
        continue;
      }
      const std::string value = node.name;
      for (int i = 1; !names.insert(node.name).second; ++i)
        node.name = i == 1 ? value + ":again" : fmt::format("{}:again_{}", value, i);
      if (!is_plain_step(graph, draft_.layouts, id)) continue;
      NodeId reader = id + 1;  // skip other values that are recomputed for the same step
      while (reader < graph.size() && is_again(reader)) ++reader;
      budget_.recomputed.push_back({graph.phases[node.phase].name, value,
                                    reader < graph.size() ? graph[reader].name : std::string(), node.type.bytes()});
    }
  }

  const CompileOptions& options_;
  Draft draft_;
  Arena arena_;
  Workspaces needs_;                   // for the given graph
  std::vector<RegionLayout> regions_;  // those of the given graph
  std::vector<std::size_t> same_;      // indices of all regions in order
  std::uint64_t states_ = 0, apart_ = 0;
  std::uint64_t work_ = 0;
  BudgetSummary budget_;
};

}  // namespace

FittedGraph fit_memory(Graph graph, const CompileOptions& options) {
  return MemoryFitter(std::move(graph), options).run();
}

}  // namespace graphrun::plan
