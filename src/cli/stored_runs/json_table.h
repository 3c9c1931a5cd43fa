// json_table.h: JSON Lines, such as `train --log run.jsonl` writes, as a table of text.
// Contract: an object of numbers, texts, true, false and null a line; a column for each key, in order of appearance.
// Throws Error (kind input, code "plot.json") with file, line and column. Leaves to others: what is a number
// (curves.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

struct JsonTable {
  std::vector<std::string> columns;
  std::string rows;  // CSV: a line for each of the file, without a header; null is nan, a key that is missing is empty
};

JsonTable read_json_lines(const std::string& path, std::string_view text);

}  // namespace graphrun::cli
