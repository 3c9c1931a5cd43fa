// categories.h: maps categorical values (words or numbers) to classes 0, 1, 2, ...
// Contract: the categories come from the model file, or from the training rows in order of first appearance; weights
// store them (Provenance::categories). Equal numbers are one category: 1 is 1.0, but not 01. Not here: how classes are
// used (transforms.h).
#pragma once

#include <string>
#include <vector>

#include "data/array.h"
#include "data/transforms/fitted_statistics.h"

namespace graphrun::data {

inline constexpr const char* kOther = "other";

// Class step of a transform list.
struct ClassStep {
  std::vector<std::string> words;  // categories in the model file; empty: from the training rows
  bool other = false;              // add one class for all other values
  bool weighs = false;             // map a class to its weight: from `weights`, or n / (classes * its rows)
  std::vector<double> weights;
};

// Returns classes as i32 (rows), or their weights as doubles. `key` identifies the categories. Throws Error at the cell
// of an unknown category. A column that is null or has rank 0 is returned unchanged.
ArrayPtr classes_of(const NamedArray& column, const ClassStep& step, const std::string& key, const FitContext& table);

// Throws Error if a row of `shape`, which has a rank of at least 1, is not a single number.
void require_one_number_a_row(const std::string& name, const Shape& shape);

// Class names, including "other"; nothing while they are unknown.
std::optional<std::vector<std::string>> labels_of(const ClassStep& step, const std::string& key,
                                                  const Provenance& provenance);

// Canonical form: "1.0" and "1" become "1".
std::string category_of(std::string_view text);
std::string category_of(double number);

}  // namespace graphrun::data
