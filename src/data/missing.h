// missing.h: what takes the place of missing values: a number or a word that the training rows decide, or the model
// file. Contract: decided once, for the training rows, and kept with the weights; then the same in every split and in
// predictions. The median is the mean of the two in the middle; of equally frequent values the smallest is taken.
// Leaves to others: rows that are left out (csv_source.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/fitted_statistics.h"
#include "data/sources.h"

namespace graphrun::data {

// "mean", 0, {"value": "none"}; or nothing when it was reported.
std::optional<Missing> read_missing(json::Reader& reader, const json::Ref& at);

// "missing": one policy for all columns, or an object of them by column. `others`: it may name other columns.
std::vector<Missing> read_missing(json::Reader& reader, const json::Ref& at, const std::vector<std::string>& names,
                                  bool others);

// The numbers with what stands for its gaps, which are NaN. Throws Error.
ArrayPtr fill_gaps(const NamedArray& column, const ArrayPtr& array, const FitContext& table);

// The word for the missing cells of a column of words; nothing where there are none to fill. Throws Error.
std::optional<std::string> word_for_gaps(const NamedArray& column, const FitContext& table);

}  // namespace graphrun::data
