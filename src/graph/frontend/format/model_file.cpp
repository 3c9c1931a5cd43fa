// model_file.cpp: the sections of the file. model_file_build.cpp makes the graph.
#include "graph/frontend/format/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/limits.h"

namespace graphrun {
namespace {

constexpr std::string_view kNameRule =
    "a name is a letter or _, then letters, digits, _ and dots; not and, or, not, true, false, none";

template <class Def>
std::vector<std::string> names_in(const std::vector<Def>& registry) {
  std::vector<std::string> names;
  for (const Def& def : registry) names.emplace_back(def.name);
  return names;
}

void report_unknown(json::Reader& reader, const json::Place& at, const json::Member& member, std::string_view what,
                    const std::vector<std::string>& names) {
  const std::string hint = did_you_mean(member.key, names);
  reader.report_key(at, member, fmt::format("model.{}", what), fmt::format("there is no {} named {}", what, member.key),
                    hint.empty() ? fmt::format("there are: {}", fmt::join(names, ", ")) : hint);
}

}  // namespace

using json::Kind;
using json::Member;
using json::ObjectReader;
using json::Place;

ModelFile::ModelFile(json::Reader& reader, ReadArray read_array)
    : reader_(reader), read_array_(std::move(read_array)), batch_place_(reader.root()) {
  ObjectReader root(reader_, reader_.root());
  if (!root.is_object() || !looks_like_a_model(root)) return;
  if (const auto at = root.get("format"); !at) {
    reader_.report(root.place(), "model.format", "the file does not say its format", "add \"format\": 1");
  } else if (at->value->kind != Kind::integer || at->value->integer != 1) {
    reader_.report(*at, "model.format", "the format must be 1, the only one there is");
  }
  root.string("$schema");
  root.string("description");
  name_ = root.string("name").value_or("");
  data_ = root.require("data", "it says where the inputs come from");
  if (const auto at = root.get("constants")) read_constants(*at);
  if (const auto at = root.require("inputs", R"(for instance "inputs": {"x": ["batch", 6], "y": ["batch", 1]})"))
    read_inputs(*at);
  if (const auto at = root.get("parameters")) read_parameters(*at);
  if (const auto at =
          root.require("graph", R"j(for instance "graph": ["h = tanh(x @ W)", "loss = mean(square(h - y))"])j"))
    read_graph(*at);
  outputs_ = root.require("outputs", R"(which value answers which target, for instance "outputs": {"y_hat": "y"})");
  if (const auto at =
          root.require("train", R"(for instance "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}})"))
    read_train(*at);
  // What a misspelt section would have named is no further mistake.
  for (const Member* member : root.unread()) {
    for (const Member& inner : member->value.members) broken_.insert(inner.key);
  }
  root.finish();
}

// Another JSON file is one mistake, not one for each key that a model has.
bool ModelFile::looks_like_a_model(ObjectReader& root) {
  const std::vector<std::string> keys = {"format", "data", "inputs", "parameters", "graph", "outputs", "train"};
  const std::vector<Member>& members = root.place().value->members;
  const bool any = std::any_of(members.begin(), members.end(),
                               [&](const Member& member) { return !nearest_name(member.key, keys).empty(); });
  if (any || members.empty()) return true;
  if (root.find("x") && root.find("y") && root.find("m")) {
    reader_.report(root.place(), "model.data", "this is a file of data, with the keys m, n, x, y: not a model file",
                   R"(a model names it: "data": {"source": {"json": "FILE"}})");
  } else {
    reader_.report(root.place(), "model.none", "this is not a model file: it has none of a model's keys",
                   fmt::format("they are {}", fmt::join(keys, ", ")));
  }
  return false;
}

void ModelFile::read_constants(const Place& at) {
  const ObjectReader object(reader_, at);
  for (const Member* member : object.unread()) {
    const std::optional<double> value = reader_.number(at.member(*member));
    if (!is_name(member->key)) {
      reader_.report_key(at, *member, "name.invalid", fmt::format("'{}' is not a name", member->key),
                         std::string(kNameRule));
    } else if (member->key == "pi" || member->key == "e") {
      reader_.report_key(at, *member, "name.taken", fmt::format("{} is a constant of every model", member->key),
                         "choose another name");
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
                         std::string(kNameRule));
      continue;
    }
    Input input{.name = member->key, .sample = {}, .place = at.member(*member)};
    std::optional<Shape> shape;
    std::optional<DType> dtype = DType::f32;
    if (input.place.value->kind == Kind::object) {
      ObjectReader fields(reader_, input.place);
      if (const auto place = fields.get("dtype")) dtype = read_dtype(reader_, *place);
      if (const auto place = fields.require("shape", R"(for instance "shape": ["batch", 6])"))
        shape = read_batch_shape(reader_, *place);
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
      if (const auto place = fields.require("shape", R"(for instance "shape": [784, 256])")) {
        if (const auto shape = read_shape(reader_, *place)) parameter.shape = *shape;
      }
      if (const auto place = fields.require("init", R"(for instance "init": {"normal": 0.1} or "init": "zeros")")) {
        if (auto init = read_init(reader_, *place, read_array_)) parameter.init = std::move(*init);
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
  graph_read_ = true;
}

void ModelFile::read_train(const Place& at) {
  ObjectReader train(reader_, at);
  if (!train.is_object()) return;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  minimize_ = train.require("minimize", "the name of the loss: a scalar of the graph");
  metrics_ = train.get("metrics");
  if (const auto place = train.require("optimizer", R"(for instance "optimizer": {"sgd": {"lr": 0.1}})"))
    read_optimizer(*place);
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
  if (const auto place = train.get("precision")) {
    const std::optional<std::string> word = reader_.string(*place);
    if (word == "tf32") train_.precision = Precision::tf32;
    if (word && *word != "fp32" && *word != "tf32") {
      reader_.report(*place, "model.value", fmt::format("precision is \"fp32\" or \"tf32\", got \"{}\"", *word));
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
    reader_.report(at, "model.value", fmt::format("the batch is an integer or \"all\", got \"{}\"", at.value->string),
                   "\"all\" takes the whole training split");
    return;
  }
  batch_ = reader_.integer(at, 1, kMaxBatch);
}

const Member* ModelFile::read_only_member(const Place& at, std::string_view what, std::string_view example) {
  const bool is_object = at.value->kind == Kind::object;
  if (is_object && at.value->members.size() == 1) return &at.value->members.front();
  const std::string got = is_object ? std::to_string(at.value->members.size()) : std::string(name_of(at.value->kind));
  reader_.report(at, fmt::format("model.{}", what), fmt::format("the {} is an object with one key, got {}", what, got),
                 fmt::format("for instance {}", example));
  return nullptr;
}

void ModelFile::read_optimizer(const Place& at) {
  const Member* member = read_only_member(at, "optimizer", R"({"sgd": {"lr": 0.1}})");
  if (!member) return;
  const OptimizerDef* optimizer = find_optimizer(member->key);
  if (!optimizer) {
    report_unknown(reader_, at, *member, "optimizer", names_in(optimizers()));
    return;
  }
  ObjectReader fields(reader_, at.member(*member));
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
  const Member* member = read_only_member(at, "schedule", R"({"cosine": {"from": 0.1, "to": 0, "epochs": 100}})");
  if (!member) return std::nullopt;
  const ScheduleDef* schedule = find_schedule(member->key);
  if (!schedule) {
    report_unknown(reader_, at, *member, "schedule", names_in(schedules()));
    return std::nullopt;
  }
  ObjectReader fields(reader_, at.member(*member));
  if (!fields.is_object()) return std::nullopt;
  const std::optional<AttrList> attrs = read_attrs(reader_, fields, schedule_keys(*schedule), schedule->name);
  fields.finish();
  if (!attrs) return std::nullopt;
  ScheduleSpec spec{member->key, *attrs};
  try {
    check_schedule(spec);
  } catch (const Error& error) {
    reader_.report(at.member(*member), error);
    return std::nullopt;
  }
  return spec;
}

}  // namespace graphrun
