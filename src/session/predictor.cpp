#include "session/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "graph/frontend/step/class_numbers.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Samples [first, first + count) of an input in the units of the model, transformed in double and rounded like the
// training data; the rest of the batch is zero.
void fill_batch(const GivenRows& given, std::int64_t first, std::int64_t count, const std::string& name,
                HostTensor& batch) {
  const auto width = static_cast<std::size_t>(batch.shape().elements() / batch.shape()[0]);
  const std::size_t begin = static_cast<std::size_t>(first) * width, size = static_cast<std::size_t>(count) * width;
  const std::size_t bytes = size_of(batch.dtype());
  std::fill(batch.bytes().begin() + static_cast<std::ptrdiff_t>(size * bytes), batch.bytes().end(), std::byte{0});
  if (given.dtype == batch.dtype() && given.fitted == nullptr) {
    const std::span<const std::byte> rows = given.bytes.subspan(begin * bytes, size * bytes);
    std::copy(rows.begin(), rows.end(), batch.bytes().begin());
    return;
  }
  const Standardization* const fitted = given.fitted;
  // Only float inputs are fitted or take other types.
  const auto fill = [&]<class T>(std::span<T> to, auto zero) {
    for (std::size_t i = 0; i < size; ++i) {
      const auto original = load_element<decltype(zero)>(given.bytes, begin + i);
      auto value = static_cast<double>(original);
      const bool was_finite = std::isfinite(value);
      if (fitted != nullptr) {
        const std::size_t column = i % fitted->scale.size();
        value = (apply_log(fitted->log, value) - fitted->shift[column]) / fitted->scale[column];
      }
      to[i] = static_cast<T>(value);
      if (was_finite && !std::isfinite(to[i])) {
        throw Error(
            ErrorKind::input, "predict.value",
            fmt::format("predict: input '{}', row {}, column {}: {} {}", name, (begin + i) / width, i % width, original,
                        std::isfinite(value) ? fmt::format("is too large for {}", name_of(batch.dtype()))
                                             : std::string("has no logarithm")));
      }
    }
  };
  with_type(given.dtype, [&](auto zero) {
    batch.dtype() == DType::f64 ? fill(batch.elements<double>(), zero) : fill(batch.elements<float>(), zero);
  });
}

[[noreturn]] void reject_rows(const std::string& name, std::int64_t rows, std::int64_t others) {
  throw Error(ErrorKind::input, "predict.rows",
              fmt::format("predict: '{}' has {} rows, another input {}", name, rows, others));
}

}  // namespace

Predictor::Predictor(LoadedModel& loaded) : loaded_(loaded), classes_(class_numbers_of_outputs(loaded.model)) {
  const std::optional<std::size_t> index = loaded_.phase_index("predict");
  if (!index) return;
  for (const auto& [name, node] : loaded_.phases()[*index].inputs)
    batch_.emplace_back(type_of(node).dtype, type_of(node).shape);
  given_.reserve(batch_.size());
  transformed_rows_.reserve(batch_.size());  // `given_` points to their bytes
}

void Predictor::write_batch(const StepPhase& phase, std::span<const GivenRows> given, std::int64_t first,
                            std::int64_t count) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& [name, node] = phase.inputs[i];
    fill_batch(given[i], first, count, name, batch_[i]);
    loaded_.runnable->write(loaded_.buffer(node), batch_[i].bytes());
  }
  const auto rows = static_cast<std::int32_t>(count);
  loaded_.runnable->write(loaded_.buffer(phase.count), std::as_bytes(std::span(&rows, 1)));
}

std::uint64_t Predictor::sample_bytes(const StepPhase& phase, ir::NodeId node) const {
  return type_of(node).bytes() / static_cast<std::uint64_t>(phase.batches.capacity);
}

// In the order of the phase's inputs, with equal row counts. Throws Error for a missing or mismatched input.
std::vector<GivenRows> Predictor::in_order(const StepPhase& phase, const NamedTensors& given) const {
  std::map<std::string_view, const HostTensor*> rows;
  for (const auto& [name, tensor] : given) rows.emplace(name, &tensor);
  std::vector<GivenRows> ordered;
  for (const auto& [name, node] : phase.inputs) {
    const auto entry = rows.find(name);
    if (entry == rows.end()) {
      throw Error(ErrorKind::input, "predict.missing", fmt::format("predict: the input '{}' is missing", name));
    }
    const HostTensor& tensor = *entry->second;
    TensorType wanted = loaded_.compiled.step.graph[node].type;
    const std::string expected = to_string(wanted);
    wanted.shape[0] = tensor.shape().rank() > 0 ? tensor.shape()[0] : 0;
    const bool fits = tensor.dtype() == wanted.dtype || (is_float(tensor.dtype()) && is_float(wanted.dtype));
    if (!fits || !(tensor.shape() == wanted.shape)) {
      throw Error(ErrorKind::input, "predict.shape",
                  fmt::format("predict: '{}' must be {} with any number of rows, got {}{}", name, expected,
                              name_of(tensor.dtype()), to_string(tensor.shape())));
    }
    ordered.push_back(given_rows(tensor, loaded_.fitted_of(name)));
    if (ordered.back().samples != ordered.front().samples)
      reject_rows(name, ordered.back().samples, ordered.front().samples);
  }
  return ordered;
}

HostTensor Predictor::transformed(std::string_view input, const HostTensor& rows) {
  if (!array_fit_) array_fit_.emplace(loaded_.model.data);
  return loaded_.model.data.arrays->rows(input, rows, *array_fit_, fmt::format("predict: input '{}'", input));
}

Predictor::NamedTensors Predictor::transformed(const NamedTensors& inputs) {
  NamedTensors all = inputs;
  for (auto& [name, rows] : all) {
    const auto& own_inputs = predicting().inputs;
    const auto input = std::ranges::find(own_inputs, name, &std::pair<std::string, ir::NodeId>::first);
    if (input == own_inputs.end() || columns_of(name) == 0 || rows.shape().rank() == 0 || rows.shape()[0] == 0)
      continue;
    Shape own = loaded_.compiled.step.graph[input->second].type.shape;
    own[0] = rows.shape()[0];
    if (is_float(rows.dtype()) && !(rows.dtype() == DType::f64 && rows.shape() == own)) rows = transformed(name, rows);
  }
  return all;
}

bool Predictor::each_batch(const StepPhase& phase, std::span<const GivenRows> given, std::size_t count,
                           const std::function<bool(std::int64_t, std::span<const HostTensor>)>& see) {
  const std::size_t index = static_cast<std::size_t>(&phase - loaded_.phases().data());
  std::vector<HostTensor> batches;
  for (std::size_t i = 0; i < count; ++i) {
    const TensorType& type = type_of(phase.outputs[i]);
    batches.emplace_back(type.dtype, type.shape);
  }
  const std::int64_t samples = given.front().samples;
  for (std::int64_t first = 0; first < samples; first += phase.batches.capacity) {
    const std::int64_t rows = std::min(phase.batches.capacity, samples - first);
    write_batch(phase, given, first, rows);
    loaded_.run(index, 1);
    for (std::size_t i = 0; i < count; ++i)
      loaded_.runnable->read(loaded_.buffer(phase.outputs[i]), batches[i].bytes());
    if (!see(rows, batches)) return false;
  }
  return true;
}

Predictor::NamedTensors Predictor::predict(const NamedTensors& inputs, std::size_t count) {
  const StepPhase& phase = predicting();
  const std::vector<GivenRows> given = in_order(phase, inputs);
  const std::int64_t samples = given.front().samples;
  NamedTensors results;
  std::vector<std::span<std::byte>> outputs;
  for (std::size_t i = 0; i < count; ++i) {
    const TensorType& type = type_of_output(phase, i);
    Shape shape = type.shape;
    shape[0] = samples * type.rows;
    results.emplace_back(loaded_.model.outputs[i].name, HostTensor(type.dtype, shape));
  }
  for (auto& [name, tensor] : results) outputs.push_back(tensor.bytes());
  predict_into(phase, given, outputs);
  return results;
}

void Predictor::predict(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs, DType floats) {
  const StepPhase& phase = predicting();
  if (inputs.size() != phase.inputs.size() || outputs.size() > loaded_.model.outputs.size()) {
    throw Error(ErrorKind::input, "predict.count",
                fmt::format("predict: {} inputs and {} outputs were given; the model has {} and {}", inputs.size(),
                            outputs.size(), phase.inputs.size(), loaded_.model.outputs.size()));
  }
  given_.clear();
  transformed_rows_.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [name, node] = phase.inputs[i];
    const std::int64_t columns = columns_of(name);
    const DType own = batch_[i].dtype(), dtype = own == DType::f32 ? floats : own;
    const std::uint64_t bytes = columns > 0 ? static_cast<std::uint64_t>(columns) * size_of(dtype)
                                            : sample_bytes(phase, node) / size_of(own) * size_of(dtype);
    if (inputs[i].size() % bytes != 0) {
      throw Error(
          ErrorKind::input, "predict.shape",
          fmt::format("predict: '{}' has {} bytes, no whole number of rows of {}", name, inputs[i].size(), bytes));
    }
    const auto rows = static_cast<std::int64_t>(inputs[i].size() / bytes);
    if (columns > 0 && rows > 0) {
      HostTensor given(dtype, {rows, columns});
      std::copy(inputs[i].begin(), inputs[i].end(), given.bytes().begin());
      given_.push_back(given_rows(transformed_rows_.emplace_back(transformed(name, given)), loaded_.fitted_of(name)));
    } else {
      given_.push_back({dtype, inputs[i], rows, loaded_.fitted_of(name)});
    }
    if (given_.back().samples != given_.front().samples)
      reject_rows(name, given_.back().samples, given_.front().samples);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    type_of_output(phase, i);
    const std::uint64_t bytes =
        sample_bytes(phase, phase.outputs[i]) * static_cast<std::uint64_t>(given_.front().samples);
    if (outputs[i].size() != bytes) {
      throw Error(ErrorKind::input, "predict.output",
                  fmt::format("predict: got {} bytes for the output '{}' of {} rows, expected {}", outputs[i].size(),
                              loaded_.model.outputs[i].name, given_.front().samples, bytes));
    }
  }
  predict_into(phase, given_, outputs);
}

std::vector<std::pair<std::string, TensorType>> Predictor::inputs() const {
  std::vector<std::pair<std::string, TensorType>> all;
  for (const auto& [name, node] : prediction().inputs) {
    Shape& shape = all.emplace_back(name, type_of(node)).second.shape;
    if (const std::int64_t columns = columns_of(name); columns > 0 && shape.rank() == 2) shape[1] = columns;
  }
  return all;
}

std::vector<std::pair<std::string, TensorType>> Predictor::outputs() const {
  std::vector<std::pair<std::string, TensorType>> all;
  const StepPhase& phase = prediction();
  for (std::size_t i = 0; i < phase.outputs.size(); ++i)
    all.emplace_back(loaded_.model.outputs[i].name, type_of(phase.outputs[i]));
  return all;
}

const StepPhase& Predictor::prediction() const {
  const std::optional<std::size_t> index = loaded_.phase_index("predict");
  if (!index) throw Error(ErrorKind::input, "predict.nothing", "the model names no output to predict");
  return loaded_.phases()[*index];
}

const StepPhase& Predictor::predicting() const {
  const StepPhase& phase = prediction();
  if (!phase.inputs.empty()) return phase;
  throw Error(ErrorKind::input, "predict.no_input",
              "predict: no output depends on an input: there is nothing to predict from",
              "add an output that is computed from an input: it determines the number of rows");
}

const TensorType& Predictor::type_of_output(const StepPhase& phase, std::size_t i) const {
  const TensorType& type = type_of(phase.outputs[i]);
  if (type.rows > 0) return type;
  throw Error(ErrorKind::input, "predict.output",
              fmt::format("predict: the output '{}' has no value for each sample, it is {}",
                          loaded_.model.outputs[i].name, to_string(type)));
}

void Predictor::predict_into(const StepPhase& phase, std::span<const GivenRows> given,
                             std::span<const std::span<std::byte>> outputs) {
  for (std::size_t i = 0; i < given.size(); ++i) check_classes_of(phase.inputs[i].first, given[i], i);
  const std::size_t index = static_cast<std::size_t>(&phase - loaded_.phases().data());
  const std::int64_t samples = given.front().samples;
  for (std::int64_t first = 0; first < samples; first += phase.batches.capacity) {
    const std::int64_t rows = std::min(phase.batches.capacity, samples - first);
    write_batch(phase, given, first, rows);
    loaded_.run(index, 1);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::size_t sample = sample_bytes(phase, phase.outputs[i]);
      loaded_.runnable->read_range(
          loaded_.buffer(phase.outputs[i]), 0,
          outputs[i].subspan(static_cast<std::size_t>(first) * sample, static_cast<std::size_t>(rows) * sample));
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Standardization* fitted = loaded_.fitted_of(loaded_.model.outputs[i].target);
    if (fitted == nullptr) continue;
    const auto in_original_units = [&]<class T>(T) {
      for (std::size_t j = 0; j < outputs[i].size() / sizeof(T); ++j) {
        const std::size_t column = j % fitted->scale.size();
        const auto own = static_cast<double>(load_element<T>(outputs[i], j));
        const auto value = static_cast<T>(invert_log(fitted->log, own * fitted->scale[column] + fitted->shift[column]));
        std::memcpy(outputs[i].data() + j * sizeof(T), &value, sizeof(T));
      }
    };
    type_of_output(phase, i).dtype == DType::f64 ? in_original_units(double{}) : in_original_units(float{});
  }
}

// Creates a tensor only if a class is invalid.
void Predictor::check_classes_of(std::string_view input, const GivenRows& given, std::size_t index) const {
  for (const ClassRange& range : classes_) {
    if (range.input != input) continue;
    const bool all_in = [&] {
      for (std::size_t at = 0; at < given.bytes.size(); at += sizeof(std::int32_t)) {
        std::int32_t value;
        std::memcpy(&value, given.bytes.data() + at, sizeof value);
        if (value < 0 || value >= range.count) return false;
      }
      return true;
    }();
    if (all_in) continue;
    Shape shape = batch_[index].shape();
    shape[0] = given.samples;
    HostTensor rows(given.dtype, shape);
    std::copy(given.bytes.begin(), given.bytes.end(), rows.bytes().begin());
    check_classes(range, rows, fmt::format("predict: input '{}'", input));
  }
}

}  // namespace graphrun
