// json_table.h: rows as JSON objects, in one array or one per line (JSON Lines).
// Contract: the columns are the keys of all rows, in order of first appearance. null is a missing value; a row without
// the key of a column that is read is an error. An array adds one column per number, in row-major order: {"x": [1, 2]}
// has x0 and x1. Numbers, strings, true and false are cells as in a CSV file. Throws Error with line and column. Not
// here: interpretation of cells (text_table.h).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "data/csv/text_table.h"
#include "data/sources/files.h"

namespace graphrun::data {

class JsonTable final : public TextTable {
 public:
  JsonTable(std::string path, const Chunk& chunk, Notation notation);

  std::size_t rows() const override { return rows_.size(); }
  std::string_view text(std::size_t row, std::size_t column) const override;
  Error error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const override;

 private:
  struct Cell {
    std::string text;
    int line = 0, column = 0;
  };
  struct Row {
    std::vector<Cell> cells;  // one per column; trailing ones may be missing
    int line = 0, column = 0;
  };
  void add_row(const json::Value& object);
  void add_value(Row& row, const std::string& name, const json::Value& value);
  Error error(int line, int column, std::string message, std::string hint) const;

  std::string path_;
  std::size_t rows_before_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, std::size_t> index_;  // index into names_
};

}  // namespace graphrun::data
