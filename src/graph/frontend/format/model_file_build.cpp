// model_file_build.cpp: builds the graph from the sections of a model file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/expressions/operand_notes.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/library/callables.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/metrics.h"
#include "graph/frontend/model_check.h"
#include "graph/ir/needed.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using expression::ExpressionError;
using expression::Scope;
using ir::NodeId;
using NodeIds = std::vector<NodeId>;
using json::Kind;
using json::Member;
using json::ObjectReader;
using json::Ref;

ir::SourceRef source(const Ref& at) {
  return {at.pointer, at.value->line, at.value->column};
}

// Name that a graph entry defines; "" if the entry is too broken.
std::string entry_name(const Ref& entry) {
  if (entry.value->kind == Kind::string) return expression::assigned_name(entry.value->string);
  const Member* name = entry.value->find("name");
  for (const Member& member : entry.value->members) {  // a misspelled "name" is reported; uses of its value are valid
    if (!name && !nearest_name(member.key, {"name"}).empty()) name = &member;
  }
  return name && name->value.kind == Kind::string ? name->value.string : std::string();
}

}  // namespace

class ModelBuild {
 public:
  explicit ModelBuild(const ModelFile& file)
      : file_(file), reader_(file.reader_), model_(GraphBuilder()), graph_(model_.graph.impl()), scope_{graph_} {
    scope_.layers = true;
    if (file.batch_) graph_.set_batch(*file.batch_);
  }

  Model run() {
    declare();
    for (const Ref& entry : file_.graph_) {
      if (const std::string name = entry_name(entry); !name.empty()) {
        scope_.later.try_emplace(name, fmt::format("{} (line {})", entry.pointer, entry.value->line));
      }
    }
    for (const Ref& entry : file_.graph_) add_entry(entry);
    graph_.builder.at({});
    model_.name = file_.name_;
    model_.train = file_.train_;
    if (!file_.graph_read_) return std::move(model_);  // its names are unknown
    outputs_broken_ = !file_.outputs_;
    if (file_.outputs_) read_outputs(*file_.outputs_);
    if (file_.minimize_) read_minimize(*file_.minimize_);
    for (const ModelFile::Objective& objective : file_.objectives_) read_objective(objective);
    if (file_.metrics_) read_metrics(*file_.metrics_);
    if (model_.train.early_stopping) check_monitor(*file_.early_stopping_, *model_.train.early_stopping);
    if (model_.train.lr_plateau) check_monitor(*file_.lr_plateau_, *model_.train.lr_plateau);
    return std::move(model_);
  }

 private:
  // Runs f. Reports an Error at `at` and returns false.
  template <class F>
  bool attempt(const Ref& at, F&& f) {
    try {
      f();
      return true;
    } catch (const ExpressionError& error) {
      reader_.report_inside(at, error.offset, error);
    } catch (const Error& error) {
      reader_.report(at, error);
    }
    return false;
  }

  void declare() {
    scope_.broken = file_.broken_;
    for (const auto& [name, value] : file_.constants_) graph_.constants.emplace(name, value);
    const auto add = [&](const auto& declared, auto&& f) {
      graph_.builder.at(source(declared.place));
      if (!attempt(declared.place, f)) scope_.broken.insert(declared.name);
    };
    for (const auto& one : file_.runtime_constants_) add(one, [&] { graph_.runtime_scalar(one.name, one.value); });
    for (const ModelFile::Input& input : file_.inputs_) {
      std::vector<std::int64_t> extents = {kBatch};
      extents.insert(extents.end(), input.sample.dims().begin(), input.sample.dims().end());
      add(input, [&] { graph_.input(input.name, extents, input.dtype); });
    }
    for (const auto& p : file_.parameters_)
      add(p, [&] { graph_.parameter(p.name, p.shape, p.init, p.decay, p.trainable); });
    for (const auto& s : file_.states_) add(s, [&] { graph_.state(s.name, s.shape, s.init); });
  }

  void add_entry(const Ref& entry) {
    const std::string name = entry_name(entry);
    scope_.later.erase(name);
    scope_.suggest = !reader_.full();
    graph_.builder.at(source(entry));
    if (entry.value->kind == Kind::string) {
      add_assignment(entry);
    } else if (entry.value->kind == Kind::object) {
      add_object(entry);
    } else {
      reader_.report(entry, "json.type",
                     fmt::format("an entry of the graph is a string or an object, got {}", name_of(entry.value->kind)),
                     "for instance \"h = tanh(x @ W)\" or {\"name\": \"h\", \"op\": \"tanh\", \"inputs\": [\"x\"]}");
    }
    const bool gives_none = entry.value->kind == Kind::string && expression::assigns_state(entry.value->string);
    if (name.empty() && !gives_none) scope_.nameless = true;
    if (!name.empty() && !graph_.names.contains(name)) scope_.broken.insert(name);
  }

  void add_assignment(const Ref& entry) {
    const std::string& text = entry.value->string;
    attempt(entry, [&] {
      const expression::Expression parsed = expression::parse(text);
      if (parsed.name.empty() && expression::assigns_state(text)) return assign_state(entry, parsed);
      if (parsed.name.empty()) {
        throw ExpressionError(0, "expression.syntax", "an entry of the graph gives its value a name",
                              "write name = expression");
      }
      const std::size_t before = reader_.errors();
      try {
        graph_.check_new_name(parsed.name);
      } catch (const Error& error) {
        reader_.report_inside(entry, text.find(parsed.name), error);
      }
      if (!passes(entry, parsed)) return;
      if (reader_.errors() != before && find_layer(parsed.terms.back().word)) return;  // a layer defines it again
      const NodeId id = build(graph_, parsed);
      if (reader_.errors() == before) graph_.define(parsed.name, id);
    });
  }

  // Returns false if the expression cannot be built, after an error was reported.
  bool passes(const Ref& entry, const expression::Expression& parsed) {
    const expression::Findings findings = check(scope_, parsed);
    for (const ExpressionError& error : findings.errors) reader_.report_inside(entry, error.offset, error);
    reader_.report_more(findings.more);
    return !findings.broken && findings.errors.empty();
  }

  void assign_state(const Ref& entry, const expression::Expression& parsed) {
    const expression::StateAssignment assigned = expression::state_assignment(graph_, parsed);
    if (!passes(entry, assigned.value) || excused(scope_, assigned.state)) return;
    try {
      graph_.assign(resolve(scope_, assigned.state), build(graph_, assigned.value), assigned.after);
    } catch (const ExpressionError&) {
      throw;
    } catch (const Error& error) {
      throw ExpressionError(assigned.at, error);
    }
  }

  void add_object(const Ref& entry) {
    const std::size_t before = reader_.errors();
    ObjectReader object(reader_, entry);
    object.require("name", "other entries and \"outputs\" refer to it");
    const std::optional<std::string> name = object.string("name");
    if (name) attempt(*object.get("name"), [&] { graph_.check_new_name(*name); });
    const std::optional<NodeIds> operands = read_operands(object);
    const std::optional<Ref> op = object.require("op", "an op or a layer, for instance \"op\": \"dense\"");
    const std::optional<std::string> op_name = op ? reader_.string(*op) : std::nullopt;
    if (!op_name) return;
    const Layer* layer = find_layer(*op_name);
    const Function* function = find_function(*op_name);
    if (!layer && !function) {
      reader_.report(*op, "function.unknown", fmt::format("there is no op or layer named {}", *op_name),
                     reader_.full() ? "" : did_you_mean(*op_name, callable_names()));
      return;
    }
    LayerOptions options;
    if (layer) options = read_layer_options(object, *layer);
    ir::AttrSchema schema = layer ? layer->attributes : function->attributes;
    if (!options.share.empty()) {
      for (ir::AttrDef& def : schema) def.required = false;  // the other layer has them
    }
    const std::optional<AttrList> attrs = read_attrs(reader_, object, schema, layer ? layer->name : function->name);
    object.finish();
    if (!attrs || !operands || reader_.errors() != before) return;
    attempt(entry, [&] {
      try {
        if (layer) {
          options.attributes = *attrs;
          add_layer(graph_, *layer, *name, *operands, std::move(options));
        } else {
          graph_.define(*name, call(graph_.builder, *function, *operands, *attrs));
        }
      } catch (const Error& error) {
        std::vector<OperandNote> notes;
        for (const NodeId operand : *operands) notes.push_back({operand, {}});
        std::vector<std::string> given;
        for (const auto& attribute : *attrs) given.push_back(attribute.first);
        if (layer) given.emplace_back("share");
        const std::optional<Ref> at = object.get(attribute_at_fault(error, given));
        reader_.report(at ? *at : entry, with_notes(graph_, notes, error));
      }
    });
  }

  LayerOptions read_layer_options(ObjectReader& object, const Layer& layer) {
    LayerOptions options;
    LayerInits& inits = options.inits;
    for (const LayerInit& init : layer.inits) {
      const std::optional<Ref> at = object.get(init.name);
      if (!at) continue;
      if (init.optional && at->value->kind == Kind::boolean) {
        inits[std::string(init.name)] = at->value->boolean ? std::optional(init.fallback) : std::nullopt;
      } else if (std::optional<Init> given = read_init(reader_, *at, file_.read_array_)) {
        inits[std::string(init.name)] = std::move(given);
      }
    }
    const AttrList common = read_attrs(reader_, object, common_layer_attributes(), layer.name).value_or(AttrList{});
    for (const auto& [name, value] : common) {
      if (name == "share") options.share = std::get<std::string>(value);
      if (name == "trainable") options.trainable = std::get<bool>(value);
    }
    return options;
  }

  // Returns nullopt if an operand is unknown or broken.
  std::optional<NodeIds> read_operands(ObjectReader& object) {
    const std::optional<Ref> list =
        object.require("inputs", "the names of its operands, for instance \"inputs\": [\"x\"]");
    if (!list) return std::nullopt;
    if (!is_array(reader_, *list, "inputs must be an array of names", "for instance [\"x\"]")) return std::nullopt;
    NodeIds operands;
    bool complete = true;
    for (std::size_t i = 0; i < list->value->items.size(); ++i) {
      const Ref item = list->item(i);
      const std::optional<NodeId> id = read_value_name(item);
      if (id) operands.push_back(*id);
      complete = complete && id;
    }
    return complete ? std::optional(operands) : std::nullopt;
  }

  std::optional<NodeId> read_value_name(const Ref& at) {
    std::optional<NodeId> id;
    const std::optional<std::string> name = reader_.string(at);
    if (!name) return id;
    if (const auto constant = graph_.constants.find(*name); constant != graph_.constants.end()) {
      return graph_.builder.scalar(constant->second, DType::f32);
    }
    if (!excused(scope_, *name)) attempt(at, [&] { id = resolve(scope_, *name); });
    return id;
  }

  bool scalar(const Ref& at, NodeId id, std::string_view role) {
    const TensorType& type = graph_.builder.type(id);
    const bool is_scalar = type.shape.rank() == 0;
    if (is_scalar && is_float(type.dtype)) return true;
    const std::string& name = at.value->string;
    reader_.report(
        at, is_scalar ? "dtype.float" : "shape.scalar",
        fmt::format("{} must be {}, {} is {}", role, is_scalar ? "f32" : "a scalar", name, to_string(type)),
        is_scalar ? fmt::format("cast({}, dtype=f32) converts", name) : fmt::format("mean({}) is one", name));
    return false;
  }

  void read_minimize(const Ref& at) {
    const std::optional<NodeId> id = read_value_name(at);
    if (!id || !scalar(at, *id, "the minimized value")) return;
    const NodeId roots[] = {*id};
    const std::vector<bool> reached = ir::needed_by(graph_.graph, roots);
    const std::vector<NodeId> trained = graph_.trainable();
    if (std::none_of(trained.begin(), trained.end(), [&](NodeId p) { return reached[p]; })) {
      const bool any =
          std::any_of(graph_.parameters.begin(), graph_.parameters.end(), [&](NodeId p) { return reached[p]; });
      reader_.report(at, "model.minimize",
                     fmt::format("{} depends on no parameter{}: there is nothing to train", at.value->string,
                                 any ? " that is trainable" : ""));
      return;
    }
    if (check_gradient(at, *id, trained)) model_.train.minimize = graph_.value(*id);
  }

  void read_objective(const ModelFile::Objective& objective) {
    if (!reported_.insert(objective.name).second) {
      reader_.report(objective.place, "model.objectives",
                     fmt::format("the sum of all objectives is reported as {}", objective.name),
                     "give it another name");
      return;
    }
    ObjectiveSpec spec{objective.name, {}, {}, objective.optimizer, objective.every};
    const std::optional<std::vector<NodeId>> parameters =
        objective.parameters ? read_objective_parameters(objective) : std::nullopt;
    const std::optional<NodeId> loss = objective.minimize ? read_value_name(*objective.minimize) : std::nullopt;
    if (!loss || !scalar(*objective.minimize, *loss, "the minimized value") || !parameters) return;
    const std::vector<bool> reached = ir::needed_by(graph_.graph, {&*loss, 1}),
                            differentiable = reached_by_gradients(*loss);
    for (const NodeId id : *parameters) {
      spec.parameters.push_back(graph_.value(id));
      if (reached[id] && differentiable[id]) continue;
      reader_.report(*objective.minimize, "model.objectives",
                     fmt::format("{} does not depend on {}, a parameter of {}{}", objective.minimize->value->string,
                                 graph_.graph[id].name, objective.name, reached[id] ? ": no gradient reaches it" : ""),
                     reached[id] ? "stop_gradient, or an op without a gradient, is between them" : "");
      return;
    }
    if (!check_gradient(*objective.minimize, *loss, *parameters)) return;
    spec.minimize = graph_.value(*loss);
    model_.train.objectives.push_back(std::move(spec));
  }

  // Marks the nodes that gradients of the loss reach through differentiable ops; indexed by node.
  std::vector<bool> reached_by_gradients(NodeId loss) const {
    std::vector<bool> reached(graph_.graph.size(), false);
    reached[loss] = true;
    for (NodeId id = loss + 1; id-- > 0;) {
      const ir::Node& node = graph_.graph[id];
      if (!reached[id] || node.op == family_op::stop_gradient || node.def->grad == nullptr) continue;
      for (const NodeId input : node.inputs)
        reached[input] = reached[input] || is_float(graph_.builder.type(input).dtype);
    }
    return reached;
  }

  // Returns nullopt if a parameter was reported or depends on a reported error.
  std::optional<std::vector<NodeId>> read_objective_parameters(const ModelFile::Objective& objective) {
    const Ref& list = *objective.parameters;
    if (!is_array(reader_, list, "parameters are an array of names", R"(for instance ["W", "h2"])")) return {};
    if (list.value->items.empty()) {
      reader_.report(list, "model.objectives",
                     fmt::format("{} has no parameters: there is nothing to train", objective.name));
      return {};
    }
    std::vector<NodeId> found;
    bool complete = true;
    for (std::size_t i = 0; i < list.value->items.size(); ++i) {
      const Ref item = list.item(i);
      const std::optional<std::string> name = reader_.string(item);
      const std::vector<NodeId> named = name ? parameters_named(item, *name) : std::vector<NodeId>();
      complete = complete && !named.empty();
      for (const NodeId id : named) {
        if (take_parameter(item, id, objective.name)) continue;
        complete = false;
        break;  // one report per layer is enough
      }
      found.insert(found.end(), named.begin(), named.end());
    }
    return complete ? std::optional(found) : std::nullopt;
  }

  // The parameter with that name, or all whose names start with "name.".
  std::vector<NodeId> parameters_named(const Ref& at, const std::string& name) {
    std::vector<NodeId> found, frozen;
    for (const NodeId id : graph_.parameters) {
      const std::string& own = graph_.graph[id].name;
      const bool is_meant = own == name || own.starts_with(name + ".");
      if (is_meant) (graph_.frozen.contains(id) ? frozen : found).push_back(id);
    }
    if (!found.empty() || excused(scope_, name)) return found;
    if (!frozen.empty()) {
      const bool is_state = graph_.states.contains(frozen.front());
      reader_.report(at, "model.objectives",
                     fmt::format("{} is {}", name, is_state ? "a state: assignments change it" : "not trainable"));
      return found;
    }
    std::set<std::string> all;
    for (const NodeId id : graph_.trainable()) {
      const std::string& own = graph_.graph[id].name;
      all.insert(own);
      for (std::size_t dot = own.find('.'); dot != std::string::npos; dot = own.find('.', dot + 1))
        all.insert(own.substr(0, dot));
    }
    const std::vector<std::string> names(all.begin(), all.end());
    const bool is_value = graph_.names.contains(name);
    const std::string near = did_you_mean(name, names);
    reader_.report(at, "model.objectives",
                   is_value ? fmt::format("{} is neither a parameter nor a layer with parameters", name)
                            : fmt::format("there is no parameter named {}", name),
                   near.empty() && !names.empty() && names.size() <= 16
                       ? fmt::format("there are: {}", fmt::join(names, ", "))
                       : near);
    return found;
  }

  // Returns false if it reported an error.
  bool take_parameter(const Ref& at, NodeId id, const std::string& objective) {
    const auto [entry, fresh] = updated_by_.emplace(id, objective);
    if (fresh) return true;
    reader_.report(at, "model.objectives",
                   entry->second == objective
                       ? fmt::format("{} is listed twice", graph_.graph[id].name)
                       : fmt::format("{} is updated by {} already", graph_.graph[id].name, entry->second),
                   "a parameter belongs to one objective: minimize a sum of losses to update it by both");
    return false;
  }

  // The reverse sweep follows float values back from the loss; it must reach a parameter.
  bool check_gradient(const Ref& at, NodeId loss, const std::vector<NodeId>& parameters) {
    const std::vector<bool> trained = ir::depending_on(graph_.graph, parameters);
    std::vector<bool> swept(graph_.graph.size(), false);
    swept[loss] = true;
    NodeId last = loss;  // last node on a path to a parameter
    bool stopped = false;
    for (NodeId id = loss + 1; id-- > 0;) {
      const ir::Node& node = graph_.graph[id];
      if (!swept[id]) continue;
      if (node.op == Op::parameter) return true;
      if (node.op == family_op::stop_gradient) {
        stopped = true;
        continue;
      }
      last = id;
      bool on = false;
      for (const NodeId input : node.inputs) {
        swept[input] = trained[input] && is_float(graph_.builder.type(input).dtype);
        on = on || swept[input];
      }
      if (on && node.def->grad == nullptr) return report_no_gradient(at, node);
    }
    if (stopped) {
      reader_.report(at, "gradient.none",
                     fmt::format("{} depends on the parameters through stop_gradient only: there is nothing to train",
                                 at.value->string));
      return false;
    }
    for (const NodeId input : graph_.graph[last].inputs) {
      if (trained[input]) return report_no_gradient(at, graph_.graph[input]);
    }
    return report_no_gradient(at, graph_.graph[last]);
  }

  bool report_no_gradient(const Ref& at, const ir::Node& node) {
    reader_.report(at, "gradient.none",
                   fmt::format("{} depends on the parameters through {}, which has no gradient: {}", at.value->string,
                               name_of(node.op),
                               node.def->no_gradient.empty() ? "its result is not a float" : node.def->no_gradient),
                   node.source.line > 0 ? fmt::format("it is at {} (line {}); minimize a differentiable loss",
                                                      node.source.pointer, node.source.line)
                                        : "minimize a differentiable loss");
    return false;
  }

  void read_metrics(const Ref& at) {
    if (!is_array(reader_, at, "metrics are an array of names", "for instance [\"mse\"]")) return;
    for (std::size_t i = 0; i < at.value->items.size(); ++i) read_metric(at.item(i));
  }

  void read_metric(const Ref& at) {
    const std::optional<std::string> name = reader_.string(at);
    if (!name || (!find_metric(*name) && excused(scope_, *name))) return;
    if (!listed_metrics_.insert(*name).second) {
      reader_.report(at, "model.metric", fmt::format("{} is listed twice", *name));
      return;
    }
    const MetricDef* built_in = find_metric(*name);
    if (const auto value = graph_.names.find(*name); value != graph_.names.end()) {
      if (built_in) {
        reader_.report(at, "model.metric", fmt::format("{} is the name of a built-in metric", *name),
                       "give the value of the graph another name, or remove it to have the built-in metric");
      } else if (scalar(at, value->second, "a metric")) {
        add_metric(at, {*name, graph_.value(value->second)});
      }
      return;
    }
    if (!built_in) {
      report_unknown_metric(at, *name);
      return;
    }
    if (check_answers(at, *built_in)) add_metric(at, {*name, {}});
  }

  // Names in reports must be unique; "loss" is taken.
  void add_metric(const Ref& at, MetricSpec metric) {
    const std::vector<std::string> names = reported_names(model_, metric);
    for (const std::string& name : names) {
      if (reported_.count(name) == 0) continue;
      if (name == "loss") {
        reader_.report(at, "model.metric", "the minimized value is reported as the loss already",
                       metric.value == model_.train.minimize ? "leave it out" : "give the value another name");
      } else {
        reader_.report(at, "model.metric", fmt::format("another metric is reported as {} already", name),
                       "give the value another name");
      }
      return;
    }
    reported_.insert(names.begin(), names.end());
    model_.train.metrics.push_back(std::move(metric));
  }

  void report_unknown_metric(const Ref& at, const std::string& name) {
    std::vector<std::string> candidates = names_of(metrics());
    const std::string built_in = fmt::format("built-in: {}", fmt::join(candidates, ", "));
    if (!reader_.full()) {
      for (const auto& entry : graph_.names) candidates.push_back(entry.first);
    }
    const std::string hint = did_you_mean(name, candidates);
    reader_.report(at, "model.metric", fmt::format("{} is neither a value of the graph nor a built-in metric", name),
                   hint.empty() ? built_in : hint);
  }

  void check_monitor(const Ref& part, const Monitor& monitor) {
    const std::string built_in = monitor.monitor.substr(0, monitor.monitor.find('.'));
    if (const Member* member = part.value->find("monitor"); member && find_metric(built_in) &&
                                                            !listed_metrics_.contains(built_in) &&
                                                            !reported_.contains(monitor.monitor)) {
      const std::size_t before = reader_.errors();
      listed_metrics_.insert(built_in);  // counts as listed
      if (check_answers(part.member(*member), *find_metric(built_in))) add_metric(part.member(*member), {built_in, {}});
      if (reader_.errors() != before) return;
    }
    const std::optional<Diagnostic> problem = monitor_problem(model_, monitor);
    if (!problem) return;
    const std::string_view key = problem->code == "train.monitor_mode" ? "mode" : "monitor";
    const Member* member = part.value->find(key);
    reader_.report(member == nullptr ? part : part.member(*member), problem->code, problem->message, problem->hint);
  }

  // Built-in metrics compare each output with its target element by element, so their types must match.
  bool check_answers(const Ref& at, const MetricDef& metric) {
    if (outputs_broken_) return false;
    const std::vector<const OutputSpec*> outputs = measured(model_, metric);
    for (const OutputSpec* output : outputs) {
      const TensorType& given = graph_.builder.type(output->value.id);
      const TensorType& wanted = graph_.builder.type(graph_.names.at(output->target));
      if (given == wanted || (metric.of_classes && answers_classes(given, wanted))) continue;
      const bool classes = wanted.dtype == DType::i32;
      reader_.report(at, "shape.mismatch",
                     fmt::format("{} compares {} {} with its target {} {}: they must have the same type", metric.name,
                                 output->name, to_string(given), output->target, to_string(wanted)),
                     classes ? "accuracy compares logits (batch, classes) with i32 classes (batch)" : "");
      return false;
    }
    if (!outputs.empty()) return true;
    const std::string_view what = !metric.function.empty() ? ""
                                  : metric.of_classes      ? " of classes: words, or a cross-entropy target"
                                                           : " of numbers";
    reader_.report(at, "model.metric", fmt::format("{} needs an output with a target{}", metric.name, what),
                   "for instance \"outputs\": {\"prediction\": \"y\"}");
    return false;
  }

  // Class scores of shape (batch, classes) with target classes of type i32(batch).
  static bool answers_classes(const TensorType& scores, const TensorType& classes) {
    const int last = scores.shape.rank() - 1;
    if (classes.dtype != DType::i32 || last < 1 || classes.shape.rank() != last) return false;
    for (int axis = 0; axis < last; ++axis) {
      if (scores.shape[axis] != classes.shape[axis]) return false;
    }
    return is_float(scores.dtype) && scores.rows == classes.rows;
  }

  void read_outputs(const Ref& at) {
    const std::size_t before = reader_.errors();
    std::vector<std::pair<Ref, std::string>> named;  // object form only: place and name of the target
    if (at.value->kind == Kind::object) {
      for (const Member& member : at.value->members) {
        const Ref target = at.member(member);
        const std::optional<std::string> target_name = reader_.string(target);
        add_output(target, member.key, &member, at);
        named.emplace_back(target, target_name.value_or(""));
      }
    } else if (at.value->kind == Kind::array) {
      for (std::size_t i = 0; i < at.value->items.size(); ++i) {
        const Ref item = at.item(i);
        if (const std::optional<std::string> name = reader_.string(item)) add_output(item, *name, nullptr, at);
      }
    } else {
      reader_.report(at, "json.type", fmt::format("outputs are an object or an array, got {}", name_of(at.value->kind)),
                     "for instance {\"prediction\": \"y\"} or [\"prediction\"]");
    }
    if (reader_.errors() == before && at.value->items.empty() && at.value->members.empty()) {
      reader_.report(at, "model.outputs", "a model needs an output", "for instance {\"prediction\": \"y\"}");
    }
    if (reader_.errors() != before) outputs_broken_ = true;
    if (outputs_broken_) return;
    if (at.value->kind == Kind::object) {
      answer_named(named);
    } else {
      answer_in_order();
    }
  }

  void add_output(const Ref& at, const std::string& name, const Member* key, const Ref& object) {
    if (excused(scope_, name)) {
      outputs_broken_ = true;
      return;
    }
    if (!listed_outputs_.insert(name).second) {
      reader_.report(at, "model.outputs", fmt::format("{} is listed twice", name));
      return;
    }
    try {
      model_.outputs.push_back({graph_.value(resolve(scope_, name)), name, {}});
    } catch (const Error& error) {
      const Diagnostic& d = error.diagnostics().front();
      if (key) {
        reader_.report_key(object, *key, d.code, d.message, d.hint);
      } else {
        reader_.report(at, error);
      }
    }
  }

  void answer_named(const std::vector<std::pair<Ref, std::string>>& named) {
    const std::vector<std::string> targets = target_names(model_);
    const std::set<std::string, std::less<>> known(targets.begin(), targets.end());
    for (std::size_t i = 0; i < named.size(); ++i) {
      const Ref& place = named[i].first;
      const std::string& target = named[i].second;
      if (known.contains(target)) {
        model_.outputs[i].target = target;
        if (lacks_columns(model_.outputs[i])) report_columns(place, model_.outputs[i]);
        continue;
      }
      if (scope_.broken.contains(target)) {
        outputs_broken_ = true;
        continue;
      }
      const auto is_named = [&](const ModelFile::Input& input) { return input.name == target; };
      const bool is_input = !reader_.full() && std::any_of(file_.inputs_.begin(), file_.inputs_.end(), is_named);
      outputs_broken_ = true;
      reader_.report(place, "model.target",
                     is_input ? fmt::format("{} cannot be a target: an output depends on it", target)
                              : fmt::format("'{}' is not an input, so it cannot be a target", target),
                     reader_.full() ? std::string() : target_hint(target, targets));
    }
  }

  // Broadcasting in a loss would compare each target column with several output columns.
  bool lacks_columns(const OutputSpec& output) const {
    const TensorType& given = graph_.builder.type(output.value.id);
    const TensorType& wanted = graph_.builder.type(graph_.names.at(output.target));
    return given.dtype == wanted.dtype && given.rows == wanted.rows && wanted.rows > 0 &&
           wanted.shape.with_batch(1).elements() < given.shape.with_batch(1).elements();
  }

  void report_columns(const Ref& at, const OutputSpec& output) {
    outputs_broken_ = true;
    const auto type = [&](NodeId id) { return to_string(graph_.builder.type(id)); };
    reader_.report(at, "shape.mismatch",
                   fmt::format("the target {} {} has fewer columns than its output {} {}", output.target,
                               type(graph_.names.at(output.target)), output.name, type(output.value.id)),
                   fmt::format("an output without a target goes in a list: \"outputs\": [\"{}\"]", output.name));
  }

  static std::string target_hint(const std::string& name, const std::vector<std::string>& targets) {
    if (targets.empty()) return "a target is an input that no output depends on; a list of outputs needs none";
    const std::string hint = did_you_mean(name, targets);
    return hint.empty() ? fmt::format("targets: {}", fmt::join(targets, ", ")) : hint;
  }

  void answer_in_order() {
    const std::vector<std::string> targets = target_names(model_);
    for (std::size_t i = 0; i < model_.outputs.size() && i < targets.size(); ++i) {
      model_.outputs[i].target = targets[i];
      if (lacks_columns(model_.outputs[i])) model_.outputs[i].target.clear();
    }
  }

  const ModelFile& file_;
  json::Reader& reader_;
  Model model_;
  std::set<std::string> reported_ = {"loss"};  // names in the reports of a run
  std::map<NodeId, std::string> updated_by_;   // objective that lists the parameter
  GraphBuilder::Impl& graph_;
  Scope scope_;
  bool outputs_broken_ = false;
  std::set<std::string, std::less<>> listed_outputs_, listed_metrics_;
};

Model ModelFile::build() const {
  return ModelBuild(*this).run();
}

std::vector<std::string> target_names(const Model& model) {
  const GraphBuilder::Impl& graph = model.graph.impl();
  std::vector<NodeId> outputs;
  for (const OutputSpec& output : model.outputs) outputs.push_back(graph.node(output.value));
  const std::vector<bool> reached = ir::needed_by(graph.graph, outputs);
  std::vector<std::string> targets;
  for (const NodeId input : graph.inputs) {
    if (!reached[input]) targets.push_back(graph.graph[input].name);
  }
  return targets;
}

}  // namespace graphrun
