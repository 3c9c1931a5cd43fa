// survey.h: what a CSV file seems to be: how it is written, and what each column holds.
// Contract: reads the whole file and guesses; nothing is decided that the caller does not write into a model file,
// where its user sees it. Throws Error for a file that is no table. Leaves to others: what a model makes of it
// (session/starting_model.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/csv.h"

namespace graphrun::data {

struct ColumnSurvey {
  enum class Kind { number, date, words, text };  // text: more different words than categories make sense
  std::string name;
  Kind kind = Kind::number;
  std::int64_t missing = 0;
  std::int64_t present = 0;
  std::vector<std::pair<std::string, std::int64_t>> categories;  // and their rows, in order of appearance; of words,
                                                                 // and of numbers that have few
  double least = 0, greatest = 0;                                // of numbers
  bool is_constant = false;
  bool is_counter = false;   // 1, 2, 3, ... or 1007, 1006, ...: a number of the row
  bool is_repeated = false;  // another column has its name
  std::string example = {};  // the first text that is no number
};

struct Survey {
  Dialect dialect;
  std::int64_t rows = 0;
  std::vector<ColumnSurvey> columns;
};

inline constexpr std::size_t kMostCategories = 40;

Survey survey_csv(const std::string& path);

}  // namespace graphrun::data
