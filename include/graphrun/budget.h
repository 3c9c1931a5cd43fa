// budget.h: what was done to fit a plan into TrainSpec::max_memory (memory.md). Contract: nothing of it changes a
// bit of the results; it takes time. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace graphrun {

struct RecomputedValue {
  std::string phase, value;
  std::string step;         // before which it is computed once more, instead of being held until then
  std::uint64_t bytes = 0;  // of it
};

struct SmallerWorkspace {
  std::string phase, step;
  std::uint64_t bytes = 0, wanted = 0;
};

struct BudgetSummary {
  std::uint64_t limit = 0;         // bytes; 0: there is none
  std::uint64_t bytes_before = 0;  // of the arena, without what follows
  bool shares_all = false;         // small values share bytes, too: launches wait for each other (Target::apart)
  std::vector<SmallerWorkspace> workspaces;
  bool borrows = false;    // what a state's new value is computed from lies where the state does
  bool reordered = false;  // steps come in another order
  std::vector<RecomputedValue> recomputed;

  bool is_changed() const { return shares_all || borrows || !workspaces.empty() || reordered || !recomputed.empty(); }
};

}  // namespace graphrun
