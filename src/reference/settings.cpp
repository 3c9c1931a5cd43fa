// settings.cpp: model_settings(): lists the canonical model file as paths for --set.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/json_text.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/optimizers.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

constexpr std::size_t kLongest = 80;  // characters of a value: longer ones are data, which nobody types

std::vector<std::string> flag_words() {
  return {"true", "false"};
}

std::string value_text(const json::Value& value) {
  return value.kind == json::Kind::string ? value.string : json::line(value);
}

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

class SettingList {
 public:
  std::vector<Setting> run(const json::Value& model) {
    for (const std::string_view section : {"constants", "data", "parameters"}) {
      if (const json::Member* found = model.find(section)) add(std::string(section), found->value);
    }
    for (const json::Value& entry : model.find("graph")->value.items) {
      if (entry.kind == json::Kind::object)
        add_layer(entry);
      else
        add_formula(entry.string);
    }
    add_train(model.find("train")->value);
    return std::move(settings_);
  }

 private:
  void add(const std::string& path, const json::Value& value) {
    if (value.kind == json::Kind::object) {
      for (const json::Member& member : value.members) add(below(path, member.key), member.value);
      return;
    }
    std::string text = value_text(value);
    if (text.size() > kLongest) return;
    settings_.push_back(
        {path, std::move(text), value.kind == json::Kind::boolean ? flag_words() : std::vector<std::string>()});
  }

  // Operands are other entries of the graph. Defaults that the entry omits are still settings.
  void add_layer(const json::Value& entry) {
    const std::string path = below("graph", entry.find("name")->value.string);
    const Layer* layer = find_layer(entry.find("op")->value.string);
    for (const json::Member& member : entry.members) {
      if (member.key == "name" || member.key == "op" || member.key == "inputs") continue;
      if (layer == nullptr || ir::find_attr(layer->attributes, member.key) == nullptr)
        add(below(path, member.key), member.value);
    }
    if (layer == nullptr) return;
    for (const ir::AttrDef& def : layer->attributes) {
      const json::Member* given = entry.find(def.name);
      Setting setting{below(path, def.name),
                      given == nullptr ? "" : value_text(given->value),
                      {def.one_of.begin(), def.one_of.end()}};
      if (def.name == "activation") setting.choices = activation_names();
      settings_.push_back(std::move(setting));
    }
  }

  // Adds the attributes of layers in "h = dense(x, units=8)".
  void add_formula(const std::string& text) {
    for (const expression::Term& call : expression::parse(text).terms) {
      if (call.kind != expression::Term::Kind::call || find_layer(call.word) == nullptr) continue;
      for (const expression::Argument& argument : call.attributes)
        settings_.push_back({fmt::format("graph.{}.{}", expression::assigned_name(text), argument.key), "", {}});
    }
  }

  void add_train(const json::Value& train) {
    for (const Field& field : train_fields()) {
      const std::string path = below("train", field.name);
      const json::Member* given = train.find(field.name);
      if (field.name == "optimizer" && given != nullptr) {
        settings_.push_back({path, given->value.members.front().key, names_of(optimizers())});
        add(path, given->value);
      } else if (given != nullptr && field.one_of.empty()) {
        add(path, given->value);
      } else {
        settings_.push_back(
            {path, given == nullptr ? "" : value_text(given->value), {field.one_of.begin(), field.one_of.end()}});
      }
    }
  }

  static std::vector<std::string> activation_names() {
    std::vector<std::string> names;
    for (const Function& function : functions()) {
      if (is_activation(function)) names.emplace_back(function.name);
    }
    return names;
  }

  std::vector<Setting> settings_;
};

}  // namespace

std::vector<Setting> model_settings(const std::string& path, const LoadOptions& options) {
  return SettingList().run(json::parse(path, canonical_model(path, options)).root);
}

std::string setting_hint(const std::string& path, std::string name, const LoadOptions& options) {
  static const std::map<std::string, std::string> elsewhere = {
      {"learning_rate", "lr"},  {"batch_size", "batch"},  {"num_epochs", "epochs"},  {"max_epochs", "epochs"},
      {"random_state", "seed"}, {"hidden_size", "units"}, {"grad_clip", "clip_norm"}};
  std::replace(name.begin(), name.end(), '-', '_');
  if (const auto other = elsewhere.find(name); other != elsewhere.end()) name = other->second;
  LoadOptions plain = options;
  plain.overrides.clear();
  std::vector<std::string> paths;
  std::string optimizer;
  try {
    for (const Setting& setting : model_settings(path, plain)) {
      if (setting.path.ends_with("." + name)) paths.push_back(setting.path);
      if (setting.path == "train.optimizer") optimizer = setting.value;
    }
  } catch (const Error&) {  // the file has errors of its own
    return "";
  }
  const auto has_name = [&](const OptimizerDef& def) { return ir::find_attr(def.attributes, name) != nullptr; };
  for (const OptimizerDef& def : optimizers())
    if (paths.empty() && def.name == optimizer && has_name(def))
      paths.push_back(fmt::format("train.optimizer.{}.{}", def.name, name));
  for (const OptimizerDef& def : optimizers())
    if (paths.empty() && has_name(def)) paths.push_back(fmt::format("train.optimizer.{}.{}", def.name, name));
  if (paths.size() > 3) paths.resize(3);
  return paths.empty() ? "" : fmt::format("did you mean --set {}=VALUE?", fmt::join(paths, "=VALUE or --set "));
}

}  // namespace graphrun
