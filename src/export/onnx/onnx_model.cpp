// onnx_model.cpp: exports inference as an ONNX graph: a few nodes per step, symbolic batch, transforms included.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "export/onnx/onnx_file.h"
#include "graphrun/deployment.h"
#include "graphrun/error.h"
#include "graphrun/family_op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

using namespace onnx;

constexpr std::int64_t kOpset = 17;
constexpr const char* kBatchName = "batch";

// Scalar ops that map to one ONNX node with the same operands.
struct SameOp {
  Op op;
  const char* name;
};
constexpr SameOp kSame[] = {
    {Op::add, "Add"},
    {Op::sub, "Sub"},
    {Op::mul, "Mul"},
    {Op::div, "Div"},
    {Op::minimum, "Min"},
    {Op::maximum, "Max"},
    {scalar_op::pow, "Pow"},
    {scalar_op::neg, "Neg"},
    {scalar_op::abs, "Abs"},
    {scalar_op::sign, "Sign"},
    {scalar_op::sqrt, "Sqrt"},
    {scalar_op::reciprocal, "Reciprocal"},
    {scalar_op::exp, "Exp"},
    {scalar_op::log, "Log"},
    {scalar_op::sin, "Sin"},
    {scalar_op::cos, "Cos"},
    {scalar_op::tan, "Tan"},
    {scalar_op::tanh, "Tanh"},
    {scalar_op::sigmoid, "Sigmoid"},
    {scalar_op::softplus, "Softplus"},
    {scalar_op::relu, "Relu"},
    {scalar_op::selu, "Selu"},
    {scalar_op::erf, "Erf"},
    {scalar_op::floor, "Floor"},
    {scalar_op::ceil, "Ceil"},
    {scalar_op::round, "Round"},
    {scalar_op::equal, "Equal"},
    {scalar_op::less, "Less"},
    {scalar_op::less_equal, "LessOrEqual"},
    {scalar_op::greater, "Greater"},
    {scalar_op::greater_equal, "GreaterOrEqual"},
    {scalar_op::logical_and, "And"},
    {scalar_op::logical_or, "Or"},
    {scalar_op::logical_not, "Not"},
    {Op::where, "Where"},
};

struct Reduction {
  Op op;
  const char* name;
};
constexpr Reduction kReductions[] = {{Op::sum, "ReduceSum"},
                                     {Op::prod, "ReduceProd"},
                                     {Op::max, "ReduceMax"},
                                     {Op::min, "ReduceMin"},
                                     {Op::logsumexp, "ReduceLogSumExp"}};

class Exporter {
 public:
  explicit Exporter(const Deployment& deployment) : d_(deployment), program_(deployment.program) {}

  std::string write() {
    file_.name = d_.model;
    file_.opset = kOpset;
    for (const DeployedValue& input : d_.inputs)
      if (input.column) file_.text += fmt::format("{}: {}\n", input.name, input.column->text);
    if (!d_.columns.empty()) file_.text = fmt::format("{}\n{}", kColumnsBefore, fmt::join(d_.columns, "\n"));
    for (const DeployedValue& input : d_.inputs) add_input(input);
    for (const DeployedValue& output : d_.outputs) taken_.insert(output.name);
    for (const auto& [id, tensor] : d_.values) {
      names_[id] = unique(program_.buffers[id].name);
      file_.initializers.push_back(onnx::tensor(names_[id], tensor));
      last_[id] = id;
    }
    std::vector<Diagnostic> problems;
    for (const Step& step : d_.phase().steps) {
      const std::string problem = add(step);
      if (problem.empty()) continue;
      Diagnostic diagnostic;
      diagnostic.code = "export.unsupported";
      diagnostic.message = fmt::format("'{}': {} is not exported to ONNX", step.name, problem);
      problems.push_back(std::move(diagnostic));
    }
    if (!problems.empty()) throw Error(ErrorKind::input, std::move(problems));
    for (const DeployedValue& output : d_.outputs) add_output(output);
    return encode(file_);
  }

 private:
  const TensorType& type(BufferId id) const { return program_.buffers[id].type; }

  // ---- names and nodes

  std::string unique(const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::string wanted = slash == std::string::npos ? text : text.substr(slash + 1);
    std::string name = wanted;
    for (int number = 2; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
    return name;
  }

  // Name of a value that a step reads or writes.
  const std::string& name(BufferId id) {
    const auto known = names_.find(id);
    if (known != names_.end()) return known->second;
    if (id == d_.row_count) return names_[id] = scalar_count();
    // A reshape is not a step: it is another buffer at the same offset of the same storage.
    const BufferId root = storage_root(program_, id);
    const auto shown = last_.find(root);
    if (shown != last_.end() && program_.buffers[shown->second].offset == program_.buffers[id].offset &&
        type(shown->second).shape.elements() == type(id).shape.elements()) {
      const std::string reshaped = node("Reshape", {name(shown->second), numbers(extents(type(id), -1))});
      return names_[id] = reshaped;
    }
    throw std::logic_error("onnx_model: a step reads a buffer that nothing writes: " + program_.buffers[id].name);
  }

  std::string node(const char* op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {},
                   const std::string& output = {}) {
    Node one;
    one.op = op;
    one.inputs = std::move(inputs);
    one.outputs = {output.empty() ? unique(fmt::format("{}_{}", op, file_.nodes.size())) : output};
    one.name = one.outputs[0];
    one.attributes = std::move(attributes);
    file_.nodes.push_back(std::move(one));
    return file_.nodes.back().outputs[0];
  }

  std::string number(double value, DType dtype) {
    HostTensor tensor(dtype, Shape{});
    if (dtype == DType::f64)
      tensor.elements<double>()[0] = value;
    else
      tensor.elements<float>()[0] = static_cast<float>(value);
    return constant(onnx::tensor("", tensor));
  }
  std::string numbers(const std::vector<std::int64_t>& values) { return constant(onnx::tensor("", values)); }
  std::string constant(Tensor tensor) {
    tensor.name = unique("constant");
    file_.initializers.push_back(tensor);
    return tensor.name;
  }
  std::string cast(const std::string& value, DataType to, const std::string& output = {}) {
    return node("Cast", {value}, {attribute("to", static_cast<std::int64_t>(to))}, output);
  }

  // First output that equals the buffer without transforms; null if there is none.
  const DeployedValue* output_in(BufferId id) const {
    const auto found = std::find_if(d_.outputs.begin(), d_.outputs.end(), [&](const DeployedValue& one) {
      return one.buffer == id && !one.units && !one.column;
    });
    return found == d_.outputs.end() ? nullptr : &*found;
  }

  // ---- inputs and outputs in the user's units

  ValueInfo info(const DeployedValue& value) const {
    const TensorType& of = type(value.buffer);
    const bool is_text = value.column && !value.column->categories.empty();
    ValueInfo one{value.name, is_text ? DataType::string : data_type(of.dtype), {}};
    for (int axis = 0; axis < of.shape.rank(); ++axis) {
      const bool is_batch = axis == 0 && of.rows > 0;
      one.dims.push_back(is_batch ? Dim{0, of.rows == 1 ? kBatchName : fmt::format("{}*{}", of.rows, kBatchName)}
                                  : Dim{of.shape[axis], ""});
    }
    if (value.column && of.shape.rank() == 1 && is_input(value)) one.dims.push_back({1, ""});
    return one;
  }
  bool is_input(const DeployedValue& value) const {
    return std::any_of(d_.inputs.begin(), d_.inputs.end(), [&](const DeployedValue& one) { return &one == &value; });
  }

  // Strings to numbers of i64, or numbers to strings.
  std::string encode_labels(const std::string& value, const DeployedColumn& column, bool to_text,
                            const std::string& output = {}) {
    std::vector<std::string> words = column.categories;
    std::vector<std::int64_t> codes(words.size());
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int64_t>(i);
    // Code of an unknown string: one_hot has no column for it.
    const auto unknown = static_cast<std::int64_t>(words.size()) - (column.other ? 1 : 0);
    if (!to_text) {
      words.emplace_back();
      codes.push_back(-1);
    }
    const char* const keys = to_text ? "keys_int64s" : "keys_strings";
    const char* const values = to_text ? "values_strings" : "values_int64s";
    std::vector<Attribute> attributes{to_text ? attribute(keys, codes) : attribute(keys, words),
                                      to_text ? attribute(values, words) : attribute(values, codes)};
    if (!to_text) attributes.push_back(attribute("default_int64", unknown));
    if (to_text) attributes.push_back(attribute("default_string", std::string()));
    const std::string result = node("LabelEncoder", {value}, attributes, output);
    file_.nodes.back().domain = kMlDomain;
    return result;
  }

  // Values of Standardization as a constant that broadcasts over the rows: one per element of the last axes.
  std::string columns(const std::vector<double>& values, const TensorType& of) {
    Shape shape;
    std::int64_t count = 1;
    int axis = of.shape.rank();
    while (axis > 1 && count < static_cast<std::int64_t>(values.size())) count *= of.shape[--axis];
    for (; axis < of.shape.rank(); ++axis) shape.push_back(of.shape[axis]);
    HostTensor tensor(DType::f64, shape);
    if (tensor.elements<double>().size() != values.size())
      throw std::logic_error("onnx_model: numbers for other columns");
    std::copy(values.begin(), values.end(), tensor.elements<double>().begin());
    return constant(onnx::tensor("", tensor));
  }

  void add_input(const DeployedValue& input) {
    file_.inputs.push_back(info(input));
    taken_.insert(input.name);
    if (input.column) {
      last_[input.buffer] = input.buffer;
      std::string value = node("Reshape", {input.name, numbers({-1})});
      if (!input.column->categories.empty()) value = cast(encode_labels(value, *input.column, false), DataType::i32);
      names_[input.buffer] = value;
      return;
    }
    if (!input.units) {
      names_[input.buffer] = input.name;
      last_[input.buffer] = input.buffer;
      return;
    }
    // In double, as graphrun does: values may be large compared with their differences.
    std::string value = cast(input.name, DataType::f64);
    if (input.units->log == LogTransform::log1p) value = node("Add", {value, number(1, DType::f64)});
    if (input.units->log != LogTransform::none) value = node("Log", {value});
    value = node("Sub", {value, columns(input.units->shift, type(input.buffer))});
    value = node("Div", {value, columns(input.units->scale, type(input.buffer))});
    names_[input.buffer] = cast(value, DataType::f32);
    last_[input.buffer] = input.buffer;
  }

  void add_output(const DeployedValue& output) {
    file_.outputs.push_back(info(output));
    if (const auto known = names_.find(output.buffer); known != names_.end() && known->second == output.name) return;
    if (output.column) {
      encode_labels(cast(name(output.buffer), DataType::i64), *output.column, true, output.name);
      return;
    }
    if (!output.units) {
      node("Identity", {name(output.buffer)}, {}, output.name);
      return;
    }
    std::string value = cast(name(output.buffer), DataType::f64);
    value = node("Mul", {value, columns(output.units->scale, type(output.buffer))});
    value = node("Add", {value, columns(output.units->shift, type(output.buffer))});
    if (output.units->log != LogTransform::none) value = node("Exp", {value});
    if (output.units->log == LogTransform::log1p) value = node("Sub", {value, number(1, DType::f64)});
    cast(value, DataType::f32, output.name);
  }

  // ---- the batch

  // i64 tensor with one element: `wanted` rows per sample times the batch.
  std::string rows(std::int64_t wanted) {
    const DeployedValue& first = d_.inputs.front();
    const std::int64_t own = type(first.buffer).rows;
    std::string extent =
        node("Shape", {first.name}, {attribute("start", std::int64_t{0}), attribute("end", std::int64_t{1})});
    if (own != 1) extent = node("Div", {extent, numbers({own})});
    return wanted == 1 ? extent : node("Mul", {extent, numbers({wanted})});
  }
  std::string scalar_count() { return cast(node("Squeeze", {rows(1), numbers({0})}), DataType::i32); }

  // ---- steps: each function returns "" or a reason

  std::string add(const Step& step) {
    const BufferId root = storage_root(program_, step.output);
    for (const BufferId id : step.inputs) {
      if (!unsaid_.contains(storage_root(program_, id))) continue;
      unsaid_.insert(root);
      return "";  // reported for the unsupported step it depends on
    }
    std::vector<std::string> in;
    for (const BufferId id : step.inputs) in.push_back(name(id));
    const DeployedValue* const output = output_in(step.output);
    out_ = output != nullptr ? output->name : unique(program_.buffers[step.output].name);
    names_[step.output] = out_;
    last_[root] = step.output;
    const std::string problem = add(step, in, type(step.output));
    if (problem.empty())
      unsaid_.erase(root);
    else
      unsaid_.insert(root);
    return problem;
  }

  std::string add(const Step& step, const std::vector<std::string>& in, const TensorType& to) {
    const auto gives = [&](const char* op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {}) {
      node(op, std::move(inputs), std::move(attributes), out_);
      return std::string();
    };
    if (to.dtype == DType::u64 || type(step.inputs[0]).dtype == DType::u64)
      return fmt::format("the op {}, which has operands of u64,", name_of(step.op));
    for (const SameOp& same : kSame)
      if (same.op == step.op) return gives(same.name, in);
    for (const Reduction& reduction : kReductions)
      if (reduction.op == step.op) return reduce(reduction.name, step, in[0]);
    if (step.op == Op::matmul) {
      const auto& params = step.params.as<MatmulParams>();
      return gives("MatMul", {params.transpose_a ? turned(in[0], type(step.inputs[0])) : in[0],
                              params.transpose_b ? turned(in[1], type(step.inputs[1])) : in[1]});
    }
    if (step.op == Op::reshape) return gives("Reshape", {in[0], numbers(extents(to, -1))});
    if (step.op == Op::broadcast_to) return expand(step, in[0], to);
    if (step.op == Op::cast) return cast(in[0], data_type(to.dtype), out_), "";
    if (step.op == Op::transpose) {
      const std::int32_t* axes = step.params.as<PermuteParams>().axes;
      return gives("Transpose", {in[0]}, {attribute("perm", std::vector<std::int64_t>(axes, axes + to.shape.rank()))});
    }
    if (step.op == Op::slice) {
      const auto& params = step.params.as<SliceParams>();
      return gives("Slice", {in[0], numbers({params.start}), numbers({params.start + to.shape[params.axis]}),
                             numbers({params.axis})});
    }
    if (step.op == Op::pad) {
      const auto& params = step.params.as<PadParams>();
      const auto rank = static_cast<std::size_t>(to.shape.rank()), axis = static_cast<std::size_t>(params.axis);
      std::vector<std::int64_t> pads(2 * rank, 0);
      pads[axis] = params.before;
      pads[rank + axis] = to.shape[params.axis] - type(step.inputs[0]).shape[params.axis] - params.before;
      if (!is_float(to.dtype)) return "pad of other numbers than f32 and f64";
      return gives("Pad", {in[0], numbers(pads), number(params.value, to.dtype)});
    }
    if (step.op == family_op::windows) return windows(step, in[0], to);
    if (step.op == family_op::fold) return fold(step, in[0], to);
    if (step.op == Op::concat)
      return gives("Concat", in, {attribute("axis", std::int64_t{step.params.as<AxisParams>().axis})});
    if (step.op == Op::argmax || step.op == Op::argmin) {
      const std::string found = node(
          step.op == Op::argmax ? "ArgMax" : "ArgMin", {in[0]},
          {attribute("axis", std::int64_t{step.params.as<AxisParams>().axis}), attribute("keepdims", std::int64_t{0})});
      return cast(found, DataType::i32, out_), "";
    }
    if (step.op == family_op::softmax || step.op == family_op::log_softmax)
      return gives(step.op == family_op::softmax ? "Softmax" : "LogSoftmax", {in[0]},
                   {attribute("axis", std::int64_t{step.params.as<AxisParams>().axis})});
    if (step.op == family_op::gather) return gives("Gather", in, {attribute("axis", std::int64_t{0})});
    if (step.op == family_op::one_hot) {
      HostTensor values(DType::f32, Shape{2});
      values.elements<float>()[1] = 1;
      if (to.dtype != DType::f32) return "one_hot of other numbers than f32";
      return gives("OneHot", {cast(in[0], DataType::i64), numbers({to.shape[to.shape.rank() - 1]}),
                              constant(onnx::tensor("", values))});
    }
    return composed(step, in, to.dtype);
  }

  // Gathers (positions, size) along each axis, then moves the axes of a window behind all positions.
  std::string windows(const Step& step, std::string value, const TensorType& to) {
    const auto& params = step.params.as<WindowParams>();
    const int first = to.shape.rank() - 1 - 2 * params.axes;
    std::vector<std::int64_t> order;
    for (int axis = 0; axis < first; ++axis) order.push_back(axis);
    for (const int part : {0, 1})
      for (int i = 0; i < params.axes; ++i) order.push_back(first + 2 * i + part);
    order.push_back(to.shape.rank() - 1);
    for (int i = 0; i < params.axes; ++i) {
      HostTensor indices(DType::i32, Shape{to.shape[first + i], params.size[i]});
      const std::span<std::int32_t> element = indices.elements<std::int32_t>();
      for (std::size_t n = 0; n < element.size(); ++n) {
        const auto at = static_cast<std::int32_t>(n);
        element[n] = at / params.size[i] * params.stride[i] + at % params.size[i] * params.dilation[i];
      }
      value = node("Gather", {value, constant(onnx::tensor("", indices))},
                   {attribute("axis", std::int64_t{first + 2 * i})});
    }
    node("Transpose", {value}, {attribute("perm", order)}, out_);
    return "";
  }

  // A transposed convolution of each channel: weight (channel and tap, 0, tap) is 1.
  std::string fold(const Step& step, std::string value, const TensorType& to) {
    const auto& params = step.params.as<WindowParams>();
    const int first = to.shape.rank() - 1 - params.axes, last = to.shape.rank() - 1 + params.axes;
    const Shape& from = type(step.inputs[0]).shape;
    if (to.dtype != DType::f32) return "fold of other numbers than f32";
    std::vector<std::int64_t> order, sizes, strides, dilations, rest, flat = {-1, 0}, back = {0};
    std::int64_t taps = 1;
    for (int axis = 0; axis < first; ++axis) order.push_back(axis);
    order.push_back(last);
    for (const int part : {1, 0})
      for (int i = 0; i < params.axes; ++i) order.push_back(first + part * params.axes + i);
    for (int i = 0; i < params.axes; ++i) {
      sizes.push_back(params.size[i]), strides.push_back(params.stride[i]), dilations.push_back(params.dilation[i]);
      rest.push_back(to.shape[first + i] - (from[first + i] - 1) * params.stride[i] -
                     (params.size[i] - 1) * params.dilation[i] - 1);
      taps *= params.size[i];
      flat.push_back(from[first + i]), back.push_back(i + 2);
    }
    const std::int64_t channels = from[last];
    flat[1] = channels * taps, back.push_back(1);
    Shape shape{channels * taps, 1};
    for (const std::int64_t size : sizes) shape.push_back(size);
    HostTensor weights(DType::f32, shape);
    for (std::int64_t i = 0; i < channels * taps; ++i)
      weights.elements<float>()[static_cast<std::size_t>(i * taps + i % taps)] = 1;
    value = node("Reshape", {node("Transpose", {value}, {attribute("perm", order)}), numbers(flat)});
    value = node("ConvTranspose", {value, constant(onnx::tensor("", weights))},
                 {attribute("group", channels), attribute("kernel_shape", sizes), attribute("strides", strides),
                  attribute("dilations", dilations), attribute("output_padding", rest)});
    value = node("Transpose", {value}, {attribute("perm", back)});
    node("Reshape", {value, numbers(extents(to, -1))}, {}, out_);
    return "";
  }

  // Scalar functions that need several ONNX nodes.
  std::string composed(const Step& step, const std::vector<std::string>& in, DType dtype) {
    const auto value = [&](double x) { return number(x, dtype); };
    const auto gives = [&](const char* op, std::vector<std::string> inputs) {
      node(op, std::move(inputs), {}, out_);
      return std::string();
    };
    const auto* scalars = step.params.get_if<ScalarParams>();
    const Op op = step.op;
    if (op == scalar_op::square) return gives("Mul", {in[0], in[0]});
    if (op == scalar_op::rsqrt) return gives("Reciprocal", {node("Sqrt", {in[0]})});
    if (op == scalar_op::expm1) return gives("Sub", {node("Exp", {in[0]}), value(1)});
    if (op == scalar_op::log1p) return gives("Log", {node("Add", {in[0], value(1)})});
    if (op == scalar_op::silu) return gives("Mul", {in[0], node("Sigmoid", {in[0]})});
    if (op == scalar_op::not_equal) return gives("Not", {node("Equal", in)});
    if (op == scalar_op::mod) return gives("Sub", {in[0], node("Mul", {in[1], node("Floor", {node("Div", in)})})});
    if (op == scalar_op::gelu) {
      const std::string erf = node("Erf", {node("Div", {in[0], value(std::sqrt(2.0))})});
      return gives("Mul", {node("Mul", {in[0], value(0.5)}), node("Add", {erf, value(1)})});
    }
    if (op == scalar_op::gelu_tanh) {
      const std::string cube = node("Mul", {node("Mul", {in[0], in[0]}), in[0]});
      const std::string inner = node("Add", {in[0], node("Mul", {cube, value(0.044715)})});
      return gives("Mul", {in[0], node("Sigmoid", {node("Mul", {inner, value(1.5957691216057308)})})});
    }
    if (op == scalar_op::leaky_relu || op == scalar_op::elu) {
      node(op == scalar_op::elu ? "Elu" : "LeakyRelu", {in[0]}, {attribute("alpha", static_cast<float>(scalars->a))},
           out_);
      return "";
    }
    if (op == scalar_op::clip) return gives("Clip", {in[0], value(scalars->a), value(scalars->b)});
    return "the op " + std::string(name_of(op));
  }

  // Extents for Reshape and Expand. `batch` replaces dimension 0 if that is the batch.
  static std::vector<std::int64_t> extents(const TensorType& of, std::int64_t batch) {
    std::vector<std::int64_t> result(of.shape.dims().begin(), of.shape.dims().end());
    if (of.rows > 0) result[0] = batch;
    return result;
  }

  std::string expand(const Step& step, const std::string& in, const TensorType& to) {
    const TensorType& from = type(step.inputs[0]);
    if (to.rows == 0 || (from.rows == to.rows && from.shape.rank() == to.shape.rank())) {
      node("Expand", {in, numbers(extents(to, 1))}, {}, out_);  // an extent of 1 keeps the batch
      return "";
    }
    std::vector<std::int64_t> rest = extents(to, 1);
    rest.erase(rest.begin());
    std::vector<std::string> parts{rows(to.rows)};
    if (!rest.empty()) parts.push_back(numbers(rest));
    node("Expand", {in, node("Concat", parts, {attribute("axis", std::int64_t{0})})}, {}, out_);
    return "";
  }

  std::string turned(const std::string& in, const TensorType& of) {
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < of.shape.rank(); ++axis) axes.push_back(axis);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return node("Transpose", {in}, {attribute("perm", axes)});
  }

  std::string reduce(const char* op, const Step& step, const std::string& in) {
    const auto& params = step.params.as<ReduceParams>();
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < kMaxRank; ++axis)
      if ((params.axes >> axis & 1u) != 0) axes.push_back(axis);
    std::vector<Attribute> attributes{attribute("keepdims", std::int64_t{params.keepdims})};
    std::vector<std::string> inputs{in};
    // `axes` is an input of ReduceSum since opset 13, of the other reductions since opset 18.
    if (step.op == Op::sum)
      inputs.push_back(numbers(axes));
    else
      attributes.push_back(attribute("axes", axes));
    node(op, inputs, attributes, out_);
    return "";
  }

  const Deployment& d_;
  const Program& program_;
  File file_;
  std::map<BufferId, std::string> names_;
  std::map<BufferId, BufferId> last_;  // last buffer written to each storage
  std::set<BufferId> unsaid_;          // storages that depend on unsupported steps
  std::set<std::string> taken_;
  std::string out_;  // name of the current step's result
};

}  // namespace

std::string onnx_model(const Deployment& deployment) {
  return Exporter(deployment).write();
}

}  // namespace graphrun
