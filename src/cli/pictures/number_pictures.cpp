// number_pictures.cpp: pictures of models with regression outputs: predicted vs. actual.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "cli/pictures/model_pictures.h"
#include "cli/results/split_rows.h"
#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "plot/histogram.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMaxCompared = 8, kMaxCells = 48, kMaxPoints = 500;

// One column of an output, with its target.
struct Compared {
  std::string name;
  std::vector<double> truth, predicted;
};

std::vector<Compared> compared(Session& session, const std::string& split) {
  const std::vector<ClassOutput> classes = class_outputs(session.model());
  const SplitRows rows = predicted_rows(session, split);
  std::vector<Compared> all;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const HostTensor* target = rows.find(session.model().outputs[i].target);
    const HostTensor& output = rows.predictions[i].second;
    if (classes[i].is_class || target == nullptr || target->shape().elements() != output.shape().elements()) continue;
    const std::vector<double> truth = as_doubles(*target), predicted = as_doubles(output);
    const std::size_t width = truth.size() / static_cast<std::size_t>(target->shape()[0]);
    for (std::size_t column = 0; column < width && all.size() < kMaxCompared; ++column) {
      Compared one{
          width == 1 ? rows.predictions[i].first : fmt::format("{}.{}", rows.predictions[i].first, column), {}, {}};
      for (std::size_t at = column; at < truth.size(); at += width) {
        one.truth.push_back(truth[at]);
        one.predicted.push_back(predicted[at]);
      }
      all.push_back(std::move(one));
    }
  }
  if (!all.empty()) return all;
  throw Error(ErrorKind::input, "plot.numbers", "the model has no numeric output with a target",
              "use confusion for class outputs");
}

// Rows with exactly two input values: the two columns of one input, or one column each of two inputs.
struct Plane {
  std::string names[2];
  std::vector<double> at[2];
  double shift[2] = {0, 0}, unit[2] = {1, 1};  // original value: at * unit + shift
  std::vector<std::string> inputs;
};

std::vector<std::string> free_inputs(const Model& model, const SplitRows& rows) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : rows.inputs) {
    const auto answers = [&, known = name](const OutputSpec& output) { return output.target == known; };
    if (std::none_of(model.outputs.begin(), model.outputs.end(), answers)) names.push_back(name);
  }
  return names;
}

Plane plane_of(const Model& model, const SplitRows& rows) {
  Plane plane;
  plane.inputs = free_inputs(model, rows);
  std::size_t count = 0;
  for (const std::string& name : plane.inputs) {
    const HostTensor& tensor = *rows.find(name);
    const std::vector<double> values = as_doubles(tensor);
    const std::size_t width = values.size() / static_cast<std::size_t>(tensor.shape()[0]);
    for (std::size_t column = 0; column < width; ++column, ++count) {
      if (count >= 2 || tensor.dtype() == DType::i32) continue;
      plane.names[count] = width == 1 ? name : fmt::format("{}.{}", name, column);
      for (const InputColumns& one : model.data.columns)
        if (one.input == name && one.names.size() == width) plane.names[count] = one.names[column];
      for (const FittedStatistic& one : model.data.fitted) {  // "rooms:standardize", "rooms:log"
        if (one.values.size() != 2 || one.name.substr(0, one.name.rfind(':')) != plane.names[count]) continue;
        plane.shift[count] = one.values[0], plane.unit[count] = one.values[1];
        if (one.name.find(":log") != std::string::npos) plane.names[count] = fmt::format("log({})", plane.names[count]);
        break;
      }
      for (std::size_t i = column; i < values.size(); i += width) plane.at[count].push_back(values[i]);
    }
  }
  if (count == 2 && plane.at[0].size() == plane.at[1].size() && !plane.at[0].empty()) return plane;
  throw Error(ErrorKind::input, "plot.surface",
              fmt::format("a surface needs a model with two numbers per row; '{}' has {}", model.name, count),
              "predicted and residuals work for any number");
}

// Equal cells from the minimum to the maximum.
struct Division {
  double low = 0, high = 0;
  std::size_t cells = 1;

  Division(const std::vector<double>& values, std::size_t most) : cells(most) {
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    low = *least;
    high = *largest;
  }
  double middle(std::size_t cell) const {
    return low + (high - low) * (static_cast<double>(cell) + 0.5) / static_cast<double>(cells);
  }
  double position(double value) const {  // in cells
    return high > low ? (value - low) / (high - low) * static_cast<double>(cells) : 0.5;
  }
  std::size_t cell_of(double value) const {
    return std::min(cells - 1, static_cast<std::size_t>(std::max(0.0, position(value))));
  }
  std::vector<std::string> labels(double shift, double unit) const {
    std::vector<std::string> names(cells);
    const auto label = [&](double at) {  // without rounding errors next to 0
      const double value = at * unit + shift;
      return fmt::format("{:.3g}", std::abs(value) < 1e-6 * std::abs(unit) * (high - low) ? 0.0 : value);
    };
    names.front() = label(low);
    names[cells / 2] = label(low / 2 + high / 2);
    names.back() = label(high);
    return names;
  }
};

// Grid of a surface.
struct Cells {
  Division across, up;
  std::size_t count() const { return across.cells * up.cells; }
  std::size_t cell_of(double x, double y) const {
    return (up.cells - 1 - up.cell_of(y)) * across.cells + across.cell_of(x);  // top row first
  }
};

plot::HeatMap empty_map(const Plane& plane, const Cells& cells, std::string title) {
  plot::HeatMap map;
  map.title = std::move(title);
  map.x_label = plane.names[0];
  map.y_label = plane.names[1];
  map.width = cells.across.cells;
  map.height = cells.up.cells;
  map.columns = cells.across.labels(plane.shift[0], plane.unit[0]);
  map.rows = cells.up.labels(plane.shift[1], plane.unit[1]);
  std::reverse(map.rows.begin(), map.rows.end());
  return map;
}

// Prediction at the centre of each cell: class index (multiclass), probability (binary) or value (regression).
plot::HeatMap predicted_map(Session& session, const SplitRows& rows, const Plane& plane, const Cells& cells) {
  std::vector<std::pair<std::string, HostTensor>> inputs;
  std::size_t column = 0;
  for (const std::string& name : plane.inputs) {
    Shape shape = rows.find(name)->shape();
    const auto width = static_cast<std::size_t>(shape.elements() / shape[0]);
    shape[0] = static_cast<std::int64_t>(cells.count());
    HostTensor tensor(DType::f64, shape);
    for (std::size_t i = 0; i < cells.count(); ++i) {
      const std::size_t x = i % cells.across.cells, y = cells.up.cells - 1 - i / cells.across.cells;
      for (std::size_t j = 0; j < width; ++j)
        tensor.elements<double>()[i * width + j] = column + j == 0 ? cells.across.middle(x) : cells.up.middle(y);
    }
    column += width;
    inputs.emplace_back(name, std::move(tensor));
  }
  const HostTensor predicted = session.predict(inputs);
  HostTensor output = from_doubles(as_doubles(predicted), {DType::f32, predicted.shape(), 0});
  const ClassOutput how = class_outputs(session.model()).front();
  const std::size_t each = static_cast<std::size_t>(output.shape().elements()) / cells.count();
  plot::HeatMap map = empty_map(plane, cells, fmt::format("{}, predicted", session.model().outputs.front().name));
  for (std::size_t i = 0; i < cells.count(); ++i) {
    const std::span<float> row = output.elements<float>().subspan(i * each, each);
    if (how.is_class && each == 1 && how.numbers != ClassOutput::Numbers::plain) how.to_probabilities(row);
    map.cells.push_back(how.is_class && each > 1 ? static_cast<double>(how.class_of(row))
                                                 : static_cast<double>(row[0]));
  }
  map.contours = !how.is_class || each == 1;  // class indices have no order
  return map;
}

// Mean target in each cell, and the rows as points if there are cells without one; nothing if the target is not
// numeric.
std::optional<plot::HeatMap> given_map(const Model& model, const SplitRows& rows, const Plane& plane,
                                       const Cells& cells) {
  const std::string& name = model.outputs.front().target;
  const HostTensor* target = rows.find(name);
  if (target == nullptr) return std::nullopt;
  const std::vector<double> truth = as_doubles(*target);
  const std::size_t wide = truth.size() / plane.at[0].size();
  const bool is_class = class_outputs(model).front().is_class;
  if (wide != 1 && !is_class) return std::nullopt;
  plot::HeatMap map = empty_map(plane, cells, fmt::format("{}, actual", name));
  map.cells.assign(cells.count(), 0);
  std::vector<double> seen(cells.count());
  for (std::size_t i = 0; i < plane.at[0].size(); ++i) {
    const auto row = truth.begin() + static_cast<std::ptrdiff_t>(i * wide);
    const double value =
        wide == 1 ? *row : static_cast<double>(std::max_element(row, row + static_cast<std::ptrdiff_t>(wide)) - row);
    const std::size_t cell = cells.cell_of(plane.at[0][i], plane.at[1][i]);
    map.cells[cell] += (value - map.cells[cell]) / ++seen[cell];
    if (map.points.size() == kMaxPoints) continue;
    map.points.push_back({cells.across.position(plane.at[0][i]),
                          static_cast<double>(cells.up.cells) - cells.up.position(plane.at[1][i])});
    map.point_values.push_back(value);
  }
  map.contours = !is_class;
  for (std::size_t i = 0; i < cells.count(); ++i) {
    if (seen[i] > 0) continue;
    map.cells[i] = std::nan("");
    map.contours = false;  // data rows are scattered
  }
  if (std::ranges::find(seen, 0.0) == seen.end()) map.points.clear(), map.point_values.clear();
  return map;
}

}  // namespace

plot::Figure predicted_picture(Session& session, const std::string& split) {
  plot::Figure figure;
  figure.title = fmt::format("{} split: predicted vs. actual", split);
  figure.x.label = "actual";
  figure.y.label = "predicted";
  std::vector<double> ends;
  for (Compared& one : compared(session, split)) {
    for (const double value : one.truth) {
      if (ends.empty()) ends = {value, value};
      ends = {std::min(ends[0], value), std::max(ends[1], value)};
    }
    figure.series.push_back({one.name, std::move(one.truth), std::move(one.predicted), figure.series.size(), 0, true});
  }
  figure.series.push_back({"predicted = actual", ends, ends, 6, 1});
  return figure;
}

plot::Figure residuals_picture(Session& session, const std::string& split) {
  plot::Figure figure;
  figure.title = fmt::format("{} split: residuals", split);
  figure.x.label = "predicted - actual";
  figure.y.label = "rows";
  for (const Compared& one : compared(session, split)) {
    std::vector<double> residuals;
    for (std::size_t i = 0; i < one.truth.size(); ++i) {
      const double residual = one.predicted[i] - one.truth[i];
      if (std::isfinite(residual)) residuals.push_back(residual);
    }
    if (residuals.empty()) continue;
    const auto [low, high] = std::minmax_element(residuals.begin(), residuals.end());
    plot::Series series = plot::histogram(residuals, *low, *high);
    series.name = one.name;
    series.colour = figure.series.size();
    figure.series.push_back(std::move(series));
  }
  if (figure.series.empty()) throw Error(ErrorKind::input, "plot.nothing", "no residual is finite");
  return figure;
}

plot::Panels surface_picture(Session& session, const std::string& split, bool is_3d) {
  const Model& model = session.model();
  const SplitRows rows = predicted_rows(session, split);
  const Plane plane = plane_of(model, rows);
  const auto cells = [](const std::vector<double>& values) {
    return std::min(kMaxCells, std::set<double>(values.begin(), values.end()).size());
  };
  plot::Panels panels;
  panels.title = fmt::format("{}: surface on the {} split", model.name, split);
  panels.is_3d = is_3d;
  panels.maps.push_back(predicted_map(session, rows, plane, {{plane.at[0], kMaxCells}, {plane.at[1], kMaxCells}}));
  if (std::optional<plot::HeatMap> given =
          given_map(model, rows, plane, {{plane.at[0], cells(plane.at[0])}, {plane.at[1], cells(plane.at[1])}})) {
    plot::HeatMap& predicted = panels.maps.front();
    if (!given->points.empty()) {  // scattered rows: also on the predicted surface
      const Division across{plane.at[0], 1}, up{plane.at[1], 1};
      for (std::size_t i = 0; i < given->points.size(); ++i)
        predicted.points.push_back({across.position(plane.at[0][i]) * static_cast<double>(kMaxCells),
                                    (1 - up.position(plane.at[1][i])) * static_cast<double>(kMaxCells)});
      predicted.point_values = given->point_values;
      if (is_3d) std::ranges::fill(given->cells, std::nan(""));
      if (!is_3d) given->points.clear(), given->point_values.clear();
    }
    panels.maps.push_back(std::move(*given));
    panels.per_row = 2;
  }
  return panels;
}

}  // namespace graphrun::cli
