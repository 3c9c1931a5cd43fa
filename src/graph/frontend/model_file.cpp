// model_file.cpp: the sections of the file. model_file_build.cpp makes the graph.
#include "graph/frontend/model_file.h"

#include <fmt/format.h>

#include <limits>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/functions.h"
#include "graph/frontend/json_values.h"
#include "graph/frontend/optimizers.h"
#include "graph/frontend/schedules.h"

namespace graphrun {

using json::Kind;
using json::Member;
using json::ObjectReader;
using json::Place;

ModelFile::ModelFile(json::Reader& reader) : reader_(reader), batch_place_(reader.root()) {
  ObjectReader root(reader_, reader_.root());
  if (!root.is_object()) return;
  if (const auto at = root.get("format"); !at) {
    reader_.report(root.place(), "model.format", "the file does not say its format", "add \"format\": 1");
  } else if (at->value->kind != Kind::integer || at->value->integer != 1) {
    reader_.report(*at, "model.format", "the format must be 1, the only one there is");
  }
  root.get("$schema");
  root.string("description");
  name_ = root.string("name").value_or("");
  data_ = root.get("data");
  if (const auto at = root.get("constants")) read_constants(*at);
  if (const auto at = root.require("inputs")) read_inputs(*at);
  if (const auto at = root.get("parameters")) read_parameters(*at);
  if (const auto at = root.require("graph")) read_graph(*at);
  outputs_ = root.require("outputs");
  if (const auto at = root.require("train")) read_train(*at);
  root.finish();
}

void ModelFile::read_constants(const Place& at) {
  const ObjectReader object(reader_, at);
  for (const Member* member : object.unread()) {
    const std::optional<double> value = reader_.number(at.member(*member));
    if (!is_name(member->key)) {
      reader_.report_key(at, *member, "name.invalid", fmt::format("'{}' is not a name", member->key),
                         "a name is a letter or _, then letters, digits, _ and dots");
    } else if (member->key == "pi" || member->key == "e") {
      reader_.report_key(at, *member, "name.taken", fmt::format("{} is a constant of every model", member->key));
    } else if (value) {
      constants_.emplace(member->key, *value);
    } else {
      broken_.insert(member->key);
    }
  }
}

void ModelFile::read_inputs(const Place& at) {
  const std::size_t before = reader_.errors();
  const ObjectReader object(reader_, at);
  if (object.is_object() && at.value->members.empty()) {
    reader_.report(at, "model.inputs", "a model needs an input", "for instance {\"x\": [\"batch\", 6]}");
  }
  for (const Member* member : object.unread()) {
    if (!is_name(member->key)) {
      reader_.report_key(at, *member, "name.invalid", fmt::format("'{}' is not a name", member->key),
                         "a name is a letter or _, then letters, digits, _ and dots");
      continue;
    }
    Input input{.name = member->key, .sample = {}, .place = at.member(*member)};
    std::optional<Shape> shape;
    std::optional<DType> dtype = DType::f32;
    if (input.place.value->kind == Kind::object) {
      ObjectReader fields(reader_, input.place);
      if (const auto place = fields.get("dtype")) dtype = read_dtype(reader_, *place);
      if (const auto place = fields.require("shape")) shape = read_batch_shape(reader_, *place);
      fields.finish();
    } else {
      shape = read_batch_shape(reader_, input.place);
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

void ModelFile::read_parameters(const Place& at) {
  const ObjectReader object(reader_, at);
  for (const Member* member : object.unread()) {
    Parameter parameter{.name = member->key, .place = at.member(*member), .shape = {}, .init = {}};
    const std::size_t before = reader_.errors();
    ObjectReader fields(reader_, parameter.place);
    if (fields.is_object()) {
      if (const auto place = fields.require("shape")) {
        if (const auto shape = read_shape(reader_, *place)) parameter.shape = *shape;
      }
      if (const auto place = fields.require("init")) {
        if (auto init = read_init(reader_, *place)) parameter.init = std::move(*init);
      }
      parameter.decay = fields.boolean("decay").value_or(true);
      fields.finish();
    }
    if (reader_.errors() == before) {
      parameters_.push_back(std::move(parameter));
    } else {
      broken_.insert(member->key);
    }
  }
}

void ModelFile::read_graph(const Place& at) {
  if (at.value->kind != Kind::array) {
    reader_.report(at, "json.type", fmt::format("the graph is an array, got {}", name_of(at.value->kind)),
                   "of assignments like \"h = tanh(x @ W)\" and objects like {\"name\", \"op\", \"inputs\"}");
    return;
  }
  for (std::size_t i = 0; i < at.value->items.size(); ++i) graph_.push_back(at.item(i));
}

void ModelFile::read_train(const Place& at) {
  ObjectReader train(reader_, at);
  if (!train.is_object()) return;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  minimize_ = train.require("minimize");
  metrics_ = train.get("metrics");
  if (const auto place = train.require("optimizer")) read_optimizer(*place);
  batch_place_ = at;
  if (const auto place = train.get("batch")) read_batch(*place);
  train_.epochs = train.integer("epochs", 0, kMost).value_or(train_.epochs);
  train_.seed = static_cast<std::uint64_t>(train.integer("seed", 0, kMost).value_or(0));
  train_.evaluate_every = train.integer("evaluate_every", 1, kMost).value_or(0);
  train_.log_every = train.integer("log_every", 1, kMost).value_or(0);
  train_.shuffle = train.boolean("shuffle").value_or(false);
  if (const auto place = train.get("last_batch")) {
    const std::optional<std::string> word = reader_.string(*place);
    train_.drop_last = word == "drop";
    if (word && *word != "keep" && *word != "drop") {
      reader_.report(*place, "model.value", fmt::format("last_batch is \"keep\" or \"drop\", got \"{}\"", *word));
    }
  }
  if (const auto place = train.get("clip_norm")) {
    const std::optional<double> norm = reader_.number(*place);
    if (norm && *norm <= 0) reader_.report(*place, "model.range", fmt::format("must be > 0, got {}", *norm));
    train_.clip_norm = norm.value_or(0);
  }
  train.finish();
}

void ModelFile::read_batch(const Place& at) {
  batch_place_ = at;
  if (at.value->kind == Kind::string) {
    if (at.value->string == "all") return;
    reader_.report(at, "model.value", fmt::format("the batch is an integer or \"all\", got \"{}\"", at.value->string));
    return;
  }
  batch_ = reader_.integer(at, 1, std::int64_t{1} << 40);
}

void ModelFile::read_optimizer(const Place& at) {
  const ObjectReader object(reader_, at);
  if (!object.is_object()) return;
  if (at.value->members.size() != 1) {
    reader_.report(at, "model.optimizer",
                   fmt::format("an optimizer is an object with one key, got {}", at.value->members.size()),
                   "for instance {\"sgd\": {\"lr\": 0.1}}");
    return;
  }
  const Member& member = at.value->members.front();
  const OptimizerDef* optimizer = find_optimizer(member.key);
  if (!optimizer) {
    std::vector<std::string> names;
    for (const OptimizerDef& candidate : optimizers()) names.emplace_back(candidate.name);
    const std::string hint = did_you_mean(member.key, names);
    reader_.report_key(at, member, "model.optimizer", fmt::format("there is no optimizer named {}", member.key),
                       hint.empty() ? fmt::format("there are: {}", fmt::join(names, ", ")) : hint);
    return;
  }
  ObjectReader fields(reader_, at.member(member));
  if (!fields.is_object()) return;
  ir::AttrSchema schema = optimizer->attrs;
  train_.optimizer.name = optimizer->name;
  train_.optimizer.attributes.clear();
  if (const auto lr = fields.get("lr"); lr && lr->value->kind == Kind::object) {
    train_.optimizer.lr = read_schedule(*lr);
    train_.optimizer.attributes.emplace_back("lr", 0.0);
    std::erase_if(schema, [](const ir::AttrDef& def) { return def.name == "lr"; });
  }
  const std::optional<AttrList> attrs = read_attrs(reader_, fields, schema, optimizer->name);
  fields.finish();
  if (!attrs) return;
  for (const auto& [name, value] : *attrs) train_.optimizer.attributes.emplace_back(name, std::get<double>(value));
}

std::optional<ScheduleSpec> ModelFile::read_schedule(const Place& at) {
  if (at.value->members.size() != 1) {
    reader_.report(at, "schedule.unknown",
                   fmt::format("a schedule is an object with one key, got {}", at.value->members.size()),
                   "for instance {\"cosine\": {\"from\": 0.1, \"to\": 0, \"epochs\": 100}}");
    return std::nullopt;
  }
  const Member& member = at.value->members.front();
  const Place place = at.member(member);
  const ObjectReader fields(reader_, place);
  if (!fields.is_object()) return std::nullopt;
  ScheduleSpec spec{member.key, {}};
  for (const Member& field : place.value->members) {
    const std::optional<AttrValue> value = attr_value(field.value);
    if (value) {
      spec.attributes.emplace_back(field.key, *value);
    } else {
      reader_.report(
          place.member(field), "attribute.value",
          fmt::format("{} must be a number or a list of numbers, got {}", field.key, name_of(field.value.kind)));
    }
  }
  if (spec.attributes.size() != place.value->members.size()) return std::nullopt;
  try {
    check_schedule(spec);
  } catch (const Error& error) {
    reader_.report(place, error);
    return std::nullopt;
  }
  return spec;
}

}  // namespace graphrun
