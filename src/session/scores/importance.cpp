// importance.cpp: permutation importance of the columns of a model's inputs; coefficients of linear models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/philox.h"
#include "base/random_bits.h"
#include "graph/frontend/model_check.h"
#include "graphrun/error.h"
#include "graphrun/show.h"
#include "session/session_impl.h"

namespace graphrun {
namespace {

// Elements of an input that belong to one column of its source.
struct ColumnPart {
  std::string name;  // column, or "x3" if the source has no columns
  std::size_t first = 0, width = 1;
  std::vector<std::string> words;  // categorical values; one element each if width > 1
};

std::vector<ColumnPart> column_parts(const DataSet& data, const std::string& input, std::size_t width) {
  std::vector<ColumnPart> parts;
  for (const InputColumns& one : data.columns) {
    std::size_t first = 0;
    for (std::size_t i = 0; one.input == input && i < one.names.size(); ++i) {
      parts.push_back({one.names[i], first, one.widths[i], one.words[i]});
      first += parts.back().width;
    }
    if (first == width) return parts;
    parts.clear();
  }
  for (std::size_t i = 0; i < width; ++i)
    parts.push_back({width == 1 ? input : fmt::format("{}{}", input, i), i, 1, {}});
  return parts;
}

std::string element_name(const ColumnPart& part, std::size_t i) {
  if (part.width == 1) return part.name;
  return part.words.empty() ? fmt::format("{}={}", part.name, i) : fmt::format("{}={}", part.name, part.words[i]);
}

double metric_of(const Metrics& metrics, std::string_view name) {
  if (name == "loss") return metrics.loss;
  return std::ranges::find(metrics.values, name, &std::pair<std::string, double>::first)->second;
}

// Gives row i the column's bytes of row permutation(i) of `original`.
void shuffle_column(HostTensor& to, const HostTensor& original, const ColumnPart& part, std::uint64_t key,
                    std::uint64_t repeat) {
  const auto rows = static_cast<std::uint64_t>(to.shape()[0]);
  const std::size_t row_bytes = to.bytes().size() / rows;
  const std::size_t each = row_bytes / static_cast<std::size_t>(to.shape().elements() / to.shape()[0]);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto from = original.bytes().subspan(bits::permuted(row, rows, key, repeat) * row_bytes + part.first * each);
    std::copy_n(from.begin(), part.width * each,
                to.bytes().begin() + static_cast<std::ptrdiff_t>(row * row_bytes + part.first * each));
  }
}

}  // namespace

std::vector<std::string> element_names(const DataSet& data, const std::string& input) {
  std::vector<std::string> names;
  for (const Split& split : data.splits) {
    const auto column = std::ranges::find(split.columns, input, &std::pair<std::string, HostTensor>::first);
    if (column == split.columns.end() || split.samples() == 0) continue;
    const std::int64_t width = column->second.shape().elements() / split.samples();
    for (const ColumnPart& part : column_parts(data, input, static_cast<std::size_t>(width)))
      for (std::size_t i = 0; i < part.width; ++i) names.push_back(element_name(part, i));
    break;
  }
  return names;
}

std::vector<Importance> Session::importance(std::string_view split, const std::string& metric, std::uint64_t repeats) {
  LoadedModel& loaded = not_moved(impl_).loaded;
  Predictor& predictor = impl_->predictor;
  std::vector<std::string> names = metric_names();
  names.insert(names.begin(), "loss");
  if (std::ranges::find(names, metric) == names.end())
    throw Error(ErrorKind::input, "importance.metric", fmt::format("'{}' is not a metric of the model", metric),
                fmt::format("it has {}; --set train.metrics='[\"{}\"]' adds another", fmt::join(names, ", "), metric));
  const Split* const shuffled = loaded.model.data.find(split);
  if (shuffled != nullptr && shuffled->samples() < 2)
    throw Error(ErrorKind::input, "importance.rows",
                fmt::format("the split '{}' has one row; importance needs two rows or more to shuffle", split));
  const double start = metric_of(evaluate(split), metric);
  if (!std::isfinite(start))
    throw Error(ErrorKind::input, "importance.metric",
                fmt::format("the metric '{}' has no value on the {} rows of '{}'", metric, shuffled->samples(), split),
                metric == "auc" ? "auc needs rows of both classes" : "");
  Monitor monitor;
  monitor.monitor = metric;
  const double sign = monitor_rises(loaded.model, monitor).value_or(false) ? -1 : 1;
  std::vector<Importance> all;
  for (const auto& [input, node] : predictor.predicting().inputs) {
    Split& rows = *std::ranges::find(loaded.model.data.splits, split, &Split::name);
    if (!rows.windows.empty())
      throw Error(
          ErrorKind::input, "importance.windows",
          fmt::format("the samples of '{}' are windows over shared rows, which cannot be shuffled alone", input));
    HostTensor& column = std::ranges::find(rows.columns, input, &std::pair<std::string, HostTensor>::first)->second;
    const std::string state = fmt::format("data/{}/{}", split, input);
    const auto on_device =
        std::ranges::find(loaded.compiled.step.data, state, &std::pair<std::string, ir::NodeId>::first);
    const auto write = [&] {
      if (on_device != loaded.compiled.step.data.end())
        loaded.runnable->write(loaded.buffer(on_device->second), column.bytes());
    };
    const HostTensor original = column;
    const auto restore = [&] {
      column = original;
      write();
    };
    const auto width = static_cast<std::size_t>(column.shape().elements() / column.shape()[0]);
    for (const ColumnPart& part : column_parts(loaded.model.data, input, width)) {
      std::vector<double> increases;
      const Stream stream = Stream::named(loaded.model.train.seed, fmt::format("importance/{}", part.name));
      for (std::uint64_t i = 0; i < repeats; ++i) {
        shuffle_column(column, original, part, stream.key, i);
        write();
        try {
          increases.push_back(sign * (metric_of(evaluate(split), metric) - start));
        } catch (...) {
          restore();
          throw;
        }
      }
      const double count = static_cast<double>(repeats);
      const double mean = std::accumulate(increases.begin(), increases.end(), 0.0) / count;
      double variance = 0;
      for (const double increase : increases) variance += (increase - mean) * (increase - mean) / count;
      all.push_back({part.name, mean, std::sqrt(variance)});
      restore();
    }
  }
  std::ranges::stable_sort(all, std::greater(), &Importance::mean);
  return all;
}

// Coefficients are differences of outputs. Two more rows check that the output is linear.
std::vector<std::pair<std::string, double>> Session::coefficients() {
  LoadedModel& loaded = not_moved(impl_).loaded;
  Predictor& predictor = impl_->predictor;
  const StepPhase& phase = predictor.predicting();
  const std::string& input = phase.inputs[0].first;
  const TensorType& in = loaded.program().buffers[loaded.buffer(phase.inputs[0].second)].type;
  const TensorType& out = predictor.type_of_output(phase, 0);
  const std::int64_t width = in.shape.elements() / std::max<std::int64_t>(in.shape[0], 1);
  const auto reject = [&](std::string_view why) {
    throw Error(ErrorKind::input, "coefficients.linear",
                fmt::format("the output '{}' {}, so it has no coefficients", loaded.model.outputs[0].name, why));
  };
  if (phase.inputs.size() != 1 || !is_float(in.dtype)) reject("depends on several inputs or on class numbers");
  if (out.shape.elements() != out.shape[0] || width > 4096) reject("or its input has too many numbers per row");
  HostTensor points(DType::f32, Shape{width + 3, width});  // 0, each unit vector, and two mixtures
  const std::span<float> x = points.elements<float>();
  for (std::int64_t j = 0; j < width; ++j) {
    x[static_cast<std::size_t>((j + 1) * width + j)] = 1;
    x[static_cast<std::size_t>((width + 1) * width + j)] = static_cast<float>(1 + j % 3);
    x[static_cast<std::size_t>((width + 2) * width + j)] = static_cast<float>(-2 + j % 2);
  }
  std::vector<double> y;
  const GivenRows rows[] = {given_rows(points, nullptr)};
  predictor.each_batch(phase, rows, 1, [&](std::int64_t count, std::span<const HostTensor> batch) {
    const std::vector<double> numbers = as_doubles(batch[0]);
    y.insert(y.end(), numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count));
    return true;
  });
  const auto units = static_cast<std::size_t>(width);
  for (std::size_t mixture = units + 1; mixture < y.size(); ++mixture) {
    double expected = y[0], size = std::abs(y[0]);
    for (std::size_t j = 0; j < units; ++j) {
      const double term = static_cast<double>(x[mixture * units + j]) * (y[j + 1] - y[0]);
      expected += term, size += std::abs(term);
    }
    if (!(std::abs(y[mixture] - expected) <= 1e-4 * size)) reject("is not linear in its inputs");
  }

  const Standardization* const whole = loaded.fitted_of(input);
  const Standardization* const target = loaded.fitted_of(loaded.model.outputs[0].target);
  const double scale = target == nullptr ? 1 : target->scale[0];
  std::vector<std::pair<std::string, double>> all = {{"(intercept)", scale * y[0]}};
  if (target != nullptr) all[0].second += target->shift[0];
  for (const ColumnPart& part : column_parts(loaded.model.data, input, units)) {
    for (std::size_t i = 0; i < part.width; ++i) {
      double slope = scale * (y[part.first + i + 1] - y[0]), shift = 0, unit = 1;
      std::string name = element_name(part, i);
      const auto change = [&](double by, double over, bool log) {
        shift = by, unit = over;
        if (log) name = fmt::format("log({})", name);
      };
      if (whole != nullptr)
        change(whole->shift[part.first + i], whole->scale[part.first + i], whole->log != LogTransform::none);
      for (const FittedStatistic& one : loaded.model.data.fitted)
        if (one.name.substr(0, one.name.rfind(':')) == part.name && one.values.size() == 2)
          change(one.values[0], one.values[1], one.name.find(":log") != std::string::npos);
      slope /= unit;
      all[0].second -= slope * shift;
      all.emplace_back(std::move(name), slope);
    }
  }
  return all;
}

}  // namespace graphrun
