// curves.h: numeric columns of CSV or JSON Lines, such as written by `train --log`.
// Contract: the header line (CSV) or the object keys (json_table.h) name the columns. Only requested columns are parsed
// as numbers; an empty cell is a missing value. Throws Error (kind input) with file and line for each cell that is not
// a number. Not handled here: choice of columns and drawing (plot.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

struct Table {
  std::string path, rows;  // rows: CSV lines
  int first_line = 2;      // line number of the first row in the file
  std::vector<std::string> columns;
};

// Reads the file and its column names.
Table read_table(const std::string& path);

// Index of the column; throws Error that suggests the nearest name.
std::size_t find_column(const Table& table, std::string_view name);

// One point per line that has a number in both columns.
struct Points {
  std::vector<double> x, y;
  bool sparse = false;  // some lines lack a value
};

std::vector<Points> read_curves(const Table& table, std::size_t x, const std::vector<std::size_t>& ys);

}  // namespace graphrun::cli
