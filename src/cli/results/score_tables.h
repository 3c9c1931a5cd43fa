// score_tables.h: evaluation of splits (graphrun/scores.h) as text and JSON.
// Contract: pure functions. Not handled here: loss and metrics of the model (results.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "graphrun/scores.h"

namespace graphrun::cli {

// Summary metrics of an output over the whole split: name ("f1 (macro)") and value.
std::vector<std::pair<std::string, double>> main_figures(const OutputScores& scores);

struct ScoreTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;  // header first
};

// Tables per class with the confusion matrix, or per column with the quantiles of the residuals. With more than `most`
// classes, lists the most frequent confusions instead; with more columns, nothing.
std::vector<ScoreTable> details_of(const OutputScores& scores, std::size_t most);

// The same as text, limited to terminal size. Headings name the `split`.
std::string details_text(const OutputScores& scores, std::string_view split);

void write_scores(JsonWriter& json, const OutputScores& scores);  // writes the members of an object

}  // namespace graphrun::cli
