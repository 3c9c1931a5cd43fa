// predict.cpp: rows in original units in, an output in original units out, batch after batch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "session/session_impl.h"

namespace graphrun {
namespace {

// The rows of one input in the units of the model: changed in double and then rounded, as the training's were.
void fill_batch(const HostTensor& given, const Standardization* fitted, std::int64_t first, std::int64_t count,
                const std::string& name, HostTensor& batch) {
  const auto width = static_cast<std::size_t>(batch.shape().elements() / batch.shape()[0]);
  const std::size_t begin = static_cast<std::size_t>(first) * width, size = static_cast<std::size_t>(count) * width;
  if (given.dtype() == batch.dtype() && fitted == nullptr) {
    const std::size_t bytes = size_of(batch.dtype());
    const std::span<const std::byte> rows = given.bytes().subspan(begin * bytes, size * bytes);
    std::copy(rows.begin(), rows.end(), batch.bytes().begin());
    return;
  }
  const std::span<float> to = batch.elements<float>();  // no other is fitted, or takes another type
  with_elements(given, [&](const auto from) {
    for (std::size_t i = 0; i < size; ++i) {
      auto value = static_cast<double>(from[begin + i]);
      const bool was_finite = std::isfinite(value);
      if (fitted != nullptr) {
        const std::size_t column = i % fitted->scale.size();
        value = (on_curve(fitted->curve, value) - fitted->shift[column]) / fitted->scale[column];
      }
      to[i] = static_cast<float>(value);
      if (was_finite && !std::isfinite(to[i])) {
        throw Error(ErrorKind::input, "predict.value",
                    fmt::format("predict: input '{}', row {}, column {}: {} {}", name, (begin + i) / width, i % width,
                                from[begin + i],
                                std::isfinite(value) ? fmt::format("is too large for {}", name_of(batch.dtype()))
                                                     : std::string("has no logarithm")));
      }
    }
  });
}

}  // namespace

void Session::Impl::write_batch(const StepPhase& phase, const std::vector<Given>& given, std::int64_t first,
                                std::int64_t count) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& [name, node] = phase.inputs[i];
    const TensorType& type = program().buffers[buffer(node)].type;
    HostTensor batch(type.dtype, type.shape);  // zeros
    fill_batch(*given[i].rows, given[i].fitted, first, count, name, batch);
    write(buffer(node), batch);
  }
  const auto rows = static_cast<std::int32_t>(count);
  runnable->write(buffer(phase.count), std::as_bytes(std::span(&rows, 1)));
}

// In order of the phase's inputs, equally many rows of each. Throws Error for one that is missing or does not fit.
std::vector<Session::Impl::Given> Session::Impl::in_order(
    const StepPhase& phase, const std::vector<std::pair<std::string, HostTensor>>& given) const {
  std::map<std::string_view, const HostTensor*> rows;
  for (const auto& [name, tensor] : given) rows.emplace(name, &tensor);
  std::vector<Given> ordered;
  for (const auto& [name, node] : phase.inputs) {
    const auto entry = rows.find(name);
    if (entry == rows.end()) {
      throw Error(ErrorKind::input, "predict.missing", fmt::format("predict: the input '{}' is missing", name));
    }
    const HostTensor& tensor = *entry->second;
    TensorType wanted = compiled.step.graph[node].type;
    const std::string expected = to_string(wanted);
    wanted.shape[0] = tensor.shape().rank() > 0 ? tensor.shape()[0] : 0;
    const bool fits = tensor.dtype() == wanted.dtype || (tensor.dtype() == DType::f64 && wanted.dtype == DType::f32);
    if (!fits || !(tensor.shape() == wanted.shape)) {
      throw Error(ErrorKind::input, "predict.shape",
                  fmt::format("predict: '{}' must be {} with any number of rows, got {}{}", name, expected,
                              name_of(tensor.dtype()), to_string(tensor.shape())));
    }
    if (!ordered.empty() && ordered.front().rows->shape()[0] != wanted.shape[0]) {
      throw Error(ErrorKind::input, "predict.rows",
                  fmt::format("predict: '{}' has {} rows, another input {}", name, wanted.shape[0],
                              ordered.front().rows->shape()[0]));
    }
    ordered.push_back({&tensor, fitted_of(name)});
  }
  if (!ordered.empty()) return ordered;
  throw Error(ErrorKind::input, "predict.no_input",
              "predict: no output depends on an input: there is nothing to predict from");
}

bool Session::Impl::each_batch(std::size_t index, const std::vector<Given>& given, std::size_t count,
                               const std::function<bool(std::int64_t, std::span<const HostTensor>)>& see) {
  const StepPhase& phase = compiled.step.phases[index];
  std::vector<HostTensor> batches;
  for (std::size_t i = 0; i < count; ++i) {
    const TensorType& type = program().buffers[buffer(phase.outputs[i])].type;
    batches.emplace_back(type.dtype, type.shape);
  }
  const std::int64_t samples = given.front().rows->shape()[0];
  for (std::int64_t first = 0; first < samples; first += phase.batches.capacity) {
    const std::int64_t rows = std::min(phase.batches.capacity, samples - first);
    write_batch(phase, given, first, rows);
    run(index, 1);
    for (std::size_t i = 0; i < count; ++i) runnable->read(buffer(phase.outputs[i]), batches[i].bytes());
    if (!see(rows, batches)) return false;
  }
  return true;
}

std::vector<std::pair<std::string, HostTensor>> Session::Impl::predict(
    const std::vector<std::pair<std::string, HostTensor>>& tensors, std::size_t count) {
  const std::optional<std::size_t> index = phase_index("predict");
  if (!index) throw Error(ErrorKind::input, "predict.nothing", "the model names no output to predict");
  const StepPhase& phase = compiled.step.phases[*index];
  const std::vector<Given> given = in_order(phase, tensors);
  const std::int64_t samples = given.front().rows->shape()[0];
  std::map<std::string_view, const HostTensor*> by_name;
  for (std::size_t i = 0; i < given.size(); ++i) by_name.emplace(phase.inputs[i].first, given[i].rows);
  for (const ClassRange& range : predicted_classes) {
    const auto found = by_name.find(range.input);
    if (found != by_name.end()) check_classes(range, *found->second, fmt::format("predict: input '{}'", range.input));
  }

  std::vector<std::pair<std::string, HostTensor>> results;
  for (std::size_t i = 0; i < count; ++i) {
    const TensorType& type = program().buffers[buffer(phase.outputs[i])].type;
    if (type.rows == 0) {
      throw Error(ErrorKind::input, "predict.output",
                  fmt::format("predict: the output '{}' has no value for each sample, it is {}", model.outputs[i].name,
                              to_string(type)));
    }
    Shape shape = type.shape;
    shape[0] = samples * type.rows;
    results.emplace_back(model.outputs[i].name, HostTensor(type.dtype, shape));
  }
  std::int64_t first = 0;
  each_batch(*index, given, count, [&](std::int64_t rows, std::span<const HostTensor> batches) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t sample_bytes = batches[i].bytes().size() / static_cast<std::size_t>(phase.batches.capacity);
      const auto bytes = batches[i].bytes().first(static_cast<std::size_t>(rows) * sample_bytes);
      std::copy(bytes.begin(), bytes.end(),
                results[i].second.bytes().begin() + first * static_cast<std::int64_t>(sample_bytes));
    }
    first += rows;
    return true;
  });
  for (std::size_t i = 0; i < count; ++i) {
    const Standardization* fitted = fitted_of(model.outputs[i].target);
    if (fitted == nullptr) continue;
    const std::span<float> values = results[i].second.elements<float>();
    for (std::size_t j = 0; j < values.size(); ++j) {
      const std::size_t column = j % fitted->scale.size();
      values[j] = static_cast<float>(
          off_curve(fitted->curve, static_cast<double>(values[j]) * fitted->scale[column] + fitted->shift[column]));
    }
  }
  return results;
}

}  // namespace graphrun
