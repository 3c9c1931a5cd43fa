#include "cli/stored_runs/hyperparameter_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json_writer.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kState = "train:";  // prefix of the session's state names

bool can_be_runtime(const OptimizerSpec& spec, std::string_view name) {
  if (name == "lr") return !spec.lr;
  if (name == "momentum") return spec.name == "momentum" || spec.name == "nesterov";
  const auto given = std::find_if(spec.attributes.begin(), spec.attributes.end(),
                                  [&](const auto& attribute) { return attribute.first == name; });
  if (given != spec.attributes.end()) return given->second != 0;
  return name == "weight_decay" && spec.name == "adamw";
}

// Calls `see` with the optimizer of the model, or of each of its objectives.
template <class See>
void each_optimizer(auto& train, See see) {
  if (train.objectives.empty()) return see(train.optimizer, std::string());
  for (auto& objective : train.objectives) see(objective.optimizer, objective.name + ".");
}

ValueId state_of_number(const Session& session, std::string_view name) {
  return session.find(fmt::format("{}{}", kState, name));
}

double value_of(Session& session, std::string_view name) {
  float value = 0;
  session.read(state_of_number(session, name), std::as_writable_bytes(std::span(&value, 1)));
  const std::string text = fmt::format("{}", value);
  double shortest = 0;  // 0.1 for the f32 nearest to 0.1
  std::from_chars(text.data(), text.data() + text.size(), shortest);
  return shortest;
}

}  // namespace

void make_hyperparameters_runtime(Model& model) {
  each_optimizer(model.train, [](OptimizerSpec& spec, const std::string&) {
    for (const char* name : {"lr", "momentum", "l2", "weight_decay"}) {
      const bool is_state = std::find(spec.runtime.begin(), spec.runtime.end(), name) != spec.runtime.end();
      if (!is_state && can_be_runtime(spec, name)) spec.runtime.emplace_back(name);
    }
  });
}

std::vector<std::pair<std::string, double>> runtime_hyperparameters(Session& session) {
  std::vector<std::pair<std::string, double>> numbers;
  each_optimizer(session.model().train, [&](const OptimizerSpec& spec, const std::string& objective) {
    for (const std::string& attribute : spec.runtime) {
      std::string name = objective + attribute;
      const double value = value_of(session, name);
      numbers.emplace_back(std::move(name), value);
    }
  });
  return numbers;
}

HyperparameterChange change_hyperparameter(Session& session, std::uint64_t step, std::string_view name, double value) {
  std::vector<std::string> names;
  for (auto& [known, present] : runtime_hyperparameters(session)) names.push_back(std::move(known));
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(ErrorKind::input, "train.number",
                fmt::format("'{}' is not a runtime hyperparameter of this model", name),
                names.empty() ? std::string("its learning rate has a schedule")
                              : fmt::format("runtime hyperparameters: {}", fmt::join(names, ", ")));
  const auto rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || rounded < 0)
    throw Error(ErrorKind::input, "train.number", fmt::format("{} must be finite and >= 0, got {}", name, value));
  HyperparameterChange change{step, std::string(name), value_of(session, name), value};
  session.write(state_of_number(session, name), std::as_bytes(std::span(&rounded, 1)));
  return change;
}

std::string changes_json(std::span<const HyperparameterChange> changes) {
  JsonWriter json;
  json.begin_array();
  for (const HyperparameterChange& change : changes) {
    json.begin_object().member("step", change.step).member("number", change.name);
    json.member("from", change.from).member("to", change.to).end_object();
  }
  return json.end_array().text();
}

}  // namespace graphrun::cli
