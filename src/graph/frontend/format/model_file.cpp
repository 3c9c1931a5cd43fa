// model_file.cpp: reads the sections of the file. model_file_build.cpp builds the graph.
#include "graph/frontend/format/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/limits.h"

namespace graphrun {
namespace {

// Returns false if it reported an error.
bool check_name(json::Reader& reader, const json::Ref& object, const json::Member& member) {
  if (is_name(member.key)) return true;
  reader.report_key(object, member, "name.invalid", fmt::format("'{}' is not a name", member.key),
                    std::string(kNameRule));
  return false;
}

}  // namespace

using json::Kind;
using json::Member;
using json::ObjectReader;
using json::Ref;

ModelFile::ModelFile(json::Reader& reader, ReadArray read_array)
    : reader_(reader), read_array_(std::move(read_array)), batch_place_(reader.root()) {
  ObjectReader root(reader_, reader_.root());
  if (!root.is_object() || !looks_like_a_model(root)) return;
  read_fields(reader_, root, file_fields(), train_);
  if (const auto at = root.get("format"); at && (at->value->kind != Kind::integer || at->value->integer != 1)) {
    reader_.report(*at, "model.format", "the format must be 1, the only one there is");
  }
  root.string("$schema");
  root.string("description");
  name_ = root.string("name").value_or("");
  data_ = root.get("data");
  outputs_ = root.get("outputs");
  if (const auto at = root.get("constants")) read_constants(*at);
  if (const auto at = root.get("inputs")) read_inputs(*at);
  if (const auto at = root.get("parameters")) read_parameters(*at, parameter_fields(), parameters_);
  if (const auto at = root.get("states")) read_parameters(*at, state_fields(), states_);
  if (const auto at = root.get("graph")) read_graph(*at);
  if (const auto at = root.get("train")) read_train(*at);
  // Uses of names from a misspelled section are consequential errors.
  for (const Member* member : root.unread()) {
    for (const Member& inner : member->value.members) broken_.insert(inner.key);
  }
  root.finish();
}

// Reports a JSON file that is not a model once, rather than one error per missing key.
bool ModelFile::looks_like_a_model(ObjectReader& root) {
  std::vector<std::string> keys;
  for (const Field& field : file_fields()) {
    if (field.required) keys.emplace_back(field.name);
  }
  const std::vector<Member>& members = root.place().value->members;
  const bool any = std::any_of(members.begin(), members.end(),
                               [&](const Member& member) { return !nearest_name(member.key, keys).empty(); });
  if (any || members.empty()) return true;
  if (root.find("x") && root.find("y") && root.find("m")) {
    reader_.report(root.place(), "model.data", "this is a file of data, with the keys m, n, x, y: not a model file",
                   R"(a model names it: "data": {"source": {"json": "FILE"}})");
  } else {
    reader_.report(root.place(), "model.none", "this is not a model file: it has none of the keys that a model needs",
                   fmt::format("they are {}", fmt::join(keys, ", ")));
  }
  return false;
}

void ModelFile::read_constants(const Ref& at) {
  const ObjectReader object(reader_, at);
  for (const Member* member : object.unread()) {
    const Ref place = at.member(*member);
    const bool at_run_time = is_runtime(member->value);
    const std::optional<double> value = at_run_time ? read_runtime(reader_, place) : reader_.number(place);
    if (!check_name(reader_, at, *member)) continue;
    if (member->key == "pi" || member->key == "e") {
      reader_.report_key(at, *member, "name.taken", fmt::format("{} is a constant of every model", member->key),
                         "choose another name");
    } else if (value && at_run_time) {
      runtime_constants_.push_back({member->key, place, *value});
    } else if (value) {
      constants_.emplace(member->key, *value);
    } else {
      broken_.insert(member->key);
    }
  }
}

void ModelFile::read_inputs(const Ref& at) {
  const std::size_t before = reader_.errors();
  const ObjectReader inputs(reader_, at);
  if (inputs.is_object() && at.value->members.empty()) {
    reader_.report(at, "model.inputs", "a model needs an input", "for instance {\"x\": [\"batch\", 6]}");
  }
  for (const Member* member : inputs.unread()) {
    if (!check_name(reader_, at, *member)) continue;
    Input input{.name = member->key, .sample = {}, .place = at.member(*member)};
    std::optional<Shape> shape;
    std::optional<DType> dtype = DType::f32;
    if (input.place.value->kind == Kind::object) {
      ObjectReader object(reader_, input.place);
      read_fields(reader_, object, input_fields(), train_);
      if (const auto place = object.get("dtype")) dtype = read_dtype(reader_, *place);
      if (const auto place = object.get("shape")) shape = read_shape(reader_, *place, true);
      object.finish();
    } else {
      shape = read_shape(reader_, input.place, true);
    }
    if (!shape || !dtype) {
      broken_.insert(member->key);
      continue;
    }
    input.sample = *shape;
    input.dtype = *dtype;
    inputs_.push_back(std::move(input));
  }
  inputs_read_ = reader_.errors() == before;
}

void ModelFile::read_parameters(const Ref& at, const Fields& known, std::vector<Parameter>& to) {
  const ObjectReader object(reader_, at);
  for (const Member* member : object.unread()) {
    Parameter parameter{.name = member->key, .place = at.member(*member), .shape = {}, .init = {}};
    const std::size_t before = reader_.errors();
    ObjectReader fields(reader_, parameter.place);
    if (fields.is_object()) {
      read_fields(reader_, fields, known, train_);
      if (const auto place = fields.get("shape")) parameter.shape = read_shape(reader_, *place).value_or(Shape());
      if (const auto place = fields.get("init"))
        parameter.init = read_init(reader_, *place, read_array_).value_or(Init());
      if (&known == &parameter_fields()) {
        parameter.decay = fields.boolean("decay").value_or(true);
        parameter.trainable = fields.boolean("trainable").value_or(true);
      }
      fields.finish();
    }
    if (reader_.errors() == before) {
      to.push_back(std::move(parameter));
    } else {
      broken_.insert(member->key);
    }
  }
}

void ModelFile::read_graph(const Ref& at) {
  constexpr std::string_view kHint =
      R"j(of assignments like "h = tanh(x @ W)" and objects like {"name", "op", "inputs"})j";
  if (!is_array(reader_, at, "the graph is an array", kHint)) return;
  for (std::size_t i = 0; i < at.value->items.size(); ++i) graph_.push_back(at.item(i));
  graph_read_ = true;
}

void ModelFile::read_train(const Ref& at) {
  ObjectReader train(reader_, at);
  if (!train.is_object()) return;
  read_fields(reader_, train, train_fields(), train_);
  metrics_ = train.get("metrics");
  if (const auto place = train.get("objectives")) {
    for (const std::string_view key : {"minimize", "optimizer"}) {
      if (const Member* member = train.find(key)) {
        train.get(key);
        reader_.report_key(at, *member, "model.objectives", fmt::format("{} and objectives are both given", key),
                           "each objective has its own");
      }
    }
    read_objectives(*place);
  } else {
    minimize_ = train.require("minimize", "the name of the loss: a scalar of the graph");
    if (const auto optimizer = train.require("optimizer", R"(for instance "optimizer": {"sgd": {"lr": 0.1}})"))
      read_optimizer(*optimizer, train_.optimizer);
  }
  batch_place_ = at;
  if (const auto place = train.get("batch")) read_batch(*place);
  const auto read_part = [&](std::string_view key, auto& part, std::optional<Ref>& place, const Fields& fields) {
    place = train.get(key);
    if (!place || place->value->kind == Kind::null) return;
    part.emplace();
    ObjectReader object(reader_, *place);
    if (!object.is_object()) return;
    read_fields(reader_, object, fields, train_);
    object.finish();
  };
  read_part("early_stopping", train_.early_stopping, early_stopping_, early_stopping_fields());
  read_part("lr_plateau", train_.lr_plateau, lr_plateau_, lr_plateau_fields());
  if (const auto place = train.get("max_memory")) read_max_memory(*place);
  train.finish();
}

void ModelFile::read_batch(const Ref& at) {
  batch_place_ = at;
  if (at.value->kind == Kind::string) {
    train_.largest_batch = at.value->string == "max";
    if (at.value->string == "all" || train_.largest_batch) return;
    reader_.report(at, "model.value",
                   fmt::format("the batch is an integer, \"all\" or \"max\", got \"{}\"", at.value->string),
                   "\"all\" takes the whole training split, \"max\" as much of it as fits the memory");
    return;
  }
  batch_ = reader_.integer(at, 1, kMaxBatch);
}

void ModelFile::read_max_memory(const Ref& at) {
  if (at.value->kind == Kind::string) {
    const std::optional<std::uint64_t> bytes = parse_byte_size(at.value->string);
    if (bytes) {
      train_.max_memory = *bytes;
    } else {
      reader_.report(at, "model.value", fmt::format("expected a size, got \"{}\"", at.value->string),
                     "for instance \"512MiB\", \"4GiB\", or a number of bytes");
    }
    return;
  }
  const std::optional<std::int64_t> bytes = reader_.integer(at, 1, std::numeric_limits<std::int64_t>::max());
  train_.max_memory = static_cast<std::uint64_t>(bytes.value_or(0));
}

template <class Row>
std::pair<const Row*, Ref> ModelFile::read_choice(const Ref& at, std::string_view what, std::string_view example,
                                                  const std::vector<Row>& table) {
  const bool is_object = at.value->kind == Kind::object;
  const std::string code = fmt::format("model.{}", what);
  if (!is_object || at.value->members.size() != 1) {
    const std::string got = is_object ? std::to_string(at.value->members.size()) : std::string(name_of(at.value->kind));
    reader_.report(at, code, fmt::format("the {} is an object with one key, got {}", what, got),
                   fmt::format("for instance {}", example));
    return {};
  }
  const Member& member = at.value->members.front();
  const Row* row = find_row(table, member.key);
  if (row == nullptr) {
    const Diagnostic d = unknown(what, member.key, names_of(table)).diagnostics().front();
    reader_.report_key(at, member, code, d.message, d.hint);
  }
  return {row, at.member(member)};
}

void ModelFile::read_objectives(const Ref& at) {
  ObjectReader object(reader_, at);
  if (object.is_object() && at.value->members.empty()) {
    reader_.report(at, "model.objectives", "objectives without one", "\"minimize\" and \"optimizer\" say a single one");
  }
  for (const Member* member : object.unread()) {
    if (!check_name(reader_, at, *member)) continue;
    Objective one{member->key, at.member(*member)};
    ObjectReader fields(reader_, one.place);
    if (!fields.is_object()) continue;
    read_fields(reader_, fields, objective_fields(), train_);
    one.minimize = fields.get("minimize");
    one.parameters = fields.get("parameters");
    if (const auto place = fields.get("optimizer")) read_optimizer(*place, one.optimizer);
    if (const auto place = fields.get("every")) one.every = reader_.integer(*place, 1, kMaxEvery).value_or(1);
    fields.finish();
    objectives_.push_back(std::move(one));
  }
}

void ModelFile::read_optimizer(const Ref& at, OptimizerSpec& to) {
  const auto [optimizer, place] = read_choice(at, "optimizer", R"({"sgd": {"lr": 0.1}})", optimizers());
  if (optimizer == nullptr) return;
  ObjectReader fields(reader_, place);
  if (!fields.is_object()) return;
  ir::AttrSchema schema = optimizer->attributes;
  to.name = optimizer->name;
  to.attributes.clear();
  to.runtime.clear();
  for (const ir::AttrDef& def : optimizer->attributes) {
    const auto at_key = fields.get(def.name);
    if (!at_key || !is_runtime(*at_key->value)) continue;
    std::erase_if(schema, [&](const ir::AttrDef& other) { return other.name == def.name; });
    const std::optional<double> number = read_runtime(reader_, *at_key);
    if (!number) continue;
    try {
      to.attributes.emplace_back(def.name, std::get<double>(ir::coerce(def, *number)));
      to.runtime.emplace_back(def.name);
    } catch (const Error& error) {
      reader_.report(*at_key, error);
    }
  }
  if (const auto lr = fields.get("lr"); lr && lr->value->kind == Kind::object && !is_runtime(*lr->value)) {
    to.lr = read_schedule(*lr);
    to.attributes.emplace_back("lr", 0.0);
    std::erase_if(schema, [](const ir::AttrDef& def) { return def.name == "lr"; });
  }
  const std::optional<AttrList> attrs = read_attrs(reader_, fields, schema, optimizer->name);
  fields.finish();
  if (!attrs) return;
  for (const auto& [name, value] : *attrs) to.attributes.emplace_back(name, std::get<double>(value));
}

std::optional<ScheduleSpec> ModelFile::read_schedule(const Ref& at) {
  const auto [schedule, place] =
      read_choice(at, "schedule", R"({"cosine": {"from": 0.1, "to": 0, "epochs": 100}})", schedules());
  if (schedule == nullptr) return std::nullopt;
  ObjectReader fields(reader_, place);
  if (!fields.is_object()) return std::nullopt;
  const std::optional<AttrList> attrs = read_attrs(reader_, fields, schedule->attributes, schedule->name);
  fields.finish();
  if (!attrs) return std::nullopt;
  ScheduleSpec spec{std::string(schedule->name), *attrs};
  try {
    check_schedule(spec);
  } catch (const Error& error) {
    reader_.report(place, error);
    return std::nullopt;
  }
  return spec;
}

}  // namespace graphrun
