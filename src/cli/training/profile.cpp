#include "cli/training/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace graphrun::cli {
namespace {

std::map<std::string_view, double> totals_of(const Profile& profile) {
  std::map<std::string_view, double> totals;
  for (const ProfileRow& row : profile.rows) totals[row.group] += row.total;
  return totals;
}

double share(const ProfileRow& row, const std::map<std::string_view, double>& totals) {
  const double total = totals.at(row.group);
  return total > 0 ? 100 * row.total / total : 0;
}

double average(const ProfileRow& row) {
  return row.calls > 0 ? row.total / static_cast<double>(row.calls) : 0;
}

// Formats "1.2345ms" with five significant digits, as nvprof does.
std::string five_digits(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr std::array<Unit, 3> kUnits = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
  for (const Unit& unit : kUnits) {
    const double value = seconds / unit.seconds;
    if (value < 0.999995) continue;
    return fmt::format("{:.{}f}{}", value,
                       value < 9.99995   ? 4
                       : value < 99.9995 ? 3
                       : value < 999.995 ? 2
                                         : 1,
                       unit.name);
  }
  return fmt::format("{:.0f}ns", seconds * 1e9);
}

}  // namespace

std::string profile_table(const Profile& profile) {
  std::string text = fmt::format("profile: {}\n", profile.source);
  for (const std::string& note : profile.notes) text += fmt::format("  {}\n", note);
  std::size_t width = 14;
  for (const ProfileRow& row : profile.rows) width = std::max(width, row.group.size());
  text += fmt::format("{:>{}}  {:>7}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", "Type", width + 1, "Time(%)", "Time",
                      "Calls", "Avg", "Min", "Max", "Name");
  const auto totals = totals_of(profile);
  std::string_view group;
  for (const ProfileRow& row : profile.rows) {
    const std::string type = row.group == group ? std::string() : row.group + ":";
    group = row.group;
    text += fmt::format("{:>{}}  {:>6.2f}%  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", type, width + 1,
                        share(row, totals), five_digits(row.total), row.calls, five_digits(average(row)),
                        five_digits(row.min), five_digits(row.max), row.name);
  }
  return text;
}

void write_profile(JsonWriter& json, const Profile& profile) {
  json.begin_object().member("source", profile.source).member("notes", profile.notes);
  const auto totals = totals_of(profile);
  json.objects("rows", profile.rows, [&](const ProfileRow& row) {
    json.member("type", row.group).member("name", row.name).member("calls", row.calls);
    json.member("percent", share(row, totals)).member("seconds", row.total).member("average", average(row));
    json.member("min", row.min).member("max", row.max);
  });
  json.end_object();
}

// "JSON object format" of trace events: complete events ("X") in microseconds. Each group has its own track, named by a
// metadata event ("M").
std::string chrome_trace(const Profile& profile) {
  std::map<std::string_view, int> lines;
  for (const ProfileRow& row : profile.rows) lines.try_emplace(row.group, static_cast<int>(lines.size()) + 1);
  JsonWriter json;
  json.begin_object().key("traceEvents").begin_array();
  for (const auto& [group, line] : lines) {
    json.begin_object().member("ph", "M").member("name", "thread_name").member("pid", 1).member("tid", line);
    json.key("args").begin_object().member("name", group).end_object().end_object();
  }
  for (const ProfileEvent& event : profile.events) {
    const ProfileRow& row = profile.rows[event.row];
    json.begin_object().member("ph", "X").member("name", row.name).member("cat", row.group);
    json.member("ts", event.start * 1e6).member("dur", event.duration * 1e6);
    json.member("pid", 1).member("tid", lines.at(row.group)).end_object();
  }
  json.end_array().member("displayTimeUnit", "ns");
  json.key("otherData").begin_object().member("source", profile.source);
  json.member("events_left_out", profile.events_left_out).end_object().end_object();
  return json.text() + "\n";
}

}  // namespace graphrun::cli
