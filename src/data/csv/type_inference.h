// type_inference.h: infers the dialect of a CSV file and the type of each column.
// Contract: reads the whole file. The caller writes every guess to a model file, where the user can see it. Throws
// Error if the file is not a table. Not here: how a model uses the types (session/model_template.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/csv/csv.h"

namespace graphrun::data {

struct InferredColumn {
  enum class Kind { number, date, categorical, text };  // text: too many distinct values for a categorical column
  std::string name;
  Kind kind = Kind::number;
  std::int64_t missing = 0;
  std::int64_t present = 0;
  std::vector<std::pair<std::string, std::int64_t>> categories;  // values and row counts, in order of appearance; for
                                                                 // categorical values and numbers with few values
  double min = 0, max = 0;                                       // for numbers
  bool is_constant = false;
  bool is_counter = false;   // 1, 2, 3, ... or 1007, 1006, ...: probably a row number
  bool is_repeated = false;  // name shared with another column
  bool is_unique = true;     // for dates: no two rows have the same text
  std::string example = {};  // first text that is not a number
  DateOrder dates = DateOrder::unknown;
  bool is_ambiguous = false;  // dates such as 03/04/2024, of which none shows the order of day and month
};

// A text of the file that is read as a missing value, and the first cell that has it.
struct InferredGap {
  std::string text, column;
  std::int64_t count = 0;
  int line = 0;
};

struct InferredTable {
  Dialect dialect;
  std::int64_t rows = 0;
  std::vector<InferredColumn> columns;
  std::vector<InferredGap> gaps;  // one for each of dialect.notation.na
};

inline constexpr std::size_t kMaxCategories = 40;

// `has_header`: false if the first line is a row; the columns are then c0, c1, ...
InferredTable infer_csv_types(const std::string& path, bool has_header = true);

}  // namespace graphrun::data
