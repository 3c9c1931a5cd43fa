// load_inputs.cpp: load_inputs(): the rows of a file as a model's inputs, for predictions.
// The file is read as a split of the model's data is: a section "data" of its own is made for it, with the lists,
// formulas and shape-changing transforms of the model's, targets left out. Numbers are not transformed: predict() takes
// original units.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "data/column_transforms.h"
#include "data/gather.h"
#include "data/inputs.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/format/overrides.h"
#include "graphrun/error.h"
#include "session/formulas.h"
#include "session/model_text.h"
#include "session/weights/weights_file.h"

namespace graphrun {
namespace {

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;

struct Wanted {
  std::vector<InputDecl> inputs;              // those that are no targets; f32 as f64
  std::set<std::string, std::less<>> others;  // the other inputs' names
  std::map<std::string, double, std::less<>> constants;

  bool is_other_input(const std::string& name) const { return others.contains(name); }
  bool is_input(const std::string& name) const {
    return std::any_of(inputs.begin(), inputs.end(), [&](const InputDecl& input) { return input.name == name; });
  }
};

Wanted wanted_of(const ModelFile& file, const Model& model) {
  const std::vector<std::string> names = target_names(model);
  const std::set<std::string_view> targets(names.begin(), names.end());
  Wanted wanted;
  for (const ModelFile::Input& input : file.inputs()) {
    if (targets.contains(input.name)) {
      wanted.others.insert(input.name);
      continue;
    }
    wanted.inputs.push_back({input.name, input.sample, input.dtype == DType::f32 ? DType::f64 : input.dtype, false});
  }
  wanted.constants = file.constants();
  return wanted;
}

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  return extension.empty() ? extension : extension.substr(1);
}

// What the model says of the rows that it was trained with.
struct Training {
  const json::Value* source = nullptr;  // the object that names it, with what stands beside
  const data::SourceFormat* format = nullptr;
  const json::Value* transform = nullptr;

  bool keyed() const {
    return !format || (format->name != "csv" && format->name != "grid" && format->name != "random");
  }
  bool is(std::string_view name) const { return format && format->name == name; }
};

Training training_of(const json::Document& document) {
  Training training;
  const json::Member* data = document.root.find("data");
  if (data == nullptr) return training;
  for (const char* key : {"source", "train"}) {
    if (const json::Member* own = data->value.find(key)) training.source = &own->value;
  }
  for (const data::SourceFormat& format : data::source_formats()) {
    if (training.source && training.source->find(format.name)) training.format = &format;
  }
  if (const json::Member* transform = data->value.find("transform")) training.transform = &transform->value;
  return training;
}

// What an input takes: the name of an array, a list of them, or a formula.
json::Value choice_of(const Training& training, const std::string& input, const data::Origin& origin) {
  const json::Member* said = training.source ? training.source->find(input) : nullptr;
  if (said) return said->value;
  if (training.keyed()) return json::make(input);
  const auto took = origin.columns.find(input);
  if (took == origin.columns.end()) {
    throw Error(
        ErrorKind::input, "predict.columns",
        fmt::format("the model does not say which columns the input '{}' takes, and the weights do not either", input),
        fmt::format("list them beside the source, as in \"{}\": [\"a\", \"b\"]", input));
  }
  return json::make_list(took->second);
}

// The arrays that a formula names; none of what is no formula.
std::vector<std::string> formula_names(const json::Value& choice, const Wanted& wanted) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  if (choice.kind != json::Kind::string || is_name(choice.string)) return names;
  try {
    for (const expression::Term& term : expression::parse(choice.string).terms) {
      const bool is_number = wanted.constants.contains(term.word) || term.word == "pi" || term.word == "e";
      if (term.kind != expression::Term::Kind::name || term.literal || is_number) continue;
      if (seen.insert(term.word).second) names.push_back(term.word);
    }
  } catch (const Error&) {  // the name of a column, as "house price" is one
  }
  return names;
}

// {"csv": path, "x": [...]}: the file as a source of its own, and what each input takes of it.
json::Value split_of(const Training& training, const std::string& format, const std::string& path, const Wanted& wanted,
                     const data::Origin& origin) {
  std::error_code ignored;
  const json::Value whole = json::make(std::filesystem::absolute(path, ignored).string());
  json::Value split = json::make_object();
  if (format == "npy" && wanted.inputs.size() != 1) {
    throw Error(ErrorKind::input, "predict.format",
                fmt::format("an NPY file is one input, and the model has {}", wanted.inputs.size()),
                "an NPZ file holds several, by name");
  }
  std::string only;  // the array of an NPY file
  for (const InputDecl& input : wanted.inputs) {
    json::Value choice = choice_of(training, input.name, origin);
    const std::vector<std::string> named = formula_names(choice, wanted);
    if (format == "npy" && named.size() > 1) {
      throw Error(
          ErrorKind::input, "predict.format",
          fmt::format("an NPY file is one array, and the input '{}' is made of {}", input.name, fmt::join(named, ", ")),
          "an NPZ file holds several, by name");
    }
    // A file of arrays has the input itself where the model lists columns or gives an array another name.
    if (named.empty() && (format == "npy" || (format == "npz" && !training.is("npz")))) choice = json::make(input.name);
    only = named.empty() ? input.name : named.front();
    json::add(split, input.name, std::move(choice));
  }
  json::add(split, format, format == "npy" ? json::make_object({{only, whole}}) : whole);
  if (format != "csv" || !training.is("csv")) return split;
  for (const data::Doc& option : training.format->options) {
    const json::Member* said = training.source->find(option.name);
    // Each row has its prediction: one that lacks a value is not left out but refused.
    const bool drops = said && option.name == "missing" && said->value.string == "drop";
    if (said && !drops) json::add(split, option.name, said->value);
  }
  return split;
}

// The transforms that do not stay to be done by Session::predict(): those of columns, those that change the shape, and
// all that lead to classes, which have no units to be given in.
json::Value shape_transforms(const Training& training, const Wanted& wanted) {
  json::Value result = json::make_object();
  if (training.transform == nullptr) return result;
  for (const json::Member& member : training.transform->members) {
    if (wanted.is_other_input(member.key)) continue;
    if (!wanted.is_input(member.key)) {
      json::add(result, member.key, member.value);
      continue;
    }
    const auto is = [](const json::Value& step, std::string_view name) {
      return step.string == name || step.find(name) != nullptr;
    };
    const std::vector<json::Value>& steps = member.value.items;
    const bool coded = std::any_of(steps.begin(), steps.end(), [&](const auto& step) {
      return is(step, "one_hot") || is(step, "classes") || is(step, "class_weight");
    });
    json::Value list = json::make_array();
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(list.items),
                 [&](const auto& step) { return coded || is(step, "flatten"); });
    json::add(result, member.key, std::move(list));
  }
  return result;
}

NamedTensors read_rows(json::Reader& reader, const Wanted& wanted, data::Fit& fit) {
  const ModelFormulas formulas(wanted.constants, true);
  DataOptions options;
  options.formulas = &formulas;
  data::Files files(options);
  const json::Place root = reader.root();
  const json::Place split = root.member(*root.value->find("rows"));
  const json::Place transform = root.member(*root.value->find("transform"));
  std::vector<data::Pipeline> pipelines(wanted.inputs.size());
  data::ColumnTransforms columns;
  for (const json::Member& member : transform.value->members) {
    if (!wanted.is_input(member.key)) columns.read(reader, transform, member);
  }
  std::vector<data::Taken> taken;
  for (std::size_t i = 0; i < wanted.inputs.size(); ++i) {
    const InputDecl& input = wanted.inputs[i];
    const json::Member* list = transform.value->find(input.name);
    if (list) pipelines[i].read(reader, transform.member(*list), input);
    pipelines[i].adopt(nullptr, input);
    const json::Value& choice = split.value->find(input.name)->value;
    taken.push_back({choice.kind == json::Kind::string && is_name(choice.string) ? choice.string : "",
                     pipelines[i].makes_classes() ? Shape{} : input.sample});
  }
  data::Fitting fitting{fit, {}, {}, false, pipelines, &columns};
  if (split.value->find("csv")) fitting.prepare = [&](data::Table& table) { gather(reader, split, table, taken); };
  const data::Part part = data::read_source(reader, split, "prediction", wanted.inputs, files, options, fitting).rows;
  reader.throw_if_failed();
  NamedTensors tensors;
  for (std::size_t i = 0; i < wanted.inputs.size(); ++i) {
    const InputDecl& input = wanted.inputs[i];
    tensors.emplace_back(input.name, pipelines[i].apply(part.columns[i], "prediction", input));
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
  return Error(error.kind(), std::move(diagnostics), error.more());
}

}  // namespace

std::vector<std::pair<std::string, HostTensor>> load_inputs(const std::string& model, const std::string& path,
                                                            const LoadOptions& given) {
  const std::string format = extension_of(path);
  if (format != "csv" && format != "npy" && format != "npz") {
    throw Error(ErrorKind::input, "predict.format",
                fmt::format("'{}': what it holds is told by its name: .csv, .npy or .npz", path));
  }
  if (std::error_code ignored;
      !std::filesystem::exists(path, ignored) || std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorKind::input, "file.missing", fmt::format("no such file: '{}'", path));
  }
  const LoadOptions options = reading_once(model, given);
  json::Document document = read_document(model, options);
  const std::vector<Override> overrides = apply_overrides(document, options.overrides);
  Wanted wanted;
  try {
    json::Reader reader(document);
    const ModelFile file(reader);
    wanted = wanted_of(file, file.build());
    reader.throw_if_failed();
  } catch (const Error& error) {
    throw blame(error, overrides);
  }
  if (wanted.inputs.empty()) {
    throw Error(ErrorKind::input, "predict.no_input",
                "no output depends on an input: there is nothing to predict from");
  }
  data::Fit fit(options.weights.empty() ? DataSet() : read_weights(options).data);
  const Training training = training_of(document);
  const std::string made = path + " (rows)";
  const json::Document rows =
      json::parse(made, json::text(json::make_object({{"rows", split_of(training, format, path, wanted, fit.origin)},
                                                      {"transform", shape_transforms(training, wanted)}})));
  json::Reader reader(rows);
  try {
    return read_rows(reader, wanted, fit);
  } catch (const Error& error) {
    throw without_places(error, made, path);
  }
}

}  // namespace graphrun
