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
// Settings that differ between runs, with or without seed and fold.
std::vector<std::string> compared_keys(const std::vector<RunRecord>& runs, bool with_repeats = false);
// All keys that differ between runs, except times.
std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs);
// Resolves a full key or its last part ("lr"). Throws Error (kind input) that suggests the nearest one.
std::string known_key(const std::vector<RunRecord>& runs, std::string_view name);
std::string known_key(const std::vector<std::string>& names, std::string_view name);

// Last part of a key for a heading, or more of it if another key has the same last part.
std::string distinct_part(const std::string& key, const std::vector<std::string>& keys);
// Name by these settings: "units=16 lr=0.01".
std::string distinct_name(const std::vector<std::string>& keys, const std::vector<std::string>& values);

// One row per run, or one column per run with `across`.
std::vector<std::vector<std::string>> run_table(const std::vector<RunRecord>& runs,
                                                const std::vector<std::string>& keys, bool across);
// Without run, folder and state for records without a folder (comparison.h).
std::string runs_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys);
std::string runs_json(const std::vector<RunRecord>& runs);

// Whether the folder contains runs, and is not itself that of one.
bool has_runs(const std::string& folder);

std::string_view name_of(RunRecord::State state);

}  // namespace graphrun::cli
