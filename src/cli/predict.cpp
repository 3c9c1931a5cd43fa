// predict.cpp: the verb `predict`: the outputs of a trained model for the rows of a file, as CSV on stdout.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "graphrun/tensor.h"
#include "open.h"
#include "terminal.h"
#include "verbs.h"

namespace graphrun::cli {
namespace {

using Outputs = std::vector<std::pair<std::string, HostTensor>>;

constexpr std::int64_t kBatchRows = 1024;  // where the command line does not say

// Elements of one row.
std::size_t width_of(const HostTensor& tensor) {
  const std::int64_t rows = tensor.shape()[0];
  return rows == 0 ? 0 : static_cast<std::size_t>(tensor.shape().elements() / rows);
}

// An output of several numbers a row is so many columns: "logits.0", "logits.1", ...
std::vector<std::string> columns_of(const Outputs& outputs) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : outputs) {
    const std::size_t width = width_of(tensor);
    for (std::size_t i = 0; i < width; ++i) names.push_back(width == 1 ? name : fmt::format("{}.{}", name, i));
  }
  return names;
}

// Calls f(number) for the elements of one row of one output.
template <class F>
void each_number(const HostTensor& tensor, std::size_t row, F f) {
  const auto visit = [&](const auto elements) {
    const std::size_t width = width_of(tensor);
    for (const auto x : elements.subspan(row * width, width)) f(x);
  };
  switch (tensor.dtype()) {
    case DType::f32:
      return visit(tensor.elements<float>());
    case DType::f64:
      return visit(tensor.elements<double>());
    case DType::i32:
      return visit(tensor.elements<std::int32_t>());
    case DType::u64:
      return visit(tensor.elements<std::uint64_t>());
    case DType::boolean:
      return visit(tensor.elements<std::uint8_t>());
  }
}

std::string as_csv(const Outputs& outputs, std::size_t rows) {
  std::string text = fmt::format("{}\n", fmt::join(columns_of(outputs), ","));
  for (std::size_t row = 0; row < rows; ++row) {
    bool first = true;
    for (const auto& [name, tensor] : outputs) {
      each_number(tensor, row, [&](auto x) {
        fmt::format_to(std::back_inserter(text), "{}{}", first ? "" : ",", x);
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
  json.member("rows", rows).member("columns", columns_of(outputs)).key("predictions").begin_array();
  for (std::size_t row = 0; row < rows; ++row) {
    json.begin_array();
    for (const auto& [name, tensor] : outputs) each_number(tensor, row, [&](auto x) { json.value(x); });
    json.end_array();
  }
  return json.end_array().end_object().text() + "\n";
}

}  // namespace

int run_predict(const Arguments& arguments, Diagnostics& diagnostics) {
  const auto inputs = load_inputs(arguments.model, arguments.word, arguments.load);
  const std::int64_t rows = inputs.empty() ? 0 : inputs.front().second.shape()[0];
  LoadOptions load = arguments.load;
  load.data = DataUse::none;  // the weights bring what was fitted to it
  // In front of what the command line says, which wins.
  const std::string batch = std::to_string(std::clamp<std::int64_t>(rows, 1, kBatchRows));
  load.overrides.insert(load.overrides.begin(), {"train.batch", batch});
  Model model = load_model(arguments.model, load);
  model.data.splits.clear();  // those whose size the model file tells
  Session session = open_session(std::move(model), arguments, diagnostics);
  const Outputs outputs = session.predict_all(inputs);
  const auto count = static_cast<std::size_t>(rows);
  write_results(arguments.json ? as_json(session, outputs, count) : as_csv(outputs, count));
  return kDone;
}

}  // namespace graphrun::cli
