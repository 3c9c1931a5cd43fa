// model_file.cpp: reads all sections of a model file; train_section.cpp reads "train".
#include "graph/frontend/format/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/train_section.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/ir/needed.h"

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
  ModelBuild(json::Reader& reader, const ReadArray& read_array) : reader_(reader), read_array_(read_array) {}

  ModelFile run() {
    scope_.layers = true;
    file_.batch_place = reader_.root();
    ObjectReader root(reader_, reader_.root());
    if (!root.is_object() || !looks_like_a_model(root)) return std::move(file_);
    read_fields(reader_, root, file_fields(), model_.train);
    if (const auto at = root.get("format"); at && (at->value->kind != Kind::integer || at->value->integer != 1)) {
      reader_.report(*at, "model.format", "the format must be 1, the only one there is");
    }
    root.string("$schema");
    root.string("description");
    model_.name = root.string("name").value_or("");
    file_.data = root.get("data");
    if (const auto at = root.get("constants")) read_constants(*at);
    if (const auto at = root.get("inputs")) read_inputs(*at);
    if (const auto at = root.get("parameters")) read_parameters(*at, false);
    if (const auto at = root.get("states")) read_parameters(*at, true);
    // Uses of names from a misspelled section are consequential errors.
    for (const Member* member : root.unread()) {
      for (const Member& inner : member->value.members) scope_.broken.insert(inner.key);
    }
    root.finish();
    if (const auto at = root.get("graph")) read_graph(*at);
    if (const auto at = root.get("outputs"); at && file_.graph_read) read_outputs(*at);
    if (const auto at = root.get("train")) read_train(reader_, *at, scope_, file_);
    for (ModelFile::Input& input : file_.inputs)
      if (model_.train.precision == Precision::fp64 && input.dtype == DType::f32) input.dtype = DType::f64;
    return std::move(file_);
  }

 private:
  // Reports a JSON file that is not a model once, rather than one error per missing key.
  bool looks_like_a_model(ObjectReader& root) {
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

  // Adds a declared value to the graph.
  template <class F>
  void declare(const std::string& name, const Ref& place, F&& add) {
    graph_.builder.at(source(place));
    if (!attempt(place, add)) scope_.broken.insert(name);
  }

  void read_constants(const Ref& at) {
    const ObjectReader object(reader_, at);
    for (const Member* member : object.unread()) {
      const std::string& name = member->key;
      const Ref place = at.member(*member);
      const bool at_run_time = is_runtime(member->value);
      const std::optional<double> value = at_run_time ? read_runtime(reader_, place) : reader_.number(place);
      if (!check_name(reader_, at, *member)) continue;
      if (name == "pi" || name == "e") {
        reader_.report_key(at, *member, "name.taken", fmt::format("{} is a constant of every model", name),
                           "choose another name");
      } else if (!value) {
        scope_.broken.insert(name);
      } else if (at_run_time) {
        declare(name, place, [&] { graph_.runtime_scalar(name, *value); });
      } else {
        graph_.constants.emplace(name, *value);
      }
    }
  }

  void read_inputs(const Ref& at) {
    const ObjectReader inputs(reader_, at);
    if (inputs.is_object() && at.value->members.empty()) {
      reader_.report(at, "model.inputs", "a model needs an input", "for instance {\"x\": [\"batch\", 6]}");
    }
    file_.inputs_read = !at.value->members.empty();
    for (const Member* member : inputs.unread()) {
      const std::size_t before = reader_.errors();
      std::optional<ModelFile::Input> input = read_input(at, *member);
      if (reader_.errors() != before) file_.inputs_read = false;
      if (!input) continue;
      std::vector<std::int64_t> extents = {kBatch};
      extents.insert(extents.end(), input->sample.dims().begin(), input->sample.dims().end());
      declare(input->name, at.member(*member), [&] { graph_.input(input->name, extents, input->dtype); });
      file_.inputs.push_back(std::move(*input));
    }
  }

  std::optional<ModelFile::Input> read_input(const Ref& inputs, const Member& member) {
    if (!check_name(reader_, inputs, member)) return std::nullopt;
    const Ref at = inputs.member(member);
    std::optional<Shape> shape;
    std::optional<DType> dtype = DType::f32;
    if (at.value->kind == Kind::object) {
      ObjectReader object(reader_, at);
      read_fields(reader_, object, input_fields(), model_.train);
      if (const auto place = object.get("dtype")) dtype = read_dtype(reader_, *place);
      if (const auto place = object.get("shape")) shape = read_shape(reader_, *place, true);
      object.finish();
    } else {
      shape = read_shape(reader_, at, true);
    }
    if (shape && dtype) return ModelFile::Input{member.key, *shape, *dtype};
    scope_.broken.insert(member.key);
    return std::nullopt;
  }

  void read_parameters(const Ref& at, bool are_states) {
    const ObjectReader object(reader_, at);
    for (const Member* member : object.unread()) {
      const std::string& name = member->key;
      const Ref place = at.member(*member);
      const std::size_t before = reader_.errors();
      ObjectReader fields(reader_, place);
      read_fields(reader_, fields, are_states ? state_fields() : parameter_fields(), model_.train);
      Shape shape;
      GraphBuilder::Impl::Parameter parameter{.trainable = !are_states, .is_state = are_states};
      if (const auto given = fields.get("shape")) shape = read_shape(reader_, *given).value_or(Shape());
      if (const auto given = fields.get("init"))
        parameter.init = read_init(reader_, *given, read_array_).value_or(Init());
      if (!are_states) {
        parameter.decay = fields.boolean("decay").value_or(true);
        parameter.trainable = fields.boolean("trainable").value_or(true);
      }
      fields.finish();
      if (reader_.errors() != before) {
        scope_.broken.insert(name);
      } else {
        declare(name, place, [&] { graph_.parameter(name, shape, std::move(parameter)); });
      }
    }
  }

  void read_graph(const Ref& at) {
    constexpr std::string_view kHint =
        R"j(of assignments like "h = tanh(x @ W)" and objects like {"name", "op", "inputs"})j";
    if (!is_array(reader_, at, "the graph is an array", kHint)) return;
    file_.graph_read = true;
    const std::size_t entries = at.value->items.size();
    for (std::size_t i = 0; i < entries; ++i) {
      const Ref entry = at.item(i);
      if (const std::string name = entry_name(entry); !name.empty())
        scope_.later.try_emplace(name, fmt::format("{} (line {})", entry.pointer, entry.value->line));
    }
    for (std::size_t i = 0; i < entries; ++i) add_entry(at.item(i));
    graph_.builder.at({});
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
    const NodeId value = build(graph_, assigned.value);
    try {
      graph_.assign(resolve(scope_, assigned.state), value, assigned.after);
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
    try {
      if (layer) {
        options.attributes = *attrs;
        add_layer(graph_, *layer, *name, *operands, std::move(options));
      } else {
        graph_.define(*name, call(graph_.builder, *function, *operands, *attrs));
      }
    } catch (const Error& error) {
      std::vector<expression::OperandNote> notes;
      for (const NodeId operand : *operands) notes.push_back({operand, {}});
      std::vector<std::string> given;
      for (const auto& attribute : *attrs) given.push_back(attribute.first);
      if (layer) given.emplace_back("share");
      const std::optional<Ref> at = object.get(expression::attribute_at_fault(error, given));
      reader_.report(at ? *at : entry, expression::with_notes(graph_, notes, error));
    }
  }

  LayerOptions read_layer_options(ObjectReader& object, const Layer& layer) {
    LayerInits inits;
    for (const LayerInit& init : layer.inits) {
      const std::optional<Ref> at = object.get(init.name);
      if (!at) continue;
      if (init.optional && at->value->kind == Kind::boolean) {
        inits[std::string(init.name)] = at->value->boolean ? std::optional(init.fallback) : std::nullopt;
      } else if (std::optional<Init> given = read_init(reader_, *at, read_array_)) {
        inits[std::string(init.name)] = std::move(given);
      }
    }
    const std::optional<AttrList> common = read_attrs(reader_, object, common_layer_attributes(), layer.name);
    LayerOptions options = split_layer_attributes(layer, common.value_or(AttrList{}));
    options.inits = std::move(inits);
    return options;
  }

  // Returns nullopt if an operand is unknown or broken.
  std::optional<NodeIds> read_operands(ObjectReader& object) {
    const std::optional<Ref> list =
        object.require("inputs", "the names of its operands, for instance \"inputs\": [\"x\"]");
    if (!list || !is_array(reader_, *list, "inputs must be an array of names", "for instance [\"x\"]"))
      return std::nullopt;
    NodeIds operands;
    bool complete = true;
    for (std::size_t i = 0; i < list->value->items.size(); ++i) {
      const Ref item = list->item(i);
      const std::optional<NodeId> id = read_value_name(reader_, scope_, item);
      if (id) operands.push_back(*id);
      complete = complete && id;
    }
    return complete ? std::optional(operands) : std::nullopt;
  }

  void read_outputs(const Ref& at) {
    const std::size_t before = reader_.errors();
    if (at.value->kind == Kind::object) {
      for (const Member& member : at.value->members) {
        const Ref target = at.member(member);
        reader_.string(target);
        add_output(target, member.key, &member, at);
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
    file_.outputs_read = complete_ && reader_.errors() == before;
    if (!file_.outputs_read) return;
    if (at.value->kind == Kind::object) {
      answer_named(at);
    } else {
      answer_in_order();
    }
  }

  void add_output(const Ref& at, const std::string& name, const Member* key, const Ref& object) {
    if (excused(scope_, name)) {
      complete_ = false;
      return;
    }
    if (!listed_outputs_.insert(name).second)
      return reader_.report(at, "model.outputs", fmt::format("{} is listed twice", name));
    try {
      model_.outputs.push_back({graph_.value(resolve(scope_, name)), name, {}});
    } catch (const Error& error) {
      if (key == nullptr) return reader_.report(at, error);
      const Diagnostic& d = error.diagnostics().front();
      reader_.report_key(object, *key, d.code, d.message, d.hint);
    }
  }

  // Reads the targets of an object of outputs, which were added.
  void answer_named(const Ref& object) {
    const std::vector<std::string> targets = target_names(model_);
    const std::set<std::string, std::less<>> known(targets.begin(), targets.end());
    for (std::size_t i = 0; i < model_.outputs.size(); ++i) {
      const Ref place = object.member(object.value->members[i]);
      const std::string& target = place.value->string;
      if (known.contains(target)) {
        model_.outputs[i].target = target;
        if (lacks_columns(model_.outputs[i])) report_columns(place, model_.outputs[i]);
        continue;
      }
      file_.outputs_read = false;
      if (scope_.broken.contains(target)) continue;
      const bool is_input = !reader_.full() && std::ranges::count(file_.inputs, target, &ModelFile::Input::name) > 0;
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
    file_.outputs_read = false;
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

  json::Reader& reader_;
  const ReadArray& read_array_;
  ModelFile file_{Model(GraphBuilder())};
  Model& model_ = file_.model;
  GraphBuilder::Impl& graph_ = model_.graph.impl();
  Scope scope_{graph_};
  bool complete_ = true;  // false if an output was left out because its definition was reported
  std::set<std::string, std::less<>> listed_outputs_;
};

ModelFile read_model_file(json::Reader& reader, const ReadArray& read_array) {
  return ModelBuild(reader, read_array).run();
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
