#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "data/sources/array_rows.h"
#include "data/sources/columns.h"
#include "data/sources/inputs.h"
#include "data/sources/sources.h"
#include "data/splits/splitter.h"
#include "data/transforms/column_transforms.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using data::SplitData;

constexpr const char* kSplits[] = {"train", "validation", "test"};

// The "transform" section: lists of inputs, and of source columns.
struct Transforms {
  std::vector<data::Pipeline> inputs;
  data::ColumnTransforms columns;
};

std::vector<SplitData> read_parts(json::Reader& reader, json::ObjectReader& block, std::span<const InputDecl> inputs,
                                  Transforms& transforms, data::Files& files, const DataOptions& options,
                                  data::FittedStatistics& fit, const std::optional<data::Provenance>& trained) {
  std::vector<SplitData> parts;
  const auto all = [](const data::Rows& rows) { return rows; };
  const std::optional<json::Ref> source = block.get("source"), split = block.get("split");
  const std::size_t before = reader.errors();
  std::optional<data::Splitter> splitter =
      data::Splitter::read(reader, block, inputs, options, trained, source && source->value->find("window") != nullptr);
  const bool is_split = splitter || reader.errors() != before;
  const auto check_names = [&](const data::Table& table) { transforms.columns.check_names(reader, table, inputs); };
  for (const std::string name : kSplits) {
    const std::optional<json::Ref> at = block.get(name);
    if (!at) continue;
    if (source) {
      reader.report(*at, "data.split", fmt::format("'{}' cannot be combined with 'source'", name));
      continue;
    }
    data::ReadContext fitting{fit, {}, {}, false, transforms.inputs, &transforms.columns};
    if (name == "train") {
      fitting.train = all;
      fitting.prepare = check_names;
    }
    parts.push_back(data::read_source(reader, *at, name, inputs, files, options, fitting).rows);
  }
  if (!source) {
    const std::optional<json::Ref> folds = block.get("folds");
    if (split) reader.report(*split, "data.split", "'split' divides a 'source', and there is none");
    if (folds) reader.report(*folds, "data.split", "'folds' divides a 'source', and there is none");
    if (block.is_object() && !block.get("train"))
      reader.report(block.place(), "data.split", "missing key 'train' or 'source': there is nothing to train on");
    return parts;
  }
  data::ReadContext fitting{fit, all, check_names, false, transforms.inputs, &transforms.columns};
  if (splitter) {
    fitting.train = [&](const data::Rows& rows) { return splitter->rows(rows, 0); };
    fitting.prepare = [&](const data::Table& table) {
      check_names(table);
      splitter->see(reader, table, *source);
    };
    fitting.hashes = true;
  }
  data::SourceData read = data::read_source(reader, *source, "", inputs, files, options, fitting);
  if (is_split) {
    const bool keeps_test = split && split->value->items.size() == 2;
    if (read.test && !keeps_test)
      reader.report(split ? *split : *source, "data.split",
                    "the source has its own test rows: its training rows can be split in two parts only",
                    R"(for instance "split": [0.8, 0.2] of train and validation)");
    if (!read.test && keeps_test && options.use == DataUse::values)
      reader.report(*split, "data.split", "the source has no test rows of its own",
                    "name three fractions: of train, validation and test");
    if (!splitter) return {};
    if (options.use == DataUse::values) fit.provenance.split = splitter->provenance(read.rows.rows, read.hash);
    if (reader.errors() == before) parts = splitter->parts(reader, read.rows);
    if (read.test && !parts.empty()) parts.push_back(std::move(*read.test));
    return parts;
  }
  read.rows.name = "train";
  parts.push_back(std::move(read.rows));
  if (read.test) parts.push_back(std::move(*read.test));
  return parts;
}

// Options of a source that are next to it.
void report_options(json::Reader& reader, const json::Ref& at, json::ObjectReader& block) {
  for (const json::Member* member : block.unread()) {
    const auto has_option = [&](const data::SourceFormat& format) {
      return std::ranges::find(format.options, member->key, &data::Doc::name) != format.options.end();
    };
    if (!std::ranges::any_of(data::source_formats(), has_option)) continue;
    block.get(member->key);
    reader.report_key(at, *member, "model.unknown_key", fmt::format("unknown key '{}'", member->key),
                      fmt::format("it belongs inside \"source\": {{\"csv\": ..., \"{}\": ...}}", member->key));
  }
}

Transforms read_transforms(json::Reader& reader, const std::optional<json::Ref>& at,
                           std::span<const InputDecl> inputs) {
  Transforms transforms;
  transforms.inputs.resize(inputs.size());
  if (!at) return transforms;
  json::ObjectReader object(reader, *at);
  if (!object.is_object()) return transforms;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<json::Ref> list = object.get(inputs[i].name);
    if (list) transforms.inputs[i].read(reader, *list, inputs[i]);
  }
  for (const json::Member* member : object.unread()) transforms.columns.read(reader, *at, *member);
  return transforms;
}

// Class names of the targets.
std::vector<std::pair<std::string, std::vector<std::string>>> labels_of(const Transforms& transforms,
                                                                        const json::Ref& block,
                                                                        std::span<const InputDecl> inputs,
                                                                        const data::Provenance& provenance) {
  std::vector<std::pair<std::string, std::vector<std::string>>> labels;
  const json::Member* source = nullptr;
  for (const char* key : {"source", "train"}) {
    if (!source) source = block.value->find(key);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_target) continue;
    const data::ClassStep* step = transforms.inputs[i].class_step();
    std::optional<std::vector<std::string>> words;
    if (step && !step->weighs) words = data::labels_of(*step, inputs[i].name, provenance);
    const json::Member* said = source ? source->value.find(inputs[i].name) : nullptr;
    if (!step) words = transforms.columns.labels_of(said ? said->value.string : inputs[i].name, provenance);
    if (words) labels.emplace_back(inputs[i].name, std::move(*words));
  }
  return labels;
}

// One output distinguishes two classes: a target with more classes needs one output per class.
void check_labels(json::Reader& reader, const json::Ref& at, std::span<const InputDecl> inputs, const DataSet& set) {
  for (const InputDecl& input : inputs) {
    const auto is_one = [](const ClassRange& range) { return range.kind == ClassRange::Kind::probabilities; };
    const auto found = std::find_if(input.classes.begin(), input.classes.end(), is_one);
    if (found == input.classes.end() || input.sample.elements() != 1) continue;
    for (const auto& [name, words] : set.labels) {
      if (name != input.name || words.size() < 3) continue;
      reader.report(at, "data.value",
                    fmt::format("input '{}' has {} classes, {}; {} takes two", name, words.size(), data::listed(words),
                                found->user),
                    fmt::format("{} classes need {} outputs and softmax_cross_entropy; the target is then "
                                "{{\"dtype\": \"i32\", \"shape\": [\"batch\"]}}",
                                words.size(), words.size()));
    }
  }
}

// Uses statistics loaded with weights instead of fitted ones.
void adopt_fitted(json::Reader& reader, const json::Ref& at, const std::vector<Standardization>& fitted,
                  std::vector<data::Pipeline>& pipelines, std::span<const InputDecl> inputs, DataSet& set) {
  std::unordered_map<std::string_view, const Standardization*> left;
  for (const Standardization& given : fitted) left.emplace(given.input, &given);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto given = left.extract(inputs[i].name);
    try {
      std::optional<Standardization> adopted = pipelines[i].adopt(given ? given.mapped() : nullptr, inputs[i]);
      if (adopted) set.standardizations.push_back(std::move(*adopted));
    } catch (const Error& error) {
      reader.report(at, error);
    }
  }
  for (const Standardization& given : fitted) {
    if (left.contains(given.input))
      reader.report(at, "weights.fitted",
                    fmt::format("the weights have fitted values for '{}', which is not an input", given.input));
  }
}

// Weights record the logarithm applied to an input. A list with another one, or none, differs from the training.
void keep_log(json::Reader& reader, const json::Ref& at, const data::Pipeline& pipeline, const InputDecl& input,
              data::FittedStatistics& fit) {
  const auto log = static_cast<double>(pipeline.log());
  const std::string name = input.name + ":curve";
  if (log > 0 && !fit.is_given()) fit.set(name, {log});
  const std::vector<double>* known = log > 0 ? fit.find(name) : nullptr;
  if (log > 0 && (!known || known->front() != log))
    reader.report(at, "weights.fitted",
                  fmt::format("the weights go with values of '{}' of which this logarithm was not taken", input.name),
                  "the list of transforms must be that of the training");
}

// Stores the splits as tensors, or only their sizes if `has_values` is false: then arrays may lack values or be null. A
// wrong shape occurs in every split, so each input is reported once.
void read_splits(json::Reader& reader, const std::vector<SplitData>& parts, std::vector<data::Pipeline>& pipelines,
                 std::span<const InputDecl> inputs, const data::Files& files, bool has_values, bool is_fitted,
                 DataSet& set) {
  std::vector<char> is_good(inputs.size(), 1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const data::Column* train = parts.front().rows > 0 && has_values ? &parts.front().columns[i] : nullptr;
    is_good[i] = !has_values || (train && train->array);
    if (is_fitted || !is_good[i]) continue;
    std::optional<Standardization> fitted;
    if (has_values)
      fitted = pipelines[i].fit(*train, inputs[i].name, set.warnings);
    else if (inputs[i].is_target)  // a plan needs them for targets only, for metrics in original units
      fitted = pipelines[i].unfitted(inputs[i]);
    if (fitted) set.standardizations.push_back(std::move(*fitted));
  }
  for (const SplitData& part : parts) {
    Split split{part.name, {}, has_values ? 0 : part.rows, {}, part.first, part.last};
    for (const InputDecl& input : inputs) {
      if (!input.is_target && part.window.hop < part.window.length)
        split.windows.push_back({input.name, part.window.length, part.window.hop});
    }
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      if (!is_good[i] || !part.columns[i].array || (has_values && part.rows == 0)) continue;
      files.report_progress(fmt::format("transforming '{}' of {}", inputs[i].name, part.name));
      try {
        if (has_values)
          split.columns.emplace_back(inputs[i].name, pipelines[i].apply(part.columns[i], part.name, inputs[i]));
        else
          pipelines[i].check(part.columns[i], part.name, inputs[i]);
        const std::optional<double> divisor = pipelines[i].divisor(inputs[i]);
        if (divisor && part.columns[i].array->has_bytes()) split.codes.emplace_back(inputs[i].name, *divisor);
      } catch (const Error& error) {
        reader.report(part.place, error);
        is_good[i] = 0;
      }
    }
    if (has_values || part.rows > 0) set.splits.push_back(std::move(split));
  }
}

}  // namespace

DataSet read_data(json::Reader& reader, const json::Ref& at, std::span<const InputDecl> inputs,
                  const DataOptions& options) {
  DataSet set;
  data::FittedStatistics fit =
      options.weights ? data::FittedStatistics(*options.weights) : data::FittedStatistics(options.seed);
  const std::optional<data::Provenance> trained = fit.has_provenance() ? std::optional(fit.provenance) : std::nullopt;
  fit.provenance.split.reset();  // recomputed from this data
  if (!trained) fit.provenance.seed = options.seed;
  DataOptions own = options;
  own.seed = fit.provenance.seed;
  const std::size_t before = reader.errors();
  json::ObjectReader block(reader, at);
  const std::optional<json::Ref> transform = block.get("transform");
  Transforms transforms = read_transforms(reader, transform, inputs);
  std::vector<data::Pipeline>& pipelines = transforms.inputs;
  const bool transforms_good = reader.errors() == before;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (pipelines[i].accepts_unseen(inputs[i])) fit.accepts_unseen.insert(inputs[i].name);
  }
  data::Files files(options);
  std::vector<SplitData> parts = read_parts(reader, block, inputs, transforms, files, own, fit, trained);
  for (SplitData& part : parts) {
    const data::Window &train = parts.front().window, &window = part.window;
    if (window.length != train.length || window.target != train.target)
      reader.report(part.place, "data.window", fmt::format("'{}' and 'train' need equal windows", part.name));
    form_windows(reader, part, inputs);
  }
  set.warnings = files.warnings();
  if (block.is_object()) {
    report_options(reader, at, block);
    block.finish();
  }
  if (!transforms_good) return set;
  const bool is_fitted = fit.is_given();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    keep_log(reader, transform.value_or(at), pipelines[i], inputs[i], fit);
  if (is_fitted)
    adopt_fitted(reader, transform.value_or(at), options.weights->standardizations, pipelines, inputs, set);
  if (options.use == DataUse::values && reader.errors() == before) {
    for (const std::string& name : fit.unused())
      reader.report(at, "weights.fitted", fmt::format("the weights come with '{}', which is not used here", name));
  }
  set.fitted = fit.numbers();
  set.labels = labels_of(transforms, at, inputs, fit.provenance);
  const std::size_t before_labels = reader.errors();
  check_labels(reader, transform.value_or(at), inputs, set);
  if (reader.errors() != before_labels) return set;
  if (options.use == DataUse::values && !parts.empty()) fit.provenance.samples = parts.front().rows;
  set.provenance = text(fit.provenance);
  if (trained)
    set.split_mismatch = difference(fit.provenance, *trained);
  else if (is_fitted && fit.provenance.split)
    set.split_mismatch = "the weights do not record how their training rows were split";
  if (reader.errors() == before) {
    const auto arrays = std::make_shared<const data::ArrayRows>(
        at, inputs, pipelines, transforms.columns, fit.provenance, is_fitted || options.use == DataUse::values);
    set.columns = arrays->columns(fit.provenance);
    set.arrays = arrays;
  }
  if (parts.empty() || parts.front().name != "train") return set;

  read_splits(reader, parts, pipelines, inputs, files, options.use == DataUse::values, is_fitted, set);
  set.files = files.found();
  return set;
}

}  // namespace graphrun
