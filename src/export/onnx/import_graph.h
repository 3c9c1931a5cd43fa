// import_graph.h: values of an ONNX graph that is imported, as expressions of the formula language.
// Contract: shapes and axes are those of the ONNX file. Operations on constants of integers or bools give constants;
// all others give expressions. An operation that no formula can express throws Rejection. Not handled here: ONNX's
// nodes (import_ops.cpp, import_windows.cpp, import_ml.cpp) and the model file (import.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun::onnx {

using List = std::vector<std::int64_t>;
constexpr std::int64_t kAnyRows = INT32_MIN + 1;  // extent that represents the batch, also among folded integers

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;  // largest dimension that can be cut

struct Rejection {
  std::string message, code = "onnx.unsupported";
};

// Shared by all nodes that read the constant. The first formula with it determines the parameter's storage order.
struct Constant {
  std::string name;  // in the ONNX file
  HostTensor tensor;
  std::string parameter;  // empty: no formula uses it yet
  bool stored_transposed = false;
  bool trainable = true;
};

struct GraphValue {
  std::string text;  // name, call, number, or an expression in parentheses; empty: a constant
  List shape;
  DType dtype = DType::f32;
  bool by_sample = false;  // depends on an input
  bool trained = false;    // depends on parameters, with a gradient
  bool is_input = false;
  std::shared_ptr<Constant> constant = {};
  bool transposed = false;  // the value is the constant's transpose
};

struct Parameter {
  std::string name;
  HostTensor values;  // f32
  bool trainable = true;
};

bool is_name(const std::string& text);
bool is_weights(const GraphValue& value);  // f32 constant that becomes a parameter; a scalar is a number
List axes_from(std::int64_t first, const List& shape);
std::string listing(const List& numbers);
std::int64_t elements_of(const List& shape);  // saturates
std::vector<double> numbers_of(const GraphValue& constant);
GraphValue constant_of(const std::string& name, DType dtype, List shape, const std::vector<double>& numbers);

class Graph {
 public:
  // A sample of the model is a row of the file's inputs, or (`whole`) a call with all of their dimensions.
  explicit Graph(bool whole) : whole_(whole) {}

  bool whole() const { return whole_; }
  std::string unique(const std::string& text);
  void begin(const std::string& node) { node_ = node; }              // prefix of the formulas that follow
  GraphValue named(GraphValue value, const std::string& name = {});  // gives an expression a name, if it has none
  void add_formula(const std::string& name, const std::string& text) { formulas.push_back(name + " = " + text); }
  std::string parameter(const std::string& name, HostTensor values, bool trainable = true);
  // Operand in a formula; of an expression for `rank` axes, it broadcasts to them.
  std::string text(const GraphValue& value, std::size_t rank = 0);

  // A formula over x, y, z, u, v. `types` has a letter for each operand and for the result: F f32, B bool, T any dtype
  // that all T share.
  GraphValue apply(std::string_view formula, const std::vector<GraphValue>& operands,
                   std::string_view types = "FFFFF>F");
  GraphValue reshape(const GraphValue& value, List to);
  GraphValue pad(const GraphValue& value, std::size_t axis, std::int64_t before, std::int64_t after, double number);
  GraphValue transpose(const GraphValue& value, const List& axes);
  GraphValue take(const GraphValue& value, std::size_t axis, const List& indices);  // elements along an axis
  GraphValue concat(std::vector<GraphValue> parts, std::size_t axis);
  GraphValue cast(const GraphValue& value, DType dtype);
  GraphValue reduce(const char* function, const GraphValue& value, const List& axes, bool keepdims);
  GraphValue product(const GraphValue& a, const GraphValue& b);  // both of at least two axes
  GraphValue call(const std::string& function, const GraphValue& value, std::size_t axis);
  // Axis in formulas.
  std::int64_t axis(const GraphValue& value, std::size_t axis) const;
  // Extents of a formula's reshape().
  std::string extents(const GraphValue& value, const List& shape) const;

  std::vector<std::string> formulas;
  std::vector<Parameter> parameters;
  std::set<std::string> used;  // names of inputs in formulas

 private:
  List broadcast(const List& a, const List& b) const;
  GraphValue result(std::string text, const GraphValue& of, List shape) const;

  bool whole_;
  std::string node_;
  std::set<std::string> taken_;
};

}  // namespace graphrun::onnx
