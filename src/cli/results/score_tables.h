// score_tables.h: the scores of splits (graphrun/scores.h) as lines of text and as JSON.
// Contract: pure functions. Leaves to others: loss and metrics of the model (results.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal/json_writer.h"
#include "graphrun/scores.h"

namespace graphrun::cli {

// The figures of an output that stand for the whole split: "f1 (macro)" and its value.
std::vector<std::pair<std::string, double>> main_figures(const OutputScores& scores);

struct ScoreTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;  // the first one is the heading
};

// By class with the matrix of confusion, or by column with the quantiles of residuals; of more than `most` classes
// the pairs that are mistaken most often, of more columns nothing.
std::vector<ScoreTable> details_of(const OutputScores& scores, std::size_t most);

// The same as text, as far as a terminal has room for it; `split` is named in headings.
std::string details_text(const OutputScores& scores, std::string_view split);

void write_scores(JsonWriter& json, const OutputScores& scores);  // an object's members

}  // namespace graphrun::cli
