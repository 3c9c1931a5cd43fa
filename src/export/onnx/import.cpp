// Converts an ONNX graph to a model file: one formula per node, in one of two ways. Dimension 0 of the inputs is the
// batch; or, if the file has fixed shapes and needs all dimensions, a row of the model's data is a whole call.
#include "export/onnx/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"
#include "export/onnx/import_ops.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using namespace onnx;

class Importer {
 public:
  Importer(const File& graph, std::string file, bool whole) : file_(std::move(file)), graph_(graph), at_(whole) {}

  ImportedModel read() {
    for (const Tensor& tensor : graph_.initializers) add_constant(tensor);
    for (const ValueInfo& input : graph_.inputs) add_input(input);
    drop_outputs_of_words();
    const std::vector<bool> needed = needed_nodes();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (needed[i]) add(graph_.nodes[i]);
    add_outputs();
    if (!problems_.empty()) throw Error(ErrorKind::input, std::move(problems_));
    ImportedModel model;
    for (const Parameter& one : at_.parameters) model.parameters.emplace_back(one.name, one.values);
    model.text = text();
    return model;
  }

 private:
  void report(std::string code, std::string message, std::string hint = {}) {
    problems_.push_back(
        {.code = std::move(code), .message = std::move(message), .hint = std::move(hint), .file = file_});
  }

  static std::string shown(const Node& node) {
    const std::string& name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
    return fmt::format("node '{}' ({})", printable(name), printable(node.op));
  }

  // Labels that are words have no value in a graph; their class indices come from the other outputs.
  void drop_outputs_of_words() {
    for (const ValueInfo& output : graph_.outputs)
      if (output.type != DataType::string || graph_.outputs.size() == 1) kept_.push_back(output);
  }

  // Marks the nodes that an output depends on.
  std::vector<bool> needed_nodes() {
    for (const ValueInfo& output : kept_) wanted_.insert(output.name);
    std::vector<bool> needed(graph_.nodes.size());
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      needed[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                              [&](const std::string& output) { return wanted_.contains(output); });
      if (needed[i]) wanted_.insert(node.inputs.begin(), node.inputs.end()), wanted_.erase("");
    }
    return needed;
  }

  void define(const std::string& name, GraphValue value) {
    if (!values_.emplace(name, std::move(value)).second)
      report("onnx.file", fmt::format("'{}' is given twice", printable(name)));
  }

  void add_constant(const Tensor& tensor) {
    if (has_elements(tensor.type))
      define(tensor.name, constant_value(tensor.name, tensor, file_));
    else
      unread_.emplace(tensor.name, tensor.type);
  }

  // Prefix of an error about a value: a node that reads it, or the node that gives it.
  std::string node_of(const std::string& value, std::vector<std::string> Node::*names) const {
    const auto node = std::ranges::find_if(
        graph_.nodes, [&](const Node& one) { return std::ranges::find(one.*names, value) != (one.*names).end(); });
    return node == graph_.nodes.end() ? "" : shown(*node) + ": ";
  }

  static std::string as_bool(const std::string& input) { return fmt::format("({} != 0)", input); }

  void add_input(const ValueInfo& input) {
    if (values_.contains(input.name)) return;  // an initializer that is also listed as input, as in IR version 3
    const std::string name = printable(input.name), node = node_of(input.name, &Node::inputs);
    const bool is_integer = input.type == DataType::i32 || input.type == DataType::i64;
    if (input.type == DataType::none)
      report("onnx.unsupported", fmt::format("{}the input '{}' is not a tensor", node, name));
    else if (input.type != DataType::f32 && input.type != DataType::boolean && !is_integer)
      report("onnx.unsupported",
             fmt::format("{}the dtype {} of the input '{}' is not supported", node, type_name(input.type), name),
             "f32, i32, i64 and bool are");
    const std::size_t rank = input.dims.size();
    GraphValue value{at_.unique(input.name), {}, is_integer ? DType::i32 : DType::f32, true};
    value.is_input = true;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const bool is_batch = axis == 0 && !at_.whole();
      value.shape.push_back(is_batch ? kAnyRows : input.dims[axis].value);
      if (is_batch ||
          (input.dims[axis].symbol.empty() && input.dims[axis].value > 0 && input.dims[axis].value <= INT32_MAX))
        continue;
      report("onnx.unsupported", fmt::format("{}dimension {} of the input '{}' is not a number", node, axis, name),
             "the first one is the batch, all others have a size");
    }
    if ((rank == 0 && !at_.whole()) || rank + (at_.whole() ? 1 : 0) > static_cast<std::size_t>(kMaxRank))
      report("onnx.unsupported", fmt::format("{}the input '{}' has {} dimensions", node, name, rank));
    inputs_.push_back(value);
    if (input.type == DataType::boolean) {
      value.text = as_bool(value.text);
      value.dtype = DType::boolean, value.is_input = false;
    }
    define(input.name, std::move(value));
  }

  // Rows that the file was exported for; 0: any number.
  std::int64_t exported_batch() const {
    std::int64_t batch = 0;
    for (const ValueInfo& input : graph_.inputs) {
      const auto found = values_.find(input.name);
      if (found == values_.end() || found->second.constant || input.dims.empty()) continue;
      if (!input.dims[0].symbol.empty() || (batch != 0 && input.dims[0].value != batch)) return 0;
      batch = input.dims[0].value;
    }
    return batch;
  }

  void add(const Node& node) {
    const OpRule* rule = find_rule(node);
    bool follows = false, failed = true;
    try {
      if (node.outputs.empty()) throw Rejection{"it has no output"};
      if (rule == nullptr) throw Rejection{"it is not supported"};
      Call call{at_, node, wanted_, graph_.opset, exported_batch(), file_};
      for (const std::string& input : node.inputs) {
        const auto found = values_.find(input);
        follows = follows || unsaid_.contains(input);
        if (const auto unread = unread_.find(input); unread != unread_.end())
          throw Rejection{fmt::format("the dtype {} of its input '{}' is not supported", type_name(unread->second),
                                      printable(input))};
        if (!input.empty() && found == values_.end() && !unsaid_.contains(input))
          throw Rejection{fmt::format("it reads '{}', which no earlier node gives", printable(input))};
        call.inputs.push_back(found == values_.end() ? std::nullopt : std::optional(found->second));
      }
      if (!follows) convert(call, *rule);
      failed = follows;
    } catch (const Rejection& rejection) {
      report(rejection.code, fmt::format("{}: {}", shown(node), rejection.message),
             rule == nullptr && !std::exchange(listed_, true)
                 ? fmt::format("supported: {}", fmt::join(imported_ops(), " "))
                 : "");
    } catch (const Error& error) {
      report("onnx.unsupported", fmt::format("{}: {}", shown(node), error.diagnostics().at(0).message));
    }
    if (failed) unsaid_.insert(node.outputs.begin(), node.outputs.end());
  }

  void convert(Call& call, const OpRule& rule) {
    while (!call.inputs.empty() && !call.inputs.back()) call.inputs.pop_back();
    const auto required =
        call.inputs.begin() + static_cast<std::ptrdiff_t>(rule.max_inputs == kAnyNumber
                                                              ? call.inputs.size()
                                                              : std::min(rule.min_inputs, call.inputs.size()));
    if (call.inputs.size() < rule.min_inputs || call.inputs.size() > rule.max_inputs ||
        std::find(call.inputs.begin(), required, std::nullopt) != required)
      throw Rejection{fmt::format("it has {} inputs", call.node.inputs.size())};
    const std::vector<std::string>& outputs = call.node.outputs;
    at_.begin(outputs[0]);
    call.more.emplace_back(0, rule.rule(call));
    for (auto& [i, value] : call.more)
      if (call.wants(i)) {
        if (!value.constant && !is_name(value.text)) own_.insert(outputs[i]);
        define(outputs[i], at_.named(std::move(value), outputs[i]));
      }
    for (const std::string& output : outputs)
      if (wanted_.contains(output) && !output.empty() && !values_.contains(output))
        throw Rejection{fmt::format("its output '{}' is not supported", printable(output))};
  }

  void add_outputs() {
    if (graph_.outputs.empty()) report("onnx.file", "the graph has no output");
    if (inputs_.empty())
      report("onnx.file",
             graph_.nodes.empty() ? "the graph has no input" : shown(graph_.nodes[0]) + ": the graph has no input");
    for (const ValueInfo& output : kept_) {
      const auto found = values_.find(output.name);
      if (unsaid_.contains(output.name)) continue;
      if (found == values_.end()) {
        report("onnx.file", fmt::format("no node gives the output '{}'", printable(output.name)));
        continue;
      }
      GraphValue value = found->second;
      if (!value.by_sample || (!at_.whole() && (value.shape.empty() || value.shape[0] != kAnyRows))) {
        report("onnx.unsupported", fmt::format("{}the output '{}' has no row for each sample",
                                               node_of(output.name, &Node::outputs), printable(output.name)));
        continue;
      }
      if (!own_.contains(output.name)) value.text = "(" + at_.text(value) + ")";
      outputs_.push_back(at_.named(std::move(value), output.name));
    }
    // An output without a target is not part of the loss.
    std::stable_sort(outputs_.begin(), outputs_.end(), [](const GraphValue& a, const GraphValue& b) {
      return a.dtype == DType::f32 && b.dtype != DType::f32;
    });
  }

  // ---- the model file

  json::Value extents(const GraphValue& value) const {
    json::Value list = json::make_array({json::make("batch")});
    for (const std::int64_t extent : value.shape)
      if (extent != kAnyRows) list.items.push_back(json::make(extent));
    return list;
  }

  std::string text() {
    json::Value inputs = json::make_object(), parameters = json::make_object(), lines = json::make_array();
    json::Value pairs = json::make_object(), names = json::make_array();
    for (const GraphValue& input : inputs_) {
      if (!at_.used.contains(input.text) && !at_.used.contains(as_bool(input.text))) continue;
      json::Value shape = extents(input);
      json::add(inputs, input.text,
                input.dtype == DType::f32
                    ? std::move(shape)
                    : json::make_object({{"dtype", json::make("i32")}, {"shape", std::move(shape)}}));
    }
    std::string loss;
    bool trains = false;
    for (const GraphValue& output : outputs_) {
      names.items.push_back(json::make(output.text));
      if (output.dtype != DType::f32) continue;
      const std::string target = at_.unique(output.text + "_target");
      json::add(inputs, target, extents(output));
      json::add(pairs, output.text, json::make(target));
      loss += fmt::format("{}mean(square({} - {}))", loss.empty() ? "" : " + ", output.text, target);
      trains = trains || output.trained;
    }
    if (!trains) {
      const std::string unused = at_.parameter("unused", HostTensor(Shape{}, std::vector<float>{0}));
      loss += fmt::format("{}square({})", loss.empty() ? "" : " + ", unused);
    }
    for (const Parameter& one : at_.parameters) {
      json::Value shape = json::make_array();
      for (const std::int64_t extent : one.values.shape().dims()) shape.items.push_back(json::make(extent));
      json::Value keys = json::make_object({{"shape", std::move(shape)}, {"init", json::make("zeros")}});
      if (!one.trainable) json::add(keys, "trainable", json::make(false));
      json::add(parameters, one.name, std::move(keys));
    }
    const std::string minimized = at_.unique("loss");
    at_.add_formula(minimized, loss);
    for (const std::string& line : at_.formulas) lines.items.push_back(json::make(line));
    json::Value document = json::make_object();
    json::add(document, "format", json::make(std::int64_t{1}));
    json::add(document, "name", json::make(graph_.name.empty() ? "onnx" : printable(graph_.name)));
    json::add(
        document, "description",
        json::make(
            at_.whole()
                ? "Imported from ONNX; a row of the data is one call of the network, with all dimensions of its inputs"
                : "Imported from ONNX; to train it, say where its data are"));
    json::add(document, "data", json::make_object({{"train", json::make_object({{"npz", json::make("train.npz")}})}}));
    json::add(document, "inputs", std::move(inputs));
    json::add(document, "parameters", std::move(parameters));
    json::add(document, "graph", std::move(lines));
    json::add(document, "outputs", pairs.members.size() == outputs_.size() ? std::move(pairs) : std::move(names));
    json::add(
        document, "train",
        json::make_object({{"minimize", json::make(minimized)},
                           {"optimizer", json::make_object({{"adam", json::make_object({{"lr", json::make(0.001)}})}})},
                           {"batch", json::make(std::int64_t{32})}}));
    return json::text(document);
  }

  std::string file_;
  const File& graph_;
  Graph at_;
  std::map<std::string, GraphValue> values_;     // keys: names in the ONNX file
  std::map<std::string, DataType> unread_;       // constants of other types
  std::set<std::string> unsaid_, wanted_, own_;  // unsaid_: depend on unsupported nodes; own_: have a formula
  std::vector<ValueInfo> kept_;
  std::vector<GraphValue> inputs_, outputs_;
  std::vector<Diagnostic> problems_;
  bool listed_ = false;  // the first unsupported op lists the supported ones
};

// Fixed shapes that differ in dimension 0, or have none, have no batch.
bool has_batch(const File& graph) {
  std::set<std::int64_t> extents;
  for (const ValueInfo& input : graph.inputs) {
    const bool is_constant = std::any_of(graph.initializers.begin(), graph.initializers.end(),
                                         [&](const Tensor& one) { return one.name == input.name; });
    if (is_constant) continue;
    if (input.dims.empty()) extents.insert({0, 1});
    for (const Dim& dim : input.dims)
      if (!dim.symbol.empty() || dim.value < 1) return true;
    if (!input.dims.empty()) extents.insert(input.dims[0].value);
  }
  return extents.size() < 2;
}

}  // namespace

ImportedModel onnx::imported(const std::string& bytes, const std::string& file) {
  const File graph = decode(bytes, file);
  if (!has_batch(graph)) return Importer(graph, file, true).read();
  try {
    return Importer(graph, file, false).read();
  } catch (const Error& by_row) {
    try {
      return Importer(graph, file, true).read();
    } catch (const Error& whole) {
      if (whole.diagnostics().size() < by_row.diagnostics().size()) throw;
    }
    throw;
  }
}

ImportedModel import_onnx(const std::string& path) {
  return imported(read_file(path), path);
}

}  // namespace graphrun
