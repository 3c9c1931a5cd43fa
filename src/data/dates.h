// dates.h: dates and times of ISO 8601 as numbers: "2024-02-29", "2024-02-29T12:30:15.5+01:00".
// Contract: the proleptic Gregorian calendar, years 0 to 9999; a time without a zone is taken as UTC, and its parts are
// those of UTC. Days are counted from 1970-01-01. Formula of the calendar: H. Hinnant, "chrono-compatible low-level
// date algorithms". Leaves to others: which column is a date (a formula says it, data.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/sources.h"

namespace graphrun::data {

bool is_date(std::string_view text);

// What a formula may ask of a date: days, seconds, year, month, day, weekday, hour, minute.
std::span<const Doc> date_functions();

// `function` is the place in date_functions(); nothing when the text is no date.
std::optional<double> date_number(std::string_view text, std::size_t function);

}  // namespace graphrun::data
