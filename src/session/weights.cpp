#include "graphrun/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "data/npy.h"
#include "graph/frontend/builder_impl.h"
#include "session/initial_values.h"
#include "session/weights_file.h"

namespace graphrun {
namespace {

constexpr std::string_view kShift = ":shift", kScale = ":scale";

std::string_view dtype_of(const data::Array& array) {
  static constexpr std::string_view names[] = {"f64 or a 64-bit integer", "f32", "an integer", "a byte"};
  return names[array.values.index()];
}

HostTensor doubles(const std::vector<double>& values) {
  HostTensor tensor(DType::f64, Shape{static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.elements<double>().begin());
  return tensor;
}

Diagnostic diagnostic(const Weights& weights, std::string code, std::string message, std::string hint = {}) {
  Diagnostic d;
  d.file = weights.path;
  d.code = std::move(code);
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}

// "x:shift" fills the entry of x in `fitted`; false: another array.
bool read_fitted(const std::string& name, const data::Array& array, const std::string& path,
                 std::vector<Standardization>& fitted) {
  const bool is_shift = name.ends_with(kShift);
  if (!is_shift && !name.ends_with(kScale)) return false;
  const auto* values = std::get_if<std::vector<double>>(&array.values);
  if (array.shape.rank() != 1 || !values)
    throw Error(ErrorKind::input, "weights.fitted",
                fmt::format("'{}': '{}' must be a vector of f64, it is {} {}", path, name, dtype_of(array),
                            to_string(array.shape)));
  const std::string input = name.substr(0, name.size() - kShift.size());
  auto at =
      std::find_if(fitted.begin(), fitted.end(), [&](const Standardization& known) { return known.input == input; });
  if (at == fitted.end()) at = fitted.insert(fitted.end(), {input, {}, {}});
  (is_shift ? at->shift : at->scale) = *values;
  return true;
}

const data::Array* find(const Weights& weights, std::string_view name) {
  for (const auto& [candidate, array] : weights.parameters) {
    if (candidate == name) return &array;
  }
  return nullptr;
}

std::string listed(const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 4); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", values[i]);
  return text + (values.size() > 4 ? ", …" : "");
}

// The numbers that the session's data were changed with against those of the file.
void compare_fitted(const Weights& weights, const std::vector<Standardization>& own, std::vector<Diagnostic>& found) {
  const auto find_in = [](const std::vector<Standardization>& list, const std::string& input) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const auto& s) { return s.input == input; });
    return at == list.end() ? nullptr : &*at;
  };
  const auto add = [&](std::string message, std::string hint = {}) {
    found.push_back(diagnostic(weights, "weights.fitted", std::move(message), std::move(hint)));
  };
  for (const Standardization& mine : own) {
    const Standardization* theirs = find_in(weights.fitted, mine.input);
    if (!theirs)
      add(fmt::format("no numbers for the input '{}', whose values are changed here", mine.input));
    else if (theirs->shift != mine.shift || theirs->scale != mine.scale)
      add(fmt::format("goes with values of '{}' that were changed with shift {}, scale {}; here they are {} and {}",
                      mine.input, listed(theirs->shift), listed(theirs->scale), listed(mine.shift), listed(mine.scale)),
          "LoadOptions::weights loads the data with the numbers of the file");
  }
  for (const Standardization& theirs : weights.fitted) {
    if (!find_in(own, theirs.input))
      add(fmt::format("goes with values of the input '{}' that were changed; here they are not", theirs.input));
  }
}

}  // namespace

Weights read_weights(const std::string& path) {
  Weights weights{path, {}, {}};
  const data::Npz npz(path);
  for (const std::string& name : npz.names()) {
    data::Array array = npz.read(name);
    if (!read_fitted(name, array, path, weights.fitted)) weights.parameters.emplace_back(name, std::move(array));
  }
  for (const Standardization& fitted : weights.fitted) {
    const bool is_good = fitted.shift.size() == fitted.scale.size() && !fitted.shift.empty() &&
                         std::none_of(fitted.scale.begin(), fitted.scale.end(), [](double s) { return !(s != 0); });
    if (!is_good)
      throw Error(ErrorKind::input, "weights.fitted",
                  fmt::format("'{}': '{}{}' and '{}{}' must have equally many entries, and no scale may be 0", path,
                              fitted.input, kShift, fitted.input, kScale));
  }
  return weights;
}

std::vector<Diagnostic> misfits(const Weights& weights, const GraphBuilder& graph) {
  std::vector<Diagnostic> found;
  const auto add = [&](std::string code, std::string message, std::string hint = {}) {
    found.push_back(diagnostic(weights, std::move(code), std::move(message), std::move(hint)));
  };
  std::vector<std::string> names, unused;
  for (const ir::NodeId id : graph.impl().parameters) names.push_back(graph.impl().graph[id].name);
  for (const auto& [name, array] : weights.parameters) {
    if (std::find(names.begin(), names.end(), name) == names.end()) unused.push_back(name);
  }
  for (const ir::NodeId id : graph.impl().parameters) {
    const ir::Node& node = graph.impl().graph[id];
    const data::Array* array = find(weights, node.name);
    if (!array) {
      const std::string near = nearest_name(node.name, unused);
      add("weights.missing", fmt::format("no array '{}'", node.name),
          near.empty() ? "" : fmt::format("it has '{}', which the model has not", near));
    } else if (!std::holds_alternative<std::vector<float>>(array->values)) {
      add("weights.dtype", fmt::format("'{}' must be f32, it is {}", node.name, dtype_of(*array)));
    } else if (!(array->shape == node.type.shape)) {
      add("weights.shape", fmt::format("'{}' is {}, the parameter is {}", node.name, to_string(array->shape),
                                       to_string(node.type.shape)));
    }
  }
  for (const std::string& name : unused) {
    const std::string near = nearest_name(name, names);
    add("weights.unknown", fmt::format("the model has no parameter '{}'", name),
        near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  return found;
}

HostTensor tensor_of(const Weights& weights, std::string_view parameter) {
  const data::Array& array = *find(weights, parameter);
  return {array.shape, std::get<std::vector<float>>(array.values)};
}

void save_weights(Session& session, const std::string& path) {
  std::vector<std::pair<std::string, HostTensor>> arrays;
  const Model& model = session.model();
  const GraphBuilder::Impl& graph = model.graph.impl();
  for (const ir::NodeId id : graph.parameters) {
    const std::string& name = graph.graph[id].name;
    // A parameter that nothing depends on is no part of the program: it is what it was.
    const bool is_used = find_buffer(session.program(), name) != kNoBuffer;
    arrays.emplace_back(
        name, is_used ? session.read(name)
                      : initial_value(graph.inits.at(id), name, graph.graph[id].type.shape, model.train.seed));
  }
  for (const Standardization& fitted : model.data.standardizations) {
    arrays.emplace_back(fitted.input + std::string(kShift), doubles(fitted.shift));
    arrays.emplace_back(fitted.input + std::string(kScale), doubles(fitted.scale));
  }
  write_file(path, data::npz_bytes(arrays));
}

void load_weights(Session& session, const std::string& path) {
  const Weights weights = read_weights(path);
  std::vector<Diagnostic> found = misfits(weights, session.model().graph);
  compare_fitted(weights, session.model().data.standardizations, found);
  if (!found.empty()) throw Error(ErrorKind::input, std::move(found));
  for (const auto& [name, array] : weights.parameters) {
    if (find_buffer(session.program(), name) != kNoBuffer) session.write(name, tensor_of(weights, name));
  }
}

}  // namespace graphrun
