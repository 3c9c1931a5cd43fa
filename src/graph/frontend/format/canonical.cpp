// canonical.cpp: the canonical form of a model file. Sections without defaults are copied from the file.

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/optimizers.h"

namespace graphrun {
namespace {

using json::make_array;
using json::make_object;

// Normalizes numbers as json_text prints them (1.0 as 1) and drops keys that were removed.
json::Value normalized(json::Value value) {
  if (value.kind == json::Kind::real) return json::make(value.real);
  std::erase_if(value.members, [](const json::Member& member) {
    return member.value.kind == json::Kind::null && member.value.boolean;
  });
  for (json::Value& item : value.items) item = normalized(std::move(item));
  for (json::Member& member : value.members) member.value = normalized(std::move(member.value));
  return value;
}

// The operands of a graph entry as "x, W".
std::string operands(const json::Value& entry) {
  std::string text;
  for (const json::Value& input : entry.find("inputs")->value.items) text += (text.empty() ? "" : ", ") + input.string;
  return text;
}

const json::Value* find(const json::Value& object, std::string_view key) {
  const json::Member* member = object.find(key);
  return member ? &member->value : nullptr;
}

bool is_false(const json::Value& object, std::string_view key) {
  const json::Value* value = find(object, key);
  return value && value->kind == json::Kind::boolean && !value->boolean;
}

class Canonical {
 public:
  Canonical(json::Reader& reader, Model& model) : reader_(reader), model_(model), graph_(model.graph.impl()) {}

  json::Value run() const {
    json::Value out = make_object({{"format", json::make(std::int64_t{1})}, {"name", json::make(model_.name)}});
    for (const std::string_view key : {"description", "constants", "data"}) {
      if (const json::Value* section = find(root_, key)) json::add(out, key, *section);
    }
    json::add(out, "inputs", inputs());
    json::add(out, "parameters", parameters("parameters"));
    if (const json::Value* states = find(root_, "states"); states && !states->members.empty())
      json::add(out, "states", parameters("states"));
    json::Value entries = make_array();
    for (const json::Value& entry : find(root_, "graph")->items) entries.items.push_back(graph_entry(entry));
    json::add(out, "graph", std::move(entries));
    json::add(out, "outputs", outputs());
    json::add(out, "train", train());
    return out;
  }

 private:
  json::Value inputs() const {
    json::Value out = make_object();
    for (const json::Member& input : find(root_, "inputs")->members) {
      const json::Value *shape = find(input.value, "shape"), *dtype = find(input.value, "dtype");
      json::add(out, input.key,
                make_object({{"dtype", dtype ? *dtype : json::make("f32")}, {"shape", shape ? *shape : input.value}}));
    }
    return out;
  }

  json::Value parameters(std::string_view section) const {
    json::Value out = make_object();
    const json::Value* declared = find(root_, section);
    if (declared == nullptr) return out;
    for (const json::Member& member : declared->members) {
      const json::Value &parameter = member.value, *init = find(parameter, "init");
      json::Value fields =
          make_object({{"shape", *find(parameter, "shape")}, {"init", init ? *init : json::make("zeros")}});
      if (section == "parameters") json::add(fields, "decay", json::make(!is_false(parameter, "decay")));
      if (is_false(parameter, "trainable")) json::add(fields, "trainable", json::make(false));
      json::add(out, member.key, std::move(fields));
    }
    return out;
  }

  // Ops become assignments; layers stay objects, because expressions cannot specify initializers.
  json::Value graph_entry(const json::Value& entry) const {
    if (entry.kind == json::Kind::string) return json::make(expression::text(graph_, expression::parse(entry.string)));
    const std::string& op = find(entry, "op")->string;
    if (const Layer* layer = find_layer(op)) return layer_entry(entry, *layer);
    const ir::AttrSchema& schema = find_function(op)->attributes;
    return json::make(fmt::format("{} = {}({}{})", find(entry, "name")->string, op, operands(entry),
                                  expression::attributes_text(graph_, schema, given(entry, schema))));
  }

  AttrList given(const json::Value& entry, const ir::AttrSchema& schema) const {
    json::ObjectReader object(reader_, {&entry, {}});
    return read_attrs(reader_, object, schema, {}).value();
  }

  json::Value layer_entry(const json::Value& entry, const Layer& layer) const {
    json::Value out = make_object(
        {{"name", *find(entry, "name")}, {"op", json::make(layer.name)}, {"inputs", *find(entry, "inputs")}});
    if (const json::Value* share = find(entry, "share"); share && !share->string.empty()) {
      json::add(out, "share", *share);  // the other layer defines everything else
      return out;
    }
    const ir::Attrs attrs(layer.attributes, given(entry, layer.attributes));
    for (const auto& [name, value] : attrs.list()) {
      const auto* word = std::get_if<std::string>(&value);
      if (!word || !word->empty()) json::add(out, name, json_of(value));
    }
    for (const LayerInit& init : layer.inits) {
      const json::Value* value = find(entry, init.name);
      const bool as_usual = !value || (value->kind == json::Kind::boolean && value->boolean);
      json::add(out, init.name, as_usual ? json_of(init.fallback) : *value);
    }
    if (is_false(entry, "trainable")) json::add(out, "trainable", json::make(false));
    return out;
  }

  // An object if every output has a target; otherwise a list, in the model's order.
  json::Value outputs() const {
    const bool all = std::ranges::count(model_.outputs, std::string(), &OutputSpec::target) == 0;
    json::Value out = all ? make_object() : make_array();
    for (const OutputSpec& output : model_.outputs) {
      if (all) {
        json::add(out, output.name, json::make(output.target));
      } else {
        out.items.push_back(json::make(output.name));
      }
    }
    return out;
  }

  json::Value train() const {
    const TrainSpec& train = model_.train;
    const json::Value& given = *find(root_, "train");
    const bool several = !train.objectives.empty();
    json::Value out = make_object();
    for (const Field& field : train_fields()) {
      const std::string_view key = field.name;
      if (field.get != nullptr) {
        add_plain(out, field);
      } else if (key == "minimize" && !several) {
        json::add(out, key, *find(given, key));
      } else if (key == "metrics") {
        json::add(out, key, json::make_list(names_of(train.metrics)));
      } else if (key == "optimizer" && !several) {
        json::add(out, key, optimizer(train.optimizer));
      } else if (key == "objectives" && several) {
        json::add(out, key, objectives(*find(given, key)));
      } else if (key == "batch") {
        json::add(out, key, find(given, key) ? *find(given, key) : json::make("all"));
      } else if (key == "max_memory" && train.max_memory != 0) {
        json::add(out, key, json::make(static_cast<std::int64_t>(train.max_memory)));
      }
    }
    if (train.early_stopping) json::add(out, "early_stopping", plain_part(early_stopping_fields()));
    if (train.lr_plateau) json::add(out, "lr_plateau", plain_part(lr_plateau_fields()));
    if (train.stop_at) json::add(out, "stop_at", plain_part(stop_at_fields()));
    if (train.threshold) json::add(out, "threshold", *find(given, "threshold"));
    return out;
  }

  void add_plain(json::Value& out, const Field& field) const {
    const AttrValue value = field.get(field, model_.train);
    if (field.runtime != nullptr && model_.train.*field.runtime)
      return json::add(out, field.name, make_object({{"runtime", json_of(value)}}));
    // Some keys have no value that is equivalent to leaving them out.
    if (field.has_default() || value != field.fallback) json::add(out, field.name, json_of(value));
  }

  json::Value plain_part(const Fields& fields) const {
    json::Value out = make_object();
    for (const Field& field : fields) add_plain(out, field);
    return out;
  }

  json::Value objectives(const json::Value& given) const {
    json::Value out = make_object();
    for (std::size_t i = 0; i < given.members.size(); ++i) {
      const ObjectiveSpec& one = model_.train.objectives[i];
      const json::Value& keys = given.members[i].value;
      json::add(out, one.name,
                make_object({{"minimize", *find(keys, "minimize")},
                             {"parameters", *find(keys, "parameters")},
                             {"optimizer", optimizer(one.optimizer)},
                             {"every", json::make(one.every)}}));
    }
    return out;
  }

  static json::Value optimizer(const OptimizerSpec& spec) {
    const OptimizerDef* def = find_row(optimizers(), spec.name);
    const ir::Attrs attrs(def->attributes, {spec.attributes.begin(), spec.attributes.end()});
    json::Value fields = make_object();
    for (const auto& [name, value] : attrs.list()) {
      const bool at_run_time = std::find(spec.runtime.begin(), spec.runtime.end(), name) != spec.runtime.end();
      json::add(fields, name,
                at_run_time               ? make_object({{"runtime", json_of(value)}})
                : name == "lr" && spec.lr ? schedule(*spec.lr)
                                          : json_of(value));
    }
    return make_object({{spec.name, std::move(fields)}});
  }

  static json::Value schedule(const ScheduleSpec& spec) {
    json::Value fields = make_object();
    for (const auto& [name, value] : spec.attributes) json::add(fields, name, json_of(value));
    const bool timed = fields.find("steps") || fields.find("epochs");
    if (timed && !fields.find("warmup")) json::add(fields, "warmup", json::make(std::int64_t{0}));
    return make_object({{spec.name, std::move(fields)}});
  }

  json::Reader& reader_;
  Model& model_;
  GraphBuilder::Impl& graph_;
  const json::Value root_ = normalized(*reader_.root().value);
};

}  // namespace

json::Value canonical(json::Reader& reader, Model& model) {
  return Canonical(reader, model).run();
}

std::string call_text(const json::Value& entry, bool with_inits) {
  const std::string& op = find(entry, "op")->string;
  const Layer* layer = with_inits ? nullptr : find_layer(op);
  std::string text = operands(entry);
  for (const json::Member& member : entry.members) {
    if (member.key == "name" || member.key == "op" || member.key == "inputs") continue;
    if (layer && std::ranges::find(layer->inits, member.key, &LayerInit::name) != layer->inits.end()) continue;
    const bool is_word = member.value.kind == json::Kind::string;
    text += fmt::format(", {}={}", member.key, is_word ? member.value.string : json::line(member.value));
  }
  return fmt::format("{}({})", op, text);
}

std::string entry_text(const json::Value& entry) {
  if (entry.kind == json::Kind::string) return entry.string;
  return fmt::format("{} = {}", find(entry, "name")->string, call_text(entry, true));
}

}  // namespace graphrun
