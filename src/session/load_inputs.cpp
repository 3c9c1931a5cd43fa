// load_inputs.cpp: load_inputs(): the rows of a file as a model's inputs, for predictions.
// The file is read as a split of the model's data is: a section "data" of its own is made for it, with the lists,
// formulas and shape-changing transforms of the model's. Numbers are not transformed: predict() takes original units.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "data/inputs.h"
#include "graph/frontend/model_file.h"
#include "graph/frontend/overrides.h"
#include "graphrun/error.h"
#include "session/formulas.h"

namespace graphrun {
namespace {

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;

struct Wanted {
  std::vector<InputDecl> inputs;  // the targets last
  std::size_t needed = 0;         // of them, those that are no targets
  std::map<std::string, double, std::less<>> constants;
};

Wanted wanted_of(const ModelFile& file, const Model& model) {
  const std::vector<std::string> targets = target_names(model);
  Wanted wanted;
  for (const bool is_target : {false, true}) {
    for (const ModelFile::Input& input : file.inputs()) {
      const bool listed = std::find(targets.begin(), targets.end(), input.name) != targets.end();
      if (listed == is_target) wanted.inputs.push_back({input.name, input.sample, input.dtype, is_target});
    }
    if (!is_target) wanted.needed = wanted.inputs.size();
  }
  wanted.constants = file.constants();
  return wanted;
}

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  return extension.empty() ? extension : extension.substr(1);
}

// The value of the file's own key: its path, or for NPY the path of the one input.
json::Value source_value(const std::string& format, const std::string& path, const Wanted& wanted) {
  std::error_code ignored;
  const std::string whole = std::filesystem::absolute(path, ignored).string();
  if (format != "npy") return json::make(whole);
  if (wanted.needed != 1) {
    throw Error(ErrorKind::input, "predict.format",
                fmt::format("an NPY file is one input, and the model has {}", wanted.needed),
                "an NPZ file holds several, by name");
  }
  return json::make_object({{wanted.inputs[0].name, json::make(whole)}});
}

// What the model says of its own source of the same format: options, lists, formulas.
void copy_said(const json::Value& model_data, const std::string& format, json::Value& split) {
  for (const char* key : {"source", "train"}) {
    const json::Member* own = model_data.find(key);
    if (own == nullptr || own->value.find(format) == nullptr) continue;
    for (const json::Member& member : own->value.members) {
      if (member.key != format && member.key != "rows" && member.key != "range")
        json::add(split, member.key, member.value);
    }
  }
}

bool changes_shape(const json::Value& transform) {
  return transform.string == "flatten" || transform.find("one_hot") != nullptr;
}

json::Value shape_transforms(const json::Value& model_data) {
  json::Value result = json::make_object();
  const json::Member* transform = model_data.find("transform");
  if (transform == nullptr) return result;
  for (const json::Member& member : transform->value.members) {
    json::Value list = json::make_array();
    std::copy_if(member.value.items.begin(), member.value.items.end(), std::back_inserter(list.items), changes_shape);
    json::add(result, member.key, std::move(list));
  }
  return result;
}

NamedTensors read_rows(json::Reader& reader, const Wanted& wanted, std::size_t count, std::uint64_t seed) {
  const ModelFormulas formulas(wanted.constants);
  DataOptions options;
  options.seed = seed;
  options.formulas = &formulas;
  data::Files files(options);
  const std::span<const InputDecl> inputs(wanted.inputs.data(), count);
  const json::Place root = reader.root();
  const json::Place split = root.member(*root.value->find("rows"));
  const json::Place transform = root.member(*root.value->find("transform"));
  const data::Part part = data::read_source(reader, split, "prediction", inputs, files, options).rows;
  reader.throw_if_failed();
  NamedTensors tensors;
  for (std::size_t i = 0; i < wanted.needed; ++i) {
    data::Pipeline pipeline;
    if (const json::Member* list = transform.value->find(inputs[i].name)) {
      pipeline.read(reader, transform.member(*list), inputs[i]);
    }
    tensors.emplace_back(inputs[i].name, pipeline.apply(part.columns[i], "prediction", inputs[i]));
  }
  return tensors;
}

// Places in the section that was made point nowhere that the user has written.
Error without_places(const Error& error, const std::string& made, const std::string& path) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (!diagnostic.file.empty() && diagnostic.file != made) continue;
    diagnostic.file = path;
    diagnostic.line = diagnostic.column = 0;
    diagnostic.pointer.clear();
    diagnostic.source_line.clear();
  }
  return Error(error.kind(), std::move(diagnostics));
}

}  // namespace

std::vector<std::pair<std::string, HostTensor>> load_inputs(const std::string& model, const std::string& path,
                                                            const LoadOptions& options) {
  const std::string format = extension_of(path);
  if (format != "csv" && format != "npy" && format != "npz") {
    throw Error(ErrorKind::input, "predict.format",
                fmt::format("'{}': what it holds is told by its name: .csv, .npy or .npz", path));
  }
  if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored)) {
    throw Error(ErrorKind::input, "file.missing", fmt::format("no such file: '{}'", path));
  }
  json::Document document = json::parse(model, read_file(model));
  const std::vector<Override> overrides = apply_overrides(document, options.overrides);
  Wanted wanted;
  std::uint64_t seed = 0;
  try {
    json::Reader reader(document);
    const ModelFile file(reader);
    wanted = wanted_of(file, file.build(file.batch().value_or(kUnknownBatch)));
    seed = file.seed();
    reader.throw_if_failed();
  } catch (const Error& error) {
    throw blame(error, overrides);
  }
  const json::Member* data = document.root.find("data");
  const json::Value none = json::make_object();
  const json::Value& model_data = data == nullptr ? none : data->value;
  json::Value split = json::make_object({{format, source_value(format, path, wanted)}});
  copy_said(model_data, format, split);

  // With the targets first: a file that holds them too, as the training data do, is read as those are.
  for (const std::size_t count : {wanted.inputs.size(), wanted.needed}) {
    json::Value own = split;
    for (std::size_t i = count; i < wanted.inputs.size(); ++i) {
      std::erase_if(own.members, [&](const json::Member& member) { return member.key == wanted.inputs[i].name; });
    }
    const std::string made = path + " (rows)";
    const json::Document rows =
        json::parse(made, json::text(json::make_object({{"rows", own}, {"transform", shape_transforms(model_data)}})));
    json::Reader reader(rows);
    try {
      return read_rows(reader, wanted, count, seed);
    } catch (const Error& error) {
      if (count == wanted.needed) throw without_places(error, made, path);
    }
  }
  return {};  // the last round returns or throws
}

}  // namespace graphrun
