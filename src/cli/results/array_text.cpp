#include "cli/results/array_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal/terminal.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/scores.h"
#include "graphrun/verify.h"
#include "plot/panels.h"

namespace graphrun::cli {
namespace {

constexpr int kBins = 12;
constexpr std::size_t kHeadRows = 8, kHeadColumns = 6, kBar = 40;

struct ArrayStatistics {
  std::uint64_t elements = 0, finite = 0, zeros = 0;
  double min = kNoScore, max = kNoScore, mean = kNoScore, std_dev = kNoScore, norm = kNoScore;  // over finite elements
};

ArrayStatistics statistics_of(const std::vector<double>& values) {
  ArrayStatistics of;
  of.elements = values.size();
  double squares = 0, size = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    if (of.finite++ == 0) of.min = of.max = x, of.mean = 0;
    of.zeros += x == 0 ? 1 : 0;
    of.min = std::min(of.min, x);
    of.max = std::max(of.max, x);
    const double from_mean = x - of.mean;
    of.mean += from_mean / static_cast<double>(of.finite);
    squares += from_mean * (x - of.mean);
    size += x * x;
  }
  if (of.finite == 0) return of;
  of.std_dev = std::sqrt(squares / static_cast<double>(of.finite));
  of.norm = std::sqrt(size);
  return of;
}

std::string number_text(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}

// Nonzero shares never print as 0 %, and incomplete ones never as 100 %.
std::string share_text(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  if (part == whole) return "100 %";
  return fmt::format("{:.1f} %", std::clamp(100 * static_cast<double>(part) / static_cast<double>(whole), 0.1, 99.9));
}

std::string histogram_text(const std::vector<double>& values, const ArrayStatistics& of) {
  if (of.finite == 0 || of.min == of.max) return {};
  std::vector<std::uint64_t> counts(kBins);
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    const auto bin = static_cast<std::size_t>((x - of.min) / (of.max - of.min) * kBins);
    ++counts[std::min<std::size_t>(bin, kBins - 1)];
  }
  const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
  std::string text = "\n";
  for (int bin = 0; bin < kBins; ++bin) {
    const std::uint64_t count = counts[static_cast<std::size_t>(bin)];
    const auto bar = static_cast<std::size_t>(std::ceil(static_cast<double>(count * kBar) / static_cast<double>(most)));
    text += fmt::format("{:>11} {:<{}} {}\n", number_text(of.min + bin * (of.max - of.min) / kBins),
                        std::string(bar, '#'), kBar, grouped(count));
  }
  return text;
}

// Matrix in its usual orientation; higher ranks use the last axis as columns.
std::string heat_map_text(const std::vector<double>& values, const Shape& shape) {
  constexpr std::size_t kAcross = 64, kDown = 16;
  if (shape.rank() < 2 || values.empty()) return {};
  plot::HeatMap map;
  map.width = static_cast<std::size_t>(shape[shape.rank() - 1]);
  map.height = values.size() / map.width;
  if (map.width == 1 || map.height == 1) return {};
  map.cells = values;
  plot::Panels panels;
  panels.maps.push_back(plot::pooled(map, kAcross, kDown));
  plot::TextOptions options;
  options.unicode = speaks_utf8();
  options.colour = takes_colour(stdout);
  return "\n" + plot::as_text(panels, options);
}

// First rows and columns of a matrix; other ranks use the last axis as columns.
std::string head_text(const std::vector<double>& values, const Shape& shape) {
  if (values.empty()) return {};
  const std::size_t columns = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]),
                    rows = values.size() / columns;
  std::string text = "\n";
  for (std::size_t r = 0; r < std::min(rows, kHeadRows); ++r) {
    for (std::size_t c = 0; c < std::min(columns, kHeadColumns); ++c)
      text += fmt::format("{:>12.5g}", values[r * columns + c]);
    text += columns > kHeadColumns ? "  ...\n" : "\n";
  }
  return text + (rows > kHeadRows ? "         ...\n" : "");
}

std::string csv_of(const std::vector<double>& values, const Shape& shape) {
  const std::size_t columns = shape.rank() < 2 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{:.9g}{}", values[i], (i + 1) % columns == 0 ? '\n' : ',');
  return text;
}

}  // namespace

std::string arrays_text(const std::string& title, const std::vector<NamedArray>& arrays, bool detailed) {
  std::vector<std::vector<std::string>> rows = {
      {title, "dtype", "shape", "min", "max", "mean", "std", "norm", "zeros"}};
  std::string details;
  for (const NamedArray& array : arrays) {
    const std::vector<double> values = as_doubles(array.read());
    const ArrayStatistics of = statistics_of(values);
    rows.push_back({printable(array.name), array.dtype, to_string(array.shape), number_text(of.min),
                    number_text(of.max), number_text(of.mean), number_text(of.std_dev), number_text(of.norm),
                    share_text(of.zeros, of.elements)});
    if (of.finite < of.elements)
      details += fmt::format("{}: {} of {} numbers are not finite\n", printable(array.name),
                             grouped(of.elements - of.finite), grouped(of.elements));
    if (!detailed) continue;
    details += "\n" + paint(stdout, Style::bold, printable(array.name)) + histogram_text(values, of);
    details += heat_map_text(values, array.shape) + head_text(values, array.shape);
  }
  return text_table(rows) + details;
}

void write_array(JsonWriter& json, const NamedArray& array, bool whole) {
  const std::vector<double> values = as_doubles(array.read());
  const ArrayStatistics of = statistics_of(values);
  json.member("name", array.name).member("dtype", array.dtype).member("shape", array.shape.dims());
  json.member("elements", of.elements).member("finite", of.finite).member("min", of.min).member("max", of.max);
  json.member("mean", of.mean).member("std", of.std_dev).member("norm", of.norm).member("zeros", of.zeros);
  if (whole) json.member("values", values);
}

void save_array(OutputFile& file, const HostTensor& tensor) {
  if (!file.path().ends_with(".csv")) return save_npy(tensor, file);
  file.write(csv_of(as_doubles(tensor), tensor.shape()));
  file.commit();
}

}  // namespace graphrun::cli
