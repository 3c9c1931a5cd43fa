// profile.h: a Profile as a table in nvprof's form, as JSON, and as a timeline for chrome://tracing and Perfetto.
// Contract: shares are of a group, times are total, average, least and most of a call.
#pragma once

#include <string>

#include "cli/terminal/json_writer.h"
#include "graphrun/profile.h"

namespace graphrun::cli {

std::string profile_table(const Profile& profile);
void write_profile(JsonWriter& json, const Profile& profile);  // as the next value
std::string chrome_trace(const Profile& profile);

}  // namespace graphrun::cli
