// columns.h: which arrays of a source become which input: by name, by list, by formula, or what is left.
// Contract: reports to the reader; an input whose array is null was reported.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/dataset.h"
#include "data/fitted_statistics.h"
#include "data/transforms.h"

namespace graphrun::data {

// `said[i]` is what stands under the split for input i. `at` is the source, for what concerns it as a whole. An input
// that takes what is left takes, in a table that does not train, the columns that it took in the one that does.
// `pipelines`: those of the inputs, where words become classes; may be empty.
std::vector<ArrayPtr> arrays_of(json::Reader& reader, const json::Ref& at, const Table& table,
                                std::span<const InputDecl> inputs, const std::vector<std::optional<json::Ref>>& said,
                                const DataOptions& options, const FitContext& fit, std::span<Pipeline> pipelines);

// Reports the errors of the choices that do not depend on the columns of the table, which may have none yet.
void check_choices(json::Reader& reader, const json::Ref& at, const Table& table, std::span<const InputDecl> inputs,
                   const std::vector<std::optional<json::Ref>>& said, std::span<const Pipeline> pipelines);

// Rows of `width` numbers from arrays of equally many rows, (rows) or (rows, k), one array after the other in each row.
// `next` gives them; each is let go of before the next is asked for. Throws Error: more than the limit of
// input_limit.h.
std::vector<double> values_side_by_side(std::size_t width, const std::function<ArrayPtr()>& next);

std::string listed(const std::vector<std::string>& names);

}  // namespace graphrun::data
