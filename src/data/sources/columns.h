// columns.h: assigns arrays of a source to inputs: by name, by list, by formula, or from the remaining columns.
// Contract: reports to the reader; an input with a null array has been reported.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/dataset.h"
#include "data/transforms/fitted_statistics.h"
#include "data/transforms/transforms.h"

namespace graphrun::data {

// `said[i]` is the split's entry for input i. `at` is the source, for errors about it as a whole. An input that takes
// the remaining columns takes the training columns again in tables that do not train. `pipelines`: per input, for
// mapping categorical values to classes; may be empty.
std::vector<ArrayPtr> arrays_of(json::Reader& reader, const json::Ref& at, const Table& table,
                                std::span<const InputDecl> inputs, const std::vector<std::optional<json::Ref>>& said,
                                const DataOptions& options, const FitContext& fit, std::span<Pipeline> pipelines);

// Reports errors that do not depend on the columns of the table, which may not be known yet.
void check_choices(json::Reader& reader, const json::Ref& at, const Table& table, std::span<const InputDecl> inputs,
                   const std::vector<std::optional<json::Ref>>& said, std::span<const Pipeline> pipelines);

// Concatenates arrays of equal row count, (rows) or (rows, k), into rows of `width` numbers. `next` yields the arrays;
// each is released before the next is requested. Throws Error beyond the limit of input_limit.h.
std::vector<double> values_side_by_side(std::size_t width, const std::function<ArrayPtr()>& next);

std::string listed(const std::vector<std::string>& names);

}  // namespace graphrun::data
