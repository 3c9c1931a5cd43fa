// import_ops.h: table of the ONNX ops that import-onnx reads.
// Contract: a rule returns the node's first output, stores further ones in `more`, and throws Rejection for a node that
// it does not support. Not handled here: order of the nodes, and their names in the file (import.cpp).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "export/onnx/import_graph.h"
#include "export/onnx/onnx_file.h"

namespace graphrun::onnx {

// A node with its inputs as values.
struct Call {
  Graph& graph;
  const Node& node;
  const std::set<std::string>& wanted;  // names of values that a later node or the file's user reads
  std::int64_t opset = 0;
  std::int64_t exported_batch = 0;                            // rows that the file was exported for; 0: any number
  std::string file = {};                                      // the ONNX file, for messages and external data
  std::vector<std::optional<GraphValue>> inputs = {};         // nullopt: omitted
  std::vector<std::pair<std::size_t, GraphValue>> more = {};  // (index of an output, its value)

  const GraphValue& x(std::size_t i = 0) const { return *inputs[i]; }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].has_value(); }
  bool wants(std::size_t output) const { return output < node.outputs.size() && wanted.contains(node.outputs[output]); }
  std::size_t rank(std::size_t i = 0) const { return x(i).shape.size(); }

  std::int64_t integer(const char* name, std::int64_t usual) const;
  float number(const char* name, float usual) const;  // finite
  std::string word(const char* name, const char* usual) const;
  List list(const char* name, List usual) const;
  // Integers of the constant input i, or of the attribute in older opsets; nullopt: neither is given.
  std::optional<List> integers(std::size_t i, const char* name) const;
  std::size_t axis(std::int64_t axis, std::size_t rank) const;
  List axes(const List& axes, std::size_t rank) const;  // sorted
};

struct OpRule {
  const char* op;
  std::size_t min_inputs, max_inputs;  // max_inputs of kAnyNumber: none may be omitted
  std::function<GraphValue(Call& call)> rule;
  std::string domain = {};
};
using Rules = std::vector<OpRule>;
constexpr std::size_t kAnyNumber = 64;

const OpRule* find_rule(const Node& node);  // null: the op is not supported
std::vector<std::string> imported_ops();    // sorted

// Rules of one file each.
Rules window_rules();
Rules machine_learning_rules();  // domain ai.onnx.ml

GraphValue number(float value);
GraphValue constant_value(const std::string& name, const Tensor& tensor,
                          const std::string& file);  // f32, i32 or bool

}  // namespace graphrun::onnx
