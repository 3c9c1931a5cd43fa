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

// How many samples are given. Throws Error for an input that is missing or does not fit.
std::int64_t Session::Impl::samples_of(const StepPhase& phase,
                                       const std::vector<std::pair<std::string, HostTensor>>& given) const {
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
  return std::max<std::int64_t>(samples, 0);
}

std::vector<std::pair<std::string, HostTensor>> Session::Impl::predict(
    const std::vector<std::pair<std::string, HostTensor>>& given, std::size_t count) {
  const std::optional<std::size_t> index = phase_index("predict");
  if (!index) throw Error(ErrorKind::input, "predict.nothing", "the model names no output to predict");
  const StepPhase& phase = planned.step.phases[*index];
  const std::int64_t samples = samples_of(phase, given);
  const std::int64_t capacity = model.graph.batch();

  std::vector<std::pair<std::string, HostTensor>> results;
  std::vector<HostTensor> batches;
  for (std::size_t i = 0; i < count; ++i) {
    const TensorType& type = planned.step.graph[phase.outputs[i]].type;
    if (type.rows == 0) {
      throw Error(ErrorKind::input, "predict.output",
                  fmt::format("predict: the output '{}' has no value for each sample, it is {}", model.outputs[i].name,
                              to_string(type)));
    }
    Shape shape = type.shape;
    shape[0] = samples * type.rows;
    results.emplace_back(model.outputs[i].name, HostTensor(type.dtype, shape));
    batches.emplace_back(type.dtype, type.shape);
  }
  for (std::int64_t first = 0; first < samples; first += capacity) {
    const std::int64_t rows = std::min(capacity, samples - first);
    write_batch(phase, given, first, rows);
    run(*index, 1);
    for (std::size_t i = 0; i < count; ++i) {
      runnable->read(buffer(phase.outputs[i]), batches[i].bytes());
      const std::size_t sample_bytes = batches[i].bytes().size() / static_cast<std::size_t>(capacity);
      const auto bytes = batches[i].bytes().first(static_cast<std::size_t>(rows) * sample_bytes);
      std::copy(bytes.begin(), bytes.end(),
                results[i].second.bytes().begin() + first * static_cast<std::int64_t>(sample_bytes));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Standardization* fitted = find_standardization(model, model.outputs[i].target);
    if (fitted == nullptr) continue;
    const std::span<float> values = results[i].second.elements<float>();
    for (std::size_t j = 0; j < values.size(); ++j) {
      const std::size_t column = j % fitted->scale.size();
      values[j] = static_cast<float>(static_cast<double>(values[j]) * fitted->scale[column] + fitted->shift[column]);
    }
  }
  return results;
}

}  // namespace graphrun
