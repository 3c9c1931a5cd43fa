#include "graph/frontend/format/train_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/json_text.h"
#include "base/text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/library/metrics.h"
#include "graph/frontend/model_check.h"
#include "graph/ir/needed.h"
#include "graph/ops/op_def.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::NodeId;
using json::Kind;
using json::Member;
using json::ObjectReader;
using json::Ref;

class TrainSection {
 public:
  TrainSection(json::Reader& reader, const expression::Scope& scope, ModelFile& file)
      : reader_(reader), scope_(scope), file_(file) {}

  void read(const Ref& at) {
    ObjectReader train(reader_, at);
    if (!train.is_object()) return;
    read_fields(reader_, train, train_fields(), spec_);
    if (const auto place = train.get("objectives")) {
      for (const std::string_view key : {"minimize", "optimizer"}) {
        if (!train.get(key)) continue;
        reader_.report_key(at, *train.find(key), "model.objectives",
                           fmt::format("{} and objectives are both given", key), "each objective has its own");
      }
      read_objectives(*place);
    } else {
      const auto minimize = train.require("minimize", "the name of the loss: a scalar of the graph");
      if (const auto optimizer = train.require("optimizer", R"(for instance "optimizer": {"sgd": {"lr": 0.1}})"))
        read_optimizer(reader_, *optimizer, spec_.optimizer);
      if (minimize && file_.graph_read) read_minimize(*minimize);
    }
    if (const auto metrics = train.get("metrics"); metrics && file_.graph_read) read_metrics(*metrics);
    file_.batch_place = at;
    if (const auto place = train.get("batch")) read_batch(*place);
    read_monitor(train.get("early_stopping"), spec_.early_stopping, early_stopping_fields());
    read_monitor(train.get("lr_plateau"), spec_.lr_plateau, lr_plateau_fields());
    read_part(train.get("stop_at"), spec_.stop_at, stop_at_fields());
    if (const auto place = train.get("threshold");
        place && !rejects_rule(*place) && read_part(place, spec_.threshold, threshold_fields()))
      read_threshold(*place, *spec_.threshold);
    if (const auto place = train.get("max_memory")) read_max_memory(*place);
    train.finish();
  }

 private:
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
    const std::optional<NodeId> id = read_value_name(reader_, scope_, at);
    if (!id || !scalar(at, *id, "the minimized value")) return;
    const std::vector<bool> needed = ir::needed_by(graph_.graph, {&*id, 1});
    const std::vector<NodeId> trained = graph_.trainable();
    if (std::ranges::any_of(trained, [&](NodeId parameter) { return needed[parameter]; })) {
      if (check_gradient(at, *id, trained)) spec_.minimize = graph_.value(*id);
      return;
    }
    const bool any = std::ranges::any_of(graph_.parameters, [&](const auto& one) { return needed[one.first]; });
    reader_.report(at, "model.minimize",
                   fmt::format("{} depends on no parameter{}: there is nothing to train", at.value->string,
                               any ? " that is trainable" : ""));
  }

  void read_objectives(const Ref& at) {
    const ObjectReader object(reader_, at);
    if (object.is_object() && at.value->members.empty()) {
      reader_.report(at, "model.objectives", "objectives without one",
                     "\"minimize\" and \"optimizer\" say a single one");
    }
    for (const Member* member : object.unread()) {
      if (check_name(reader_, at, *member)) read_objective(at.member(*member), member->key);
    }
  }

  void read_objective(const Ref& at, const std::string& name) {
    ObjectReader fields(reader_, at);
    if (!fields.is_object()) return;
    read_fields(reader_, fields, objective_fields(), spec_);
    ObjectiveSpec objective{.name = name, .minimize = {}, .parameters = {}, .optimizer = {}};
    const auto minimize = fields.get("minimize"), parameters = fields.get("parameters");
    if (const auto place = fields.get("optimizer")) read_optimizer(reader_, *place, objective.optimizer);
    if (const auto place = fields.get("every")) objective.every = reader_.integer(*place, 1, kMaxEvery).value_or(1);
    fields.finish();
    if (!file_.graph_read) return;
    if (!reported_.insert(name).second) {
      return reader_.report(at, "model.objectives", fmt::format("the sum of all objectives is reported as {}", name),
                            "give it another name");
    }
    const std::optional<std::vector<NodeId>> updated =
        parameters ? read_objective_parameters(*parameters, name) : std::nullopt;
    const std::optional<NodeId> loss = minimize ? read_value_name(reader_, scope_, *minimize) : std::nullopt;
    if (!loss || !scalar(*minimize, *loss, "the minimized value") || !updated) return;
    const std::vector<bool> reached = ir::needed_by(graph_.graph, {&*loss, 1}),
                            differentiable = reached_by_gradients(*loss);
    for (const NodeId id : *updated) {
      objective.parameters.push_back(graph_.value(id));
      if (reached[id] && differentiable[id]) continue;
      return reader_.report(*minimize, "model.objectives",
                            fmt::format("{} does not depend on {}, a parameter of {}{}", minimize->value->string,
                                        graph_.graph[id].name, name, reached[id] ? ": no gradient reaches it" : ""),
                            reached[id] ? "stop_gradient, or an op without a gradient, is between them" : "");
    }
    if (!check_gradient(*minimize, *loss, *updated)) return;
    objective.minimize = graph_.value(*loss);
    spec_.objectives.push_back(std::move(objective));
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
  std::optional<std::vector<NodeId>> read_objective_parameters(const Ref& list, const std::string& objective) {
    if (!is_array(reader_, list, "parameters are an array of names", R"(for instance ["W", "h2"])")) return {};
    if (list.value->items.empty()) {
      reader_.report(list, "model.objectives",
                     fmt::format("{} has no parameters: there is nothing to train", objective));
      return {};
    }
    std::vector<NodeId> found;
    bool complete = true;
    for (std::size_t i = 0; i < list.value->items.size(); ++i) {
      const Ref item = list.item(i);
      const std::optional<std::string> name = reader_.string(item);
      const std::vector<NodeId> named = name ? parameters_named(item, *name) : std::vector<NodeId>();
      // One report per layer is enough.
      const bool taken = std::ranges::all_of(named, [&](NodeId id) { return take_parameter(item, id, objective); });
      complete = complete && !named.empty() && taken;
      found.insert(found.end(), named.begin(), named.end());
    }
    return complete ? std::optional(found) : std::nullopt;
  }

  // The parameter with that name, or all whose names start with "name.".
  std::vector<NodeId> parameters_named(const Ref& at, const std::string& name) {
    std::vector<NodeId> found, frozen;
    for (const auto& [id, parameter] : graph_.parameters) {
      const std::string& own = graph_.graph[id].name;
      const bool is_meant = own == name || own.starts_with(name + ".");
      if (is_meant) (parameter.trainable ? found : frozen).push_back(id);
    }
    if (!found.empty() || excused(scope_, name)) return found;
    if (!frozen.empty()) {
      const bool is_state = graph_.parameters.at(frozen.front()).is_state;
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
    const Diagnostic d = unknown("parameter", name, {all.begin(), all.end()}).diagnostics().front();
    const bool is_value = graph_.names.contains(name);
    reader_.report(at, "model.objectives",
                   is_value ? fmt::format("{} is neither a parameter nor a layer with parameters", name) : d.message,
                   d.hint);
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
    const MetricDef* built_in = name ? find_metric(*name) : nullptr;
    if (!name || (!built_in && excused(scope_, *name))) return;
    const auto value = graph_.names.find(*name);
    const bool is_value = value != graph_.names.end();
    if (!listed_metrics_.insert(*name).second) {
      reader_.report(at, "model.metric", fmt::format("{} is listed twice", *name));
    } else if (is_value && built_in) {
      reader_.report(at, "model.metric", fmt::format("{} is the name of a built-in metric", *name),
                     "give the value of the graph another name, or remove it to have the built-in metric");
    } else if (is_value) {
      if (scalar(at, value->second, "a metric")) add_metric(at, {*name, graph_.value(value->second)});
    } else if (built_in) {
      if (check_answers(at, *built_in)) add_metric(at, {*name, {}});
    } else {
      report_unknown_metric(at, *name);
    }
  }

  // Names in reports must be unique; "loss" is taken.
  void add_metric(const Ref& at, MetricSpec metric) {
    const std::vector<std::string> names = reported_names(model_, metric);
    for (const std::string& name : names) {
      if (!reported_.contains(name)) continue;
      const bool is_loss = name == "loss";
      return reader_.report(at, "model.metric",
                            is_loss ? "the minimized value is reported as the loss already"
                                    : fmt::format("another metric is reported as {} already", name),
                            is_loss && metric.value == spec_.minimize ? "leave it out" : "give the value another name");
    }
    reported_.insert(names.begin(), names.end());
    spec_.metrics.push_back(std::move(metric));
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
    if (!file_.outputs_read) return false;
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
    const std::span<const std::int64_t> extents = scores.shape.dims();
    return is_float(scores.dtype) && classes.dtype == DType::i32 && scores.rows == classes.rows && extents.size() > 1 &&
           std::ranges::equal(extents.first(extents.size() - 1), classes.shape.dims());
  }

  void read_batch(const Ref& at) {
    file_.batch_place = at;
    spec_.largest_batch = at.value->string == "max";
    if (at.value->kind != Kind::string) {
      file_.batch = reader_.integer(at, 1, kMaxBatch);
      if (file_.batch) graph_.set_batch(*file_.batch);
    } else if (at.value->string != "all" && !spec_.largest_batch) {
      reader_.report(at, "model.value",
                     fmt::format("the batch is an integer, \"all\" or \"max\", got \"{}\"", at.value->string),
                     "\"all\" takes the whole training split, \"max\" as much of it as fits the memory");
    }
  }

  void read_max_memory(const Ref& at) {
    if (at.value->kind != Kind::string) {
      const std::optional<std::int64_t> bytes = reader_.integer(at, 1, std::numeric_limits<std::int64_t>::max());
      spec_.max_memory = static_cast<std::uint64_t>(bytes.value_or(0));
    } else if (const std::optional<std::uint64_t> bytes = parse_byte_size(at.value->string)) {
      spec_.max_memory = *bytes;
    } else {
      reader_.report(at, "model.value", fmt::format("expected a size, got \"{}\"", at.value->string),
                     "for instance \"512MiB\", \"4GiB\", or a number of bytes");
    }
  }

  // A rule without its key "by", or a given threshold.
  bool rejects_rule(const Ref& at) {
    const json::Value& rule = *at.value;
    const bool is_number = rule.kind == Kind::integer || rule.kind == Kind::real;
    const bool is_rule = rule.string == "f1" || (rule.members.size() == 1 && contains_rule(rule.members.front().key));
    if (!is_number && !is_rule) return false;
    reader_.report(at, "model.type", "expected an object with the key \"by\"",
                   is_number ? fmt::format("training chooses a threshold by a rule; graphrun eval --threshold {} takes "
                                           "a given one",
                                           json::line(rule))
                             : fmt::format("\"threshold\": {{\"by\": {}}}", json::line(rule)));
    return true;
  }
  static bool contains_rule(std::string_view key) { return key == "recall" || key == "precision" || key == "cost"; }

  void read_threshold(const Ref& at, ThresholdRule& rule) {
    const Member* member = at.value->find("by");
    if (member == nullptr) return;
    const Ref by = at.member(*member);
    const std::string& key = by.value->members.size() == 1 ? by.value->members[0].key : "";
    const auto rows = [](const Ref& of) { return of.value->kind == Kind::array && of.value->items.size() == 2; };
    const auto number = [&](const Ref& of) { return reader_.number(of).value_or(0); };
    if (by.value->kind == Kind::string && by.value->string == "f1") return;
    if (key == "recall" || key == "precision") {
      rule.by = key == "recall" ? ThresholdRule::By::recall : ThresholdRule::By::precision;
      const std::size_t before = reader_.errors();
      const Ref place = by.member(by.value->members[0]);
      rule.at = number(place);
      if (reader_.errors() == before && !(rule.at > 0 && rule.at <= 1))
        reader_.report(place, "model.range", fmt::format("must be > 0 and <= 1, got {}", rule.at));
      return;
    }
    const Ref cost = key == "cost" ? by.member(by.value->members[0]) : by;
    if (key == "cost" && rows(cost) && rows(cost.item(0)) && rows(cost.item(1))) {
      rule.by = ThresholdRule::By::cost;
      for (std::size_t i = 0; i < 4; ++i) rule.cost[i] = number(cost.item(i / 2).item(i % 2));
      return;
    }
    reader_.report(cost, "model.value",
                   key == "cost" ? "cost is an array of two rows, each of two numbers" : "unknown rule for a threshold",
                   R"(for instance "f1", {"recall": 0.9}, {"precision": 0.9} or {"cost": [[0, 1], [5, 0]]})");
  }

  template <class Part>
  bool read_part(const std::optional<Ref>& at, std::optional<Part>& part, const Fields& fields) {
    if (!at || at->value->kind == Kind::null) return false;
    part.emplace();
    ObjectReader object(reader_, *at);
    if (object.is_object()) read_fields(reader_, object, fields, spec_);
    object.finish();
    return true;
  }

  template <class Part>
  void read_monitor(const std::optional<Ref>& at, std::optional<Part>& part, const Fields& fields) {
    if (read_part(at, part, fields) && file_.graph_read) check_monitor(*at, *part);
  }

  json::Reader& reader_;
  const expression::Scope& scope_;
  ModelFile& file_;
  GraphBuilder::Impl& graph_ = scope_.graph;
  Model& model_ = file_.model;
  TrainSpec& spec_ = model_.train;
  std::set<std::string> reported_ = {"loss"};  // names in the reports of a run
  std::map<NodeId, std::string> updated_by_;   // objective that lists the parameter
  std::set<std::string, std::less<>> listed_metrics_;
};

}  // namespace

std::optional<NodeId> read_value_name(json::Reader& reader, const expression::Scope& scope, const Ref& at) {
  const std::optional<std::string> name = reader.string(at);
  if (!name) return std::nullopt;
  if (const auto constant = scope.graph.constants.find(*name); constant != scope.graph.constants.end())
    return scope.graph.builder.scalar(constant->second, DType::f32);
  try {
    if (!excused(scope, *name)) return resolve(scope, *name);
  } catch (const Error& error) {
    reader.report(at, error);
  }
  return std::nullopt;
}

void read_train(json::Reader& reader, const Ref& at, const expression::Scope& scope, ModelFile& file) {
  TrainSection(reader, scope, file).read(at);
}

}  // namespace graphrun
