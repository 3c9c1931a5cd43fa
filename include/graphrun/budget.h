// budget.h: changes to a plan to fit it into TrainSpec::max_memory (memory.md). Contract: results are bitwise
// identical; only time increases. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace graphrun {

struct RecomputedValue {
  std::string phase, value;
  std::string step;         // step before which it is recomputed, instead of staying live
  std::uint64_t bytes = 0;  // size of the value
};

struct SmallerWorkspace {
  std::string phase, step;
  std::uint64_t bytes = 0, wanted = 0;
};

struct BudgetSummary {
  std::uint64_t limit = 0;         // bytes; 0: no limit
  std::uint64_t bytes_before = 0;  // arena size without these changes
  bool shares_all = false;         // small values share bytes, too: launches wait for each other (Target::apart)
  std::vector<SmallerWorkspace> workspaces;
  bool borrows = false;    // inputs of a state's new value share the state's bytes
  bool reordered = false;  // the order of steps differs
  std::vector<RecomputedValue> recomputed;

  bool is_changed() const { return shares_all || borrows || !workspaces.empty() || reordered || !recomputed.empty(); }
};

}  // namespace graphrun
