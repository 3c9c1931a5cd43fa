#include "graphrun/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "data/provenance.h"
#include "data/sources/columns.h"
#include "graph/frontend/builder_impl.h"
#include "graphrun/elements.h"
#include "session/weights/initial_values.h"
#include "session/weights/weights_file.h"

namespace graphrun {
namespace {

constexpr const char* kWriteCode = "weights.write";
constexpr std::string_view kShift = ":shift", kScale = ":scale", kThreshold = ":threshold";

constexpr std::string_view kDtypeHint = "convert it before it is saved: .astype(numpy.float32), in PyTorch .float()";
constexpr std::string_view kFp64 = "fp64";  // WeightsNotes::precision
constexpr std::string_view kNotFiniteHint = "the training that wrote it went wrong, or the file was changed since";

HostTensor doubles(const std::vector<double>& values) {
  return from_doubles(values, {DType::f64, Shape{static_cast<std::int64_t>(values.size())}, 0});
}

Diagnostic diagnostic(const Weights& weights, std::string code, std::string message, std::string hint = {}) {
  return {.code = std::move(code), .message = std::move(message), .hint = std::move(hint), .file = weights.path};
}

// Parameter names have no colon; other contents do.
bool is_fitted(std::string_view name) {
  return name.find(':') != std::string_view::npos;
}

std::vector<double> numbers(const std::string& name, const data::TensorInfo& info, const Archive& file,
                            const std::string& path) {
  if (info.shape.rank() != 1 || info.shape[0] == 0 || info.dtype != "f64")
    throw Error(
        ErrorKind::input, "weights.fitted",
        fmt::format("'{}': '{}' must be a vector of f64, it is {} {}", path, name, info.dtype, to_string(info.shape)));
  std::vector<double> values = std::get<std::vector<double>>(file.read(name).values);
  const auto bad = std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  if (bad == values.end()) return values;
  throw Error(ErrorKind::input, "weights.fitted",
              fmt::format("'{}': '{}' at [{}] is {}; expected finite numbers", path, name, bad - values.begin(), *bad),
              std::string(kNotFiniteHint));
}

// Index of a list by name; the list must outlive it.
template <class T>
class ByName {
 public:
  template <class Name>
  ByName(const std::vector<T>& list, Name name) {
    for (const T& row : list) rows_.emplace(std::invoke(name, row), &row);
  }
  const T* find(std::string_view name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const T*> rows_;
};

std::string listed(const std::vector<double>& values) {
  const std::span<const double> first = std::span(values).first(std::min<std::size_t>(values.size(), 4));
  return fmt::format("{}{}", fmt::join(first, ", "), values.size() > 4 ? ", …" : "");
}

// Compares the transforms and splits of the session with those of the file.
void compare_fitted(const Weights& weights, const DataSet& data, std::vector<Diagnostic>& found) {
  const std::vector<Standardization>&own = data.standardizations, &given = weights.data.standardizations;
  const ByName own_by_input(own, &Standardization::input), given_by_input(given, &Standardization::input);
  const ByName fitted(weights.data.fitted, &FittedStatistic::name);
  const auto add = [&](std::string message, std::string hint = {}) {
    found.push_back(diagnostic(weights, "weights.fitted", std::move(message), std::move(hint)));
  };
  for (const Standardization& mine : own) {
    const Standardization* theirs = given_by_input.find(mine.input);
    if (!theirs)
      add(fmt::format("no numbers for the input '{}', whose values are changed here", mine.input));
    else if (theirs->shift != mine.shift || theirs->scale != mine.scale)
      add(fmt::format("goes with values of '{}' that were changed with shift {}, scale {}; here they are {} and {}",
                      mine.input, listed(theirs->shift), listed(theirs->scale), listed(mine.shift), listed(mine.scale)),
          "LoadOptions::weights loads the data with the numbers of the file");
  }
  for (const Standardization& theirs : given) {
    if (!own_by_input.find(theirs.input))
      add(fmt::format("goes with values of the input '{}' that were changed; here they are not", theirs.input));
  }
  for (const FittedStatistic& mine : data.fitted) {
    const FittedStatistic* theirs = fitted.find(mine.name);
    if (!theirs || theirs->values != mine.values)
      add(fmt::format("'{}' {}", mine.name, theirs ? "has other numbers here" : "is not in it"),
          "LoadOptions::weights loads the data with the numbers of the file");
  }
  if (data.provenance.empty() || weights.data.provenance.empty()) return;
  const std::string other = data::difference(data::read_provenance("the session's data", data.provenance),
                                             data::read_provenance(weights.path, weights.data.provenance));
  if (!other.empty()) add(other, "LoadOptions::weights splits the data as the file says");
}

Weights weights_in(const std::string& path, std::shared_ptr<const std::string> bytes) {
  Weights weights{path, open_archive(path, std::move(bytes)), {}, {}, {}};
  std::vector<std::string> ignored;
  const Archive& file = *weights.file;
  weights.data.provenance = file.notes().provenance;
  if (!weights.data.provenance.empty()) data::read_provenance(path, weights.data.provenance);
  std::vector<Standardization>& all = weights.data.standardizations;
  std::unordered_map<std::string, std::size_t> places;  // index into `all`, by input
  for (const std::string& name : file.names()) {
    if (name.starts_with(kCheckpointPrefix)) continue;
    data::TensorInfo info = file.info(name);
    if (name.substr(name.rfind('.') + 1) == "num_batches_tracked" && info.dtype != "f32") {
      ignored.push_back(name);
    } else if (!is_fitted(name)) {
      weights.parameters.push_back({name, std::move(info)});
    } else if (name.ends_with(kShift) || name.ends_with(kScale)) {
      const std::string input = name.substr(0, name.size() - kShift.size());
      const auto [place, is_new] = places.emplace(input, all.size());
      if (is_new) all.push_back({input, {}, {}});
      (name.ends_with(kShift) ? all[place->second].shift : all[place->second].scale) = numbers(name, info, file, path);
    } else if (name.ends_with(kThreshold)) {
      weights.data.thresholds.push_back(
          {name.substr(0, name.size() - kThreshold.size()), numbers(name, info, file, path)});
    } else {
      weights.data.fitted.push_back({name, numbers(name, info, file, path)});
    }
  }
  if (!ignored.empty())
    weights.warnings.push_back(fmt::format("'{}': ignoring {}, which no model needs", path, data::listed(ignored)));
  for (const Standardization& fitted : weights.data.standardizations) {
    const bool is_good = fitted.shift.size() == fitted.scale.size() && !fitted.shift.empty() &&
                         std::none_of(fitted.scale.begin(), fitted.scale.end(), [](double s) { return !(s != 0); });
    if (!is_good)
      throw Error(ErrorKind::input, "weights.fitted",
                  fmt::format("'{}': '{}{}' and '{}{}' must have equally many entries, and no scale may be 0", path,
                              fitted.input, kShift, fitted.input, kScale));
  }
  return weights;
}

}  // namespace

Weights read_weights(const std::string& path) {
  return weights_in(path, std::make_shared<const std::string>(read_file(path)));
}

Weights read_weights(const LoadOptions& options) {
  const std::string& path = options.weights;
  const std::shared_ptr<std::optional<std::string>>& kept = options.piped_weights;
  std::error_code ignored;
  if (!kept || (!*kept && std::filesystem::is_regular_file(path, ignored))) return read_weights(path);
  if (!*kept) *kept = read_file(path);
  return weights_in(path, {kept, &**kept});
}

DType parameter_type(Precision precision) {
  return precision == Precision::fp64 ? DType::f64 : DType::f32;
}

void match_names(Weights& weights, const GraphBuilder& graph, Precision precision) {
  const GraphBuilder::Impl& impl = graph.impl();
  std::vector<std::string> rounded;
  for (const Weights::Tensor& tensor : weights.parameters)
    if (tensor.info.dtype == "f64" && precision != Precision::fp64) rounded.push_back(tensor.source);
  if (!rounded.empty())
    weights.warnings.push_back(fmt::format("'{}': rounding f64 to f32: {}", weights.path, data::listed(rounded)));
  std::unordered_set<std::string> taken;
  for (const Weights::Tensor& tensor : weights.parameters) taken.insert(tensor.name);
  const auto takes = [&](const std::string& name) {
    const auto node = impl.names.find(name);
    return node != impl.names.end() && impl.parameters.contains(node->second) && taken.insert(name).second;
  };
  std::vector<std::string> transposed;
  for (auto& [name, info, source, is_transposed] : weights.parameters) {
    const bool is_number = name[0] >= '0' && name[0] <= '9';  // no parameter begins with a digit
    const std::string own = (is_number ? "_" : "") + name, layer = own.substr(0, own.rfind('.'));
    const auto kind = impl.layers.find(layer);
    const bool is_linear = kind != impl.layers.end() && kind->second.first == "dense";
    if (takes(own)) {
      name = own;
    } else if (is_linear && own.ends_with(".weight") && info.shape.rank() == 2 && takes(layer + ".W")) {
      name = layer + ".W";
      is_transposed = true;
      std::swap(info.shape[0], info.shape[1]);
      transposed.push_back(source);
    } else if (is_linear && own.ends_with(".bias") && takes(layer + ".b")) {
      name = layer + ".b";
    }
  }
  if (!transposed.empty())
    weights.warnings.push_back(fmt::format("'{}': transposing {}, as weights of PyTorch's Linear layers", weights.path,
                                           data::listed(transposed)));
}

std::vector<Diagnostic> misfits(const Weights& weights, const GraphBuilder& graph, Precision precision) {
  std::vector<Diagnostic> found;
  const auto add = [&](std::string code, std::string message, std::string hint = {}) {
    found.push_back(diagnostic(weights, std::move(code), std::move(message), std::move(hint)));
  };
  if (weights.file->notes().precision == kFp64 && precision != Precision::fp64)
    add("weights.precision", "its parameters are f64, from a training in fp64, and the model is not in fp64",
        R"("precision": "fp64" in "train", or --set train.precision=fp64)");
  // Report only the first mismatches, and skip the search for hints on the rest.
  const auto full = [&] { return found.size() >= kMaxDiagnostics; };
  std::vector<std::string> names, unused;
  for (const auto& [id, parameter] : graph.impl().parameters) names.push_back(graph.impl().graph[id].name);
  const ByName wanted(names, std::identity());
  const ByName given(weights.parameters, &Weights::Tensor::name);
  for (const Weights::Tensor& tensor : weights.parameters) {
    if (!wanted.find(tensor.name)) unused.push_back(tensor.source);
  }
  for (const auto& [id, parameter] : graph.impl().parameters) {
    const ir::Node& node = graph.impl().graph[id];
    const auto* one = given.find(node.name);
    const data::TensorInfo* info = one ? &one->info : nullptr;
    if (!info) {
      const std::string other = full() ? "" : nearest_name(node.name, unused);
      add("weights.missing", fmt::format("no array '{}'", node.name),
          other.empty() ? "" : fmt::format("it has '{}', which the model has not", other));
    } else if (info->dtype.find('f') == std::string::npos) {  // not f32, f16, bf16 or f64
      add("weights.dtype", fmt::format("'{}' must be f32, it is {}", node.name, info->dtype), std::string(kDtypeHint));
    } else if (!(info->shape == node.type.shape)) {
      add("weights.shape", fmt::format("'{}' is {}, the parameter is {}", node.name, to_string(info->shape),
                                       to_string(node.type.shape)));
    }
  }
  for (const std::string& name : unused) {
    const std::string hint = full() ? "" : did_you_mean(name, names);
    add("weights.unknown", fmt::format("the model has no parameter '{}'", name),
        hint.empty() ? "save the file without it" : hint);
  }
  return found;
}

std::string not_finite(std::string_view name, const HostTensor& tensor) {
  return with_elements(tensor, [&](const auto values) -> std::string {
    const auto bad = std::ranges::find_if(values, [](auto v) { return !std::isfinite(static_cast<double>(v)); });
    if (bad == values.end()) return "";
    const auto place = index_of(tensor.shape(), static_cast<std::size_t>(bad - values.begin()));
    return fmt::format("'{}' at [{}] is {}", name, fmt::join(place, ", "), *bad);
  });
}

std::vector<std::pair<std::string, HostTensor>> parameters_of(const Weights& weights, Precision precision) {
  std::vector<std::pair<std::string, HostTensor>> tensors;
  std::vector<Diagnostic> found;
  for (const auto& [name, info, source, is_transposed] : weights.parameters) {
    const data::Array array = weights.file->read(source);
    HostTensor tensor(parameter_type(precision), info.shape);
    const auto rows = static_cast<std::size_t>(is_transposed ? info.shape[0] : 1);
    with_elements(tensor, [&]<class T>(std::span<T> to) {
      std::visit(
          [&](const auto& values) {
            const std::size_t columns = to.size() / std::max<std::size_t>(rows, 1);
            for (std::size_t i = 0; i < to.size(); ++i)
              to[i] = static_cast<T>(values[rows > 1 ? i % columns * rows + i / columns : i]);
          },
          array.values);
    });
    if (const std::string wrong = not_finite(name, tensor); !wrong.empty())
      found.push_back(
          diagnostic(weights, "weights.not_finite", wrong + "; a parameter is finite", std::string(kNotFiniteHint)));
    tensors.emplace_back(name, std::move(tensor));
  }
  if (!found.empty()) throw Error(ErrorKind::input, std::move(found));
  return tensors;
}

std::vector<std::pair<std::string, HostTensor>> fitted_arrays(const DataSet& data) {
  std::vector<std::pair<std::string, HostTensor>> arrays;
  for (const Standardization& fitted : data.standardizations) {
    arrays.emplace_back(fitted.input + std::string(kShift), doubles(fitted.shift));
    arrays.emplace_back(fitted.input + std::string(kScale), doubles(fitted.scale));
  }
  for (const FittedStatistic& fitted : data.fitted) arrays.emplace_back(fitted.name, doubles(fitted.values));
  return arrays;
}

WeightsNotes notes_of(const Model& model, MathMode math, bool with_model) {
  WeightsNotes notes;
  if (model.canonical && with_model) notes.model = model.canonical();
  notes.provenance = model.data.provenance;
  if (math != MathMode::exact) notes.math = name_of(math);
  if (model.train.precision == Precision::fp64) notes.precision = kFp64;
  return notes;
}

void save_weights(Session& session, OutputFile& file) {
  std::vector<std::pair<std::string, HostTensor>> arrays;
  const Model& model = session.model();
  const GraphBuilder::Impl& graph = model.graph.impl();
  const ByName used(session.program().buffers, &Buffer::name);
  const DType dtype = parameter_type(model.train.precision);
  for (const auto& [id, parameter] : graph.parameters) {
    const std::string& name = graph.graph[id].name;
    // An unused parameter is not part of the program, so it keeps its initial value.
    arrays.emplace_back(
        name, used.find(name)
                  ? session.read(name)
                  : initial_value(parameter.init, name, {dtype, graph.graph[id].type.shape, 0}, model.train.seed));
  }
  for (auto& array : fitted_arrays(model.data)) arrays.push_back(std::move(array));
  for (const FittedStatistic& chosen : model.data.thresholds)
    arrays.emplace_back(chosen.name + std::string(kThreshold), doubles(chosen.values));
  const WeightsNotes notes = notes_of(model, session.program().math, is_safetensors_name(file.path()));
  file.write(archive_bytes(file.path(), std::move(arrays), notes));
  file.commit();
}

void save_weights(Session& session, const std::string& path) {
  OutputFile file(path, kWriteCode);
  save_weights(session, file);
}

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Home folder from the user database if HOME is not set, as in containers and services; "" if unknown.
std::string home_folder() {
  if (std::string home = variable("HOME"); !home.empty()) return home;
  std::vector<char> text(std::size_t{1} << 14);
  ::passwd entry{}, *found = nullptr;
  const bool known = ::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
  return known && entry.pw_dir != nullptr ? entry.pw_dir : "";
}

}  // namespace

std::string rescue_weights(Session& session) {
  std::string causes;
  for (const std::string& folder : {variable("TMPDIR"), home_folder()}) {
    if (folder.empty()) continue;
    try {
      std::string path = fmt::format("{}/graphrun-weights-{}.npz", folder, random_digits());
      save_weights(session, path);
      return path;
    } catch (const std::exception& error) {
      causes += fmt::format("{}{}", causes.empty() ? "" : "; ", error.what());
    }
  }
  throw Error(ErrorKind::run, std::string(kWriteCode),
              causes.empty()
                  ? "the weights are lost: neither TMPDIR nor HOME names a folder for them, and the user has none"
                  : "the weights are lost: " + causes);
}

void load_weights(Session& session, const std::string& path) {
  Weights weights = read_weights(path);
  const Precision precision = session.model().train.precision;
  match_names(weights, session.model().graph, precision);
  std::vector<Diagnostic> found = misfits(weights, session.model().graph, precision);
  compare_fitted(weights, session.model().data, found);
  if (!found.empty()) throw Error(ErrorKind::input, std::move(found));
  const ByName used(session.program().buffers, &Buffer::name);
  for (const auto& [name, tensor] : parameters_of(weights, precision)) {
    if (used.find(name)) session.write(name, tensor);
  }
  session.set_thresholds(weights.data.thresholds);
}

}  // namespace graphrun
