// run_table.h: stored runs as a table, CSV and JSON.
// Contract: pure functions. Leaves to others: reading (graphrun/run_folder.h), which runs (runs.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

// What a list shows: settings that are not the same in all, then loss and metrics of each split.
std::vector<std::string> listed_keys(const std::vector<RunRecord>& runs);
// All that is not the same in all, but times.
std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs);
// A key by the whole or by its end ("lr"). Throws Error (kind input) with the nearest one.
std::string known_key(const std::vector<RunRecord>& runs, std::string_view name);

// A row for each run; `across`: a column for each.
std::vector<std::vector<std::string>> run_table(const std::vector<RunRecord>& runs,
                                                const std::vector<std::string>& keys, bool across);
std::string runs_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys);
std::string runs_json(const std::vector<RunRecord>& runs);

std::string_view name_of(RunRecord::State state);

}  // namespace graphrun::cli
