// json_table.h: converts JSON Lines, such as `train --log run.jsonl` writes, to a text table.
// Contract: each line is an object of numbers, strings, booleans and null; each key is a column, in order of first
// appearance. Throws Error (kind input, code "plot.json") with file, line and column. Not handled here: parsing of
// numbers (curves.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

struct JsonTable {
  std::vector<std::string> columns;
  std::string rows;  // CSV without a header, one line per line of the file; null is nan, a missing key is empty
};

JsonTable read_json_lines(const std::string& path, std::string_view text);

}  // namespace graphrun::cli
