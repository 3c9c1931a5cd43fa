#include "cli/results/budget_lines.h"

#include <fmt/format.h>

#include "cli/terminal/terminal.h"

namespace graphrun::cli {

std::vector<std::string> budget_lines(const BudgetSummary& budget, const Program& program) {
  std::vector<std::string> lines;
  if (!budget.is_changed()) return lines;
  lines.push_back(fmt::format("{} bytes instead of {}, for the same bits", grouped(program.arena_bytes),
                              grouped(budget.bytes_before)));
  for (const SmallerWorkspace& one : budget.workspaces)
    lines.push_back(fmt::format("{}: a workspace of {} instead of {} bytes for {}", one.phase, grouped(one.bytes),
                                grouped(one.wanted), one.step));
  if (budget.shares_all) lines.emplace_back("small values share memory: launches wait for each other");
  if (budget.borrows) lines.emplace_back("values are stored in the states that they become");
  if (budget.reordered) lines.emplace_back("steps are reordered");
  for (const Phase& phase : program.phases) {
    std::size_t steps = 0;
    std::uint64_t bytes = 0;
    for (const RecomputedValue& one : budget.recomputed) {
      if (one.phase != phase.name) continue;
      lines.push_back(
          fmt::format("{}: {} computed again before {}, {} bytes", one.phase, one.value, one.step, grouped(one.bytes)));
      ++steps;
      bytes += one.bytes;
    }
    if (steps > 0)
      lines.push_back(fmt::format("{}: {} of {} steps compute something again and write {} bytes", phase.name, steps,
                                  phase.steps.size(), grouped(bytes)));
  }
  return lines;
}

void write_budget(JsonWriter& json, const BudgetSummary& budget) {
  json.begin_object().member("limit", budget.limit).member("arena_bytes_before", budget.bytes_before);
  json.objects("workspaces", budget.workspaces, [&](const SmallerWorkspace& one) {
    json.member("phase", one.phase).member("step", one.step).member("bytes", one.bytes).member("wanted", one.wanted);
  });
  json.member("shares_all", budget.shares_all).member("borrows", budget.borrows).member("reordered", budget.reordered);
  json.objects("recomputed", budget.recomputed, [&](const RecomputedValue& one) {
    json.member("phase", one.phase).member("value", one.value).member("step", one.step).member("bytes", one.bytes);
  });
  json.end_object();
}

}  // namespace graphrun::cli
