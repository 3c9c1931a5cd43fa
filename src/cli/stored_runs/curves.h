// curves.h: columns of numbers of a CSV file or of JSON Lines, such as `train --log` writes.
// Contract: the first line names the columns, or the keys of objects do (json_table.h); only those asked for are read
// as numbers, and an empty cell has none (missing). Throws Error (kind input) with file and line for every cell that is
// no number. Leaves to others: which columns are drawn, and how (plot.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

struct Table {
  std::string path, rows;  // lines of cells
  int first_line = 2;      // of the file, that the first row is
  std::vector<std::string> columns;
};

// Reads the file and the names of its columns.
Table read_table(const std::string& path);

// Where a column stands; throws Error that names the nearest one.
std::size_t find_column(const Table& table, std::string_view name);

// One for each line of the file with a number in both columns.
struct Points {
  std::vector<double> x, y;
  bool sparse = false;  // there are lines without one
};

std::vector<Points> read_curves(const Table& table, std::size_t x, const std::vector<std::size_t>& ys);

}  // namespace graphrun::cli
