// weight_pictures.cpp: pictures of a model's parameters: one as a heat map, one or all as histograms.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/pictures/model_pictures.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/program.h"
#include "plot/histogram.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMaxHistograms = 8;

std::vector<std::string> parameters_of(const Session& session) {
  std::vector<std::string> names;
  for (const Buffer& buffer : session.program().buffers) {
    if (buffer.kind == BufferKind::parameter) names.push_back(buffer.name);
  }
  return names;
}

void check_parameter(const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string near = nearest_name(name, names);
  throw Error(ErrorKind::input, "plot.array", fmt::format("the model has no parameter '{}'", name),
              near.empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : fmt::format("did you mean {}?", near));
}

}  // namespace

plot::Panels weights_picture(Session& session, const std::string& array) {
  const std::vector<std::string> names = parameters_of(session);
  std::string chosen = array;
  for (const std::string& name : names) {
    if (chosen.empty() && session.read(name).shape().rank() >= 2) chosen = name;
  }
  if (chosen.empty() && !names.empty()) chosen = names.front();
  check_parameter(chosen, names);
  const HostTensor tensor = session.read(chosen);
  const Shape& shape = tensor.shape();
  plot::HeatMap map;
  map.width = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  map.height = static_cast<std::size_t>(shape.elements()) / std::max<std::size_t>(map.width, 1);
  map.cells = as_doubles(tensor);
  plot::Panels panels;
  panels.title = fmt::format("{} {}", chosen, to_string(shape));
  panels.maps.push_back(std::move(map));
  panels.numbers = true;
  panels.is_signed = true;
  return panels;
}

// Several histograms share one range; percentages make arrays of different sizes comparable.
plot::Figure histogram_picture(Session& session, const std::string& array) {
  std::vector<std::string> names = parameters_of(session), matrices;
  for (const std::string& name : names)
    if (session.read(name).shape().rank() >= 2) matrices.push_back(name);
  if (!array.empty() || names.empty()) {
    check_parameter(array, names);
    names = {array};
  } else if (!matrices.empty()) {
    names = matrices;
  }
  plot::Figure figure;
  figure.title = names.size() == 1 ? fmt::format("{} {}", names[0], to_string(session.read(names[0]).shape()))
                 : names.size() > kMaxHistograms
                     ? fmt::format("the first {} of {} weight matrices", kMaxHistograms, names.size())
                     : "weight matrices";
  figure.x.label = "value";
  figure.y.label = "% of its elements";
  names.resize(std::min(names.size(), kMaxHistograms));
  std::vector<std::vector<double>> values;
  double low = 0, high = 0;
  bool any = false;
  for (const std::string& name : names) {
    values.push_back(as_doubles(session.read(name)));
    std::erase_if(values.back(), [](double value) { return !std::isfinite(value); });
    for (const double value : values.back()) {
      low = any ? std::min(low, value) : value;
      high = any ? std::max(high, value) : value;
      any = true;
    }
  }
  if (!any) throw Error(ErrorKind::input, "plot.nothing", "no element of the parameters is finite");
  std::size_t bins = 0;
  for (const std::vector<double>& all : values) bins = std::max(bins, plot::histogram_bins(all.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (values[i].empty()) continue;
    plot::Series series = plot::histogram(values[i], low, high, true, bins);
    series.name = names[i];
    series.colour = i;
    figure.series.push_back(std::move(series));
  }
  return figure;
}

}  // namespace graphrun::cli
