// curves.h: numeric columns of CSV or JSON Lines, such as written by `train --log`.
// Contract: the header line (CSV) or the object keys (JSON, in order of first appearance) name the columns. A JSON line
// is an object of numbers, strings, booleans and null. Only requested columns are parsed as numbers; an empty cell, or
// a missing key, is a missing value. Throws Error (kind input) with file and line for each cell that is not a number.
// Not handled here: choice of columns and drawing (plot.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

struct TableLine {
  int number = 0;  // in the file
  std::string source;
  std::vector<std::string> cells;  // null in JSON is nan
};

struct Table {
  std::string path;
  std::vector<std::string> columns;
  std::vector<TableLine> lines;  // below the header; blank ones, too
  bool is_whole = true;          // the last line has an end
};

// Reads the file.
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
