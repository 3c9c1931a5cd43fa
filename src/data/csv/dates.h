// dates.h: converts dates and times to numbers: ISO 8601 ("2024-02-29", "2024-02-29T12:30:15.5+01:00"), "29.02.2024",
// and "29/02/2024" or "02/29/2024", whose order must be known.
// Contract: proleptic Gregorian calendar, years 0 to 9999. A time without a zone is UTC, and fields are in UTC. Days
// count from 1970-01-01. Calendar algorithm: H. Hinnant, "chrono-compatible low-level date algorithms". Not here:
// choice of date columns (formulas, data.md).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "data/sources/sources.h"

namespace graphrun::data {

bool is_date(std::string_view text, DateOrder order);  // unknown: a date in any order is not one
bool is_date(std::string_view text);                   // in one of the orders

// Date functions for formulas: days, seconds, year, month, day, weekday, hour, minute.
std::span<const Doc> date_functions();

// `function` is an index into date_functions(). Returns nothing if is_date(text, order) is false.
std::optional<double> date_number(std::string_view text, std::size_t function, DateOrder order);

}  // namespace graphrun::data
