#include "graphrun/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace graphrun {
namespace {

constexpr std::size_t kMaxEvents = 100000;

}  // namespace

double Profiler::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Profiler::Profiler() : begin_(now()) {
  profile_.events.reserve(kMaxEvents);
}

std::uint32_t Profiler::row(std::string_view group, std::string_view name) {
  for (std::size_t i = 0; i < profile_.rows.size(); ++i) {
    if (profile_.rows[i].name == name && profile_.rows[i].group == group) return static_cast<std::uint32_t>(i);
  }
  ProfileRow& fresh = profile_.rows.emplace_back();
  fresh.group = group;
  fresh.name = name;
  return static_cast<std::uint32_t>(profile_.rows.size() - 1);
}

void Profiler::add(std::uint32_t index, double start, double duration) {
  ProfileRow& row = profile_.rows[index];
  row.min = row.calls == 0 ? duration : std::min(row.min, duration);
  row.max = std::max(row.max, duration);
  row.total += duration;
  ++row.calls;
  if (profile_.events.size() < kMaxEvents) {
    profile_.events.push_back({index, start - begin_, duration});
  } else {
    ++profile_.events_left_out;
  }
}

Profile Profiler::take(std::string source, std::string_view last) const {
  const std::vector<ProfileRow>& rows = profile_.rows;
  std::vector<std::string_view> groups;
  for (const ProfileRow& row : rows) {
    if (row.group != last && std::find(groups.begin(), groups.end(), row.group) == groups.end())
      groups.push_back(row.group);
  }
  const auto place = [&](std::size_t i) { return std::find(groups.begin(), groups.end(), rows[i].group); };
  std::vector<std::uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return place(a) != place(b) ? place(a) < place(b) : rows[a].total > rows[b].total;
  });

  Profile result;
  result.source = std::move(source);
  std::vector<std::uint32_t> new_index(rows.size(), 0);
  for (const std::uint32_t index : order) {
    if (rows[index].calls == 0) continue;
    new_index[index] = static_cast<std::uint32_t>(result.rows.size());
    result.rows.push_back(rows[index]);
  }
  for (const ProfileEvent& event : profile_.events)
    result.events.push_back({new_index[event.row], event.start, event.duration});
  result.events_left_out = profile_.events_left_out;
  return result;
}

void StepClock::add_phase(std::string_view name, const std::vector<std::string_view>& kernels) {
  Timed& timed = phases_.emplace_back();
  timed.name = name;
  for (const std::string_view kernel : kernels)
    timed.rows.push_back(profiler_.row(fmt::format("steps of {}", name), kernel));
}

Profile StepClock::profile() const {
  Profile profile = profiler_.take("the host's clock");
  for (const Timed& phase : phases_) {
    if (phase.steps == 0) continue;
    profile.notes.push_back(
        fmt::format("{}: {} of {} steps were timed", phase.name, (phase.steps + kEvery - 1) / kEvery, phase.steps));
  }
  return profile;
}

}  // namespace graphrun
