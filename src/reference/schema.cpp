// schema.cpp: model_schema(): JSON Schema of model files, from the registries of ops, layers, optimizers, schedules,
// sources and transforms. Covers everything that does not depend on names defined in a file.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/json_text.h"
#include "data/sources/sources.h"
#include "data/transforms/transforms.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

using json::add;
using json::make_array;
using json::make_list;
using json::make_object;
using Json = json::Value;
using Members = std::vector<std::pair<std::string, Json>>;

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

Json ref(std::string_view name) {
  return make_object({{"$ref", json::make(fmt::format("#/$defs/{}", name))}});
}
Json type(std::string_view name) {
  return make_object({{"type", json::make(name)}});
}
Json described(Json schema, std::string_view text) {
  add(schema, "description", json::make(text));
  return schema;
}
Json any_of(std::vector<Json> schemas) {
  return make_object({{"anyOf", make_array(std::move(schemas))}});
}
Json integer(std::int64_t low) {
  return make_object({{"type", json::make("integer")}, {"minimum", json::make(low)}});
}
Json list_of(Json items) {
  return make_object({{"type", json::make("array")}, {"items", std::move(items)}});
}
Json map_of(Json values) {
  return make_object({{"type", json::make("object")}, {"additionalProperties", std::move(values)}});
}
Json words(const std::vector<std::string>& list) {
  return make_object({{"enum", make_list(list)}});
}
Json exactly(std::int64_t count, Json items) {
  Json list = list_of(std::move(items));
  add(list, "minItems", json::make(count));
  add(list, "maxItems", json::make(count));
  return list;
}

// An object with exactly these keys allowed.
Json closed(Members properties, const std::vector<std::string>& required) {
  Json object = make_object({{"type", json::make("object")}, {"properties", make_object(std::move(properties))}});
  if (!required.empty()) add(object, "required", make_list(required));
  add(object, "additionalProperties", json::make(false));
  return object;
}
Json named(const Members& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
  if (found == values.end()) throw std::logic_error(fmt::format("model_schema: nothing says what {} may hold", name));
  return found->second;
}
// {"key": value} without other keys.
Json only(std::string_view key, Json value) {
  return closed({{std::string(key), std::move(value)}}, {std::string(key)});
}

Json number_like(std::string_view kind, const ir::AttrDef& def) {
  Json schema = type(kind);
  if (def.low) add(schema, def.above ? "exclusiveMinimum" : "minimum", json::make(*def.low));
  if (def.high) add(schema, "maximum", json::make(*def.high));
  return schema;
}

Json kind_of(const ir::AttrDef& def) {
  switch (def.fallback.index()) {
    case 0:
      return type("boolean");
    case 1:
      return number_like("integer", def);
    case 2:
      return def.at_run_time ? any_of({number_like("number", def), type("string")}) : number_like("number", def);
    case 3:
      return def.one_of.empty() ? type("string") : words({def.one_of.begin(), def.one_of.end()});
    case 4:  // a list of one may be written as a number
      return any_of({type("integer"), list_of(type("integer"))});
    default:
      return any_of({type("number"), list_of(type("number"))});
  }
}

// null is equivalent to an absent key.
Json attribute(const ir::AttrDef& def) {
  Json schema = def.required ? kind_of(def) : any_of({kind_of(def), type("null")});
  add(schema, "description", json::make(def.doc));
  if (!def.required) add(schema, "default", json_of(def.fallback));
  return schema;
}

// Keys of an object under construction.
struct Object {
  Members properties = {};
  std::vector<std::string> required = {};

  void add(const ir::AttrSchema& schema) {
    for (const ir::AttrDef& def : schema) {
      properties.emplace_back(def.name, attribute(def));
      if (def.required) required.emplace_back(def.name);
    }
  }
};

// ---- entries of the graph

Object entry_of(const Entry& entry, std::size_t operands, bool variadic) {
  Json inputs = list_of(type("string"));
  add(inputs, "minItems", json::make(static_cast<std::int64_t>(operands)));
  if (!variadic) add(inputs, "maxItems", json::make(static_cast<std::int64_t>(operands)));
  Object object{{{"name", ref("name")}, {"op", make_object({{"const", json::make(entry.name)}})}, {"inputs", inputs}},
                {"name", "op", "inputs"}};
  object.add(entry.attributes);
  return object;
}

Json function_entry(const Function& function) {
  Object object = entry_of(function, function.operands.size(), function.variadic);
  // Either key is accepted, but not both.
  std::string_view alias;
  for (const ir::AttrDef& def : function.attributes) {
    if (def.name != "axis" && def.name != "axes") continue;
    alias = def.name == "axis" ? "axes" : "axis";
    object.properties.emplace_back(alias, attribute(def));
    std::erase(object.required, def.name);
  }
  Json schema = closed(std::move(object.properties), object.required);
  if (!alias.empty()) add(schema, "not", make_object({{"required", make_list({"axis", "axes"})}}));
  return described(std::move(schema), function.doc);
}

Json layer_entry(const Layer& layer) {
  Object object = entry_of(layer, layer.operands.size(), false);
  for (auto& [name, schema] : object.properties) {
    if (name != "activation") continue;
    std::vector<std::string> activations = {""};
    for (const Function& function : functions()) {
      if (function.operands.size() == 1) activations.emplace_back(function.name);
    }
    schema = described(any_of({words(activations), type("null")}),
                       "name of a function of one operand, such as relu (default: none)");
  }
  // A layer that shares another layer's parameters has its attributes, too.
  const std::vector<std::string> own = object.required;
  std::erase_if(object.required, [&](const std::string& name) { return ir::find_attr(layer.attributes, name); });
  object.add(common_layer_attributes());
  for (const LayerInit& init : layer.inits) {
    object.properties.emplace_back(init.name, init.optional ? any_of({ref("init"), type("boolean")}) : ref("init"));
  }
  Json schema = closed(std::move(object.properties), object.required);
  add(schema, "anyOf",
      make_array(
          {make_object({{"required", make_list(own)}}),
           make_object({{"required", make_list({"share"})}, {"properties", make_object({{"share", ref("name")}})}})}));
  return described(std::move(schema), layer.doc);
}

Json entries() {
  std::vector<Json> forms = {described(type("string"), "name = expression, or assign(state, value)")};
  for (const Layer& layer : layers()) forms.push_back(layer_entry(layer));
  for (const Function& function : functions()) forms.push_back(function_entry(function));
  return list_of(any_of(std::move(forms)));
}

// ---- values

Json extents(bool batch) {
  Json extent = integer(1);
  add(extent, "maximum", json::make(kMaxExtent));
  Json shape = list_of(std::move(extent));
  if (batch) {
    add(shape, "prefixItems", make_array({make_object({{"const", json::make("batch")}})}));
    add(shape, "minItems", json::make(std::int64_t{1}));
  }
  add(shape, "maxItems", json::make(std::int64_t{kMaxRank}));
  return shape;
}

Json init() {
  std::vector<std::string> plain;
  std::vector<Json> forms;
  for (const InitDoc& doc : init_docs()) {
    if (doc.argument.empty()) {
      plain.emplace_back(doc.name);
    } else if (doc.name == "uniform") {
      forms.push_back(described(only(doc.name, exactly(2, type("number"))), doc.doc));
    } else if (doc.name == "npz") {
      forms.push_back(described(closed({{"npz", type("string")}, {"key", type("string")}}, {"npz", "key"}), doc.doc));
    } else {
      Json number = type("number");
      if (doc.name == "normal") add(number, "minimum", json::make(std::int64_t{0}));
      forms.push_back(described(only(doc.name, std::move(number)), doc.doc));
    }
  }
  forms.insert(forms.begin(), words(plain));
  forms.push_back(described(ref("values"), "the values themselves as nested arrays"));
  forms.push_back(described(type("number"), "the value itself, where the shape is []"));
  return any_of(std::move(forms));
}

// One of the rows, by name: {"sgd": {"lr": 0.1}}.
template <class Row, class Fields>
Json one_of_rows(const std::vector<Row>& table, Fields fields) {
  std::vector<Json> forms;
  for (const Row& row : table) forms.push_back(described(only(row.name, fields(row)), row.doc));
  return any_of(std::move(forms));
}

Json schedule() {
  return one_of_rows(schedules(), [](const ScheduleDef& def) {
    Object object;
    object.add(def.attributes);
    Json fields = closed(std::move(object.properties), object.required);
    const Json units[] = {make_object({{"required", make_list({"steps"})}}),
                          make_object({{"required", make_list({"epochs"})}})};
    if (def.name != "constant") add(fields, "anyOf", make_array({units[0], units[1]}));
    return fields;
  });
}

// A number, or a runtime hyperparameter.
Json or_runtime(Json number) {
  return any_of({std::move(number), only("runtime", type("number"))});
}

Json optimizer() {
  return one_of_rows(optimizers(), [](const OptimizerDef& def) {
    Object object;
    object.add(def.attributes);
    for (auto& [name, schema] : object.properties) {
      schema = or_runtime(std::move(schema));
      if (name == "lr") schema = any_of({std::move(schema), ref("schedule")});
    }
    return closed(std::move(object.properties), object.required);
  });
}

// ---- data

Json random_table() {
  Members column = {{"shape", list_of(integer(0))}};
  for (const data::Doc& doc : data::distribution_docs()) {
    column.emplace_back(doc.name, described(any_of({type("number"), list_of(type("number"))}), doc.doc));
  }
  return closed({{"rows", integer(1)}, {"seed", integer(0)}, {"columns", map_of(closed(std::move(column), {}))}},
                {"rows", "columns"});
}

Json missing() {
  const Json value = any_of({type("string"), type("number")});
  return any_of({words(names_of(data::missing_docs())), type("number"), closed({{"value", value}}, {"value"})});
}

// One source, its options, and the input selections (with keys that depend on the file).
Json split() {
  const Json window = closed({{"length", integer(1)}, {"hop", integer(1)}, {"target", integer(0)}}, {"length"});
  const Members values = {{"json", type("string")},
                          {"npz", type("string")},
                          {"csv", type("string")},
                          {"records", type("string")},
                          {"inline", map_of(type("array"))},
                          {"idx", map_of(type("string"))},
                          {"images", type("string")},
                          {"npy", map_of(type("string"))},
                          {"grid", map_of(exactly(3, type("number")))},
                          {"random", random_table()},
                          {"rows", integer(1)},
                          {"range", exactly(2, integer(0))},
                          {"window", window},
                          {"header", type("boolean")},
                          {"names", list_of(type("string"))},
                          {"delimiter", type("string")},
                          {"libsvm", integer(0)},
                          {"decimal", type("string")},
                          {"thousands", type("string")},
                          {"currency", type("string")},
                          {"percent", type("boolean")},
                          {"comment", type("string")},
                          {"na", any_of({type("string"), list_of(type("string"))})},
                          {"dates", words({"dd/mm/yyyy", "mm/dd/yyyy"})},
                          {"missing", any_of({missing(), map_of(missing())})}};
  Members properties;
  std::vector<Json> one;
  const auto describe = [&](const auto& row) {
    const bool is_known =
        std::any_of(properties.begin(), properties.end(), [&](const auto& known) { return known.first == row.name; });
    if (is_known) return;  // an option that several sources have
    properties.emplace_back(row.name, described(named(values, row.name), row.doc));
  };
  for (const data::SourceFormat& format : data::source_formats()) {
    describe(format);
    one.push_back(make_object({{"required", make_list({std::string(format.name)})}}));
    for (const data::Doc& option : format.options) describe(option);
  }
  for (const data::Doc& option : data::common_options()) describe(option);
  Json schema = make_object({{"type", json::make("object")}, {"properties", make_object(std::move(properties))}});
  add(schema, "additionalProperties",
      described(any_of({type("string"), list_of(type("string"))}), "a column, a formula, or a list of them"));
  add(schema, "oneOf", make_array(std::move(one)));
  return schema;
}

Json transforms() {
  const Json categories = list_of(any_of({type("string"), type("number"), type("boolean")}));
  const Json classes = any_of({categories, closed({{"categories", categories}, {"other", type("boolean")}}, {})});
  const Members arguments = {{"scale", type("number")},
                             {"one_hot", any_of({integer(1), classes})},
                             {"classes", classes},
                             {"class_weight", any_of({words({"balanced"}), map_of(type("number"))})}};
  std::vector<std::string> plain;
  std::vector<Json> forms;
  for (const data::TransformDoc& doc : data::transform_docs()) {
    if (doc.argument.empty() || doc.is_optional) plain.emplace_back(doc.name);
    if (!doc.argument.empty()) forms.push_back(described(only(doc.name, named(arguments, doc.name)), doc.doc));
  }
  forms.insert(forms.begin(), words(plain));
  return map_of(list_of(any_of(std::move(forms))));
}

Json data_section() {
  Json section =
      closed({{"train", ref("split")},
              {"validation", ref("split")},
              {"test", ref("split")},
              {"source", ref("split")},
              {"split", any_of({exactly(3, type("number")), exactly(2, type("number"))})},
              {"folds", closed({{"k", integer(2)}, {"fold", integer(0)}, {"stratify", type("string")}}, {"k", "fold"})},
              {"stratify", type("string")},
              {"split_by", type("string")},
              {"split_seed", integer(0)},
              {"transform", transforms()}},
             {});
  add(section, "anyOf",
      make_array(
          {make_object({{"required", make_list({"train"})}}), make_object({{"required", make_list({"source"})}})}));
  return section;
}

// ---- sections

Json with_names(Json map, std::int64_t least = 0) {
  add(map, "propertyNames", ref("name"));
  if (least > 0) add(map, "minProperties", json::make(least));
  return map;
}

Json outputs() {
  Json object = map_of(type("string"));
  add(object, "minProperties", json::make(std::int64_t{1}));
  Json list = list_of(type("string"));
  add(list, "minItems", json::make(std::int64_t{1}));
  return any_of({std::move(object), std::move(list)});
}

Json name() {
  return make_object(
      {{"type", json::make("string")},
       {"pattern", json::make("^[A-Za-z_][A-Za-z0-9_.]*$")},
       {"not", words({"and", "or", "not", "true", "false", "none", "True", "False", "None", "pi", "e"})}});
}

// Replaces "[text](target)" by "text". (With <regex>, this file takes twice as long to compile.)
std::string without_links(std::string_view doc) {
  std::string text;
  for (std::size_t end = doc.find("]("); end != std::string_view::npos; end = doc.find("](")) {
    const std::size_t begin = doc.rfind('[', end);
    text.append(doc.substr(0, begin)).append(doc.substr(begin + 1, end - begin - 1));
    doc.remove_prefix(std::min(doc.find(')', end), doc.size() - 1) + 1);
  }
  return text.append(doc);
}

// An object with the keys of the table; `values` has the schemas of those that are not plain.
Json section(const Fields& fields, const Members& values) {
  Members properties;
  std::vector<std::string> required;
  for (const Field& field : fields) {
    Json schema = field.get == nullptr ? named(values, field.name) : kind_of(field);
    if (field.runtime != nullptr) schema = or_runtime(std::move(schema));
    add(schema, "description", json::make(without_links(field.doc)));
    if (field.has_default()) add(schema, "default", json_of(field.fallback));
    properties.emplace_back(field.name, std::move(schema));
    if (field.required) required.emplace_back(field.name);
  }
  return closed(std::move(properties), required);
}

Json threshold_rule() {
  Json share = type("number");
  add(share, "exclusiveMinimum", json::make(std::int64_t{0}));
  add(share, "maximum", json::make(std::int64_t{1}));
  const auto rule = [](std::string_view key, Json value) {
    return closed({{std::string(key), std::move(value)}}, {std::string(key)});
  };
  return any_of({words({"f1"}), rule("recall", share), rule("precision", share),
                 rule("cost", exactly(2, exactly(2, type("number"))))});
}

Json train_section() {
  Json batch = integer(1);
  add(batch, "maximum", json::make(kMaxBatch));
  Json every = integer(1);
  add(every, "maximum", json::make(kMaxEvery));
  const Json objective = section(objective_fields(), {{"minimize", type("string")},
                                                      {"parameters", list_of(type("string"))},
                                                      {"optimizer", optimizer()},
                                                      {"every", every}});
  Json train = section(
      train_fields(), {{"minimize", type("string")},
                       {"objectives", with_names(map_of(objective), 1)},
                       {"metrics", list_of(type("string"))},
                       {"optimizer", optimizer()},
                       {"batch", any_of({std::move(batch), words({"all", "max"})})},
                       {"max_memory", any_of({integer(1), type("string")})},
                       {"early_stopping", any_of({section(early_stopping_fields(), {}), type("null")})},
                       {"lr_plateau", any_of({section(lr_plateau_fields(), {}), type("null")})},
                       {"stop_at", any_of({section(stop_at_fields(), {}), type("null")})},
                       {"threshold", any_of({section(threshold_fields(), {{"by", threshold_rule()}}), type("null")})}});
  add(train, "anyOf",
      make_array({make_object({{"required", make_list({"minimize", "optimizer"})}}),
                  make_object({{"required", make_list({"objectives"})}})}));
  return train;
}

}  // namespace

std::string model_schema() {
  Json root = make_object({{"$schema", json::make("https://json-schema.org/draft/2020-12/schema")},
                           {"title", json::make("graphrun model file, format 1")}});
  const Json input = section(input_fields(), {{"dtype", words({"f32", "i32"})}, {"shape", ref("batch_shape")}});
  const Json parameter = section(
      parameter_fields(),
      {{"shape", extents(false)}, {"init", ref("init")}, {"decay", type("boolean")}, {"trainable", type("boolean")}});
  const Json state = section(state_fields(), {{"shape", extents(false)}, {"init", ref("init")}});
  const Json body = section(file_fields(), {{"$schema", type("string")},
                                            {"format", make_object({{"const", json::make(std::int64_t{1})}})},
                                            {"name", type("string")},
                                            {"description", type("string")},
                                            {"constants", with_names(map_of(or_runtime(type("number"))))},
                                            {"data", data_section()},
                                            {"inputs", with_names(map_of(any_of({ref("batch_shape"), input})), 1)},
                                            {"parameters", with_names(map_of(parameter))},
                                            {"states", with_names(map_of(state))},
                                            {"graph", entries()},
                                            {"outputs", outputs()},
                                            {"train", train_section()}});
  for (const json::Member& member : body.members) add(root, member.key, member.value);
  add(root, "$defs",
      make_object({{"name", name()},
                   {"batch_shape", extents(true)},
                   {"init", init()},
                   {"values", list_of(any_of({type("number"), ref("values")}))},
                   {"schedule", schedule()},
                   {"split", split()}}));
  return json::text(root);
}

}  // namespace graphrun
