// categories.h: words, or numbers that stand for something, as classes 0, 1, 2, ...
// Contract: the categories are the model file's, or those of the training rows in the order in which the file first
// has them; weights keep them (Provenance::categories). A number is the same category however it is written: 1 is 1.0,
// but not 01. Leaves to others: what becomes of a class (transforms.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/fitted_statistics.h"

namespace graphrun::data {

inline constexpr const char* kOther = "other";

// What a list of transforms says of categories.
struct ClassStep {
  std::vector<std::string> words;  // the model file's; empty: those of the training rows
  bool other = false;              // one more class, for all other words
  bool weighs = false;             // a class becomes its weight: one of `weights`, or n / (classes * its rows)
  std::vector<double> weights;
};

// Classes as an i32 (rows), or their weights as doubles. `key` is what the categories go by. Throws Error, at its cell
// for a word that is no category. Null, or of rank 0, as the column is.
ArrayPtr classes_of(const NamedArray& column, const ClassStep& step, const std::string& key, const FitContext& table);

// Throws Error if a row of `shape`, which has a rank of at least 1, is not a single number.
void require_one_number_a_row(const std::string& name, const Shape& shape);

// The classes' words, "other" among them; nothing while they are not known.
std::optional<std::vector<std::string>> labels_of(const ClassStep& step, const std::string& key,
                                                  const Provenance& provenance);

// "1.0" and "1" as "1".
std::string category_of(std::string_view text);
std::string category_of(double number);

}  // namespace graphrun::data
