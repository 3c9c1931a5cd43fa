// model.cpp: load_model(): builds a Model from a model file, its overrides and its data.
#include "graphrun/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <span>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "data/dataset.h"
#include "data/formats/npy.h"
#include "data/provenance.h"
#include "data/sources/array_rows.h"
#include "data/sources/files.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/format/overrides.h"
#include "graphrun/elements.h"
#include "graphrun/op.h"
#include "graphrun/show.h"
#include "session/batch_dependence.h"
#include "session/formulas.h"
#include "session/model_text.h"
#include "session/rows/inference_input.h"
#include "session/rows/labelled_rows.h"
#include "session/weights/weights_file.h"

namespace graphrun {
namespace {

// Rows that the weights were trained on; 0 if they do not record it.
std::int64_t trained_rows(const DataSet& data) {
  return data.provenance.empty() ? 0 : data::read_provenance("the weights' data:origin", data.provenance).samples;
}

// Batch for rows that are not the model's own: its batch or its training size, limited to the available rows.
std::int64_t evaluation_batch(const ModelFile& file, const DataSet& data, const Split& rows) {
  const std::int64_t all = trained_rows(data);
  const std::int64_t wanted = file.batch.value_or(all > 0 ? all : rows.samples());
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(rows.samples(), 1));
}

DataUse use_of(const LoadOptions& options) {
  return options.predicts > 0 || options.data == DataUse::given ? DataUse::none : options.data;
}

// Batch set by the file and its data; nothing if it is unknown or an error was reported.
std::optional<std::int64_t> batch_of(json::Reader& reader, const ModelFile& file, const DataSet& data,
                                     const LoadOptions& options) {
  const Split* train = data.find("train");
  if (const Split* rows = data.find("data")) return evaluation_batch(file, data, *rows);
  if (!train && use_of(options) == DataUse::none) return file.batch;
  if (!train) {
    reader.report(*file.data, "model.data", "there is no training split", "\"train\" names its source");
    return std::nullopt;
  }
  if (!file.batch) return train->samples();
  if (*file.batch > train->samples()) {
    reader.report(
        file.batch_place, "model.batch",
        fmt::format("the batch of {} is larger than the training split of {} samples", *file.batch, train->samples()),
        "\"all\" takes the whole split");
  }
  return file.batch;
}

// Batch of predictions: this many rows, or fewer if their inputs exceed 64 MiB of floats.
constexpr std::int64_t kPredicted = 1024, kPredictedElements = std::int64_t{1} << 24;

std::int64_t prediction_rows(const Model& model) {
  std::int64_t elements = 1;
  for (const ir::Node& node : model.graph.impl().graph.nodes) {
    if (node.op != Op::input || node.type.rows == 0) continue;
    const std::span<const std::int64_t> row = node.type.shape.dims().subspan(1);
    elements += std::accumulate(row.begin(), row.end(), node.type.rows, std::multiplies<>());
  }
  return std::clamp<std::int64_t>(kPredictedElements / elements, 1, kPredicted);
}

// Independent rows are predicted in batches that depend on the model alone: on a GPU the batch size affects the order
// of a sum, and a prediction must not depend on the number of rows in a file. Dependent rows use the evaluation batch.
std::int64_t prediction_batch(const ModelFile& file, DataSet& data, const LoadOptions& options) {
  data.splits.clear();
  const bool is_asked = std::any_of(options.overrides.begin(), options.overrides.end(),
                                    [](const auto& one) { return one.first == "train.batch"; });
  const std::string coupled = batch_dependent_output(file.model);
  if (coupled.empty()) {
    return is_asked ? file.batch.value_or(options.predicts) : prediction_rows(file.model);
  }
  const std::int64_t batch = file.batch.value_or(trained_rows(data));
  if (batch == 0) {
    throw Error(ErrorKind::input, "predict.batch",
                fmt::format("the output '{}' depends on the rest of its batch, which is \"all\", and the weights do "
                            "not record its size",
                            coupled),
                "set it with --batch");
  }
  data.warnings.push_back(
      fmt::format("the output '{}' depends on the rest of its batch: predicted in batches of {}, in the order of "
                  "the file, as in evaluation",
                  coupled, batch));
  return batch;
}

// {"npz": "file.npz", "key": "W1"}: each file is read once.
// With fp64, arrays may be f64.
ReadArray initial_arrays(data::Files& files, bool is_wide) {
  auto opened = std::make_shared<std::map<std::string, data::Npz>>();
  return [&files, opened, is_wide](const std::string& file, const std::string& key) {
    const std::string path = files.find(file);
    auto npz = opened->find(path);
    if (npz == opened->end()) npz = opened->try_emplace(path, path, files.read(path)).first;
    const data::ArrayPtr array =
        files.array(path + "/" + key, [&](const std::string&) { return npz->second.read(key); });
    const auto* const doubles = std::get_if<std::vector<double>>(&array->values);
    const auto* const floats = std::get_if<std::vector<float>>(&array->values);
    if (floats != nullptr || (doubles != nullptr && is_wide)) {
      HostTensor tensor =
          floats != nullptr ? HostTensor(array->shape, *floats) : from_doubles(*doubles, {DType::f64, array->shape, 0});
      const std::string wrong = not_finite(key, tensor);
      if (wrong.empty()) return tensor;
      throw Error(ErrorKind::input, "data.value", fmt::format("'{}': {}; a parameter is finite", path, wrong));
    }
    throw Error(
        ErrorKind::input, "data.dtype", fmt::format("'{}': the values of '{}' are not f32", path, key),
        "parameters are f32: save the array with .astype(numpy.float32), or set \"precision\": \"fp64\" in \"train\"");
  };
}

// Deferred until requested: values in the file may be large, and the text needs several copies of them.
std::function<std::string()> canonical_text(const json::Document& read, const LoadOptions& options,
                                            const std::string& name) {
  constexpr std::size_t kMax = std::size_t{16} << 20;
  if (read.text.size() > kMax) return [] { return std::string(); };
  struct Kept {
    std::once_flag once;
    std::string text;
  };
  const auto made = [name, path = read.file, text = read.text, overrides = options.overrides] {
    json::Document document = json::parse(path, text);
    apply_overrides(document, overrides);
    json::Reader reader(document);
    Model model = read_model_file(reader).model;
    reader.throw_if_failed();
    model.name = name;
    std::string said = json::text(canonical(reader, model));
    return said.size() > kMax ? std::string() : said;
  };
  // A training with a run folder needs the text three times. Threads may share a model.
  return [made, kept = std::make_shared<Kept>()] {
    std::call_once(kept->once, [&] { kept->text = made(); });
    return kept->text;
  };
}

Model read_model(const json::Document& document, const LoadOptions& options) {
  std::optional<Weights> weights;
  if (!options.weights.empty()) weights = read_weights(options);
  json::Reader reader(document);
  const std::filesystem::path path(document.file);
  // A pipe has no folder: search for data in the current directory.
  std::error_code ignored;
  const bool has_folder = path.has_parent_path() && std::filesystem::is_regular_file(path, ignored);
  const std::string folder = has_folder ? path.parent_path().string() : ".";
  data::Files files({folder, options.data_dir});
  // A plan needs no values, and weights replace all of them.
  const bool reads = use_of(options) == DataUse::values && !weights;
  const json::Member* const train = document.root.find("train");
  const json::Member* const precision = train == nullptr ? nullptr : train->value.find("precision");
  const bool is_wide = precision != nullptr && precision->value.string == "fp64";
  // Read before the data, so that one pass reports the errors of both.
  ModelFile file = read_model_file(reader, reads ? initial_arrays(files, is_wide) : ReadArray());
  Model& model = file.model;
  if (weights && !reader.failed()) {
    match_names(*weights, model.graph, model.train.precision);
    const std::vector<Diagnostic> found = misfits(*weights, model.graph, model.train.precision);
    if (!found.empty()) reader.report(reader.root(), Error(ErrorKind::input, found));
  }
  DataSet data;
  const bool evaluates = !options.evaluates.empty() && !reader.failed();
  if (file.data && file.inputs_read) {
    const ModelFormulas formulas(model.graph.impl().constants, model.train.precision);
    const DataUse use = evaluates ? DataUse::none : use_of(options);
    data = read_data(reader, *file.data, input_declarations(file, options.accepts_unseen),
                     {folder, options.data_dir, model.train.seed, &formulas, use, weights ? &weights->data : nullptr,
                      false, options.on_progress});
  }
  if (evaluates && !reader.failed()) {
    std::vector<std::pair<std::string, std::vector<std::string>>> labels = std::move(data.labels);
    std::vector<InputColumns> columns = std::move(data.columns);
    data = labelled_rows(document.file, options);
    data.labels = std::move(labels);
    data.columns = std::move(columns);
  }
  reader.throw_if_failed();
  if (options.data == DataUse::given) data.splits.clear();
  std::optional<std::int64_t> batch =
      options.predicts > 0 ? prediction_batch(file, data, options) : batch_of(reader, file, data, options);
  reader.throw_if_failed();
  // Weights without data are used for prediction, even if the training batch is unknown.
  if (!batch && weights && use_of(options) == DataUse::none && batch_dependent_output(model).empty())
    batch = prediction_rows(model);
  if (batch) model.graph.impl().set_batch(*batch);
  if (weights) {
    GraphBuilder::Impl& graph = model.graph.impl();
    for (auto& [name, tensor] : parameters_of(*weights, model.train.precision))
      graph.parameters.at(graph.builder.find(name)).init = Init::values(std::move(tensor));
  }
  if (weights) data.warnings.insert(data.warnings.end(), weights->warnings.begin(), weights->warnings.end());
  if (model.name.empty()) model.name = path.stem().string();
  model.file = document.file;
  model.canonical = canonical_text(document, options, model.name);
  model.data = std::move(data);
  model.data.accepts_unseen = options.accepts_unseen;
  if (weights) model.data.thresholds = weights->data.thresholds;
  model.data.files.insert(model.data.files.end(), files.found().begin(), files.found().end());
  return std::move(model);
}

// Same error; diagnostics about unknown paths suggest settings.
Error with_setting_hints(const Error& error, const std::string& path, const LoadOptions& options) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    if (!d.file.starts_with("--set ") || (d.code != "model.unknown_key" && d.code != "set.path")) continue;
    const std::string set = d.file.substr(0, d.file.find('='));
    const bool is_near = d.hint.starts_with("did you mean") && set.find('.') != std::string::npos;
    const std::string hint = is_near ? "" : setting_hint(path, set.substr(set.find_last_of(". ") + 1), options);
    if (!hint.empty() && hint.find(set + "=") == std::string::npos) d.hint = hint;
  }
  return Error(error.kind(), std::move(diagnostics), error.more());
}

}  // namespace

Model load_model(const std::string& path, const LoadOptions& given) {
  const LoadOptions options = reading_once(path, given);
  json::Document document = read_document(path, options);
  std::vector<Override> overrides;
  try {
    overrides = apply_overrides(document, options.overrides);
    return read_model(document, options);
  } catch (const Error& error) {
    throw with_setting_hints(blame(error, overrides), path, options);
  }
}

// Converts columns that stay f32 or f64 without a transform to the type of their input.
void change_original(Model& model) {
  std::set<std::pair<std::string, std::string>> given;
  for (const Split& split : model.data.splits)
    for (const std::string& input : split.original) given.emplace(split.name, input);
  if (model.data.arrays) model.data.arrays->change(model.data);
  for (Split& split : model.data.splits) {
    for (auto& [input, column] : split.columns) {
      const bool is_f32 = std::ranges::any_of(model.graph.impl().graph.nodes, [&name = input](const ir::Node& node) {
        return node.op == Op::input && node.name == name && node.type.dtype == DType::f32;
      });
      const bool is_wide = model.train.precision == Precision::fp64;
      if (is_wide && is_f32 && column.dtype() == DType::f32)
        column = from_doubles(as_doubles(column), {DType::f64, column.shape(), 0});
      if (is_wide || column.dtype() != DType::f64 || !is_f32 || !given.contains({split.name, input})) continue;
      HostTensor rounded(DType::f32, column.shape());
      for (std::size_t i = 0; i < rounded.elements<float>().size(); ++i) {
        const double value = column.elements<double>()[i];
        rounded.elements<float>()[i] = static_cast<float>(value);
        if (std::isfinite(value) && !std::isfinite(rounded.elements<float>()[i]))
          throw Error(ErrorKind::input, "data.value",
                      fmt::format("input '{}' of {}: {} is too large for f32", input, split.name, value));
      }
      column = std::move(rounded);
    }
  }
}

}  // namespace graphrun
