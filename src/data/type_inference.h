// type_inference.h: what a CSV file seems to be: how it is written, and what each column holds.
// Contract: reads the whole file and guesses; nothing is decided that the caller does not write into a model file,
// where its user sees it. Throws Error for a file that is no table. Leaves to others: what a model makes of it
// (session/model_template.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/csv.h"

namespace graphrun::data {

struct InferredColumn {
  enum class Kind { number, date, categorical, text };  // text: more different words than categories make sense
  std::string name;
  Kind kind = Kind::number;
  std::int64_t missing = 0;
  std::int64_t present = 0;
  std::vector<std::pair<std::string, std::int64_t>> categories;  // and their rows, in order of appearance; of words,
                                                                 // and of numbers that have few
  double min = 0, max = 0;                                       // of numbers
  bool is_constant = false;
  bool is_counter = false;   // 1, 2, 3, ... or 1007, 1006, ...: a number of the row
  bool is_repeated = false;  // another column has its name
  std::string example = {};  // the first text that is no number
};

struct InferredTable {
  Dialect dialect;
  std::int64_t rows = 0;
  std::vector<InferredColumn> columns;
};

inline constexpr std::size_t kMaxCategories = 40;

InferredTable infer_csv_types(const std::string& path);

}  // namespace graphrun::data
