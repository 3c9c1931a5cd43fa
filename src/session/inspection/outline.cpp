// outline.cpp: graph_outline() and step_outline(): graphs as values and their operands.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/step/step_graph.h"
#include "graph/ir/dot.h"
#include "graphrun/op.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

using Formulas = std::map<std::string, std::string, std::less<>>;

// Formulas by name, from the canonical form, in which a graph entry is an assignment or a layer. Includes only
// attributes that differ from their defaults.
Formulas formulas_of(const json::Document& canonical) {
  json::Reader reader(canonical);
  Model model = read_model_file(reader).model;
  reader.throw_if_failed();
  Formulas formulas;
  for (const json::Value& entry : canonical.root.find("graph")->value.items) {
    if (entry.kind != json::Kind::string) {
      formulas.emplace(entry.find("name")->value.string, call_text(entry, false));
      continue;
    }
    expression::Expression formula = expression::parse(entry.string);
    const std::string name = std::exchange(formula.name, {});
    if (name.empty()) continue;  // assigns a state
    formulas.emplace(name, expression::text(model.graph.impl(), formula, expression::Attributes::changed));
  }
  return formulas;
}

class Outlined {
 public:
  Outlined(const Model& model, const Formulas& formulas)
      : model_(model), impl_(model.graph.impl()), formulas_(formulas), seen_(impl_.graph.size(), 0) {
    for (const ObjectiveSpec& objective : objectives_of(model)) losses_.insert(objective.minimize.id);
  }

  std::vector<OutlineValue> run() {
    find_values();
    std::vector<Reading> readings;
    for (const ir::NodeId id : computed_) readings.push_back(read(id));
    std::map<ir::NodeId, std::size_t> readers;
    for (const Reading& reading : readings)
      for (const ir::NodeId parameter : reading.parameters) ++readers[parameter];
    for (const ir::NodeId id : impl_.inputs) add(id, is_target(id) ? Role::target : Role::input);
    for (const auto& [id, parameter] : impl_.parameters)
      if (readers[id] != 1) add(id, Role::parameter);
    for (std::size_t i = 0; i < computed_.size(); ++i) add_computed(computed_[i], readings[i]);
    return std::move(values_);
  }

 private:
  using Role = OutlineValue::Role;
  // Operands of a value, and the ops in between.
  struct Reading {
    std::vector<ir::NodeId> values, parameters;
    std::set<ir::NodeId> ops;
  };

  void find_values() {
    std::set<ir::NodeId> found = impl_.named;
    for (const OutputSpec& output : model_.outputs) found.insert(output.value.id);
    for (const MetricSpec& metric : model_.train.metrics)
      if (metric.value.valid()) found.insert(metric.value.id);
    for (const ir::NodeId loss : losses_) found.insert(loss);
    for (const ir::NodeId id : found)
      if (impl_.graph[id].op != Op::input && !impl_.parameters.contains(id) && !ir::is_number(impl_.graph[id]))
        computed_.push_back(id);
    is_value_.assign(impl_.graph.size(), false);
    is_parameter_.assign(impl_.graph.size(), false);
    for (const ir::NodeId id : computed_) is_value_[id] = true;
    for (const ir::NodeId id : impl_.inputs) is_value_[id] = true;
    for (const auto& [id, parameter] : impl_.parameters) is_parameter_[id] = true;
  }

  Reading read(ir::NodeId value) {
    ++stamp_;
    Reading reading;
    std::vector<ir::NodeId> open = {value};
    while (!open.empty()) {
      const ir::NodeId id = open.back();
      open.pop_back();
      reading.ops.insert(id);
      for (const ir::NodeId input : impl_.graph[id].inputs) {
        if (seen_[input] == stamp_) continue;
        seen_[input] = stamp_;
        if (is_parameter_[input])
          reading.parameters.push_back(input);
        else if (is_value_[input])
          reading.values.push_back(input);
        else if (impl_.graph[input].op != Op::input && impl_.graph[input].op != Op::constant)
          open.push_back(input);
      }
    }
    std::ranges::sort(reading.values);
    std::ranges::sort(reading.parameters);
    return reading;
  }

  OutlineValue& add(ir::NodeId id, Role role) {
    place_[id] = values_.size();
    values_.push_back({role, impl_.graph[id].name, impl_.graph[id].type, {}, {}, {}});
    return values_.back();
  }

  void add_computed(ir::NodeId id, const Reading& reading) {
    OutlineValue& value = add(id, role_of(id));
    if (const auto formula = formulas_.find(value.name); formula != formulas_.end())
      value.formula = formula->second;
    else
      value.formula = ops_text(reading);
    for (const ir::NodeId other : reading.values) value.from.push_back(place_.at(other));
    for (const ir::NodeId parameter : reading.parameters) {
      const auto place = place_.find(parameter);
      if (place != place_.end())
        value.from.push_back(place->second);
      else
        value.parameters.emplace_back(impl_.graph[parameter].name, impl_.graph[parameter].type.shape);
    }
    std::ranges::sort(value.from);
  }

  std::string ops_text(const Reading& reading) const {
    std::string text;
    for (const ir::NodeId id : reading.ops)
      text += (text.empty() ? "" : ", ") + std::string(name_of(impl_.graph[id].op));
    return text;
  }

  bool is_target(ir::NodeId id) const {
    return std::ranges::any_of(model_.outputs,
                               [&](const OutputSpec& output) { return output.target == impl_.graph[id].name; });
  }

  Role role_of(ir::NodeId id) const {
    if (losses_.contains(id)) return Role::loss;
    if (std::ranges::any_of(model_.outputs, [&](const OutputSpec& output) { return output.value.id == id; }))
      return Role::output;
    if (std::ranges::any_of(model_.train.metrics,
                            [&](const MetricSpec& metric) { return metric.value.valid() && metric.value.id == id; }))
      return Role::metric;
    return Role::value;
  }

  const Model& model_;
  const GraphBuilder::Impl& impl_;
  const Formulas& formulas_;
  std::set<ir::NodeId> losses_;
  std::vector<ir::NodeId> computed_;
  std::vector<bool> is_value_, is_parameter_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::map<ir::NodeId, std::size_t> place_;
  std::vector<OutlineValue> values_;
};

std::int64_t parameter_elements(const GraphBuilder::Impl& impl) {
  std::int64_t elements = 0;
  for (const auto& [id, parameter] : impl.parameters) elements += impl.graph[id].type.shape.elements();
  return elements;
}

OutlineValue::Role step_role(const ir::Node& node) {
  if (node.op == Op::parameter) return OutlineValue::Role::parameter;
  if (node.phase == ir::kShared || node.op == Op::input) return OutlineValue::Role::input;
  return node.op == Op::assign ? OutlineValue::Role::output : OutlineValue::Role::value;
}

}  // namespace

GraphOutline graph_outline(const Model& model) {
  GraphOutline outline;
  outline.name = model.name;
  outline.parameter_elements = parameter_elements(model.graph.impl());
  Formulas formulas;
  if (const std::string text = model.canonical ? model.canonical() : std::string(); !text.empty()) {
    const json::Document document = json::parse(model.file, text);
    if (const json::Member* description = document.root.find("description"))
      outline.description = description->value.string;
    formulas = formulas_of(document);
  }
  outline.values = Outlined(model, formulas).run();
  return outline;
}

GraphOutline step_outline(const Model& model) {
  const StepGraph step = build_step_graph(model);
  const ir::Graph& graph = step.graph;
  GraphOutline outline;
  outline.name = model.name;
  outline.description = "a step of training";
  outline.parameter_elements = parameter_elements(model.graph.impl());
  std::vector<bool> shown(graph.size(), false);
  for (ir::NodeId id = graph.size(); id-- > 0;) {
    shown[id] = (shown[id] || graph[id].phase == 0) && !ir::is_number(graph[id]);
    for (const ir::NodeId input : graph[id].inputs)
      if (shown[id]) shown[input] = true;
  }
  std::vector<std::size_t> place(graph.size());
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (!shown[id]) continue;
    const ir::Node& node = graph[id];
    place[id] = outline.values.size();
    OutlineValue value{step_role(node), node.name, node.type, {}, {}, {}};
    if (value.role != OutlineValue::Role::input && value.role != OutlineValue::Role::parameter)
      value.formula = std::string(name_of(node.op));
    for (const ir::NodeId input : node.inputs)
      if (shown[input]) value.from.push_back(place[input]);
    std::ranges::sort(value.from);
    value.from.erase(std::unique(value.from.begin(), value.from.end()), value.from.end());
    outline.values.push_back(std::move(value));
  }
  return outline;
}

}  // namespace graphrun
