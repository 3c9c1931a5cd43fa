#include "plot/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace graphrun::plot {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = 1e-300;  // narrower ranges would have denormal ticks

// Shortens "1e+06" to "1e6".
std::string short_exponent(std::string text) {
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  std::size_t digits = e + 1;
  if (text[digits] == '+') text.erase(digits, 1);
  if (text[digits] == '-') ++digits;
  while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  return text;
}

// Uses enough digits to distinguish adjacent ticks.
std::string label_of(double value, double step, double largest) {
  if (value == 0) return "0";
  if (largest < 1e6 && step >= 1e-5) {
    const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
    return fmt::format("{:.{}f}", value, decimals);
  }
  const int digits = static_cast<int>(std::floor(std::log10(largest)) - std::floor(std::log10(step) + 1e-9)) + 1;
  return short_exponent(fmt::format("{:.{}g}", value, std::clamp(digits, 1, 17)));
}

// Rounds up to 1, 2 or 5 times a power of ten.
double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

void linear_ticks(Scale& scale, int labels, bool whole) {
  double step = round_step(scale.to / labels - scale.from / labels);
  if (whole) step = std::max(step, 1.0);
  const double largest = std::max(std::abs(scale.from), std::abs(scale.to));
  const double first = std::ceil(scale.from / step - 1e-9), last = std::floor(scale.to / step + 1e-9);
  for (double n = first; n <= last; ++n) {
    const double value = n * step;
    if (std::isfinite(value)) scale.ticks.push_back({value, label_of(value, step, largest)});
  }
  if (scale.ticks.size() >= 2 || labels > 16) return;
  scale.ticks.clear();  // a single tick does not define a scale
  linear_ticks(scale, 2 * labels, whole);
}

void log_ticks(Scale& scale, int labels) {
  const int first = static_cast<int>(std::floor(std::log10(scale.from))),
            last = static_cast<int>(std::ceil(std::log10(scale.to)));
  const double decades = std::log10(scale.to) - std::log10(scale.from);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / labels)));
  for (int power = first; power <= last; ++power) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10.0, power);
      if (!std::isfinite(value) || !(value >= scale.from * (1 - 1e-12) && value <= scale.to * (1 + 1e-12))) continue;
      const bool labelled = digit == 1 ? power % every == 0 : 3 * decades <= labels + 2 && (digit == 2 || digit == 5);
      if (labelled)
        scale.ticks.push_back({value, short_exponent(fmt::format("{:.4g}", value))});
      else if (every == 1 || digit == 1)
        scale.ticks.push_back({value, ""});
    }
  }
  const auto labelled = [](const Tick& tick) { return !tick.label.empty(); };
  if (std::count_if(scale.ticks.begin(), scale.ticks.end(), labelled) >= 2) return;
  scale.ticks.clear();  // within one decade, linear ticks are more useful than powers of ten
  linear_ticks(scale, labels, false);
}

// Adds a margin around the values, or a range around a single value.
void widen(Scale& scale, double margin) {
  if (scale.log) {
    const double decades = std::log10(scale.to) - std::log10(scale.from);
    const double factor = std::pow(10.0, decades < 1e-9 ? 0.3 : decades * margin);
    scale.from = std::max(scale.from / factor, std::numeric_limits<double>::min());
    scale.to = std::min(scale.to * factor, kLargest);
    if (!(scale.from < scale.to)) scale.to = 10 * scale.from;  // all values are denormal
    return;
  }
  const double half = scale.to / 2 - scale.from / 2, largest = std::max(std::abs(scale.from), std::abs(scale.to));
  const bool narrow = half < kSmallest || half < largest * 1e-12;
  const double room = narrow ? (largest < kSmallest ? 1 : largest / 10) : 2 * margin * half;
  scale.from = std::max(scale.from - room, -kLargest);
  scale.to = std::min(scale.to + room, kLargest);
}

Scale scale_of(const Figure& figure, std::vector<double> Series::*values, bool log, int labels, double margin) {
  std::vector<const std::vector<double>*> all;
  for (const Series& series : figure.series) all.push_back(&(series.*values));
  return make_scale(all, log, labels, margin);
}

}  // namespace

bool Scale::shows(double value) const {
  return std::isfinite(value) && (!log || value > 0);
}

double Scale::place(double value) const {
  if (log) {
    const double low = std::log10(from), high = std::log10(to);
    return std::clamp((std::log10(value) - low) / (high - low), 0.0, 1.0);
  }
  return std::clamp((value / 2 - from / 2) / (to / 2 - from / 2), 0.0, 1.0);  // halved to avoid overflow
}

Scale make_scale(const std::vector<const std::vector<double>*>& values, bool log, int labels, double margin) {
  Scale scale;
  scale.log = log;
  bool any = false, whole = true;
  for (const std::vector<double>* series : values) {
    for (const double value : *series) {
      if (!scale.shows(value)) continue;
      scale.from = any ? std::min(scale.from, value) : value;
      scale.to = any ? std::max(scale.to, value) : value;
      whole = whole && value == std::floor(value);
      any = true;
    }
  }
  if (!any) {
    scale.from = log ? 0.1 : 0;
    scale.to = 1;
  } else {
    widen(scale, margin);
  }
  if (log)
    log_ticks(scale, labels);
  else
    linear_ticks(scale, labels, whole && scale.to - scale.from > 2);
  return scale;
}

Scale x_scale(const Figure& figure, int labels) {
  Scale scale = scale_of(figure, &Series::x, figure.x.log, labels, 0);
  if (!figure.parallel.empty()) scale.ticks.clear();
  for (const ParallelAxis& axis : figure.parallel)
    scale.ticks.push_back({static_cast<double>(scale.ticks.size()), axis.label});
  return scale;
}

Scale y_scale(const Figure& figure, int labels) {
  Scale scale = scale_of(figure, &Series::y, figure.y.log, labels, 0.04);
  if (!figure.parallel.empty()) scale = {-0.02, 1.02, false, {}};
  return scale;
}

}  // namespace graphrun::plot
