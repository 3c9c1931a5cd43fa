// run_table.h: stored runs as a text table, CSV and JSON.
// Contract: pure functions. Not handled here: reading (graphrun/run_folder.h), selection of runs (runs.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

inline constexpr std::string_view kSeedKey = "settings.seed", kFoldKey = "data.folds.fold";

// Keys for a list: settings that differ between runs, then loss and metrics of each split.
std::vector<std::string> listed_keys(const std::vector<RunRecord>& runs);
// Settings that differ between runs, except seed and fold.
std::vector<std::string> compared_keys(const std::vector<RunRecord>& runs);
// All keys that differ between runs, except times.
std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs);
// Resolves a full key or its last part ("lr"). Throws Error (kind input) that suggests the nearest one.
std::string known_key(const std::vector<RunRecord>& runs, std::string_view name);
std::string known_key(const std::vector<std::string>& names, std::string_view name);

// The key without "settings.", safe to print.
std::string short_key(std::string_view key);

// One row per run, or one column per run with `across`.
std::vector<std::vector<std::string>> run_table(const std::vector<RunRecord>& runs,
                                                const std::vector<std::string>& keys, bool across);
// Without run, folder and state for records without a folder (comparison.h).
std::string runs_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys);
std::string runs_json(const std::vector<RunRecord>& runs);

std::string_view name_of(RunRecord::State state);

}  // namespace graphrun::cli
