// missing.h: imputation of missing values with a number or category, from the training rows or the model file.
// Contract: fitted once to the training rows and stored with the weights, then the same for every split and prediction.
// The median of an even count is the mean of the middle two. The smallest of equally frequent values is used. Not here:
// dropping rows (csv_source.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/sources/sources.h"
#include "data/transforms/fitted_statistics.h"

namespace graphrun::data {

// Reads "mean", 0, or {"value": "none"}; nothing if an error was reported.
std::optional<Missing> read_missing(json::Reader& reader, const json::Ref& at);

// "missing": one policy for all columns, or an object with one per column. `others`: it may name other columns.
std::vector<Missing> read_missing(json::Reader& reader, const json::Ref& at, const std::vector<std::string>& names,
                                  bool others);

// Replaces gaps (NaN) by the imputed number, one per number of a row. Throws Error.
ArrayPtr fill_gaps(const NamedArray& column, const ArrayPtr& array, const FitContext& table);

// Reads "missing" of a source of arrays, in which NaN is a gap, and applies it to reading them.
void read_gaps(SourceContext& context, Table& table);

// Warns about dropped rows; throws Error if none of `rows` is left.
void warn_of_dropped(Files& files, std::int64_t count, std::int64_t rows);

// Imputed value of a categorical column, or nothing if no cell needs filling. Throws Error.
std::optional<std::string> word_for_gaps(const NamedArray& column, const FitContext& table);

}  // namespace graphrun::data
