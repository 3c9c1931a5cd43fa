#include "graph/frontend/format/json_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "base/json_text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/elements.h"

namespace graphrun {
namespace {

using json::Kind;
using json::Reader;
using json::Ref;

constexpr std::string_view kInits =
    R"(expected "zeros", "ones", "glorot_uniform", "he_normal", {"constant": v}, {"normal": s}, )"
    R"({"uniform": [a, b]}, {"npz": "file", "key": "name"} or the values as nested arrays, of shape [] as a number)";

std::nullopt_t rejected(Reader& reader, const Ref& at, std::string code, std::string message,
                        std::string_view hint = {}) {
  reader.report(at, std::move(code), std::move(message), std::string(hint));
  return std::nullopt;
}

bool is_whole(double value) {
  return value == std::floor(value) && std::abs(value) < 0x1p53 && !(value == 0 && std::signbit(value));
}

bool read_nested(Reader& reader, const Ref& at, std::size_t depth, std::vector<std::int64_t>& extents,
                 std::vector<double>& values) {
  const auto fail = [&](std::string message) {
    reader.report(at, "model.values", std::move(message));
    return false;
  };
  if (at.value->kind != Kind::array) {
    const std::optional<double> number = reader.number(at);
    if (!number) return false;
    if (depth < extents.size()) return fail("rows of values must be arrays of the same depth");
    values.push_back(*number);
    return std::isfinite(static_cast<float>(*number)) || fail(fmt::format("{} does not fit an f32", *number));
  }
  const auto extent = static_cast<std::int64_t>(at.value->items.size());
  if (depth == extents.size()) {
    if (!values.empty() || depth == static_cast<std::size_t>(kMaxRank))
      return fail("rows of values must be arrays of the same depth");
    extents.push_back(extent);
  } else if (extents[depth] != extent) {
    return fail(fmt::format("rows of values must have the same length: {} here, {} before", extent, extents[depth]));
  }
  for (std::size_t i = 0; i < at.value->items.size(); ++i) {
    if (!read_nested(reader, at.item(i), depth + 1, extents, values)) return false;
  }
  return true;
}

std::optional<Init> read_init_file(Reader& reader, const Ref& at, const ReadArray& read_array) {
  json::ObjectReader fields(reader, at);
  const std::optional<std::string> file = fields.string("npz");
  fields.require("key");
  const std::optional<std::string> key = fields.string("key");
  fields.finish();
  if (!file || !key) return std::nullopt;
  if (!read_array) return Init::zeros();
  try {
    return Init::values(read_array(*file, *key));
  } catch (const Error& error) {
    reader.report(at, error);
    return std::nullopt;
  }
}

std::optional<Init> read_normal(Reader& reader, const Ref& at) {
  const std::optional<double> deviation = reader.number(at);
  if (!deviation) return std::nullopt;
  if (*deviation >= 0) return Init::normal(*deviation);
  return rejected(reader, at, "model.init", fmt::format("a standard deviation must be >= 0, got {}", *deviation));
}

std::optional<Init> read_uniform(Reader& reader, const Ref& at) {
  const std::optional<std::vector<double>> ends = reader.numbers(at);
  if (!ends) return std::nullopt;
  if (ends->size() == 2 && (*ends)[0] <= (*ends)[1]) return Init::uniform((*ends)[0], (*ends)[1]);
  return rejected(reader, at, "model.init",
                  fmt::format("uniform needs two numbers [low, high], got [{}]", fmt::join(*ends, ", ")));
}

// "zeros", or the only key of {"normal": 0.1}. Returns nullopt if it reported an error.
std::optional<Init> read_named_init(Reader& reader, const Ref& at) {
  const bool is_word = at.value->kind == Kind::string;
  const json::Member* const member = is_word ? nullptr : &at.value->members.front();
  const std::string& name = is_word ? at.value->string : member->key;
  std::vector<std::string> candidates;
  for (const InitDoc& doc : init_docs()) {
    if (doc.argument.empty() != is_word) continue;
    const auto* fan = std::ranges::find(kFanInits, name, &FanInit::name);
    if (doc.name == name && fan != std::end(kFanInits)) return Init::by_fan(fan->kind);
    if (doc.name == name) return doc.read(reader, is_word ? at : at.member(*member));
    candidates.emplace_back(doc.name);
  }
  std::string hint = did_you_mean(name, candidates);
  if (hint.empty()) hint = kInits;
  const std::string message = fmt::format("there is no initializer named {}", name);
  if (is_word) return rejected(reader, at, "model.init", message, hint);
  reader.report_key(at, *member, "model.init", message, hint);
  return std::nullopt;
}

}  // namespace

const std::vector<InitDoc>& init_docs() {
  using Read = std::optional<Init>;
  static const std::vector<InitDoc> table = [] {
    std::vector<InitDoc> docs = {
        {{"zeros", "sets every element to 0"}, {}, [](Reader&, const Ref&) -> Read { return Init::zeros(); }},
        {{"ones", "sets every element to 1"}, {}, [](Reader&, const Ref&) -> Read { return Init::constant(1); }},
        {{"nguyen_widrow",
          "weights (1, n) are 0.7 n, biases (n) rise from -0.7 n to 0.7 n; for n tanh units of one input in [-1, 1]"},
         {},
         [](Reader&, const Ref&) -> Read { return Init::by_fan(Init::Kind::nguyen_widrow); }},
        {{"constant", "sets every element to the number"},
         "a number",
         [](Reader& reader, const Ref& at) -> Read {
           const std::optional<double> value = reader.number(at);
           return value ? Read(Init::constant(*value)) : std::nullopt;
         }},
        {{"normal", "samples a normal distribution with mean 0"}, "the standard deviation", read_normal},
        {{"uniform", "samples uniformly from low to high"}, "[low, high]", read_uniform},
        {{"npz", "reads the array with that name from an NPZ file"},
         "a file, with \"key\": a name"},  // read_init_file()
    };
    for (const FanInit& fan : kFanInits) docs.insert(docs.end() - 4, InitDoc{{fan.name, fan.doc}});
    return docs;
  }();
  return table;
}

bool check_name(Reader& reader, const Ref& object, const json::Member& member) {
  if (is_name(member.key)) return true;
  reader.report_key(object, member, "name.invalid", fmt::format("'{}' is not a name", member.key),
                    std::string(kNameRule));
  return false;
}

bool is_array(Reader& reader, const Ref& at, std::string_view what, std::string_view hint) {
  if (at.value->kind == Kind::array) return true;
  reader.report(at, "json.type", fmt::format("{}, got {}", what, name_of(at.value->kind)), std::string(hint));
  return false;
}

std::optional<Shape> read_shape(Reader& reader, const Ref& at, bool of_input) {
  constexpr std::string_view kOfInput = "for instance [\"batch\", 6]";
  if (!is_array(reader, at, "a shape is an array of extents", of_input ? kOfInput : "for instance [784, 256]"))
    return std::nullopt;
  const std::vector<json::Value>& items = at.value->items;
  const auto is_batch = [](const json::Value& item) { return item.kind == Kind::string && item.string == "batch"; };
  if (of_input && (items.empty() || !is_batch(items[0])))
    return rejected(reader, items.empty() ? at : at.item(0), "model.shape", "the first extent of an input is \"batch\"",
                    kOfInput);
  if (items.size() > static_cast<std::size_t>(kMaxRank))
    return rejected(reader, at, "model.shape",
                    fmt::format("a shape has at most {} extents, got {}", kMaxRank, items.size()));
  Shape shape;
  for (std::size_t i = of_input ? 1 : 0; i < items.size(); ++i) {
    if (is_batch(items[i]))
      return rejected(reader, at.item(i), "model.shape", "\"batch\" is only allowed as the first extent of an input");
    const std::optional<std::int64_t> extent = reader.integer(at.item(i), 1, std::int64_t{1} << 40);
    if (!extent) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

std::optional<DType> read_dtype(Reader& reader, const Ref& at) {
  const std::optional<std::string> word = reader.string(at);
  if (!word) return std::nullopt;
  if (*word == "f32") return DType::f32;
  if (*word == "i32") return DType::i32;
  return rejected(reader, at, "model.dtype",
                  fmt::format("the dtype of an input is \"f32\" or \"i32\", got \"{}\"", *word));
}

json::Value json_of(const Init& init) {
  using json::make;
  switch (init.kind) {
    case Init::Kind::constant:
      if (init.a == 0) return make("zeros");
      if (init.a == 1) return make("ones");
      return json::make_object({{"constant", make(init.a)}});
    case Init::Kind::normal:
      if (init.a == 0) return json::make_object({{"normal", make(init.b)}});
      break;
    case Init::Kind::uniform:
      return json::make_object({{"uniform", json::make_array({make(init.a), make(init.b)})}});
    case Init::Kind::values:
      break;
    case Init::Kind::nguyen_widrow:
      return make("nguyen_widrow");
    default:
      return make(fan_init(init.kind)->name);
  }
  throw std::logic_error("a model file has no form for this initializer");
}

json::Value json_of(const AttrValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (requires { json::make(v); }) {
          return json::make(v);
        } else {
          json::Value array = json::make_array();
          for (const auto& item : v) array.items.push_back(json::make(item));
          return array;
        }
      },
      value);
}

std::optional<Init> read_init(Reader& reader, const Ref& at, const ReadArray& read_array) {
  if (at.value->kind == Kind::string) return read_named_init(reader, at);
  if (at.value->kind == Kind::object) {
    if (at.value->find("npz")) return read_init_file(reader, at, read_array);
    if (at.value->members.size() == 1) return read_named_init(reader, at);
    return rejected(reader, at, "model.init", "an initializer is an object with one key", kInits);
  }
  if (at.value->kind != Kind::array && !at.value->is_number())
    return rejected(reader, at, "model.init", fmt::format("not an initializer: {}", name_of(at.value->kind)), kInits);
  std::vector<std::int64_t> extents;
  std::vector<double> values;
  if (!read_nested(reader, at, 0, extents, values)) return std::nullopt;
  return Init::values(from_doubles(values, {DType::f64, Shape(extents), 0}));
}

std::optional<AttrValue> attr_value(const json::Value& value) {
  const auto integer = [](const json::Value& number) -> std::optional<std::int64_t> {
    if (number.kind == Kind::integer) return number.integer;
    if (number.kind != Kind::real || !is_whole(number.real)) return std::nullopt;
    return static_cast<std::int64_t>(number.real);  // 1e3 and 10.0 count as integers
  };
  if (value.kind == Kind::boolean) return value.boolean;
  if (value.kind == Kind::string) return value.string;
  if (const auto whole = integer(value)) return *whole;
  if (value.kind == Kind::real) return value.real;
  if (value.kind != Kind::array) return std::nullopt;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  for (const json::Value& item : value.items) {
    if (!item.is_number()) return std::nullopt;
    if (const auto whole = integer(item)) integers.push_back(*whole);
    reals.push_back(item.real);
  }
  if (integers.size() == reals.size()) return integers;
  return reals;
}

bool is_runtime(const json::Value& value) {
  return value.kind == Kind::object && value.find("runtime") != nullptr;
}

std::optional<double> read_runtime(Reader& reader, const Ref& at) {
  json::ObjectReader object(reader, at);
  const std::optional<double> number = reader.number(*object.get("runtime"));
  object.finish();
  if (!number || std::isfinite(static_cast<float>(*number))) return number;
  return rejected(reader, at, "model.range", fmt::format("{} does not fit an f32", *number));
}

std::optional<AttrList> read_attrs(Reader& reader, json::ObjectReader& object, const ir::AttrSchema& schema,
                                   std::string_view owner) {
  const std::size_t before = reader.errors();
  AttrList attrs;
  for (const ir::AttrDef& def : schema) {
    std::optional<Ref> place = object.get(def.name);
    // Accepts both axis and axes, as expressions do; NumPy uses axis for one and for several.
    if (!place && (def.name == "axis" || def.name == "axes")) place = object.get(def.name == "axis" ? "axes" : "axis");
    if (!place) {
      if (def.required)
        object.report_missing(def.name, "attribute.missing",
                              fmt::format("{} needs \"{}\": {}", owner, def.name, expected(def)));
      continue;
    }
    if (place->value->kind == Kind::null && !def.required) continue;  // same as leaving it out
    const std::optional<AttrValue> value = attr_value(*place->value);
    if (!value) {
      reader.report(*place, "attribute.value",
                    fmt::format("{} must be {}, got {}", def.name, expected(def),
                                place->value->kind == Kind::array ? "a list that is not of numbers"
                                                                  : name_of(place->value->kind)));
      continue;
    }
    try {
      attrs.emplace_back(def.name, ir::coerce(def, *value));
    } catch (const Error& error) {
      reader.report(*place, error);
    }
  }
  if (reader.errors() != before) return std::nullopt;
  return attrs;
}

namespace {

// Returns the table row for the only key of an object, and the place of its value; null if it reported an error.
template <class Row>
std::pair<const Row*, Ref> read_choice(Reader& reader, const Ref& at, std::string_view what, std::string_view example,
                                       const std::vector<Row>& table) {
  const bool is_object = at.value->kind == Kind::object;
  const std::string code = fmt::format("model.{}", what);
  if (!is_object || at.value->members.size() != 1) {
    const std::string got = is_object ? std::to_string(at.value->members.size()) : std::string(name_of(at.value->kind));
    reader.report(at, code, fmt::format("the {} is an object with one key, got {}", what, got),
                  fmt::format("for instance {}", example));
    return {};
  }
  const json::Member& member = at.value->members.front();
  const Row* row = find_row(table, member.key);
  if (row == nullptr) {
    const Diagnostic d = unknown(what, member.key, names_of(table)).diagnostics().front();
    reader.report_key(at, member, code, d.message, d.hint);
  }
  return {row, at.member(member)};
}

std::optional<ScheduleSpec> read_schedule(Reader& reader, const Ref& at) {
  const auto [schedule, place] =
      read_choice(reader, at, "schedule", R"({"cosine": {"from": 0.1, "to": 0, "epochs": 100}})", schedules());
  if (schedule == nullptr) return std::nullopt;
  json::ObjectReader fields(reader, place);
  if (!fields.is_object()) return std::nullopt;
  const std::optional<AttrList> attrs = read_attrs(reader, fields, schedule->attributes, schedule->name);
  fields.finish();
  if (!attrs) return std::nullopt;
  try {
    const ScheduleSpec spec{std::string(schedule->name), *attrs};
    check_schedule(spec);
    return spec;
  } catch (const Error& error) {
    reader.report(place, error);
    return std::nullopt;
  }
}
}  // namespace

void read_optimizer(Reader& reader, const Ref& at, OptimizerSpec& to) {
  const auto [optimizer, place] = read_choice(reader, at, "optimizer", R"({"sgd": {"lr": 0.1}})", optimizers());
  if (optimizer == nullptr) return;
  json::ObjectReader fields(reader, place);
  if (!fields.is_object()) return;
  ir::AttrSchema schema = optimizer->attributes;
  to.name = optimizer->name;
  to.attributes.clear();
  to.runtime.clear();
  for (const std::string_view key : {"lr", "weight_decay"})
    if (optimizer->update == nullptr && fields.find(key) != nullptr)
      reader.report(*fields.get(key), "optimizer.joint",
                    fmt::format("{} has no {}", optimizer->name, key == "lr" ? "learning rate" : key),
                    fmt::format("leave {} out", key));
  for (const ir::AttrDef& def : optimizer->attributes) {
    const auto at_key = fields.get(def.name);
    if (!at_key || !is_runtime(*at_key->value)) continue;
    std::erase_if(schema, [&](const ir::AttrDef& other) { return other.name == def.name; });
    const std::optional<double> number = read_runtime(reader, *at_key);
    if (!number) continue;
    try {
      to.attributes.emplace_back(def.name, std::get<double>(ir::coerce(def, *number)));
      to.runtime.emplace_back(def.name);
    } catch (const Error& error) {
      reader.report(*at_key, error);
    }
  }
  const auto lr = ir::find_attr(schema, "lr") ? fields.get("lr") : std::nullopt;
  if (lr && lr->value->kind == Kind::object && !is_runtime(*lr->value)) {
    to.lr = read_schedule(reader, *lr);
    to.attributes.emplace_back("lr", 0.0);
    std::erase_if(schema, [](const ir::AttrDef& def) { return def.name == "lr"; });
  }
  const std::optional<AttrList> attrs = read_attrs(reader, fields, schema, optimizer->name);
  fields.finish();
  if (!attrs) return;
  for (const auto& [name, value] : *attrs) to.attributes.emplace_back(name, std::get<double>(value));
}

}  // namespace graphrun
