// Converts an ONNX graph of dense layers, convolutions and activations to a model file: one formula per node.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"
#include "export/onnx/import.h"
#include "export/onnx/onnx_file.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using namespace onnx;

constexpr std::int64_t kAnyRows = -1;  // extent that represents the batch

// One parameter, shared by all nodes that read the constant. The first reader determines its storage order.
struct Constant {
  std::string name;  // in the ONNX file
  HostTensor tensor;
  std::string parameter;  // empty: no formula uses it yet
  bool stored_transposed = false;
};

struct Value {
  std::string name;                    // in formulas
  std::vector<std::int64_t> shape;     // kAnyRows first, except for constants
  std::shared_ptr<Constant> constant;  // null: computed value
  bool transposed = false;             // the value is the constant's transpose
};

// ONNX ops with one operand that map to a function of the formula language.
struct Function {
  const char *op, *name;
};
constexpr Function kFunctions[] = {{"Relu", "relu"},         {"Tanh", "tanh"}, {"Sigmoid", "sigmoid"},
                                   {"Softplus", "softplus"}, {"Selu", "selu"}, {"Exp", "exp"},
                                   {"Log", "log"},           {"Sqrt", "sqrt"}, {"Abs", "abs"},
                                   {"Neg", "neg"},           {"Erf", "erf"},   {"Floor", "floor"},
                                   {"Ceil", "ceil"},         {"Sign", "sign"}, {"Reciprocal", "reciprocal"},
                                   {"Sin", "sin"},           {"Cos", "cos"},   {"Tan", "tan"},
                                   {"Round", "round"}};
struct Operator {
  const char *op, *sign;
};
constexpr Operator kOperators[] = {{"Add", "+"}, {"Sub", "-"}, {"Mul", "*"}, {"Div", "/"}};

constexpr const char* kSupported =
    "supported: Gemm MatMul Add Sub Mul Div Relu LeakyRelu Elu Selu Tanh Sigmoid Softplus Softmax LogSoftmax Exp Log "
    "Sqrt Abs Neg Erf Floor Ceil Round Sign Reciprocal Sin Cos Tan Identity Dropout Cast Constant Flatten Reshape "
    "Transpose of weights, Conv MaxPool AveragePool GlobalAveragePool";

class Importer {
 public:
  Importer(File graph, std::string file) : graph_(std::move(graph)), file_(std::move(file)) {}

  ImportedModel read() {
    for (const Tensor& tensor : graph_.initializers) add_constant(tensor.name, tensor);
    for (const ValueInfo& input : graph_.inputs) add_input(input);
    const std::vector<bool> needed = needed_nodes();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!needed[i]) continue;
      const Node& node = graph_.nodes[i];
      const std::string problem = add(node);
      if (problem.empty()) continue;
      for (const std::string& output : node.outputs) unsaid_.insert(output);
      report("onnx.unsupported", fmt::format("{}: {}", shown(node), problem),
             reported_op_ && !std::exchange(listed_, true) ? kSupported : "");
    }
    add_outputs();
    if (!problems_.empty()) throw Error(ErrorKind::input, std::move(problems_));
    return {model(), std::move(parameters_)};
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

  // Marks the nodes that an output depends on.
  std::vector<bool> needed_nodes() const {
    std::set<std::string_view> wanted;
    for (const ValueInfo& output : graph_.outputs) wanted.insert(output.name);
    std::vector<bool> needed(graph_.nodes.size());
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      needed[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                              [&](const std::string& output) { return wanted.contains(output); });
      if (needed[i]) wanted.insert(node.inputs.begin(), node.inputs.end());
    }
    return needed;
  }

  // ---- names and values

  std::string unique(const std::string& text) {
    static const std::set<std::string_view> reserved{"and", "or", "not", "true", "false", "none", "pi", "e", "batch"};
    std::string wanted;
    for (const char c : text) {
      const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (kept || (c == '.' && !wanted.empty())) wanted += c;
      if (!kept && c != '.' && !wanted.empty()) wanted += '_';
    }
    while (!wanted.empty() && (wanted.back() == '_' || wanted.back() == '.')) wanted.pop_back();
    if (wanted.size() > 100) wanted.resize(100);
    if (wanted.empty() || (wanted[0] >= '0' && wanted[0] <= '9') || reserved.contains(wanted)) wanted = "v_" + wanted;
    std::string name = wanted;
    for (int number = 2; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
    return name;
  }

  bool define(const std::string& name, Value value) {
    if (values_.emplace(name, std::move(value)).second) return true;
    report("onnx.file", fmt::format("'{}' is given twice", printable(name)));
    return false;
  }

  void add_constant(const std::string& name, const Tensor& tensor) {
    HostTensor value = tensor_of(tensor, file_);
    const std::span<const std::int64_t> dims = value.shape().dims();
    std::vector<std::int64_t> shape(dims.begin(), dims.end());
    define(name, {"", std::move(shape), std::make_shared<Constant>(Constant{name, as_f32(std::move(value)), {}})});
  }

  static HostTensor as_f32(HostTensor value) {
    if (value.dtype() != DType::f64) return value;
    HostTensor rounded(DType::f32, value.shape());
    const std::span<const double> from = std::as_const(value).elements<double>();
    std::transform(from.begin(), from.end(), rounded.elements<float>().begin(),
                   [](double x) { return static_cast<float>(x); });
    return rounded;
  }

  void add_input(const ValueInfo& input) {
    if (values_.contains(input.name)) return;  // an initializer that is also listed as input, as in IR version 3
    if (input.type != DataType::f32)
      report("onnx.unsupported", fmt::format("the input '{}' is not f32", printable(input.name)));
    Value value{unique(input.name), {kAnyRows}, {}};
    for (std::size_t axis = 1; axis < input.dims.size(); ++axis) {
      value.shape.push_back(input.dims[axis].value);
      if (input.dims[axis].symbol.empty() && input.dims[axis].value > 0) continue;
      report("onnx.unsupported",
             fmt::format("dimension {} of the input '{}' is not a number", axis, printable(input.name)),
             "the first one is the batch, all others have a size");
    }
    if (input.dims.empty() || input.dims.size() > static_cast<std::size_t>(kMaxRank))
      report("onnx.unsupported",
             fmt::format("the input '{}' has {} dimensions", printable(input.name), input.dims.size()));
    inputs_.push_back({value.name, value.shape});
    define(input.name, std::move(value));
  }

  // Operand in a formula: a number, or the name of a parameter made from the constant.
  std::string formula(const std::string& name) { return formula(values_.at(name)); }

  std::string formula(const Value& value) {
    if (!value.constant) return value.transposed ? transpose_of(value.name) : value.name;
    Constant& constant = *value.constant;
    if (constant.tensor.dtype() == DType::f32 && constant.tensor.shape().rank() == 0) {
      const float number = constant.tensor.elements<float>()[0];
      if (std::isfinite(number)) return number < 0 ? fmt::format("({})", number) : fmt::format("{}", number);
    }
    if (constant.parameter.empty()) {
      constant.stored_transposed = value.transposed;
      constant.parameter = parameter(constant.name, value.transposed ? transposed(constant.tensor) : constant.tensor);
    }
    return value.transposed == constant.stored_transposed ? constant.parameter : transpose_of(constant.parameter);
  }

  static std::string transpose_of(const std::string& name) { return fmt::format("transpose({}, axes=[1, 0])", name); }

  std::string parameter(const std::string& name, const HostTensor& values) {
    const auto all_finite = [](std::span<const float> numbers) {
      return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
    };
    if (values.dtype() != DType::f32)
      report("onnx.unsupported", fmt::format("whole numbers of '{}' are computed with", printable(name)));
    else if (!all_finite(values.elements<float>()))
      report("onnx.value", fmt::format("'{}' has numbers that are not finite; a parameter is finite", printable(name)));
    const std::string own = unique(name);
    parameters_.emplace_back(own, values);
    return own;
  }

  bool is_constant(const std::string& name) const {
    const auto found = values_.find(name);
    return found != values_.end() && found->second.constant != nullptr;
  }
  const std::vector<std::int64_t>& shape(const std::string& name) const { return values_.at(name).shape; }

  // ---- nodes: each function returns "" or an error

  std::string add(const Node& node) {
    reported_op_ = false;
    if (node.outputs.empty()) return "it has no output";
    if (!node.domain.empty() && node.domain != "ai.onnx") return unsupported();
    bool follows = false;
    for (const std::string& input : node.inputs) {
      follows = follows || unsaid_.contains(input);
      if (input.empty() || values_.contains(input) || unsaid_.contains(input)) continue;
      return fmt::format("it reads '{}', which no earlier node gives", printable(input));
    }
    const std::string problem = follows ? check_only(node) : convert(node);
    if (problem.empty() && follows)
      for (const std::string& output : node.outputs) unsaid_.insert(output);
    return problem;
  }

  std::string unsupported() {
    reported_op_ = true;
    return "it is not supported";
  }

  // Checks only whether the op is supported, for a node that follows an unsupported one.
  std::string check_only(const Node& node) {
    static const std::set<std::string_view> known = [] {
      std::set<std::string_view> ops{"Gemm",        "MatMul",           "LeakyRelu", "Elu",  "Softmax",
                                     "LogSoftmax",  "Identity",         "Dropout",   "Cast", "Constant",
                                     "Flatten",     "Reshape",          "Transpose", "Conv", "MaxPool",
                                     "AveragePool", "GlobalAveragePool"};
      for (const Function& one : kFunctions) ops.insert(one.op);
      for (const Operator& one : kOperators) ops.insert(one.op);
      return ops;
    }();
    return known.contains(node.op) ? "" : unsupported();
  }

  std::string convert(const Node& node) {
    const auto needs = [&](std::size_t least, std::size_t most) {
      const bool fits = node.inputs.size() >= least && node.inputs.size() <= most &&
                        std::none_of(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(least),
                                     [](const std::string& input) { return input.empty(); });
      return fits ? std::string() : fmt::format("it has {} inputs", node.inputs.size());
    };
    const std::string& op = node.op;
    if (std::string wrong = check_only(node); !wrong.empty()) return wrong;  // for any number of inputs
    for (const Function& one : kFunctions) {
      if (op != one.op) continue;
      if (std::string wrong = needs(1, 1); !wrong.empty()) return wrong;
      return gives(node, shape(node.inputs[0]), fmt::format("{}({})", one.name, formula(node.inputs[0])));
    }
    for (const Operator& one : kOperators) {
      if (op != one.op) continue;
      if (std::string wrong = needs(2, 2); !wrong.empty()) return wrong;
      const std::optional<std::vector<std::int64_t>> both = broadcast(shape(node.inputs[0]), shape(node.inputs[1]));
      if (!both) return "its operands do not broadcast";
      return gives(node, *both, fmt::format("{} {} {}", formula(node.inputs[0]), one.sign, formula(node.inputs[1])));
    }
    if (op == "Constant") return constant(node);
    if (std::string wrong = needs(1, op == "Gemm" || op == "Conv" || op == "Dropout" ? 3 : 2); !wrong.empty())
      return wrong;
    const std::vector<std::int64_t> of = shape(node.inputs[0]);
    const std::string& x = node.inputs[0];
    if (op == "Gemm") return gemm(node);
    if (op == "MatMul") return matmul(node);
    if (op == "Identity" || op == "Dropout" || op == "Cast") {
      const Attribute* to = node.find("to");
      if (op == "Cast" &&
          (to == nullptr || (to->i != static_cast<int>(DataType::f32) && to->i != static_cast<int>(DataType::f64))))
        return "only casts to f32 and f64 are, which both stay f32";
      return same(node, values_.at(x));
    }
    if (op == "LeakyRelu" || op == "Elu") {
      const Attribute* alpha = node.find("alpha");
      const float slope = alpha != nullptr ? alpha->f : op == "Elu" ? 1.0f : 0.01f;
      if (!std::isfinite(slope)) return fmt::format("its alpha is {}", slope);
      return gives(node, of,
                   op == "Elu" ? fmt::format("elu({}, alpha={})", formula(x), slope)
                               : fmt::format("leaky_relu({}, slope={})", formula(x), slope));
    }
    if (op == "Softmax" || op == "LogSoftmax") {
      const Attribute* given = node.find("axis");
      const auto rank = static_cast<std::int64_t>(of.size());
      const std::int64_t axis = given == nullptr ? (graph_.opset < 13 ? 1 : -1) : given->i;
      if (axis != -1 && axis != rank - 1) return fmt::format("axis {} of {} is not the last", axis, rank);
      return gives(node, of, fmt::format("{}({})", op == "Softmax" ? "softmax" : "log_softmax", formula(x)));
    }
    if (op == "Flatten") {
      const Attribute* given = node.find("axis");
      const auto rank = static_cast<std::int64_t>(of.size());
      const std::int64_t axis = given == nullptr ? 1 : given->i < 0 ? given->i + rank : given->i;
      const bool merges_ones =
          axis > 0 && axis <= rank && std::all_of(of.begin() + 1, of.begin() + axis, [](auto n) { return n == 1; });
      if (axis != 0 && !merges_ones) return fmt::format("axis {} is not 1", given->i);
      return reshape(node, {axis == 0 ? 1 : 0, -1});
    }
    if (op == "Reshape") {
      if (node.inputs.size() != 2 || !is_constant(node.inputs[1])) return "its shape is not a constant";
      const HostTensor& wanted = values_.at(node.inputs[1]).constant->tensor;
      if (wanted.dtype() != DType::i32 || wanted.shape().rank() != 1) return "its shape is not a list of integers";
      const std::span<const std::int32_t> extents = wanted.elements<std::int32_t>();
      return reshape(node, {extents.begin(), extents.end()});
    }
    if (op == "Transpose") return transpose(node);
    if (op == "GlobalAveragePool") {
      if (of.size() < 3) return "its input is not (batch, channels, extents)";
      std::vector<std::int64_t> to = of;
      std::fill(to.begin() + 2, to.end(), 1);
      return gives(node, to, fmt::format("mean({}, axis=[{}], keepdims=true)", formula(x), listing(axes_from(2, of))));
    }
    if (op == "Conv" || op == "MaxPool" || op == "AveragePool") return windowed(node);
    return unsupported();
  }

  // Adds a formula that defines the node's value.
  std::string gives(const Node& node, std::vector<std::int64_t> shape, const std::string& text) {
    if (shape.empty() || shape[0] != kAnyRows) {
      for (const std::string& input : node.inputs)
        if (!input.empty() && !is_constant(input) && !values_.at(input).shape.empty() &&
            values_.at(input).shape[0] == kAnyRows)
          return "its first dimension is not the batch";
    }
    const std::string name = unique(node.outputs[0]);
    formulas_.push_back(fmt::format("{} = {}", name, text));
    define(node.outputs[0], {name, std::move(shape), {}});
    return "";
  }

  std::string same(const Node& node, Value value) {
    define(node.outputs[0], std::move(value));
    return "";
  }

  static std::optional<std::vector<std::int64_t>> broadcast(std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
    if (a.size() < b.size()) a.swap(b);
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::int64_t& x = a[a.size() - b.size() + i];
      if (x != b[i] && x != 1 && b[i] != 1) return std::nullopt;
      if (x == 1) x = b[i];
    }
    return a;
  }

  std::string matmul(const Node& node) {
    if (node.inputs.size() != 2) return "it has one input";
    const std::vector<std::int64_t>&a = shape(node.inputs[0]), &b = shape(node.inputs[1]);
    if (a.size() < 2 || b.size() != 2 || a.back() != b[0]) return "its shapes do not fit a dense layer";
    std::vector<std::int64_t> to = a;
    to.back() = b[1];
    const std::string left = formula(node.inputs[0]), right = formula(node.inputs[1]);
    return gives(node, to, fmt::format("{} @ {}", left, right));
  }

  std::string gemm(const Node& node) {
    if (node.inputs.size() < 2) return "it has one input";
    const auto number = [&](const char* name, float usual) {
      const Attribute* one = node.find(name);
      return one == nullptr ? usual : one->f;
    };
    const auto is_set = [&](const char* name) {
      const Attribute* one = node.find(name);
      return one != nullptr && one->i != 0;
    };
    if (is_set("transA")) return "transA is set";
    for (const char* factor : {"alpha", "beta"})
      if (!std::isfinite(number(factor, 1))) return fmt::format("its {} is {}", factor, number(factor, 1));
    const std::vector<std::int64_t>& a = shape(node.inputs[0]);
    Value weights = values_.at(node.inputs[1]);
    if (is_set("transB")) {
      if (weights.shape.size() != 2) return "its second input is not a matrix";
      if (weights.shape[0] == kAnyRows) return "transB is set, and its second input is not a constant";
      flip(weights);
    }
    if (a.size() != 2 || weights.shape.size() != 2 || a[1] != weights.shape[0]) return "its shapes do not fit";
    const std::vector<std::int64_t> to{a[0], weights.shape[1]};
    std::string text = formula(node.inputs[0]);
    text += fmt::format(" @ {}", formula(weights));
    if (const float alpha = number("alpha", 1); alpha != 1) text = fmt::format("({}) * ({})", text, alpha);
    if (node.inputs.size() == 3 && !node.inputs[2].empty()) {
      const std::optional<std::vector<std::int64_t>> sum = broadcast(to, shape(node.inputs[2]));
      if (!sum || *sum != to) return "its third input does not broadcast";
      const float beta = number("beta", 1);
      text += beta == 1 ? fmt::format(" + {}", formula(node.inputs[2]))
                        : fmt::format(" + {} * ({})", formula(node.inputs[2]), beta);
    }
    return gives(node, to, text);
  }

  // ---- convolutions and pooling: ONNX puts the channels first, formulas put them last

  using List = std::vector<std::int64_t>;

  static std::string listing(const List& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }
  static List axes_from(std::int64_t first, const List& shape) {
    List axes;
    for (auto axis = first; axis < static_cast<std::int64_t>(shape.size()); ++axis) axes.push_back(axis);
    return axes;
  }

  struct Windows {
    List size, stride, dilation, before, after, positions;
  };

  // Reads the attributes of a node with windows over `extents`; returns "" or an error.
  static std::string read_windows(const Node& node, const List& extents, Windows& to) {
    const std::size_t axes = extents.size();
    const auto numbers = [&](const char* name, std::int64_t usual, std::size_t count) {
      const Attribute* given = node.find(name);
      return given == nullptr || given->ints.empty() ? List(count, usual) : given->ints;
    };
    if (const Attribute* given = node.find("kernel_shape"); given != nullptr) to.size = given->ints;
    to.stride = numbers("strides", 1, axes);
    to.dilation = numbers("dilations", 1, axes);
    const List pads = numbers("pads", 0, 2 * axes);
    const Attribute* automatic = node.find("auto_pad");
    if (automatic != nullptr && automatic->s != "NOTSET" && automatic->s != "VALID" && automatic->s != "SAME_UPPER")
      return fmt::format("its auto_pad is {}", printable(automatic->s));
    const auto invalid = [](const List& list, std::size_t count, std::int64_t low) {
      return list.size() != count ||
             std::any_of(list.begin(), list.end(), [&](auto n) { return n < low || n > 65536; });
    };
    if (invalid(to.size, axes, 1) || invalid(to.stride, axes, 1) || invalid(to.dilation, axes, 1) ||
        invalid(pads, 2 * axes, 0))
      return "its windows do not fit its input";
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t reach = to.dilation[i] * (to.size[i] - 1) + 1;
      std::int64_t before = pads[i], after = pads[axes + i];
      if (automatic != nullptr && automatic->s == "SAME_UPPER") {
        const std::int64_t last = (extents[i] - 1) / to.stride[i] * to.stride[i];
        const std::int64_t total = std::max<std::int64_t>(last + reach - extents[i], 0);
        before = total / 2, after = total - before;
      }
      const std::int64_t rest = extents[i] + before + after - reach;
      if (rest < 0) return "its windows do not fit its input";
      to.before.push_back(before), to.after.push_back(after), to.positions.push_back(rest / to.stride[i] + 1);
    }
    return "";
  }

  // Adds a formula with a name of its own.
  std::string step(const Node& node, const std::string& text) {
    std::string name = unique(node.outputs[0] + "_step");
    formulas_.push_back(fmt::format("{} = {}", name, text));
    return name;
  }

  std::string windowed(const Node& node) {
    const List of = shape(node.inputs[0]);
    const bool convolves = node.op == "Conv", largest = node.op == "MaxPool";
    if (of.size() < 3 || of.size() > 5 || of[0] != kAnyRows) return "its input is not (batch, channels, extents)";
    if (node.outputs.size() > 1) return "its second output is";
    const auto number = [&](const char* name, std::int64_t usual) {
      const Attribute* one = node.find(name);
      return one == nullptr ? usual : one->i;
    };
    if (number("ceil_mode", 0) != 0) return "its ceil_mode is set";
    if (convolves && (node.inputs.size() < 2 || !is_constant(node.inputs[1]))) return "its weights are not constant";
    Windows windows;
    if (convolves) {
      const List& weights = shape(node.inputs[1]);
      if (weights.size() != of.size()) return "its weights do not fit its input";
      windows.size.assign(weights.begin() + 2, weights.end());
    }
    if (std::string wrong = read_windows(node, {of.begin() + 2, of.end()}, windows); !wrong.empty()) return wrong;
    const std::size_t axes = windows.size.size();
    const bool pads = std::any_of(windows.before.begin(), windows.before.end(), [](auto n) { return n > 0; }) ||
                      std::any_of(windows.after.begin(), windows.after.end(), [](auto n) { return n > 0; });
    if (!convolves && !largest && pads && number("count_include_pad", 0) == 0) return "it does not count its padding";
    List last = {0};
    for (const std::int64_t axis : axes_from(2, of)) last.push_back(axis);
    last.push_back(1);
    std::string text = fmt::format("transpose({}, axes=[{}])", formula(node.inputs[0]), listing(last));
    for (std::size_t i = 0; i < axes; ++i) {
      if (windows.before[i] == 0 && windows.after[i] == 0) continue;
      text = fmt::format("pad({}, axis={}, before={}, after={}{})", text, i + 1, windows.before[i], windows.after[i],
                         largest ? ", value=-3.4028234e38" : "");
    }
    const std::string x = step(node, text);
    const std::string attributes = fmt::format("size=[{}], stride=[{}], dilation=[{}]", listing(windows.size),
                                               listing(windows.stride), listing(windows.dilation));
    List to = {kAnyRows, convolves ? shape(node.inputs[1])[0] : of[1]};
    to.insert(to.end(), windows.positions.begin(), windows.positions.end());
    if (convolves) {
      if (std::string wrong = convolution(node, x, attributes, windows, of[1], number("group", 1), text);
          !wrong.empty())
        return wrong;
    } else {
      text = fmt::format("{}(windows({}, {}), axis=[{}])", largest ? "max" : "mean", x, attributes,
                         listing(axes_from(static_cast<std::int64_t>(axes) + 1, List(2 * axes + 1))));
    }
    List first = {0, static_cast<std::int64_t>(axes) + 1};
    for (std::size_t i = 0; i < axes; ++i) first.push_back(static_cast<std::int64_t>(i) + 1);
    return gives(node, to, fmt::format("transpose({}, axes=[{}])", text, listing(first)));
  }

  // The products of the windows of x, channels last; a parameter for each group, (elements of a window, filters).
  std::string convolution(const Node& node, const std::string& x, const std::string& attributes, const Windows& windows,
                          std::int64_t channels, std::int64_t groups, std::string& text) {
    const HostTensor& weights = values_.at(node.inputs[1]).constant->tensor;
    const std::int64_t filters = weights.shape()[0], width = weights.shape()[1];
    if (groups < 1 || groups > 64 || width < 1 || width * groups != channels || filters % groups != 0)
      return "its groups do not fit its weights";
    if (weights.dtype() != DType::f32) return "its weights are not f32";
    const std::int64_t taps = weights.shape().elements() / (filters * width), part = filters / groups;
    std::vector<std::string> products;
    for (std::int64_t group = 0; group < groups; ++group) {
      HostTensor matrix(DType::f32, Shape{taps * width, part});
      for (std::int64_t f = 0; f < part; ++f)
        for (std::int64_t c = 0; c < width; ++c)
          for (std::int64_t t = 0; t < taps; ++t)
            matrix.elements<float>()[static_cast<std::size_t>((t * width + c) * part + f)] =
                weights.elements<float>()[static_cast<std::size_t>(((group * part + f) * width + c) * taps + t)];
      const std::string of =
          groups == 1 ? x : fmt::format("slice({}, start={}, stop={})", x, group * width, (group + 1) * width);
      const std::string rows = fmt::format("reshape(windows({}, {}), shape=[-1, {}])", of, attributes, taps * width);
      products.push_back(step(node, fmt::format("{} @ {}", rows, parameter(node.inputs[1], matrix))));
    }
    for (std::size_t i = 0; products.size() > 1; i = i + 1 < products.size() ? i + 1 : 0) {
      products[i] = step(node, fmt::format("concat({}, {})", products[i], products[i + 1]));
      products.erase(products.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    text = products[0];
    if (node.inputs.size() == 3 && !node.inputs[2].empty()) text += " + " + formula(node.inputs[2]);
    text = fmt::format("reshape({}, shape=[-1, {}, {}])", text, listing(windows.positions), filters);
    return "";
  }

  static HostTensor transposed(const HostTensor& of) {
    const std::int64_t rows = of.shape()[0], columns = of.shape()[1];
    HostTensor result(of.dtype(), Shape{columns, rows});
    const std::size_t width = size_of(of.dtype());
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        std::copy_n(of.bytes().begin() + (i * columns + j) * static_cast<std::ptrdiff_t>(width), width,
                    result.bytes().begin() + (j * rows + i) * static_cast<std::ptrdiff_t>(width));
    return result;
  }

  static void flip(Value& matrix) {
    matrix.transposed = !matrix.transposed;
    std::swap(matrix.shape[0], matrix.shape[1]);
  }

  std::string transpose(const Node& node) {
    Value value = values_.at(node.inputs[0]);
    if (value.shape.size() != 2 || value.shape[0] == kAnyRows) return "only a matrix of weights is";
    const Attribute* perm = node.find("perm");
    const std::vector<std::int64_t> wanted = perm == nullptr ? std::vector<std::int64_t>{1, 0} : perm->ints;
    if (wanted == std::vector<std::int64_t>{0, 1}) return same(node, std::move(value));
    if (wanted != std::vector<std::int64_t>{1, 0}) return "its perm does not fit a matrix";
    flip(value);
    return same(node, std::move(value));
  }

  // Extents in `wanted`: 0 copies the input's extent, -1 is inferred.
  std::string reshape(const Node& node, std::vector<std::int64_t> wanted) {
    const std::vector<std::int64_t>& of = shape(node.inputs[0]);
    if (is_constant(node.inputs[0]) || of.empty() || of[0] != kAnyRows) return "its input has no batch";
    if (wanted.empty() || wanted.size() > static_cast<std::size_t>(kMaxRank)) return "its shape does not fit";
    std::int64_t elements = 1, given = 1;
    for (std::size_t axis = 1; axis < of.size(); ++axis) elements = checked(elements, of[axis]);
    std::size_t open = 0;
    for (std::size_t axis = 1; axis < wanted.size(); ++axis) {
      if (wanted[axis] == 0 && axis < of.size()) wanted[axis] = of[axis];
      if (wanted[axis] == -1)
        open = open == 0 ? axis : wanted.size();
      else
        given = checked(given, wanted[axis]);
    }
    // The batch may be -1, 0, or a number in files exported for a fixed batch.
    const bool is_batch = wanted[0] <= 0 || open == 0 || wanted[0] == exported_batch();
    if (open > 0 && open < wanted.size() && given > 0 && elements % given == 0) {
      wanted[open] = elements / given;
      given = elements;
    }
    if (!is_batch || given != elements || given <= 0) {
      const std::string problem = "its result does not keep the batch";
      return exported_batch() == 0
                 ? problem
                 : fmt::format("{}, which is {} in this file: export it with dynamic axes", problem, exported_batch());
    }
    wanted[0] = kAnyRows;
    std::string extents = "-1";
    for (std::size_t axis = 1; axis < wanted.size(); ++axis) extents += fmt::format(", {}", wanted[axis]);
    if (wanted == of) return same(node, values_.at(node.inputs[0]));
    return gives(node, wanted, fmt::format("reshape({}, shape=[{}])", formula(node.inputs[0]), extents));
  }

  // Fixed batch: first extent that all inputs share; 0: they differ, or the batch is dynamic.
  std::int64_t exported_batch() const {
    std::int64_t batch = 0;
    for (const ValueInfo& input : graph_.inputs) {
      if (is_constant(input.name) || input.dims.empty()) continue;
      if (!input.dims[0].symbol.empty() || (batch != 0 && input.dims[0].value != batch)) return 0;
      batch = input.dims[0].value;
    }
    return batch;
  }

  static std::int64_t checked(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? -1 : product;
  }

  std::string constant(const Node& node) {
    const Attribute* value = node.find("value");
    if (value != nullptr && value->t.size() == 1) {
      Tensor tensor = value->t[0];
      tensor.name = node.outputs[0];
      add_constant(node.outputs[0], tensor);
      return "";
    }
    const Attribute* number = node.find("value_float");
    if (number == nullptr) return "only tensors and floats are";
    const float one[] = {number->f};
    define(node.outputs[0],
           {"", {}, std::make_shared<Constant>(Constant{node.outputs[0], HostTensor(Shape{}, one), {}})});
    return "";
  }

  // ---- the model file

  void add_outputs() {
    if (graph_.outputs.empty()) report("onnx.file", "the graph has no output");
    if (inputs_.empty()) report("onnx.file", "the graph has no input");
    for (const ValueInfo& output : graph_.outputs) {
      const auto found = values_.find(output.name);
      if (unsaid_.contains(output.name)) continue;
      if (found == values_.end()) {
        report("onnx.file", fmt::format("no node gives the output '{}'", printable(output.name)));
        continue;
      }
      const Value& value = found->second;
      if (value.constant || value.shape.empty() || value.shape[0] != kAnyRows)
        report("onnx.unsupported", fmt::format("the output '{}' has no row for each sample", printable(output.name)));
      else
        outputs_.push_back({value.name, value.shape});
    }
    if (parameters_.empty() && problems_.empty())
      report("onnx.unsupported", "no output depends on weights, and a model has something to train");
  }

  static json::Value extents(const std::vector<std::int64_t>& shape) {
    json::Value list = json::make_array({json::make("batch")});
    for (std::size_t axis = 1; axis < shape.size(); ++axis) list.items.push_back(json::make(shape[axis]));
    return list;
  }

  std::string model() {
    json::Value inputs = json::make_object(), parameters = json::make_object(), outputs = json::make_object();
    json::Value lines = json::make_array();
    for (const auto& [name, shape] : inputs_) json::add(inputs, name, extents(shape));
    for (const auto& [name, tensor] : parameters_) {
      json::Value shape = json::make_array();
      for (const std::int64_t extent : tensor.shape().dims()) shape.items.push_back(json::make(extent));
      json::add(parameters, name, json::make_object({{"shape", std::move(shape)}, {"init", json::make("zeros")}}));
    }
    for (const std::string& line : formulas_) lines.items.push_back(json::make(line));
    std::string loss;
    std::set<std::string> told;
    for (const auto& [name, shape] : outputs_) {
      std::string output = name;
      if (!told.insert(output).second || is_input(output)) {
        output = unique(name);
        lines.items.push_back(json::make(fmt::format("{} = reshape({}, shape=[-1{}])", output, name, rest(shape))));
      }
      const std::string target = unique(output + "_target");
      json::add(inputs, target, extents(shape));
      json::add(outputs, output, json::make(target));
      loss += fmt::format("{}mean(square({} - {}))", loss.empty() ? "" : " + ", output, target);
    }
    const std::string minimized = unique("loss");
    lines.items.push_back(json::make(fmt::format("{} = {}", minimized, loss)));
    json::Value document = json::make_object();
    json::add(document, "format", json::make(std::int64_t{1}));
    json::add(document, "name", json::make(graph_.name.empty() ? "onnx" : printable(graph_.name)));
    json::add(document, "description", json::make("Imported from ONNX; to train it, say where its data are"));
    json::add(document, "data", json::make_object({{"train", json::make_object({{"npz", json::make("train.npz")}})}}));
    json::add(document, "inputs", std::move(inputs));
    json::add(document, "parameters", std::move(parameters));
    json::add(document, "graph", std::move(lines));
    json::add(document, "outputs", std::move(outputs));
    json::add(
        document, "train",
        json::make_object({{"minimize", json::make(minimized)},
                           {"optimizer", json::make_object({{"adam", json::make_object({{"lr", json::make(0.001)}})}})},
                           {"batch", json::make(std::int64_t{32})}}));
    return json::text(document);
  }

  bool is_input(const std::string& name) const {
    return std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& input) { return input.first == name; });
  }
  static std::string rest(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (std::size_t axis = 1; axis < shape.size(); ++axis) text += fmt::format(", {}", shape[axis]);
    return text;
  }

  using Shaped = std::pair<std::string, std::vector<std::int64_t>>;

  File graph_;
  std::string file_;
  std::map<std::string, Value> values_;   // keys: names in the ONNX file
  std::set<std::string> taken_, unsaid_;  // unsaid_: values that depend on unsupported nodes
  std::vector<Shaped> inputs_, outputs_;
  std::vector<std::string> formulas_;
  std::vector<std::pair<std::string, HostTensor>> parameters_;
  std::vector<Diagnostic> problems_;
  bool reported_op_ = false, listed_ = false;  // listed_: the first unsupported op lists the supported ones
};

}  // namespace

ImportedModel onnx::imported(const std::string& bytes, const std::string& file) {
  return Importer(decode(bytes, file), file).read();
}

ImportedModel import_onnx(const std::string& path) {
  return imported(read_file(path), path);
}

}  // namespace graphrun
