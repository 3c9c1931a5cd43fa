// profile.h: a Profile as a table in nvprof's format, as JSON, and as a timeline for chrome://tracing and Perfetto.
// Contract: percentages are relative to a group; times are total, average, minimum and maximum of a call.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "graphrun/profile.h"

namespace graphrun::cli {

std::string profile_table(const Profile& profile);
void write_profile(JsonWriter& json, const Profile& profile);  // as the next value
std::string chrome_trace(const Profile& profile);

}  // namespace graphrun::cli
