#include "session/rows/inference_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "data/sources/columns.h"
#include "data/sources/inputs.h"
#include "data/splits/splitter.h"
#include "data/transforms/column_transforms.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/format/overrides.h"
#include "graph/frontend/step/class_numbers.h"
#include "graphrun/error.h"
#include "session/batch_dependence.h"
#include "session/formulas.h"
#include "session/model_text.h"
#include "session/weights/weights_file.h"

namespace graphrun {
namespace {

bool is_table(const data::SourceFormat& format) {
  return format.name == "csv" || format.name == "records" || format.name == "grid" || format.name == "random";
}

bool is_array(RowFormat format) {
  return format == RowFormat::npy || format == RowFormat::idx;
}

std::string_view source_name(RowFormat format) {
  switch (format) {
    case RowFormat::csv:
      return "csv";
    case RowFormat::records:
      return "records";
    case RowFormat::flat_json:
      return "json";
    case RowFormat::npy:
      return "npy";
    case RowFormat::npz:
      return "npz";
    case RowFormat::images:
      return "images";
    default:
      return "idx";
  }
}

// Drops positions in the generated section, which the user never wrote.
Error without_places(const Error& error, const std::string& made, const std::string& path, const std::string& name) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    for (std::string* text : {&diagnostic.message, &diagnostic.hint, &diagnostic.file}) {
      for (std::size_t at = 0; path != name && (at = text->find(name, at)) != std::string::npos; at += path.size())
        text->replace(at, name.size(), path);
    }
    // The message already starts with the file name.
    if (const std::string named = fmt::format("'{}': ", path); diagnostic.message.starts_with(named))
      diagnostic.message.erase(0, named.size());
    if (!diagnostic.file.empty() && diagnostic.file != made) continue;
    diagnostic.file = path;
    diagnostic.line = diagnostic.column = 0;
    diagnostic.pointer.clear();
    diagnostic.source_line.clear();
  }
  return Error(error.kind(), std::move(diagnostics), error.more());
}

}  // namespace

std::vector<InputDecl> input_declarations(const ModelFile& file, bool accepts_unseen) {
  const std::vector<std::string> names = target_names(file.model);
  const std::set<std::string_view> targets(names.begin(), names.end());
  std::map<std::string, std::vector<ClassRange>> classes;
  for (ClassRange& range : class_numbers(file.model)) classes[range.input].push_back(std::move(range));
  std::vector<InputDecl> inputs;
  for (const ModelFile::Input& input : file.inputs)
    inputs.push_back({input.name, input.sample, input.dtype, targets.contains(input.name), classes[input.name],
                      accepts_unseen && targets.contains(input.name)});
  return inputs;
}

InferenceInput::InferenceInput(const std::string& model, const LoadOptions& given, Purpose purpose)
    : InferenceInput(model, purpose, reading_once(model, given)) {}

InferenceInput::InferenceInput(const std::string& model, Purpose purpose, const LoadOptions& options)
    : purpose_(purpose),
      weights_(options.weights.empty() ? DataSet() : read_weights(options).data),
      fit_(weights_),
      document_(read_document(model, options)) {
  const std::vector<Override> overrides = apply_overrides(document_, options.overrides);
  try {
    json::Reader reader(document_);
    const ModelFile file = read_model_file(reader);
    const Model& built = file.model;
    reader.throw_if_failed();
    const bool predicts = purpose == Purpose::predict;
    for (InputDecl& input : input_declarations(file, options.accepts_unseen)) {
      if (predicts && input.is_target) {
        others_.insert(input.name);
        continue;
      }
      if (predicts && input.dtype == DType::f32) input.dtype = DType::f64;
      if (predicts) input.classes.clear();
      inputs_.push_back(std::move(input));
    }
    constants_ = built.graph.impl().constants;
    precision_ = built.train.precision;
    batch_dependent_ = graphrun::batch_dependent_output(built);
  } catch (const Error& error) {
    throw blame(error, overrides);
  }
  if (inputs_.empty()) {
    throw Error(ErrorKind::input, "predict.no_input",
                "no output depends on an input: there is nothing to predict from");
  }
  const json::Member* data = document_.root.find("data");
  if (data == nullptr) return;
  for (const char* key : {"source", "train"}) {
    if (const json::Member* own = data->value.find(key)) source_ = &own->value;
  }
  for (const data::SourceFormat& format : data::source_formats()) {
    if (source_ && source_->find(format.name)) format_ = &format;
  }
  if (const json::Member* transform = data->value.find("transform")) transform_ = &transform->value;
}

bool InferenceInput::is_wanted(const std::string& name) const {
  return std::any_of(inputs_.begin(), inputs_.end(), [&](const InputDecl& input) { return input.name == name; });
}

// Input selection: the name of an array, a list, or a formula.
json::Value InferenceInput::choice_of(const std::string& input) const {
  const json::Member* said = source_ ? source_->find(input) : nullptr;
  if (said) return said->value;
  if (!format_ || !is_table(*format_)) return json::make(input);
  const data::Provenance provenance = fit_.provenance;
  const auto took = provenance.columns.find(input);
  if (took == provenance.columns.end()) {
    throw Error(ErrorKind::input, "predict.columns",
                fmt::format("neither the model nor the weights list the columns of the input '{}'", input),
                fmt::format("list them next to the file name, as in \"{}\": [\"a\", \"b\"]", input));
  }
  return json::make_list(took->second);
}

std::int64_t InferenceInput::window_length() const {
  const json::Member* window = source_ ? source_->find("window") : nullptr;
  const json::Member* length = window ? window->value.find("length") : nullptr;
  return length ? static_cast<std::int64_t>(length->value.real) : 0;
}

std::vector<InputRows::Feed> InferenceInput::feeds() const {
  std::map<std::string, std::pair<std::string, std::size_t>> predicted;  // name -> target, element
  const auto items = [](const json::Value& choice) {
    return choice.items.empty() ? std::vector<json::Value>{choice} : choice.items;
  };
  for (const std::string& target : others_) {
    const std::vector<json::Value> names = items(choice_of(target));
    for (std::size_t i = 0; i < names.size(); ++i) predicted.emplace(names[i].string, std::pair(target, i));
  }
  std::vector<InputRows::Feed> feeds;
  for (const InputDecl& input : inputs_) {
    for (const json::Value& item : items(choice_of(input.name))) {
      const auto found = predicted.find(item.string);
      InputRows::Feed feed{input.name, item.string, {}, 0};
      if (found != predicted.end()) std::tie(feed.target, feed.element) = found->second;
      feeds.push_back(std::move(feed));
    }
  }
  return feeds;
}

// Arrays that a formula names; empty if the choice is not a formula.
std::vector<std::string> InferenceInput::array_names(const json::Value& choice) const {
  std::vector<std::string> names;
  if (choice.kind != json::Kind::string || is_name(choice.string)) return names;
  try {
    for (const expression::Term& term : expression::parse(choice.string).terms) {
      if (term.kind != expression::Term::Kind::name || term.literal || constants_.contains(term.word)) continue;
      if (std::find(names.begin(), names.end(), term.word) == names.end()) names.push_back(term.word);
    }
  } catch (const Error&) {  // a column name, such as "house price"
  }
  return names;
}

// Builds {"csv": path, "x": [...]}: the file as a source, and the selection of each input.
json::Value InferenceInput::split_of(const std::string& path, RowFormat format) const {
  std::error_code ignored;
  const json::Value whole = json::make(std::filesystem::absolute(path, ignored).string());
  const std::string_view source = source_name(format);
  const std::string called = format == RowFormat::idx ? "an IDX" : "an NPY";
  json::Value split = json::make_object();
  if (is_array(format) && inputs_.size() != 1) {
    throw Error(ErrorKind::input, "predict.format",
                fmt::format("{} file is one input, and there are {}", called, inputs_.size()),
                "an NPZ file holds several, by name");
  }
  std::string only;  // name of the array in a file that has only one
  for (const InputDecl& input : inputs_) {
    json::Value choice = choice_of(input.name);
    const std::vector<std::string> named = array_names(choice);
    if (is_array(format) && named.size() > 1) {
      throw Error(ErrorKind::input, "predict.format",
                  fmt::format("{} file is one array, and the input '{}' is made of {}", called, input.name,
                              fmt::join(named, ", ")),
                  "an NPZ file holds several, by name");
    }
    // A file of arrays contains the input itself if the model lists columns or renames an array.
    const bool has_inputs = is_array(format) || (format == RowFormat::npz && !(format_ && format_->name == "npz")) ||
                            (format == RowFormat::flat_json && !(format_ && format_->name == "json"));
    if (named.empty() && has_inputs) choice = json::make(input.name);
    if (format == RowFormat::images && !(format_ && format_->name == "images"))
      choice = json::make(input.is_target ? "class" : "image");
    only = named.empty() ? input.name : named.front();
    json::add(split, input.name, std::move(choice));
  }
  if (source_ && source_->find("window")) json::add(split, "window", source_->find("window")->value);
  json::add(split, source, is_array(format) ? json::make_object({{only, whole}}) : whole);
  const bool is_text = format == RowFormat::csv || format == RowFormat::records;
  if (is_text || (format_ && format_->name.starts_with("np"))) add_options(split, path, format);
  return split;
}

// Copies the dialect of the model's own table if the file may share it.
void InferenceInput::add_options(json::Value& split, const std::string& path, RowFormat format) const {
  const std::string_view source = source_name(format);
  for (const data::SourceFormat& known : data::source_formats()) {
    if (known.name != source || !format_) continue;
    for (const data::Doc& option : known.options) {
      const bool is_shared = std::any_of(format_->options.begin(), format_->options.end(),
                                         [&](const data::Doc& own) { return own.name == option.name; });
      const json::Member* said = is_shared ? source_->find(option.name) : nullptr;
      if (said) json::add(split, option.name, said->value);
    }
  }
  const json::Member* own = source_ ? source_->find("csv") : nullptr;
  const bool lacks_delimiter = format == RowFormat::csv && !split.find("delimiter") && extension_of(path).empty();
  if (own && lacks_delimiter && extension_of(own->value.string) == "tsv")
    json::add(split, "delimiter", json::make("\t"));
}

data::Dialect InferenceInput::dialect(const std::string& path) const {
  data::Dialect dialect;
  const json::Value split = split_of(path, RowFormat::csv);
  dialect.header = !split.find("names") && !split.find("libsvm");
  if (const json::Member* said = split.find("header")) dialect.header = said->value.boolean;
  if (const json::Member* said = split.find("comment")) dialect.comment = said->value.string;
  const json::Member* delimiter = split.find("delimiter");
  if (extension_of(path) == "tsv" || extension_of(path) == "tab") dialect.delimiter = '\t';
  if (delimiter && delimiter->value.string.size() == 1) dialect.delimiter = delimiter->value.string.front();
  return dialect;
}

// Transforms to apply on reading. For a prediction: those of columns, shape changes, and complete lists that produce
// classes, which have no original units. Session::predict() applies the rest.
json::Value InferenceInput::transforms() const {
  json::Value result = json::make_object();
  if (transform_ == nullptr) return result;
  for (const json::Member& member : transform_->members) {
    if (others_.contains(member.key)) continue;
    if (purpose_ == Purpose::evaluate || !is_wanted(member.key)) {
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

namespace {

std::vector<std::vector<std::string>> kept_of(const data::Table& table, const std::vector<std::string>& keep) {
  std::vector<std::vector<std::string>> kept;
  for (const std::string& name : keep) {
    const data::NamedArray* array = table.find(name);
    if (array == nullptr || !array->cells) {
      throw Error(ErrorKind::input, "predict.keep",
                  fmt::format("there is no column '{}' to keep; the file has {}", name, fmt::join(table.names(), ", ")),
                  did_you_mean(name, table.names()));
    }
    std::vector<std::string>& texts = kept.emplace_back();
    for (std::int64_t row = 0; row < array->cells->rows(); ++row) texts.emplace_back(array->cells->text(row));
  }
  return kept;
}

void reorder_kept(std::vector<std::vector<std::string>>& kept, const data::Rows& rows) {
  for (std::vector<std::string>& column : kept) {
    std::vector<std::string> ordered;
    for (std::int64_t i = 0; i < rows.count; ++i) ordered.push_back(column[static_cast<std::size_t>(rows.row(i))]);
    column = std::move(ordered);
  }
}

// Texts of the rows that the windows predict; empty after the last row.
void shift_kept(std::vector<std::vector<std::string>>& kept, std::int64_t target_row, std::int64_t samples) {
  for (std::vector<std::string>& column : kept) {
    column.erase(column.begin(), column.begin() + std::min(target_row, std::ssize(column)));
    column.resize(static_cast<std::size_t>(samples));
  }
}

const Standardization* find_fitted(const DataSet& weights, const std::string& input) {
  for (const Standardization& fitted : weights.standardizations) {
    if (fitted.input == input) return &fitted;
  }
  return nullptr;
}

}  // namespace

// Same error; a missing first line lists the columns of the model.
Error InferenceInput::with_columns(const Error& error) const {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  std::vector<std::string> names;
  for (const InputDecl& input : inputs_) {
    const json::Value choice = choice_of(input.name);
    for (const json::Value& item : choice.items) names.push_back(item.string);
    for (std::int64_t i = 0; choice.items.empty() && i < input.sample.elements(); ++i)
      names.push_back(input.sample.elements() == 1 ? choice.string : fmt::format("{}{}", choice.string, i));
  }
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.hint.starts_with("put a line of names above it"))
      diagnostic.hint = "put a line of names above it; the model takes " + data::listed(names);
  }
  return Error(error.kind(), std::move(diagnostics), error.more());
}

// Takes the column with the name of an input in place of a formula over columns that the table lacks, such as those of
// a random table.
void InferenceInput::prefer_columns(json::Value& split, const data::Table& table,
                                    std::vector<data::Taken>& taken) const {
  const auto lacks = [&](const std::string& name) { return table.find(name) == nullptr; };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = inputs_[i].name;
    json::Value& choice = std::ranges::find(split.members, name, &json::Member::key)->value;
    const std::vector<std::string> names = array_names(choice);
    const bool unknown = format_ != nullptr && format_->name == "random" && std::ranges::all_of(names, lacks);
    if (std::ranges::none_of(names, lacks) || (lacks(name) && !unknown)) continue;
    choice = json::make(name);
    taken[i].array = name;
  }
}

InferenceInput::Read InferenceInput::read(const std::string& path, const std::string& name, RowFormat format,
                                          const std::optional<data::Chunk>& chunk,
                                          const std::vector<std::string>& keep) {
  const bool has_cells = format == RowFormat::csv || format == RowFormat::records;
  if (!keep.empty() && !has_cells && format != RowFormat::images)
    throw Error(ErrorKind::input, "predict.keep", "only a CSV or JSON file has columns to keep");
  const std::string made = path + " (rows)";
  json::Value made_section = json::make_object({{"rows", split_of(name, format)}, {"transform", transforms()}});
  const json::Member* by =
      window_length() > 0 && has_cells ? document_.root.find("data")->value.find("split_by") : nullptr;
  if (by != nullptr) json::add(made_section, "split_by", by->value);
  json::Document rows = json::parse(made, json::text(made_section));
  json::Reader reader(rows);
  const ModelFormulas formulas(constants_, precision_, true);
  DataOptions options;
  options.formulas = &formulas;
  options.is_other = true;
  data::Files files(options);
  std::error_code ignored;
  if (chunk) files.provide(std::filesystem::absolute(name, ignored).string(), *chunk);
  const json::Ref root = reader.root();
  const json::Ref split = root.member(*root.value->find("rows"));
  const json::Ref transform = root.member(*root.value->find("transform"));
  std::vector<data::Pipeline> pipelines(inputs_.size());
  data::ColumnTransforms columns;
  Read result;
  try {
    for (const json::Member& member : transform.value->members) {
      if (!is_wanted(member.key)) columns.read(reader, transform, member);
    }
    std::vector<data::Taken> taken;
    const std::int64_t window = window_length();
    std::optional<data::Splitter> order;
    if (by != nullptr) order = data::Splitter::in_order_of(reader, root.member(*root.value->find("split_by")));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const InputDecl& input = inputs_[i];
      const json::Member* list = transform.value->find(input.name);
      if (list) pipelines[i].read(reader, transform.member(*list), input);
      if (pipelines[i].accepts_unseen(input)) fit_.accepts_unseen.insert(input.name);
      auto adopted =
          pipelines[i].adopt(purpose_ == Purpose::evaluate ? find_fitted(weights_, input.name) : nullptr, input);
      if (adopted) result.standardizations.push_back(std::move(*adopted));
      const json::Value& choice = split.value->find(input.name)->value;
      taken.push_back({choice.kind == json::Kind::string && is_name(choice.string) ? choice.string : "",
                       pipelines[i].makes_classes()     ? Shape{}
                       : window > 0 && !input.is_target ? Shape{input.sample.elements() / window}
                                                        : input.sample});
    }
    data::ReadContext fitting{fit_, {}, {}, false, pipelines, &columns};
    fitting.prepare = [&](data::Table& table) {
      result.kept = kept_of(table, keep);
      if (order) order->see(reader, table, split);
      prefer_columns(rows.root.members.front().value, table, taken);
      if (has_cells) gather(reader, split, table, taken);
    };
    data::SplitData part = data::read_source(reader, split, "data", inputs_, files, options, fitting).rows;
    reader.throw_if_failed();
    for (data::Column& column : part.columns)
      if (order) column.rows = order->rows(column.rows, 0);
    if (order) reorder_kept(result.kept, part.columns.front().rows);
    form_windows(reader, part, inputs_, purpose_ == Purpose::predict);
    reader.throw_if_failed();
    if (window > 0) {
      result.target_row = window - 1 + part.window.target;
      shift_kept(result.kept, result.target_row, part.rows);
      for (const InputDecl& input : inputs_) {
        if (!input.is_target && part.window.hop < window && purpose_ == Purpose::evaluate)
          result.windows.push_back({input.name, window, part.window.hop});
      }
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      result.inputs.emplace_back(
          inputs_[i].name,
          pipelines[i].apply(part.columns[i], purpose_ == Purpose::predict ? "prediction" : "data", inputs_[i]));
  } catch (const Error& error) {
    throw with_columns(without_places(error, made, path, name));
  }
  result.warnings = files.warnings();
  if (purpose_ == Purpose::predict) count_far(result, files);
  return result;
}

// Columns with their own transforms were counted on reading. Here, those of inputs whose list Session::predict()
// applies.
void InferenceInput::count_far(Read& read, const data::Files& files) const {
  for (const auto& [column, rows] : files.far())
    if (rows > 0) read.far.emplace_back(column, rows);
  for (const auto& [name, values] : read.inputs) {
    const Standardization* fitted = find_fitted(weights_, name);
    const json::Member* list = transform_ == nullptr ? nullptr : transform_->find(name);
    if (fitted == nullptr || list == nullptr || values.dtype() != DType::f64) continue;
    std::string steps;
    for (const json::Value& step : list->value.items)
      steps += (step.members.empty() ? step.string : step.members.front().key) + ",";
    const std::size_t width = fitted->scale.size();
    std::vector<std::int64_t> counts(width);
    const std::span<const double> numbers = values.elements<double>();
    // Every row of the file is the last row of a window, but those before the first.
    const std::size_t row = window_length() > 0 ? width / static_cast<std::size_t>(window_length()) : width;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::size_t c = i % width;
      if (c < width - row) continue;
      const double z = (apply_log(fitted->log, numbers[i]) - fitted->shift[c]) / fitted->scale[c];
      if (data::is_far(steps, z)) ++counts[c];
    }
    const json::Value choice = choice_of(name);
    const bool named = choice.items.size() == row;
    for (std::size_t c = 0; c < row; ++c)
      if (counts[width - row + c] > 0)
        read.far.emplace_back(named      ? choice.items[c].string
                              : row == 1 ? name
                                         : fmt::format("{}{}", name, c),
                              counts[width - row + c]);
  }
}

}  // namespace graphrun
