// budget_lines.h: effects of a memory budget on a plan, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "graphrun/budget.h"
#include "graphrun/program.h"

namespace graphrun::cli {

// Empty if the plan fits without changes.
std::vector<std::string> budget_lines(const BudgetSummary& budget, const Program& program);
void write_budget(JsonWriter& json, const BudgetSummary& budget);

}  // namespace graphrun::cli
