// dates.h: converts ISO 8601 dates and times to numbers: "2024-02-29", "2024-02-29T12:30:15.5+01:00".
// Contract: proleptic Gregorian calendar, years 0 to 9999. A time without a zone is UTC, and fields are in UTC. Days
// count from 1970-01-01. Calendar algorithm: H. Hinnant, "chrono-compatible low-level date algorithms". Not here:
// choice of date columns (formulas, data.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/sources.h"

namespace graphrun::data {

bool is_date(std::string_view text);

// Date functions for formulas: days, seconds, year, month, day, weekday, hour, minute.
std::span<const Doc> date_functions();

// `function` is an index into date_functions(). Returns nothing if the text is not a date.
std::optional<double> date_number(std::string_view text, std::size_t function);

}  // namespace graphrun::data
