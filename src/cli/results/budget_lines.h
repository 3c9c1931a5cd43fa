// budget_lines.h: what a budget of memory made of a plan, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/json_writer.h"
#include "graphrun/budget.h"
#include "graphrun/program.h"

namespace graphrun::cli {

// None where the plan fits as it is.
std::vector<std::string> budget_lines(const BudgetSummary& budget, const Program& program);
void write_budget(JsonWriter& json, const BudgetSummary& budget);

}  // namespace graphrun::cli
