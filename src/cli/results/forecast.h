// forecast.h: windows beyond the end of a table, for `predict --steps`.
// Contract: a row after the last one has the model's predictions in place of the values that it predicts. Throws Error
// if the model has no windows, or a column is not predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graphrun/model.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// Windows that predict the `steps` rows after those of `history`. `units`: per output, the units of its target.
InputRows forecast_windows(Session& session, const InputRows& history, std::uint64_t steps,
                           const std::vector<std::optional<Standardization>>& units);

}  // namespace graphrun::cli
