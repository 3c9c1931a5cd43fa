// topics.cpp: help_topic(): help on the names of a model file, from the registries: one name, or all of a kind.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_text.h"
#include "base/text.h"
#include "data/sources/sources.h"
#include "data/transforms/transform_list.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/metrics.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

constexpr std::size_t kHelpColumns = 110;

struct Topic {
  std::string_view name, doc;
  std::string details;  // whole lines
  std::string example;  // excerpt of a model file
};

struct TopicKind {
  std::string_view name;   // "optimizers"
  std::string_view one;    // "an optimizer"
  std::string_view where;  // position in the model file
  std::vector<Topic> items;
  bool is_part = false;  // shown within the items of another kind
};

// Formats "  name  text", with a hanging indent.
std::string help_row(std::string_view name, std::string_view text, std::size_t indent = 24) {
  std::string out, line = fmt::format("  {:<{}}", name, indent - 2);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (line.size() > indent && line.size() + 1 + end > kHelpColumns) {
      out += line + "\n";
      line = std::string(indent, ' ');
    } else if (line.size() > indent) {
      line += ' ';
    } else if (line.back() != ' ') {
      line += "  ";
    }
    line += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + line + "\n";
}

std::string key_rows(const ir::AttrSchema& schema) {
  std::string text;
  for (const ir::AttrDef& def : schema) {
    const std::string fallback = ir::to_string(def.fallback);
    const std::string usual = def.required                           ? "required"
                              : fallback.empty() || fallback == "[]" ? "default: none"
                                                                     : "default: " + fallback;
    const std::string type = expected(def);
    text += help_row(def.name, fmt::format("{}{} ({})", def.doc, type == "a word" ? "" : "; " + type, usual));
  }
  return text;
}

// Required attributes with the sample values of their registry rows.
json::Value example_keys(const ir::AttrSchema& schema) {
  json::Value object = json::make_object();
  for (const ir::AttrDef& def : schema) {
    if (def.required) json::add(object, def.name, json_of(def.fallback));
  }
  return object;
}

std::string json_line_of(std::string_view name, json::Value value) {
  return json::line(json::make_object({{std::string(name), std::move(value)}}));
}

std::string call_example(const Callable& callable, bool is_layer) {
  const json::Value own = example_keys(callable.attributes);
  if (!is_layer && own.members.empty())
    return fmt::format("\"graph\": [\"y = {}({})\"]", callable.name, fmt::join(callable.operands, ", "));
  json::Value entry = json::make_object({{"name", json::make("y")}, {"op", json::make(callable.name)}});
  std::vector<std::string> inputs(callable.operands.begin(), callable.operands.end());
  json::add(entry, "inputs", json::make_list(inputs));
  for (const json::Member& member : own.members) json::add(entry, member.key, member.value);
  return fmt::format("\"graph\": [{}]", json::line(entry));
}

std::string operand_row(const Callable& callable) {
  return help_row("inputs", fmt::format("{}{}", fmt::join(callable.operands, ", "), callable.variadic ? ", ..." : ""));
}

Topic item_of(const Function& f) {
  const OpDef* op = f.build == nullptr ? find_op_def(f.name) : nullptr;
  const std::string gradient = op == nullptr ? "computed from the gradients of its ops"
                               : op->grad    ? "yes"
                                             : fmt::format("none: {}", op->no_gradient);
  return {f.name, f.doc, operand_row(f) + key_rows(f.attributes) + help_row("gradient", gradient),
          call_example(f, false)};
}

Topic item_of(const Layer& layer) {
  std::string details = operand_row(layer) + key_rows(layer.attributes);
  for (const LayerInit& init : layer.inits) {
    const json::Value usual = json_of(init.fallback);
    details += help_row(
        init.name, fmt::format("initializer of the {}{} (default: {})", init.name == "init" ? "weights" : init.name,
                               init.optional ? ", or false to omit the parameter" : "",
                               usual.kind == json::Kind::string ? usual.string : json::line(usual)));
  }
  details += key_rows(common_layer_attributes());
  return {layer.name, layer.doc, details, call_example(layer, true)};
}

Topic item_of(const OptimizerDef& def) {
  return {def.name, def.doc, key_rows(def.attributes),
          "\"train\": {\"optimizer\": " + json_line_of(def.name, example_keys(def.attributes)) + "}"};
}

Topic item_of(const ScheduleDef& def) {
  json::Value own = example_keys(def.attributes);
  // All schedules except "constant" need a length, in one of two units.
  if (def.name != "constant") {
    const bool is_list = std::holds_alternative<std::vector<double>>(find_attr(def.attributes, "epochs")->fallback);
    json::add(own, "epochs", is_list ? json::make_array({json::make(10.0)}) : json::make(10.0));
  }
  return {def.name, def.doc, key_rows(def.attributes), "\"lr\": " + json_line_of(def.name, std::move(own))};
}

// Example of the name, with its argument if that is required.
std::string argument_example(std::string_view name, std::string_view argument, bool is_optional) {
  if (argument.empty() || is_optional) return fmt::format("\"{}\"", name);
  return fmt::format("{{\"{}\": <{}>}}", name, argument);
}

std::string argument_row(std::string_view argument, bool is_optional) {
  return argument.empty() ? "" : help_row("argument", fmt::format("{}{}", argument, is_optional ? " (optional)" : ""));
}

template <class Table>
std::vector<Topic> items_of(const Table& table) {
  std::vector<Topic> items;
  for (const auto& row : table) items.push_back(item_of(row));
  return items;
}

std::vector<TopicKind> topic_kinds() {
  TopicKind ops{"ops", "a function", "called in expressions of \"graph\", or as the \"op\" of an object there",
                items_of(functions())};
  TopicKind activations{
      "activations", "an activation", "the \"activation\" of a layer, and functions of expressions", {}, true};
  for (const Function& f : functions())
    if (is_activation(f)) activations.items.push_back(item_of(f));
  TopicKind losses{
      "losses",
      "a loss",
      "called in \"graph\", as in \"loss = mean(softmax_cross_entropy(logits, y))\"; \"minimize\" names the loss",
      {},
      true};
  for (const std::string_view name : {"mse", "mae", "huber", "softmax_cross_entropy", "sigmoid_cross_entropy"})
    losses.items.push_back(item_of(*find_function(name)));
  TopicKind inits{"initializers", "an initializer", "the \"init\" of a parameter or layer", {}};
  for (const InitDoc& doc : init_docs()) {
    inits.items.push_back({doc.name, doc.doc, argument_row(doc.argument, false),
                           "\"init\": " + argument_example(doc.name, doc.argument, false)});
  }
  TopicKind transforms{"transforms", "a transform", "in the lists of \"transform\" in \"data\"", {}};
  for (const data::TransformDoc& doc : data::transform_docs()) {
    transforms.items.push_back(
        {doc.name, doc.doc, argument_row(doc.argument, doc.is_optional),
         "\"transform\": {\"x\": [" + argument_example(doc.name, doc.argument, doc.is_optional) + "]}"});
  }
  TopicKind measures{"metrics", "a metric", "in the list \"metrics\" of \"train\"", {}};
  for (const MetricDef& def : metrics())
    measures.items.push_back({def.name, def.doc, "", fmt::format("\"train\": {{\"metrics\": [\"{}\"]}}", def.name)});
  return {{"optimizers", "an optimizer", "the \"optimizer\" of \"train\"", items_of(optimizers())},
          {"schedules", "a schedule", "the \"lr\" of an optimizer; t is the time in steps or epochs, after the warmup",
           items_of(schedules())},
          {"layers", "a layer",
           "the \"op\" of an object of \"graph\", or called as \"y = dense(…)\"; each has its own parameters",
           items_of(layers())},
          std::move(ops),
          std::move(activations),
          std::move(losses),
          std::move(inits),
          std::move(transforms),
          std::move(measures)};
}

std::string text_of(const TopicKind& kind, const Topic& item) {
  std::string text = fmt::format("{}: {}\n{}", item.name, kind.one, help_row("", item.doc, 2));
  if (!item.details.empty()) text += "\n" + item.details;
  return text + "\nIn a model file:\n  " + item.example + "\n";
}

// Markdown of model-format.md as plain text: no backquotes, and pages that a shell's user can open instead of links.
std::string plain(std::string_view markdown) {
  static constexpr std::pair<std::string_view, std::string_view> kPages[] = {
      {"data.md]", "docs/reference/data.md"}, {"memory.md]", "docs/internals/memory.md"}};
  std::string text;
  for (std::size_t at = 0; at < markdown.size(); ++at) {
    const std::string_view rest = markdown.substr(at);
    const std::size_t end = rest.find_first_of("]`");  // a list of numbers is in backquotes
    const bool opens = rest[0] == '[' && end != std::string_view::npos && rest.substr(end).starts_with("](");
    if (rest.starts_with(": [keys](") || rest.starts_with("]("))
      at = markdown.find(')', at);
    else if (rest[0] != '`' && !opens)
      text += rest[0];
    for (const auto& [page, shown] : kPages) {
      if (!opens || !rest.substr(1).starts_with(page)) continue;
      text += shown;
      at += page.size() - 1;
    }
  }
  return text;
}

std::string field_rows(const Fields& fields) {
  std::string text;
  for (const Field& field : fields) {
    const std::string usual = plain(default_text(field));
    text += help_row(field.name, fmt::format("{} ({}{})", plain(field.doc),
                                             usual.starts_with("required") ? "" : "default: ", usual));
  }
  return text;
}

struct Section {
  std::string_view name;
  std::string text;
};

// Keys of a model file.
std::vector<Section> sections() {
  std::string formats;
  for (const data::SourceFormat& format : data::source_formats())
    formats += fmt::format("{}{}", formats.empty() ? "" : ", ", format.name);
  std::string keys = "data: the section \"data\" of a model file\n\n";
  const std::pair<std::string_view, std::string> rows[] = {
      {"source", "source of the rows, one of " + formats + ", as in {\"csv\": \"houses.csv\", \"y\": \"price\"}"},
      {"split",
       "fractions of the rows for train, validation and test: [0.7, 0.15, 0.15]; if the source has its own test "
       "rows, for train and validation: [0.8, 0.2]"},
      {"folds", "k folds instead of split, for cross-validation: {\"k\": 5, \"fold\": 0}"},
      {"stratify", "input or column whose values occur in the same proportions in every split"},
      {"split_by", "column of times: the split is in its order, so train has the earliest rows and test the latest"},
      {"split_seed", "seed of the split (default: the seed of \"train\")"},
      {"window", "in a source: samples of 12 consecutive rows, and the next row as target: {\"length\": 12}"},
      {"train, test, ...", "a source for each split (train, validation and test), instead of source and split"},
      {"transform",
       "lists of transforms by input or column: {\"x\": [\"standardize\"]}; see graphrun help transforms"}};
  for (const auto& [key, text] : rows) keys += help_row(key, text);
  return {{"model", "model: the keys of a model file\n\n" + field_rows(file_fields()) +
                        "\nSee also: graphrun help data, training, layers, ops, initializers\n"},
          {"data", keys + "\nRun `graphrun init DATA.csv --label COLUMN` to write this section for a CSV file.\n"},
          {"training", "training: the section \"train\" of a model file\n\n" + field_rows(train_fields()) +
                           "\nKeys of early_stopping:\n" + field_rows(early_stopping_fields()) +
                           "\nKeys of lr_plateau:\n" + field_rows(lr_plateau_fields()) + "\nKeys of stop_at:\n" +
                           field_rows(stop_at_fields()) + "\nKeys of threshold:\n" + field_rows(threshold_fields()) +
                           "\nKeys of objectives:\n" + field_rows(objective_fields()) +
                           "\nSee also: graphrun help losses, optimizers, schedules, metrics\n"}};
}

// Keys of a model file, each with the topic that lists it. Omits "train", a command, and "optimizer", as optimizers is
// a topic.
std::vector<std::pair<std::string_view, std::string_view>> keys_in_topics() {
  std::vector<std::pair<std::string_view, std::string_view>> keys;
  for (const std::string_view name :
       {"source", "split", "folds", "stratify", "split_by", "split_seed", "window", "transform"})
    keys.emplace_back(name, "data");
  for (const Fields* fields : {&train_fields(), &early_stopping_fields(), &lr_plateau_fields(), &stop_at_fields(),
                               &threshold_fields(), &objective_fields()})
    for (const Field& field : *fields)
      if (field.name != "optimizer") keys.emplace_back(field.name, "training");
  for (const Field& field : file_fields())
    if (field.name != "train" && field.name != "$schema") keys.emplace_back(field.name, "model");
  return keys;
}

// Rows of one key in the text of a topic, below their headings, and the nested keys of this key.
std::string key_text(std::string_view topic, std::string_view key) {
  const std::string all = help_topic(std::string(topic));
  std::string text, heading;
  bool is_nested = false, is_shown = false;
  for (const std::string_view line : lines_of(all)) {
    const bool is_heading = !line.empty() && line[0] != ' ';
    if (is_heading) heading = fmt::format("\n{}\n\n", line), is_nested = line == fmt::format("Keys of {}:", key);
    if (!line.starts_with("   "))
      is_shown = line.starts_with("  ") && (is_nested || line.starts_with(fmt::format("  {} ", key)));
    if (is_shown) text += fmt::format("{}{}\n", heading, line), heading.clear();
  }
  return text.substr(1) + fmt::format("\ngraphrun help {} lists all keys.\n", topic);
}

std::string text_of(const TopicKind& kind) {
  std::string text = fmt::format("{}: {}\n\n", kind.name, kind.where);
  for (const Topic& item : kind.items) text += help_row(item.name, item.doc);
  return text + "\nRun `graphrun help NAME` for details.\n";
}

}  // namespace

std::vector<std::string> help_kinds() {
  std::vector<std::string> names;
  for (const TopicKind& kind : topic_kinds()) names.emplace_back(kind.name);
  return names;
}

std::vector<std::string> help_topics() {
  std::vector<std::string> names = help_kinds();
  for (const TopicKind& kind : topic_kinds()) {
    for (const Topic& item : kind.items) names.emplace_back(item.name);
  }
  for (const Section& section : sections()) names.emplace_back(section.name);
  for (const auto& [key, section] : keys_in_topics()) names.emplace_back(key);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> help_topics(std::string_view kind) {
  std::vector<std::string> names;
  for (const TopicKind& one : topic_kinds()) {
    if (one.name != kind) continue;
    for (const Topic& item : one.items) names.emplace_back(item.name);
  }
  return names;
}

std::string help_topic(const std::string& topic) {
  if (topic == "initialisers") return help_topic("initializers");
  std::string text;
  for (Section& section : sections()) {
    if (section.name == topic) return std::move(section.text);
  }
  for (const TopicKind& kind : topic_kinds()) {
    if (kind.name == topic) return text_of(kind);
    if (kind.is_part) continue;
    for (const Topic& item : kind.items) {
      if (item.name == topic) text += (text.empty() ? "" : "\n") + text_of(kind, item);
    }
  }
  if (!text.empty()) return text;
  for (const auto& [key, section] : keys_in_topics())
    if (key == topic) return key_text(section, key);
  std::string hint = did_you_mean(topic, help_topics());
  if (hint.empty()) hint = fmt::format("the lists are {}", fmt::join(help_kinds(), ", "));
  throw Error(ErrorKind::input, "help.unknown", fmt::format("unknown topic '{}'", topic), std::move(hint));
}

}  // namespace graphrun
