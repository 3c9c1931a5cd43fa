// predict.cpp: the verb `predict`: the outputs of a trained model for the rows of a file, as CSV on stdout.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "graphrun/elements.h"
#include "open.h"
#include "terminal.h"
#include "verbs.h"

namespace graphrun::cli {
namespace {

// An output in the units of the model, and how they become those of its target.
struct Output {
  std::string name;
  HostTensor values;
  std::optional<Standardization> units;
};
using Outputs = std::vector<Output>;

// The units of the outputs' targets, taken from the model: f32 cannot hold them where the deviation is small beside the
// mean, as of times.
std::vector<std::optional<Standardization>> take_units(Model& model) {
  std::vector<std::optional<Standardization>> units;
  std::vector<Standardization>& all = model.data.standardizations;
  const auto is_of = [](const std::string& input) {
    return [&](const Standardization& s) { return s.input == input; };
  };
  for (const OutputSpec& output : model.outputs) {
    const auto found = std::find_if(all.begin(), all.end(), is_of(output.target));
    units.push_back(found == all.end() ? std::nullopt : std::optional(*found));
  }
  for (const OutputSpec& output : model.outputs) std::erase_if(all, is_of(output.target));
  return units;
}

// Calls f with the number in original units: an f32 where that is as fine as a millionth of the deviation.
template <class F>
void in_units(double value, double shift, double scale, Curve curve, F f) {
  const double original = off_curve(curve, value * scale + shift);
  const auto narrow = static_cast<float>(original);
  const float next = std::nextafter(std::abs(narrow), std::numeric_limits<float>::infinity());
  const double deviation = curve == Curve::none ? std::abs(scale) : std::abs(scale * original);
  if (static_cast<double>(next - std::abs(narrow)) <= deviation * 0x1p-20)
    f(narrow);
  else
    f(original);
}

// Elements of one row.
std::size_t width_of(const HostTensor& tensor) {
  const std::int64_t rows = tensor.shape()[0];
  return rows == 0 ? 0 : static_cast<std::size_t>(tensor.shape().elements() / rows);
}

// An output of several numbers a row is so many columns: "logits.0", "logits.1", ...
std::vector<std::string> columns_of(const Outputs& outputs) {
  std::vector<std::string> names;
  for (const auto& [name, tensor, units] : outputs) {
    const std::size_t width = width_of(tensor);
    for (std::size_t i = 0; i < width; ++i) names.push_back(width == 1 ? name : fmt::format("{}.{}", name, i));
  }
  return names;
}

// Calls f(number) for the elements of one row of one output.
template <class F>
void each_number(const Output& output, std::size_t row, F f) {
  const HostTensor& tensor = output.values;
  with_elements(tensor, [&](const auto elements) {
    const std::size_t width = width_of(tensor);
    for (std::size_t i = 0; i < width; ++i) {
      const auto x = elements[row * width + i];
      if (!output.units) {
        f(x);
        continue;
      }
      const std::size_t column = i % output.units->scale.size();
      in_units(static_cast<double>(x), output.units->shift[column], output.units->scale[column], output.units->curve,
               f);
    }
  });
}

std::string as_csv(const Outputs& outputs, std::size_t rows) {
  std::string text = fmt::format("{}\n", fmt::join(columns_of(outputs), ","));
  for (std::size_t row = 0; row < rows; ++row) {
    bool first = true;
    for (const Output& output : outputs) {
      each_number(output, row, [&](auto x) {
        fmt::format_to(std::back_inserter(text), "{}{}", first ? "" : ",", unsigned_nan(x));
        first = false;
      });
    }
    text += '\n';
  }
  return text;
}

std::string as_json(const Session& session, const Outputs& outputs, std::size_t rows) {
  JsonWriter json;
  json.begin_object().member("model", session.model().name).member("executor", session.executor());
  json.member("math", name_of(session.program().math));
  json.member("rows", rows).member("columns", columns_of(outputs)).key("predictions").begin_array();
  for (std::size_t row = 0; row < rows; ++row) {
    json.begin_array();
    for (const Output& output : outputs) each_number(output, row, [&](auto x) { json.value(x); });
    json.end_array();
  }
  return json.end_array().end_object().text() + "\n";
}

int run_predict(const Arguments& arguments, Diagnostics& diagnostics) {
  const auto inputs = load_inputs(arguments.model, arguments.word, arguments.load);
  const std::int64_t rows = inputs.front().second.shape()[0];
  LoadOptions load = arguments.load;
  load.predicts = rows;
  Model model = load_model(arguments.model, load);
  const std::vector<std::optional<Standardization>> units = take_units(model);
  Session session = open_session(std::move(model), arguments, diagnostics);
  Outputs outputs;
  for (auto& [name, values] : session.predict_all(inputs))
    outputs.push_back({name, std::move(values), units[outputs.size()]});
  const auto count = static_cast<std::size_t>(rows);
  write_results(arguments.json ? as_json(session, outputs, count) : as_csv(outputs, count));
  return kDone;
}

}  // namespace

const Verb predict_verb = {
    "predict",
    "",
    Words::model_and_data,
    "print what the model says of the rows of a file, as CSV",
    R"(Reads the rows of a CSV, NPY or NPZ file and prints the model's outputs for each as CSV, in the units of the
targets. A CSV file names its columns in the first line: as the model names those of its table, or x0, x1, ... for an
array x of several numbers a row; other columns are not looked at. An NPY file is the model's one input, an NPZ file
has inputs by name. A row's outputs depend on that row alone. Needs --weights, or a safetensors file of weights as the
model, and none of the model's own data. With --json, stdout is one object with the keys model, executor, math, rows,
columns, predictions.)",
    R"(graphrun train model.json --save-weights model.safetensors
graphrun predict model.safetensors new.csv > predictions.csv
graphrun predict model.json new.csv --weights model.npz)",
    run_predict};

}  // namespace graphrun::cli
