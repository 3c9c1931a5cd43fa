// show.cpp: check_model(), canonical_model(), show_model(): information from the model file alone.
#include "graphrun/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/model_file.h"
#include "graph/frontend/format/overrides.h"
#include "graph/frontend/model_check.h"
#include "graph/frontend/step/step_graph.h"
#include "graph/gradients.h"
#include "graph/ir/dot.h"
#include "graphrun/op.h"
#include "session/model_text.h"

namespace graphrun {
namespace {

// A model file, read and built without its data.
struct Described {
  Model model;
  std::optional<std::int64_t> batch;
  json::Value canonical;
};

Described describe(const std::string& path, LoadOptions options) {
  options = reading_once(path, std::move(options));
  options.data = DataUse::none;
  load_model(path, options);  // reports every error of the file, including the "data" section
  json::Document document = read_document(path, options);
  const std::vector<Override> overrides = apply_overrides(document, options.overrides);
  try {
    json::Reader reader(document);
    ModelFile file = read_model_file(reader);
    Model& model = file.model;
    reader.throw_if_failed();
    if (model.name.empty()) model.name = std::filesystem::path(path).stem().string();
    json::Value value = canonical(reader, model);
    return {std::move(model), file.batch, std::move(value)};
  } catch (const Error& error) {
    throw blame(error, overrides);
  }
}

std::vector<std::pair<std::string, TensorType>> typed(const GraphBuilder::Impl& graph,
                                                      const std::vector<ir::NodeId>& nodes) {
  std::vector<std::pair<std::string, TensorType>> list;
  for (const ir::NodeId id : nodes) list.emplace_back(graph.graph[id].name, graph.graph[id].type);
  return list;
}

ModelSummary summary(const Described& described) {
  const GraphBuilder::Impl& graph = described.model.graph.impl();
  ModelSummary s;
  s.name = described.model.name;
  if (const json::Member* text = described.canonical.find("description")) s.description = text->value.string;
  s.batch = described.batch;
  s.inputs = typed(graph, graph.inputs);
  for (const auto& [id, parameter] : graph.parameters)
    s.parameters.emplace_back(graph.graph[id].name, graph.graph[id].type);
  for (const OutputSpec& output : described.model.outputs) {
    s.outputs.emplace_back(output.name, graph.graph[output.value.id].type);
  }
  for (const auto& [name, type] : s.parameters) s.parameter_elements += type.shape.elements();
  s.warnings = graph_warnings(described.model);
  s.entries = described.canonical.find("graph")->value.items.size();
  return s;
}

std::string one_line(const json::Value& value) {
  return value.kind == json::Kind::string ? value.string : json::line(value);
}

// Formats two columns, with the second one aligned.
std::string listed(const std::vector<std::pair<std::string, std::string>>& rows) {
  constexpr std::size_t kWidest = 60;
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, std::min(kWidest, row.first.size()));
  std::string text;
  for (const auto& [left, right] : rows) text += fmt::format("  {:<{}}  {}\n", left, width, right);
  return text;
}

std::string as_text(const Described& described) {
  const GraphBuilder::Impl& graph = described.model.graph.impl();
  const ModelSummary s = summary(described);
  std::string text = printable(s.name) + (s.description.empty() ? "" : ": " + printable(s.description)) + "\n";
  const auto section = [&](std::string_view title, const std::vector<std::pair<std::string, std::string>>& rows) {
    if (!rows.empty()) text += fmt::format("\n{}\n{}", title, listed(rows));
  };
  const auto types = [](const std::vector<std::pair<std::string, TensorType>>& values) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, type] : values) rows.emplace_back(name, to_string(type));
    return rows;
  };
  section("inputs", types(s.inputs));
  section(fmt::format("parameters ({} numbers)", s.parameter_elements), types(s.parameters));
  std::vector<std::pair<std::string, std::string>> rows;
  for (const json::Value& entry : described.canonical.find("graph")->value.items) {
    const std::string line = entry_text(entry);
    const std::string name = line.substr(0, line.find(' '));
    if (!graph.names.contains(name)) {  // assigns a state
      rows.emplace_back(line, "");
      continue;
    }
    rows.emplace_back(line, to_string(graph.graph[graph.names.at(name)].type));
  }
  section("graph", rows);
  rows.clear();
  for (const OutputSpec& output : described.model.outputs) {
    rows.emplace_back(output.name, output.target.empty() ? "" : "answers " + output.target);
  }
  section("outputs", rows);
  rows.clear();
  for (const json::Member& member : described.canonical.find("train")->value.members) {
    if (member.key == "objectives") {
      for (const json::Member& one : member.value.members)
        rows.emplace_back("objectives." + one.key, one_line(one.value));
      continue;
    }
    rows.emplace_back(member.key, one_line(member.value));
  }
  section("train", rows);
  return text;
}

// Splits named in the "data" section, with or without known sizes.
std::vector<std::string> splits_of(const json::Value& file) {
  std::vector<std::string> names = {"train"};
  const json::Member* data = file.find("data");
  if (data == nullptr) return names;
  const json::Member *split = data->value.find("split"), *folds = data->value.find("folds");
  for (const std::size_t i : {1u, 2u}) {
    const char* name = i == 1 ? "validation" : "test";
    const std::vector<json::Value>* fractions = split != nullptr ? &split->value.items : nullptr;
    // After two fractions, the source has its own test rows.
    const bool is_part =
        fractions != nullptr ? i >= fractions->size() || fractions->at(i).real > 1e-9 : folds != nullptr && i == 2;
    if (is_part || data->value.find(name) != nullptr) names.emplace_back(name);
  }
  return names;
}

// Builds the model without its data. If only the data determines the number of training samples, two sizes represent
// all: one batch, which is read in place, and several batches with a partial last one. If the batch is all samples, any
// number will do: it does not affect whether a step is supported.
std::vector<Model> with_assumed_sizes(const std::string& path, const LoadOptions& options, const json::Value& file) {
  LoadOptions without_files = options;
  without_files.data = DataUse::none;
  std::vector<Model> models;
  models.push_back(load_model(path, without_files));
  std::vector<std::string> assumed;
  for (std::string& name : splits_of(file))
    if (models.front().data.find(name) == nullptr) assumed.push_back(std::move(name));
  if (assumed.empty()) return models;
  constexpr std::int64_t kAny = 1000;
  const std::int64_t batch = models.front().graph.batch() > 0 ? models.front().graph.batch() : kAny;
  models.push_back(load_model(path, without_files));
  std::int64_t samples = batch;
  for (Model& model : models) {
    model.graph.impl().set_batch(batch);
    std::vector<Split>& splits = model.data.splits;
    for (const std::string& name : assumed)
      splits.insert(name == "train" ? splits.begin() : splits.end(), {name, {}, samples});
    samples += batch / 2 + 1;
  }
  return models;
}

// Adds the gradients to the model's own graph, each under the name "W:gradient".
void add_gradients(Model& model) {
  GraphBuilder::Impl& impl = model.graph.impl();
  for (const ObjectiveSpec& objective : objectives_of(model)) {
    std::vector<ir::NodeId> parameters;
    for (const Value parameter : objective.parameters) parameters.push_back(parameter.id);
    const std::vector<ir::NodeId> found = gradients(impl.builder, objective.minimize.id, parameters);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (impl.named.contains(found[i]) || impl.graph[found[i]].phase == ir::kShared) continue;
      const std::string name = impl.graph[parameters[i]].name + ":gradient";
      if (impl.builder.find(name) == ir::kNoNode) impl.builder.rename(found[i], name);
    }
  }
}

// Nodes that a user's value or a gradient depends on; the library's own inputs only if they are read.
std::vector<bool> shown_nodes(const GraphBuilder::Impl& impl) {
  std::vector<bool> shown(impl.graph.size(), false);
  for (ir::NodeId id = 0; id < impl.graph.size(); ++id) {
    shown[id] = impl.graph[id].op != Op::input && impl.graph[id].op != Op::constant;
  }
  for (const ir::NodeId id : impl.inputs) shown[id] = true;
  for (ir::NodeId id = impl.graph.size(); id-- > 0;) {
    if (!shown[id]) continue;
    for (const ir::NodeId input : impl.graph[id].inputs) shown[input] = true;
  }
  return shown;
}

std::string nodes_text(const ir::Graph& graph, const std::vector<bool>& shown, ir::NodeId first, ir::NodeId end) {
  std::string text;
  for (ir::NodeId id = first; id < end; ++id) {
    if (shown[id] && !ir::is_number(graph[id])) text += "  " + ir::node_text(graph, id) + "\n";
  }
  return text;
}

}  // namespace

ModelSummary check_model(const std::string& path, const LoadOptions& options, const SessionOptions& session) {
  const LoadOptions once = reading_once(path, options);
  const Described described = describe(path, once);
  SessionOptions planned = session;
  if (planned.executor == "auto") planned.executor = SessionOptions().executor;  // a candidate of "auto"
  for (const Model& model : with_assumed_sizes(path, once, described.canonical)) plan_program(model, planned);
  return summary(described);
}

std::string canonical_model(const std::string& path, const LoadOptions& options) {
  return json::text(describe(path, options).canonical);
}

std::uint64_t seed_of(const std::string& path, const LoadOptions& options) {
  const json::Value canonical = describe(path, options).canonical;
  const json::Member* seed = canonical.find("train")->value.find("seed");
  return seed == nullptr ? 0 : static_cast<std::uint64_t>(seed->value.integer);
}

std::string training_settings(const Model& model) {
  const std::string text = model.canonical ? model.canonical() : std::string();
  if (text.empty()) return "null";
  const json::Document document = json::parse(model.file, text);
  const json::Member* train = document.root.find("train");
  if (train == nullptr) return "null";
  return json::line(train->value);
}

std::string show_model(const std::string& path, const LoadOptions& load, const ShowOptions& show) {
  Described described = describe(path, load);
  GraphBuilder::Impl& impl = described.model.graph.impl();
  std::string text = show.dot ? "" : as_text(described);
  const ir::NodeId forward = impl.graph.size();
  if (show.gradients) add_gradients(described.model);
  const std::vector<bool> shown = shown_nodes(impl);
  if (show.dot) return ir::to_dot(impl.graph, printable(described.model.name), shown);
  if (!show.gradients) return text;
  text += "\nnodes\n" + nodes_text(impl.graph, shown, 0, forward);
  return text + "\ngradients\n" + nodes_text(impl.graph, shown, forward, impl.graph.size());
}

std::string show_step(const Model& model, const ShowOptions& show) {
  const StepGraph step = build_step_graph(model);
  if (!show.dot) return ir::to_string(step.graph);
  return ir::to_dot(step.graph, printable(model.name), std::vector<bool>(step.graph.size(), true));
}

}  // namespace graphrun
