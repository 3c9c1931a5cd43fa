#include "cli/stored_runs/sweep_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMaxValues = 10000, kMaxSettings = 100000;

[[noreturn]] void reject_values(const std::string& over, std::string_view what) {
  throw Error(ErrorKind::input, "sweep.over", fmt::format("--over '{}' {}", over, what),
              "as in train.optimizer.adam.lr=0.1,0.01 or graph.h.units=4:64:2x or train.epochs=10:50:+10");
}

std::optional<double> number_of(std::string_view text) {
  const std::optional<double> value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string> parted(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == at && depth == 0 && !quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<std::string> counted(const std::string& over, const std::vector<std::string>& range) {
  const std::optional<double> from = number_of(range[0]), to = number_of(range[1]);
  std::string_view step = range.size() > 2 ? std::string_view(range[2]) : std::string_view("+1");
  const bool multiplies = step.ends_with('x');
  if (multiplies) step.remove_suffix(1);
  if (step.starts_with('+')) step.remove_prefix(1);
  const std::optional<double> by = number_of(step);
  if (!from || !to || !by) reject_values(over, "is not a range of numbers");
  const bool comes_nearer = multiplies
                                ? *by > 0 && *by != 1 && *from != 0 && (*by > 1) == (std::abs(*to) > std::abs(*from))
                                : *by != 0 && (*by > 0) == (*to > *from);
  if (!comes_nearer && *from != *to) reject_values(over, "never reaches its end");
  std::vector<std::string> values;
  // Tolerance that keeps the end value despite rounding: 0.1:0.3:+0.1.
  const double slack = 1e-9 * std::max(std::abs(*from), std::abs(*to));
  for (std::size_t i = 0;; ++i) {
    const double value =
        multiplies ? *from * std::pow(*by, static_cast<double>(i)) : *from + static_cast<double>(i) * *by;
    const bool beyond = *to >= *from ? value > *to + slack : value < *to - slack;
    if (beyond || (i > 0 && *from == *to)) return values;
    if (values.size() == kMaxValues) reject_values(over, fmt::format("has more than {} values", kMaxValues));
    values.push_back(fmt::format("{:.12g}", value));
  }
}

}  // namespace

Axis axis_of(const std::string& over) {
  const std::size_t equals = over.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == over.size())
    reject_values(over, "is not PATH=VALUES");
  Axis axis{over.substr(0, equals), {}};
  const std::string values = over.substr(equals + 1);
  const std::vector<std::string> range = parted(values, ':');
  const bool counts = (range.size() == 2 || range.size() == 3) && number_of(range[0]) && number_of(range[1]);
  if (const std::size_t dots = values.find("..");
      dots != std::string::npos && number_of(values.substr(0, dots)) && number_of(values.substr(dots + 2)))
    reject_values(over, "is not a range: a range is FIRST:LAST:+STEP or FIRST:LAST:FACTORx");
  axis.values = counts ? counted(over, range) : parted(values, ',');
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    if (axis.values[i].empty()) reject_values(over, "has an empty value");
    for (std::size_t j = 0; j < i; ++j)
      if (axis.values[i] == axis.values[j]) reject_values(over, fmt::format("has '{}' twice", axis.values[i]));
  }
  return axis;
}

std::vector<GridPoint> settings_of(const std::vector<Axis>& axes) {
  std::vector<GridPoint> settings(1);
  for (const Axis& axis : axes) {
    std::vector<GridPoint> longer;
    if (settings.size() * axis.values.size() > kMaxSettings)
      throw Error(ErrorKind::input, "sweep.settings", fmt::format("a sweep has at most {} settings", kMaxSettings));
    for (const GridPoint& setting : settings) {
      for (const std::string& value : axis.values) {
        longer.push_back(setting);
        longer.back().push_back(value);
      }
    }
    settings = std::move(longer);
  }
  return settings;
}

std::vector<Rung> rungs_of(std::size_t settings, std::int64_t epochs, std::size_t factor) {
  std::vector<Rung> rungs = {{settings, epochs}};
  do {
    rungs.push_back({(rungs.back().settings + factor - 1) / factor, epochs});
  } while (rungs.back().settings > factor);
  for (std::size_t k = rungs.size() - 1; k-- > 0;)
    rungs[k].epochs = std::max<std::int64_t>(1, rungs[k + 1].epochs / static_cast<std::int64_t>(factor));
  return rungs;
}

}  // namespace graphrun::cli
