// model_template.h: a starter model file inferred from a CSV file, as printed by `graphrun init`.
// Contract: reads the whole file. CSV format, column types and missing values are inferred and written into the model's
// text, where users can change them. The text loads, trains and predicts unchanged. Throws Error if the target does not
// exist or nothing can be learned. Not here: writing the text to a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

struct ModelTemplate {
  std::string text;                // JSON, model-format.md
  std::vector<std::string> notes;  // inferred or omitted items
};

// Column names. Throws Error if the file is not a table.
GRAPHRUN_API std::vector<std::string> table_columns(const std::string& csv);

// `target`: the column to predict. `source`: path of the CSV file relative to the model's folder. `has_header`: false
// if the first line is a row. Columns of a table without a header are c0, c1, ... `window`: number of consecutive rows
// from which the model predicts the next row of the target; 0: it predicts the target from the other columns of a row.
// `csv` may be a folder of PNG files in class folders, with an empty `target`.
GRAPHRUN_API ModelTemplate model_template(const std::string& csv, const std::string& target, const std::string& source,
                                          bool has_header = true, std::int64_t window = 0);

}  // namespace graphrun
