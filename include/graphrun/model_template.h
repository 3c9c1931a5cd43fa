// model_template.h: a model file to begin with, written from a CSV file: what `graphrun init` prints.
// Contract: the file is looked at whole; how it is written, what its columns hold and what is missing is guessed and
// stands in the model's text, where its user can change it. The text loads, trains and predicts as it is. Throws Error:
// no such target, or nothing to learn from. Leaves to others: writing it to a file.
#pragma once

#include <string>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

struct ModelTemplate {
  std::string text;                // JSON, model-format.md
  std::vector<std::string> notes;  // what was guessed or left out
};

// The names of its columns. Throws Error for a file that is no table.
GRAPHRUN_API std::vector<std::string> table_columns(const std::string& csv);

// `target` is the column to predict; `source` what the model calls the file, a path relative to its own folder.
GRAPHRUN_API ModelTemplate model_template(const std::string& csv, const std::string& target, const std::string& source);

}  // namespace graphrun
