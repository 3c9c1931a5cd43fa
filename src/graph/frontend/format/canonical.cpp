#include "graph/frontend/format/canonical.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/json_values.h"
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

}  // namespace

class Canonical {
 public:
  Canonical(const ModelFile& file, Model& model) : file_(file), model_(model), graph_(model.graph.impl()) {}

  json::Value run() const {
    const json::Value& root = *file_.reader_.root().value;
    json::Value out = make_object({{"format", json::make(std::int64_t{1})}, {"name", json::make(model_.name)}});
    if (const json::Value* description = find(root, "description")) json::add(out, "description", *description);
    if (const json::Value* constants = find(root, "constants")) json::add(out, "constants", normalized(*constants));
    if (file_.data_) json::add(out, "data", normalized(*file_.data_->value));
    json::add(out, "inputs", inputs());
    json::add(out, "parameters", parameters(file_.parameters_, true));
    if (!file_.states_.empty()) json::add(out, "states", parameters(file_.states_, false));
    json::Value entries = make_array();
    for (const json::Ref& entry : file_.graph_) entries.items.push_back(graph_entry(entry));
    json::add(out, "graph", std::move(entries));
    json::add(out, "outputs", outputs());
    json::add(out, "train", train());
    return out;
  }

 private:
  json::Value inputs() const {
    json::Value out = make_object();
    for (const ModelFile::Input& input : file_.inputs_) {
      const json::Value* shape = find(*input.place.value, "shape");
      json::add(out, input.name,
                make_object({{"dtype", json::make(name_of(input.dtype))},
                             {"shape", normalized(shape ? *shape : *input.place.value)}}));
    }
    return out;
  }

  json::Value parameters(const std::vector<ModelFile::Parameter>& declared, bool with_decay) const {
    json::Value out = make_object();
    for (const ModelFile::Parameter& p : declared) {
      const json::Value* init = find(*p.place.value, "init");
      json::add(out, p.name,
                make_object({{"shape", normalized(*find(*p.place.value, "shape"))},
                             {"init", init ? normalized(*init) : json::make("zeros")}}));
      if (with_decay) json::add(out.members.back().value, "decay", json::make(p.decay));
      if (!p.trainable) json::add(out.members.back().value, "trainable", json::make(false));
    }
    return out;
  }

  // Ops become assignments; layers stay objects, because expressions cannot specify initializers.
  json::Value graph_entry(const json::Ref& at) const {
    const json::Value& entry = *at.value;
    if (entry.kind == json::Kind::string) return json::make(expression::text(graph_, expression::parse(entry.string)));
    const std::string& op = find(entry, "op")->string;
    if (const Layer* layer = find_layer(op)) return layer_entry(at, *layer);
    const ir::AttrSchema& schema = find_function(op)->attributes;
    return json::make(fmt::format("{} = {}({}{})", find(entry, "name")->string, op, operands(entry),
                                  expression::attributes_text(graph_, schema, given(at, schema))));
  }

  AttrList given(const json::Ref& entry, const ir::AttrSchema& schema) const {
    json::ObjectReader object(file_.reader_, entry);
    return read_attrs(file_.reader_, object, schema, {}).value();
  }

  json::Value layer_entry(const json::Ref& at, const Layer& layer) const {
    const json::Value& entry = *at.value;
    json::Value out = make_object(
        {{"name", *find(entry, "name")}, {"op", json::make(layer.name)}, {"inputs", *find(entry, "inputs")}});
    if (const json::Value* share = find(entry, "share");
        share && share->kind == json::Kind::string && !share->string.empty()) {
      json::add(out, "share", *share);  // the other layer defines everything else
      return out;
    }
    const ir::Attrs attrs(layer.attributes, given(at, layer.attributes));
    for (const auto& [name, value] : attrs.list()) {
      const auto* word = std::get_if<std::string>(&value);
      if (!word || !word->empty()) json::add(out, name, json_of(value));
    }
    for (const LayerInit& init : layer.inits) {
      const json::Value* value = find(entry, init.name);
      const bool as_usual = !value || (value->kind == json::Kind::boolean && value->boolean);
      json::add(out, init.name, as_usual ? json_of(init.fallback) : normalized(*value));
    }
    const json::Value* trainable = find(entry, "trainable");
    if (trainable && trainable->kind == json::Kind::boolean && !trainable->boolean)
      json::add(out, "trainable", json::make(false));
    return out;
  }

  // An object if every output has a target; otherwise a list, in the model's order.
  json::Value outputs() const {
    const bool all = std::none_of(model_.outputs.begin(), model_.outputs.end(),
                                  [](const OutputSpec& output) { return output.target.empty(); });
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
    json::Value out = make_object();
    for (const Field& field : train_fields()) {
      if (field.name == "early_stopping" || field.name == "lr_plateau") continue;  // optional, added below
      if (field.name == "objectives" && train.objectives.empty()) continue;
      if ((field.name == "minimize" || field.name == "optimizer") && !train.objectives.empty()) continue;
      if (field.name == "max_memory" && train.max_memory == 0) continue;
      if (field.get == nullptr) {
        json::add(out, field.name, part_of_train(field.name));
      } else {
        add_plain(out, field);
      }
    }
    if (train.early_stopping) json::add(out, "early_stopping", plain_part(early_stopping_fields()));
    if (train.lr_plateau) json::add(out, "lr_plateau", plain_part(lr_plateau_fields()));
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

  json::Value part_of_train(std::string_view key) const {
    if (key == "minimize") return json::make(file_.minimize_->value->string);
    if (key == "optimizer") return optimizer(model_.train.optimizer);
    if (key == "objectives") return objectives();
    if (key == "batch")
      return file_.batch_ ? json::make(*file_.batch_) : json::make(model_.train.largest_batch ? "max" : "all");
    if (key == "max_memory") return json::make(static_cast<std::int64_t>(model_.train.max_memory));
    json::Value metrics = make_array();
    for (const MetricSpec& metric : model_.train.metrics) metrics.items.push_back(json::make(metric.name));
    return metrics;
  }

  json::Value objectives() const {
    json::Value out = make_object();
    for (const ModelFile::Objective& one : file_.objectives_) {
      json::add(out, one.name,
                make_object({{"minimize", *one.minimize->value},
                             {"parameters", *one.parameters->value},
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

  const ModelFile& file_;
  Model& model_;
  GraphBuilder::Impl& graph_;
};

json::Value canonical(const ModelFile& file, Model& model) {
  return Canonical(file, model).run();
}

std::string entry_text(const json::Value& entry) {
  if (entry.kind == json::Kind::string) return entry.string;
  std::string text = fmt::format("{} = {}({}", find(entry, "name")->string, find(entry, "op")->string, operands(entry));
  for (const json::Member& member : entry.members) {
    if (member.key == "name" || member.key == "op" || member.key == "inputs") continue;
    const bool is_word = member.value.kind == json::Kind::string;
    text += fmt::format(", {}={}", member.key, is_word ? member.value.string : json::line(member.value));
  }
  return text + ")";
}

}  // namespace graphrun
