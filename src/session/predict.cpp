// predict.cpp: rows in original units in, an output in original units out, batch after batch.
#include <fmt/format.h>

#include <algorithm>

#include "graphrun/error.h"
#include "session/session_impl.h"

namespace graphrun {
namespace {

const Standardization* find_standardization(const Model& model, std::string_view input) {
  for (const Standardization& fitted : model.data.standardizations) {
    if (fitted.input == input) return &fitted;
  }
  return nullptr;
}

}  // namespace

void Session::Impl::write_batch(const StepPhase& phase, const std::vector<std::pair<std::string, HostTensor>>& given,
                                std::int64_t first, std::int64_t count) {
  for (const auto& [name, node] : phase.inputs) {
    const auto entry = std::find_if(given.begin(), given.end(), [&, n = name](const auto& g) { return g.first == n; });
    const TensorType& type = planned.step.graph[node].type;
    const std::size_t row = type.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(type.shape[0], 1));
    HostTensor batch(type.dtype, type.shape);  // zeros
    const std::span<const std::byte> rows =
        entry->second.bytes().subspan(static_cast<std::size_t>(first) * row, static_cast<std::size_t>(count) * row);
    std::copy(rows.begin(), rows.end(), batch.bytes().begin());
    if (const Standardization* fitted = find_standardization(model, name)) {
      const std::span<float> values =
          batch.elements<float>().first(static_cast<std::size_t>(count) * row / sizeof(float));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t column = i % fitted->scale.size();
        values[i] =
            static_cast<float>((static_cast<double>(values[i]) - fitted->shift[column]) / fitted->scale[column]);
      }
    }
    write(buffer(node), batch);
  }
  HostTensor rows(DType::i32, {});
  rows.elements<std::int32_t>()[0] = static_cast<std::int32_t>(count);
  write(buffer(phase.count), rows);
}

HostTensor Session::Impl::predict(const std::vector<std::pair<std::string, HostTensor>>& given) {
  const std::optional<std::size_t> index = phase_index("predict");
  if (!index) throw Error(ErrorKind::input, "predict.nothing", "the model names no output to predict");
  const StepPhase& phase = planned.step.phases[*index];
  std::int64_t samples = -1;
  for (const auto& [name, node] : phase.inputs) {
    const auto entry = std::find_if(given.begin(), given.end(), [&, n = name](const auto& g) { return g.first == n; });
    if (entry == given.end()) {
      throw Error(ErrorKind::input, "predict.missing", fmt::format("predict: the input '{}' is missing", name));
    }
    const HostTensor& tensor = entry->second;
    Shape wanted = planned.step.graph[node].type.shape;
    wanted[0] = tensor.shape().rank() > 0 ? tensor.shape()[0] : 0;
    if (tensor.dtype() != planned.step.graph[node].type.dtype || !(tensor.shape() == wanted)) {
      throw Error(
          ErrorKind::input, "predict.shape",
          fmt::format("predict: '{}' must be {} with any number of rows, got {}{}", name,
                      to_string(planned.step.graph[node].type), name_of(tensor.dtype()), to_string(tensor.shape())));
    }
    if (samples >= 0 && samples != wanted[0]) {
      throw Error(ErrorKind::input, "predict.rows",
                  fmt::format("predict: '{}' has {} rows, another input {}", name, wanted[0], samples));
    }
    samples = wanted[0];
  }
  const TensorType& type = planned.step.graph[phase.output].type;
  Shape shape = type.shape;
  shape[0] = samples * std::max<std::int64_t>(type.rows, 1);
  HostTensor result(type.dtype, shape);
  HostTensor batch(type.dtype, type.shape);
  const std::int64_t capacity = model.graph.batch();
  const std::size_t sample_bytes = type.bytes() / static_cast<std::size_t>(capacity);
  for (std::int64_t first = 0; first < samples; first += capacity) {
    const std::int64_t count = std::min(capacity, samples - first);
    write_batch(phase, given, first, count);
    run(*index, 1);
    runnable->read(buffer(phase.output), batch.bytes());
    const auto bytes = batch.bytes().first(static_cast<std::size_t>(count) * sample_bytes);
    std::copy(bytes.begin(), bytes.end(), result.bytes().begin() + first * static_cast<std::int64_t>(sample_bytes));
  }
  if (const Standardization* fitted = find_standardization(model, model.outputs.front().target)) {
    const std::span<float> values = result.elements<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t column = i % fitted->scale.size();
      values[i] = static_cast<float>(static_cast<double>(values[i]) * fitted->scale[column] + fitted->shift[column]);
    }
  }
  return result;
}

}  // namespace graphrun
