#include "cli/results/forecast.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

[[noreturn]] void reject_steps(std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, "predict.steps", "--steps: " + std::move(message), std::move(hint));
}

// Output whose values become a column of the next rows.
struct FedColumn {
  std::size_t output = 0, element = 0;
};

std::vector<FedColumn> fed_columns(const Session& session, const InputRows& history) {
  const std::vector<OutputSpec>& outputs = session.model().outputs;
  const std::vector<ClassOutput> classes = class_outputs(session.model());
  std::vector<FedColumn> sources;
  std::vector<std::string> unknown;
  for (const InputRows::Feed& feed : history.feeds) {
    const auto output = std::ranges::find(outputs, feed.target, &OutputSpec::target);
    if (feed.target.empty() || output == outputs.end()) {
      unknown.push_back(fmt::format("'{}'", feed.name));
      continue;
    }
    sources.push_back({static_cast<std::size_t>(output - outputs.begin()), feed.element});
    if (classes[sources.back().output].is_class)
      reject_steps(fmt::format("the model predicts classes of '{}', which are not values of a row", feed.name));
  }
  if (!unknown.empty())
    reject_steps(fmt::format("the model does not predict {}, and windows after the end of the table need {}",
                             fmt::join(unknown, ", "), unknown.size() == 1 ? "its values" : "their values"),
                 "train a model whose windows have only the columns that it predicts");
  return sources;
}

// Rows of an input, from windows that overlap.
struct WindowRows {
  std::size_t width = 0;
  std::vector<double> values;
};

WindowRows window_rows(const HostTensor& windows, std::size_t length) {
  const std::vector<double> all = as_doubles(windows);
  const std::size_t numbers = all.size() / static_cast<std::size_t>(windows.shape()[0]);
  WindowRows rows{numbers / length,
                  {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(numbers - numbers / length)}};
  for (std::size_t last = numbers; last <= all.size(); last += numbers)
    rows.values.insert(rows.values.end(), all.begin() + static_cast<std::ptrdiff_t>(last - rows.width),
                       all.begin() + static_cast<std::ptrdiff_t>(last));
  return rows;
}

}  // namespace

InputRows forecast_windows(Session& session, const InputRows& history, std::uint64_t steps,
                           const std::vector<std::optional<Standardization>>& units) {
  if (history.window_length == 0)
    reject_steps("the samples of the model are rows, not windows of consecutive rows",
                 "\"window\" next to the file name makes windows; see docs/guide/forecasts.md");
  const std::vector<FedColumn> sources = fed_columns(session, history);
  const std::int64_t length = history.window_length, target = history.target_row - length + 1;
  const std::int64_t first = history.rows() - target;  // first row of the first window
  if (target == 0) reject_steps("the model predicts the last row of a window, not a later one");
  if (first < 0)
    reject_steps(fmt::format("the file has {} rows, and the forecast starts from {}", history.rows() + length - 1,
                             length + target - 1));
  std::vector<WindowRows> tables;
  InputRows result{{}, {}, {}, length, history.rows() + length - 1, history.feeds};
  for (const auto& [name, windows] : history.inputs) {
    tables.push_back(window_rows(windows, static_cast<std::size_t>(length)));
    const auto named = std::ranges::count(history.feeds, name, &InputRows::Feed::input);
    if (static_cast<std::size_t>(named) != tables.back().width)
      reject_steps(fmt::format("a row of '{}' has {} numbers from {} columns; only plain columns can be predicted",
                               name, tables.back().width, named));
    Shape shape = windows.shape();
    shape[0] = static_cast<std::int64_t>(steps);
    result.inputs.emplace_back(name, HostTensor(windows.dtype(), shape));
  }
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::vector<std::pair<std::string, HostTensor>> window;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      auto& [name, all] = result.inputs[i];
      Shape shape = all.shape();
      shape[0] = 1;
      HostTensor& one = window.emplace_back(name, HostTensor(all.dtype(), shape)).second;
      const std::size_t numbers = tables[i].width * static_cast<std::size_t>(length);
      const std::size_t from = (static_cast<std::size_t>(first) + step) * tables[i].width;
      with_elements(one, [&]<class T>(std::span<T> to) {
        for (std::size_t k = 0; k < numbers; ++k) to[k] = static_cast<T>(tables[i].values[from + k]);
      });
      std::ranges::copy(one.bytes(), all.bytes().begin() + static_cast<std::ptrdiff_t>(step * one.bytes().size()));
    }
    const auto outputs = session.predict_all(window);
    std::size_t next = 0;
    for (WindowRows& table : tables) {
      for (std::size_t c = 0; c < table.width; ++c, ++next) {
        const FedColumn& source = sources[next];
        double value = as_doubles(outputs[source.output].second)[source.element];
        if (const std::optional<Standardization>& unit = units[source.output]) {
          const std::size_t column = source.element % unit->scale.size();
          value = invert_log(unit->log, value * unit->scale[column] + unit->shift[column]);
        }
        table.values.push_back(value);
      }
    }
  }
  return result;
}

}  // namespace graphrun::cli
