// schema.cpp: model_schema(): the JSON Schema of model files, from the registries of ops, layers, optimizers,
// schedules, sources and transforms. It says what can be said without knowing the names a file gives.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/json_text.h"
#include "data/sources.h"
#include "data/transforms.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/composed.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

using json::add;
using json::make;
using json::make_array;
using json::make_object;
using Json = json::Value;
using Members = std::vector<std::pair<std::string, Json>>;

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

Json ref(std::string_view name) {
  return make_object({{"$ref", make(fmt::format("#/$defs/{}", name))}});
}
Json type(std::string_view name) {
  return make_object({{"type", make(name)}});
}
Json described(Json schema, std::string_view text) {
  add(schema, "description", make(text));
  return schema;
}
Json any_of(std::vector<Json> schemas) {
  return make_object({{"anyOf", make_array(std::move(schemas))}});
}
Json words(const std::vector<std::string>& list) {
  Json items = make_array();
  for (const std::string& word : list) items.items.push_back(make(word));
  return make_object({{"enum", std::move(items)}});
}
Json integer(std::int64_t low) {
  return make_object({{"type", make("integer")}, {"minimum", make(low)}});
}
Json list_of(Json items) {
  return make_object({{"type", make("array")}, {"items", std::move(items)}});
}
Json map_of(Json values) {
  return make_object({{"type", make("object")}, {"additionalProperties", std::move(values)}});
}
Json names(const std::vector<std::string>& list) {
  Json items = make_array();
  for (const std::string& name : list) items.items.push_back(make(name));
  return items;
}

// An object with these keys and no others.
Json closed(Members properties, const std::vector<std::string>& required) {
  Json object = make_object({{"type", make("object")}, {"properties", make_object(std::move(properties))}});
  if (!required.empty()) add(object, "required", names(required));
  add(object, "additionalProperties", make(false));
  return object;
}
// {"key": value} and nothing else.
Json only(std::string_view key, Json value) {
  return closed({{std::string(key), std::move(value)}}, {std::string(key)});
}

Json number_like(std::string_view kind, const ir::AttrDef& def) {
  Json schema = type(kind);
  if (def.low) add(schema, "minimum", make(*def.low));
  if (def.high) add(schema, "maximum", make(*def.high));
  return schema;
}

struct DefaultOf {
  Json operator()(bool v) const { return make(v); }
  Json operator()(std::int64_t v) const { return make(v); }
  Json operator()(double v) const { return make(v); }
  Json operator()(const std::string& v) const { return make(v); }
  template <class T>
  Json operator()(const std::vector<T>& values) const {
    Json array = make_array();
    for (const T& v : values) array.items.push_back(make(v));
    return array;
  }
};

Json kind_of(const ir::AttrDef& def) {
  switch (def.fallback.index()) {
    case 0:
      return type("boolean");
    case 1:
      return number_like("integer", def);
    case 2:
      return number_like("number", def);
    case 3:
      return def.one_of.empty() ? type("string") : words({def.one_of.begin(), def.one_of.end()});
    case 4:  // one number may stand for a list of one
      return any_of({type("integer"), list_of(type("integer"))});
    default:
      return any_of({type("number"), list_of(type("number"))});
  }
}

// null is as if the key were not there.
Json attribute(const ir::AttrDef& def) {
  Json schema = def.required ? kind_of(def) : any_of({kind_of(def), type("null")});
  add(schema, "description", make(def.doc));
  if (!def.required) add(schema, "default", std::visit(DefaultOf{}, def.fallback));
  return schema;
}

void add_attributes(Members& properties, std::vector<std::string>& required, const ir::AttrSchema& schema) {
  for (const ir::AttrDef& def : schema) {
    properties.emplace_back(def.name, attribute(def));
    if (def.required) required.emplace_back(def.name);
  }
}

// ---- entries of the graph

Members entry_properties(std::string_view op, std::size_t operands, bool variadic) {
  Json inputs = list_of(type("string"));
  add(inputs, "minItems", make(static_cast<std::int64_t>(operands)));
  if (!variadic) add(inputs, "maxItems", make(static_cast<std::int64_t>(operands)));
  return {{"name", ref("name")}, {"op", make_object({{"const", make(op)}})}, {"inputs", std::move(inputs)}};
}

Json function_entry(const Function& function, std::string_view doc) {
  Members properties = entry_properties(function.name, function.operands->size(), function.variadic);
  std::vector<std::string> required = {"name", "op", "inputs"};
  add_attributes(properties, required, *function.attrs);
  // Either word is understood, not both.
  std::string_view alias;
  for (const ir::AttrDef& def : *function.attrs) {
    if (def.name != "axis" && def.name != "axes") continue;
    alias = def.name == "axis" ? "axes" : "axis";
    properties.emplace_back(alias, attribute(def));
    std::erase(required, def.name);
  }
  Json schema = closed(std::move(properties), required);
  if (!alias.empty()) add(schema, "not", make_object({{"required", names({"axis", "axes"})}}));
  return described(std::move(schema), doc);
}

Json layer_entry(const Layer& layer) {
  Members properties = entry_properties(layer.name, layer.operands.size(), false);
  std::vector<std::string> required = {"name", "op", "inputs"};
  add_attributes(properties, required, layer.attrs);
  for (auto& [name, schema] : properties) {
    if (name != "activation") continue;
    std::vector<std::string> activations = {""};
    for (const std::string& function : function_names()) {
      if (find_function(function)->operands->size() == 1) activations.push_back(function);
    }
    schema = described(any_of({words(activations), type("null")}), "a function of one operand; none by default");
  }
  for (const LayerInit& init : layer.inits) {
    properties.emplace_back(init.name, init.optional ? any_of({ref("init"), type("boolean")}) : ref("init"));
  }
  return described(closed(std::move(properties), required), layer.doc);
}

std::string_view doc_of(const Function& function) {
  return function.composed ? function.composed->doc : find_op_def(function.name)->doc;
}

Json entries() {
  std::vector<Json> forms = {described(type("string"), "name = expression")};
  for (const Layer& layer : layers()) forms.push_back(layer_entry(layer));
  for (const std::string& name : function_names()) {
    const Function function = *find_function(name);
    forms.push_back(function_entry(function, doc_of(function)));
  }
  return list_of(any_of(std::move(forms)));
}

// ---- values

Json extents(bool batch) {
  Json extent = integer(1);
  add(extent, "maximum", make(kMostExtent));
  Json shape = list_of(std::move(extent));
  if (batch) {
    add(shape, "prefixItems", make_array({make_object({{"const", make("batch")}})}));
    add(shape, "minItems", make(std::int64_t{1}));
  }
  add(shape, "maxItems", make(std::int64_t{kMaxRank}));
  return shape;
}

Json init() {
  std::vector<std::string> plain;
  std::vector<Json> forms;
  for (const InitDoc& doc : init_docs()) {
    if (doc.argument.empty()) {
      plain.emplace_back(doc.name);
    } else if (doc.name == "uniform") {
      Json ends = list_of(type("number"));
      add(ends, "minItems", make(std::int64_t{2}));
      add(ends, "maxItems", make(std::int64_t{2}));
      forms.push_back(described(only(doc.name, std::move(ends)), doc.doc));
    } else if (doc.name == "npz") {
      forms.push_back(described(closed({{"npz", type("string")}, {"key", type("string")}}, {"npz", "key"}), doc.doc));
    } else {
      Json number = type("number");
      if (doc.name == "normal") add(number, "minimum", make(std::int64_t{0}));
      forms.push_back(described(only(doc.name, std::move(number)), doc.doc));
    }
  }
  forms.insert(forms.begin(), words(plain));
  forms.push_back(described(ref("values"), "the values themselves as nested arrays"));
  forms.push_back(described(type("number"), "the value itself, where the shape is []"));
  return any_of(std::move(forms));
}

Json schedule() {
  std::vector<Json> forms;
  for (const ScheduleDef& def : schedules()) {
    Members properties;
    std::vector<std::string> required;
    add_attributes(properties, required, schedule_keys(def));
    Json fields = closed(std::move(properties), required);
    const Json units[] = {make_object({{"required", names({"steps"})}}),
                          make_object({{"required", names({"epochs"})}})};
    if (def.name != "constant") add(fields, "anyOf", make_array({units[0], units[1]}));
    forms.push_back(described(only(def.name, std::move(fields)), def.doc));
  }
  return any_of(std::move(forms));
}

Json optimizer() {
  std::vector<Json> forms;
  for (const OptimizerDef& def : optimizers()) {
    Members properties;
    std::vector<std::string> required;
    add_attributes(properties, required, def.attrs);
    for (auto& [name, schema] : properties) {
      if (name == "lr") schema = any_of({std::move(schema), ref("schedule")});
    }
    forms.push_back(described(only(def.name, closed(std::move(properties), required)), def.doc));
  }
  return any_of(std::move(forms));
}

// ---- data

Json source_value(std::string_view name) {
  if (name == "json" || name == "npz" || name == "csv") return type("string");
  if (name == "inline") return map_of(type("array"));
  if (name == "idx" || name == "npy") return map_of(type("string"));
  if (name == "grid") {
    Json axis = list_of(type("number"));
    add(axis, "minItems", make(std::int64_t{3}));
    add(axis, "maxItems", make(std::int64_t{3}));
    return map_of(std::move(axis));
  }
  if (name == "random") {
    Members column = {{"shape", list_of(integer(0))}};
    for (const data::DistributionDoc& doc : data::distribution_docs()) {
      column.emplace_back(doc.name, described(any_of({type("number"), list_of(type("number"))}), doc.doc));
    }
    return closed({{"rows", integer(1)}, {"seed", integer(0)}, {"columns", map_of(closed(std::move(column), {}))}},
                  {"rows", "columns"});
  }
  throw std::logic_error(fmt::format("model_schema: no schema for the source {}", name));
}

Json option_value(std::string_view name) {
  if (name == "rows") return integer(1);
  if (name == "header") return type("boolean");
  if (name == "delimiter") return type("string");
  if (name == "missing") {
    std::vector<std::string_view> policies;
    for (const data::MissingDoc& doc : data::missing_docs()) policies.push_back(doc.name);
    return words({policies.begin(), policies.end()});
  }
  if (name == "range") {
    Json range = list_of(integer(0));
    add(range, "minItems", make(std::int64_t{2}));
    add(range, "maxItems", make(std::int64_t{2}));
    return range;
  }
  throw std::logic_error(fmt::format("model_schema: no schema for the option {}", name));
}

// One source, its options, and what inputs take (keys that only the file knows).
Json split() {
  Members properties;
  std::vector<Json> one;
  for (const data::SourceFormat& format : data::source_formats()) {
    properties.emplace_back(format.name, described(source_value(format.name), format.doc));
    one.push_back(make_object({{"required", names({std::string(format.name)})}}));
    for (const data::SourceOption& option : format.options) {
      properties.emplace_back(option.name, described(option_value(option.name), option.doc));
    }
  }
  for (const data::SourceOption& option : data::common_options()) {
    properties.emplace_back(option.name, described(option_value(option.name), option.doc));
  }
  Json schema = make_object({{"type", make("object")}, {"properties", make_object(std::move(properties))}});
  add(schema, "additionalProperties",
      described(any_of({type("string"), list_of(type("string"))}), "a formula, a column, or a list of columns"));
  add(schema, "oneOf", make_array(std::move(one)));
  return schema;
}

Json transforms() {
  std::vector<std::string> plain;
  std::vector<Json> forms;
  for (const data::TransformDoc& doc : data::transform_docs()) {
    if (doc.argument.empty()) {
      plain.emplace_back(doc.name);
    } else {
      forms.push_back(described(only(doc.name, type("number")), doc.doc));
    }
  }
  forms.insert(forms.begin(), words(plain));
  return map_of(list_of(any_of(std::move(forms))));
}

Json data_section() {
  Json fractions = list_of(type("number"));
  add(fractions, "minItems", make(std::int64_t{3}));
  add(fractions, "maxItems", make(std::int64_t{3}));
  Json section = closed({{"train", ref("split")},
                         {"validation", ref("split")},
                         {"test", ref("split")},
                         {"source", ref("split")},
                         {"split", std::move(fractions)},
                         {"transform", transforms()}},
                        {});
  add(section, "anyOf",
      make_array({make_object({{"required", names({"train"})}}), make_object({{"required", names({"source"})}})}));
  return section;
}

// ---- sections

Json train_section() {
  Json clip = type("number");
  add(clip, "exclusiveMinimum", make(std::int64_t{0}));
  Json batch = integer(1);
  add(batch, "maximum", make(kMostExtent));
  return closed({{"minimize", described(type("string"), "the loss: a scalar of the graph")},
                 {"metrics", described(list_of(type("string")), "scalars of the graph, and built-in metrics")},
                 {"optimizer", optimizer()},
                 {"batch", any_of({std::move(batch), words({"all"})})},
                 {"last_batch", words({"keep", "drop"})},
                 {"epochs", integer(0)},
                 {"shuffle", type("boolean")},
                 {"seed", integer(0)},
                 {"precision", words({"fp32", "tf32"})},
                 {"clip_norm", std::move(clip)},
                 {"evaluate_every", integer(1)},
                 {"log_every", integer(1)}},
                {"minimize", "optimizer"});
}

Json named(Json map, std::int64_t least = 0) {
  add(map, "propertyNames", ref("name"));
  if (least > 0) add(map, "minProperties", make(least));
  return map;
}

Json outputs() {
  Json object = map_of(type("string"));
  add(object, "minProperties", make(std::int64_t{1}));
  Json list = list_of(type("string"));
  add(list, "minItems", make(std::int64_t{1}));
  return any_of({std::move(object), std::move(list)});
}

Json name() {
  return make_object(
      {{"type", make("string")},
       {"pattern", make("^[A-Za-z_][A-Za-z0-9_.]*$")},
       {"not", words({"and", "or", "not", "true", "false", "none", "True", "False", "None", "pi", "e"})}});
}

}  // namespace

std::string model_schema() {
  const auto input = any_of(
      {ref("batch_shape"), closed({{"dtype", words({"f32", "i32"})}, {"shape", ref("batch_shape")}}, {"shape"})});
  const auto parameter =
      closed({{"shape", extents(false)}, {"init", ref("init")}, {"decay", type("boolean")}}, {"shape", "init"});
  Json root = make_object({{"$schema", make("https://json-schema.org/draft/2020-12/schema")},
                           {"title", make("graphrun model file, format 1")}});
  const Json body = closed({{"$schema", type("string")},
                            {"format", make_object({{"const", make(std::int64_t{1})}})},
                            {"name", type("string")},
                            {"description", type("string")},
                            {"constants", named(map_of(type("number")))},
                            {"data", data_section()},
                            {"inputs", named(map_of(input), 1)},
                            {"parameters", named(map_of(parameter))},
                            {"graph", entries()},
                            {"outputs", outputs()},
                            {"train", train_section()}},
                           {"format", "data", "inputs", "graph", "outputs", "train"});
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
