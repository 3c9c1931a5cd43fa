// Ops of ONNX's default domain: arithmetic, shapes, reductions, normalization.
#include "export/onnx/import_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "base/json_text.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/types.h"

namespace graphrun::onnx {

// ---- attributes and constant inputs of a node

std::int64_t Call::integer(const char* name, std::int64_t usual) const {
  const Attribute* one = node.find(name);
  return one == nullptr ? usual : one->i;
}

float Call::number(const char* name, float usual) const {
  const Attribute* one = node.find(name);
  if (one != nullptr && !std::isfinite(one->f)) throw Rejection{fmt::format("its {} is {}", name, one->f)};
  return one == nullptr ? usual : one->f;
}

std::string Call::word(const char* name, const char* usual) const {
  const Attribute* one = node.find(name);
  return one == nullptr || one->s.empty() ? usual : one->s;
}

List Call::list(const char* name, List usual) const {
  const Attribute* one = node.find(name);
  return one == nullptr || one->ints.empty() ? usual : one->ints;
}

std::optional<List> Call::integers(std::size_t i, const char* name) const {
  if (has(i)) {
    if (!x(i).constant || x(i).dtype != DType::i32 || rank(i) > 1)
      throw Rejection{fmt::format("its {} is not a constant list of integers", name)};
    const std::vector<double> numbers = numbers_of(x(i));
    return List(numbers.begin(), numbers.end());
  }
  const Attribute* one = node.find(name);
  if (one == nullptr) return std::nullopt;
  return one->ints;
}

std::size_t Call::axis(std::int64_t axis, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) throw Rejection{fmt::format("it has no axis {}", axis)};
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

List Call::axes(const List& given, std::size_t rank) const {
  std::set<std::int64_t> axes;
  for (const std::int64_t one : given) axes.insert(static_cast<std::int64_t>(axis(one, rank)));
  return {axes.begin(), axes.end()};
}

GraphValue number(float value) {
  return constant_of("number", DType::f32, {}, {value});
}

GraphValue constant_value(const std::string& name, const Tensor& tensor, const std::string& file) {
  HostTensor read = tensor_of(tensor, file);
  if (read.dtype() == DType::f64) read = from_doubles(as_doubles(read), {DType::f32, read.shape(), 0});
  const std::span<const std::int64_t> dims = read.shape().dims();
  GraphValue value{"", List(dims.begin(), dims.end()), read.dtype()};
  value.constant = std::make_shared<Constant>(Constant{name, std::move(read), {}});
  return value;
}

namespace {

// ---- elements: a formula over the operands x, y and z; $name=default is an attribute

struct Formula {
  const char *op, *formula;
  const char* types = "F>F";
};
// clang-format off
constexpr Formula kFormulas[] = {
    {"Add", "x + y", "FF>F"}, {"Sub", "x - y", "FF>F"}, {"Mul", "x * y", "FF>F"}, {"Div", "x / y", "FF>F"},
    {"Pow", "pow(x, y)", "FF>F"}, {"Relu", "relu(x)"}, {"LeakyRelu", "leaky_relu(x, slope=$alpha=0.01)"},
    {"PRelu", "where(x < 0, x * y, x)", "FF>F"}, {"ThresholdedRelu", "where(x > $alpha=1.0, x, 0)"},
    {"Elu", "elu(x, alpha=$alpha=1.0)"}, {"Celu", "maximum(x, 0) + minimum($alpha=1.0 * expm1(x / $alpha=1.0), 0)"},
    {"Selu", "$gamma=1.0507010 * elu(x, alpha=$alpha=1.6732632)"}, {"Tanh", "tanh(x)"}, {"Sigmoid", "sigmoid(x)"},
    {"HardSigmoid", "clip($alpha=0.2 * x + $beta=0.5, low=0, high=1)"},
    {"HardSwish", "x * clip(x / 6 + 0.5, low=0, high=1)"}, {"Swish", "x * sigmoid($alpha=1.0 * x)"},
    {"Mish", "x * tanh(softplus(x))"}, {"Softplus", "softplus(x)"}, {"Softsign", "x / (1 + abs(x))"},
    {"Shrink", "where(x < -($lambd=0.5), x + $bias=0.0, where(x > $lambd=0.5, x - $bias=0.0, 0))"}, {"Exp", "exp(x)"},
    {"Log", "log(x)"}, {"Sqrt", "sqrt(x)"}, {"Abs", "abs(x)"}, {"Neg", "neg(x)"}, {"Erf", "erf(x)"},
    {"Floor", "floor(x)"}, {"Ceil", "ceil(x)"}, {"Round", "round(x)"}, {"Sign", "sign(x)"},
    {"Reciprocal", "reciprocal(x)"}, {"Sin", "sin(x)"}, {"Cos", "cos(x)"}, {"Tan", "tan(x)"},
    {"Sinh", "(expm1(x) - expm1(-x)) / 2"}, {"Cosh", "(exp(x) + exp(-x)) / 2"},
    {"Asinh", "sign(x) * log1p(abs(x) + x * x / (1 + sqrt(x * x + 1)))"}, {"Acosh", "log(x + sqrt(x * x - 1))"},
    {"Atanh", "(log1p(x) - log1p(-x)) / 2"}, {"IsNaN", "x != x", "T>B"}, {"Equal", "x == y", "TT>B"},
    {"Less", "x < y", "TT>B"}, {"LessOrEqual", "x <= y", "TT>B"}, {"Greater", "x > y", "TT>B"},
    {"GreaterOrEqual", "x >= y", "TT>B"}, {"And", "x and y", "BB>B"}, {"Or", "x or y", "BB>B"},
    {"Xor", "x != y", "BB>B"}, {"Not", "not x", "B>B"}, {"Where", "where(x, y, z)", "BTT>T"}};
// clang-format on
constexpr Formula kPairwise[] = {{"Max", "maximum(x, y)"}, {"Min", "minimum(x, y)"}, {"Sum", "x + y"}};

// Integer arithmetic, for shapes that are computed.
double on_integers(const std::string& op, const std::vector<double>& x) {
  if (op == "Add") return x[0] + x[1];
  if (op == "Sub") return x[0] - x[1];
  if (op == "Mul") return x[0] * x[1];
  if (op == "Div" && x[1] != 0) return std::trunc(x[0] / x[1]);
  if (op == "Neg") return -x[0];
  if (op == "Equal") return x[0] == x[1];
  if (op == "Where") return x[0] != 0 ? x[1] : x[2];
  throw Rejection{"its operands are integers; only f32 is supported"};
}

GraphValue fold(const std::string& op, const std::vector<GraphValue>& operands, DType dtype) {
  List shape;
  std::vector<std::vector<double>> numbers;
  for (const GraphValue& value : operands) {
    if (value.shape.size() > 1 ||
        (!value.shape.empty() && !shape.empty() && value.shape != shape && value.shape[0] != 1 && shape[0] != 1))
      throw Rejection{"its operands are integers; only f32 is supported"};
    if (shape.empty() || (!value.shape.empty() && shape[0] == 1)) shape = value.shape;
    numbers.push_back(numbers_of(value));
  }
  std::vector<double> results;
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements_of(shape)); ++i) {
    std::vector<double> x;
    for (const std::vector<double>& of : numbers) x.push_back(of[of.size() == 1 ? 0 : i]);
    results.push_back(on_integers(op, x));
    const bool moves = op == "Where" || op == "Equal";
    x.push_back(results.back());
    if (!moves && std::any_of(x.begin(), x.end(), [](double one) { return std::abs(one) >= INT32_MAX; }))
      throw Rejection{"it computes with the batch"};
  }
  return constant_of(operands[0].constant->name, dtype, shape, results);
}

GraphValue elements(Call& call, const Formula& rule) {
  std::vector<GraphValue> operands;
  bool constant = true, integers = false;
  for (const std::optional<GraphValue>& one : call.inputs) {
    if (!one) throw Rejection{"it has too few inputs"};
    operands.push_back(*one);
    constant = constant && one->constant;
    integers = integers || one->dtype != DType::f32;
    if (call.opset < 7 && one->shape != call.x().shape) throw Rejection{"it broadcasts by the rules before opset 7"};
  }
  if (call.node.op == "Pow" && operands[1].constant) operands[1] = call.graph.cast(operands[1], DType::f32);
  const std::string_view types = rule.types;
  if (constant && integers)
    return fold(rule.op, operands, types.back() == 'B' ? DType::boolean : operands.back().dtype);
  std::string formula;
  for (const char* c = rule.formula; *c != 0;) {
    if (*c != '$') {
      formula += *c++;
      continue;
    }
    const char* equals = std::strchr(c, '=');
    float usual = 0;
    const char* end = std::from_chars(equals + 1, equals + std::strlen(equals), usual).ptr;
    formula += fmt::format("{}", call.number(std::string(c + 1, equals).c_str(), usual));
    c = end;
  }
  return call.graph.apply(formula, operands, types);
}

GraphValue variadic(const Call& call, const char* formula) {
  GraphValue sum = call.x();
  for (std::size_t i = 1; i < call.inputs.size(); ++i) sum = call.graph.apply(formula, {sum, call.x(i)});
  return sum;
}

GraphValue mean(Call& call) {
  return call.graph.apply(fmt::format("x / {}", call.inputs.size()), {variadic(call, "x + y")});
}

GraphValue mod(Call& call) {
  const bool truncates = call.integer("fmod", 0) != 0;
  return call.graph.apply(truncates ? "sign(x) * mod(abs(x), abs(y))" : "mod(x, y)", {call.x(), call.x(1)});
}

GraphValue gelu(Call& call) {
  return call.graph.apply(call.word("approximate", "none") == "tanh" ? "gelu_tanh(x)" : "gelu(x)", {call.x()});
}

GraphValue dropout(Call& call) {
  if (call.has(2) && !(call.x(2).constant && numbers_of(call.x(2)) == std::vector<double>{0}))
    throw Rejection{"its training_mode is set"};
  return call.x();
}

GraphValue cast_to(Call& call) {
  const auto type = static_cast<DataType>(call.integer("to", 0));
  if (type == DataType::f32 || type == DataType::f64) return call.graph.cast(call.x(), DType::f32);
  if (type == DataType::boolean) return call.graph.cast(call.x(), DType::boolean);
  if (type == DataType::i32 || type == DataType::i64) return call.graph.cast(call.x(), DType::i32);
  throw Rejection{fmt::format("casts to {} are not supported", type_name(type))};
}

GraphValue clip(Call& call) {
  GraphValue x = call.x();
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const char *name = i == 1 ? "min" : "max", *formula = i == 1 ? "maximum(x, y)" : "minimum(x, y)";
    const double open = i == 1 ? -INFINITY : INFINITY;
    const bool is_constant = call.has(i) && call.x(i).constant && elements_of(call.x(i).shape) == 1;
    const bool is_number = !call.has(i) && call.node.find(name) != nullptr;
    if ((is_constant && numbers_of(call.x(i)).front() == open) || (is_number && call.node.find(name)->f == open))
      continue;
    if (call.has(i))
      x = call.graph.apply(formula, {x, call.x(i)});
    else if (is_number)
      x = call.graph.apply(formula, {x, number(call.number(name, 0))});
  }
  return x;
}

// ---- shapes

// The shape that `wanted` describes: 0 copies an extent, -1 is inferred.
List resolved(const Call& call, List wanted) {
  List of = call.x().shape;
  if (of.size() == 2 && of[1] == kAnyRows) of = {kAnyRows};  // see ArrayFeatureExtractor
  if (wanted.size() > static_cast<std::size_t>(kMaxRank)) throw Rejection{"its shape does not fit its input"};
  const bool copies = call.integer("allowzero", 0) == 0;
  const bool by_row = !of.empty() && of[0] == kAnyRows;
  for (std::size_t axis = by_row ? 1 : 0; axis < wanted.size(); ++axis)
    if (wanted[axis] == 0 && copies && axis < of.size()) wanted[axis] = of[axis];
  // The batch may be -1, 0, or a number in files exported for a fixed batch.
  if (by_row && !wanted.empty() &&
      (wanted[0] <= 0 || wanted[0] == call.exported_batch || std::count(wanted.begin() + 1, wanted.end(), -1) == 0))
    wanted[0] = kAnyRows;
  if (std::count(wanted.begin(), wanted.end(), -1) > 1 ||
      std::any_of(wanted.begin(), wanted.end(), [](auto n) { return n < -1 && n != kAnyRows; }))
    throw Rejection{"its shape does not fit its input"};
  const auto at = std::find(wanted.begin(), wanted.end(), -1);
  if (at != wanted.end()) {
    *at = 1;
    const std::int64_t given = elements_of(wanted), elements = elements_of(of);
    if (given != 0 && elements % given == 0) *at = elements / given;
  }
  if (elements_of(wanted) == elements_of(of) && (!by_row || (!wanted.empty() && wanted[0] == kAnyRows))) return wanted;
  if (!by_row) throw Rejection{"its shape does not fit its input"};
  throw Rejection{call.exported_batch == 0
                      ? "its result does not keep the batch"
                      : fmt::format("its result does not keep the batch, which is {} in this file: "
                                    "export it with dynamic axes",
                                    call.exported_batch)};
}

GraphValue reshape(Call& call) {
  const std::optional<List> shape = call.integers(1, "shape");
  if (!shape) throw Rejection{"it has no shape"};
  return call.graph.reshape(call.x(), resolved(call, *shape));
}

GraphValue flatten(Call& call) {
  const List& of = call.x().shape;
  const std::int64_t given = call.integer("axis", 1);
  const std::size_t axis = given == static_cast<std::int64_t>(of.size()) ? of.size() : call.axis(given, of.size());
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(axis);
  if (!of.empty() && of[0] == kAnyRows) {
    if (axis == 0 && call.exported_batch == 1) return call.graph.reshape(call.x(), resolved(call, {0, -1}));
    if (axis == 0 || std::any_of(of.begin() + 1, middle, [](auto n) { return n != 1; }))
      throw Rejection{
          fmt::format("axis {} is not 1: its result does not keep the batch; export it with dynamic axes", given)};
  }
  return call.graph.reshape(call.x(), {elements_of({of.begin(), middle}), elements_of({middle, of.end()})});
}

GraphValue squeeze(Call& call) {
  const std::optional<List> given = call.integers(1, "axes");
  const List axes = given ? call.axes(*given, call.rank()) : List();
  if (!given && !call.graph.whole() && call.x().by_sample && call.exported_batch == 1)
    throw Rejection{"it removes the batch"};
  List to;
  for (std::size_t i = 0; i < call.rank(); ++i) {
    const bool listed = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    if (listed && call.x().shape[i] != 1) throw Rejection{fmt::format("dimension {} is not 1", i)};
    if (!listed && (given || call.x().shape[i] != 1)) to.push_back(call.x().shape[i]);
  }
  return call.graph.reshape(call.x(), to);
}

GraphValue unsqueeze(Call& call) {
  const std::optional<List> given = call.integers(1, "axes");
  if (!given) throw Rejection{"it has no axes"};
  List to = call.x().shape;
  for (const std::int64_t axis : call.axes(*given, call.rank() + given->size()))
    to.insert(to.begin() + std::min<std::ptrdiff_t>(axis, static_cast<std::ptrdiff_t>(to.size())), 1);
  return call.graph.reshape(call.x(), to);
}

GraphValue transpose(Call& call) {
  List usual = axes_from(0, call.x().shape);
  std::reverse(usual.begin(), usual.end());
  return call.graph.transpose(call.x(), call.list("perm", usual));
}

GraphValue concat(Call& call) {
  std::vector<GraphValue> parts;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) parts.push_back(call.x(i));
  const std::size_t axis = call.axis(call.integer("axis", 1), call.rank());
  if (call.inputs.size() == 1) return call.x();
  return call.graph.concat(std::move(parts), axis);
}

GraphValue slice(Call& call) {
  const std::optional<List> starts = call.integers(1, "starts"), ends = call.integers(2, "ends");
  if (!starts || !ends) throw Rejection{"it has no starts or ends"};
  const List axes = call.integers(3, "axes").value_or(axes_from(0, *starts)),
             steps = call.integers(4, "steps").value_or(List(starts->size(), 1));
  if (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size())
    throw Rejection{"its starts, ends, axes and steps differ in number"};
  GraphValue value = call.x();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = call.axis(axes[i], call.rank());
    const std::int64_t extent = value.shape[axis], step = std::clamp<std::int64_t>(steps[i], INT32_MIN, INT32_MAX);
    if (step == 0 || extent > kMaxExtent) throw Rejection{"its step is 0, or its input is too large"};
    if (extent == kAnyRows) {
      if ((*starts)[i] == 0 && (*ends)[i] == INT32_MAX && step == 1) continue;
      throw Rejection{"it slices the batch"};
    }
    const auto clamp = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, step < 0 ? -1 : 0, step < 0 ? extent - 1 : extent);
    };
    List indices;
    for (std::int64_t at = clamp((*starts)[i]); step > 0 ? at < clamp((*ends)[i]) : at > clamp((*ends)[i]); at += step)
      indices.push_back(at);
    value = call.graph.take(value, axis, indices);
  }
  return value;
}

GraphValue split(Call& call) {
  const std::size_t axis = call.axis(call.integer("axis", 0), call.rank());
  const std::int64_t extent = call.x().shape[axis];
  const auto parts = static_cast<std::int64_t>(call.node.outputs.size());
  List sizes = call.integers(1, "split").value_or(List());
  if (sizes.empty()) {
    const std::int64_t size = divide_up(extent, parts);
    for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<std::int64_t>(extent - i * size, 0, size));
  }
  if (static_cast<std::int64_t>(sizes.size()) != parts || extent == kAnyRows || extent > kMaxExtent ||
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}, checked_add) != extent ||
      *std::min_element(sizes.begin(), sizes.end()) < 1)
    throw Rejection{"its parts do not fit its input"};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); first += sizes[i++])
    call.more.emplace_back(
        i, call.graph.take(call.x(), axis, axes_from(first, List(static_cast<std::size_t>(first + sizes[i])))));
  GraphValue part = std::move(call.more[0].second);
  call.more.erase(call.more.begin());
  return part;
}

GraphValue pad(Call& call) {
  const std::optional<List> pads = call.integers(1, "pads");
  const List axes = call.integers(3, "axes").value_or(axes_from(0, call.x().shape));
  const GraphValue fill = call.has(2) ? call.x(2) : number(call.number("value", 0));
  if (const std::string mode = call.word("mode", "constant");
      mode != "constant" || !fill.constant || elements_of(fill.shape) != 1)
    throw Rejection{fmt::format("its mode is {}, or its value is computed", printable(mode))};
  if (!pads || pads->size() != 2 * axes.size()) throw Rejection{"its pads do not fit its input"};
  GraphValue value = call.x();
  for (std::size_t i = 0; i < axes.size(); ++i)
    value = call.graph.pad(value, call.axis(axes[i], call.rank()), (*pads)[i], (*pads)[axes.size() + i],
                           numbers_of(fill).at(0));
  return value;
}

GraphValue expand(Call& call) {
  const std::optional<List> to = call.integers(1, "shape");
  if (!to || to->size() > static_cast<std::size_t>(kMaxRank)) throw Rejection{"its shape does not fit its input"};
  GraphValue value = call.x();
  if (!(value.by_sample && !call.graph.whole()) && value.shape.size() < to->size()) {
    List shape(to->size() - value.shape.size(), 1);
    shape.insert(shape.end(), value.shape.begin(), value.shape.end());
    value = call.graph.reshape(value, shape);
  }
  if (value.shape.size() < to->size()) throw Rejection{"its result does not keep the batch"};
  for (std::size_t i = 0; i < to->size(); ++i) {
    const std::size_t axis = value.shape.size() - to->size() + i;
    const std::int64_t wanted = (*to)[i], extent = value.shape[axis];
    if (wanted == extent || wanted == 1 || (extent == kAnyRows && wanted == call.exported_batch)) continue;
    if (extent != 1 || wanted < 1 || wanted > 65536) throw Rejection{"its shape does not fit its input"};
    value = call.graph.take(value, axis, List(static_cast<std::size_t>(wanted), 0));
  }
  return value;
}

GraphValue gather(Call& call) {
  const GraphValue &x = call.x(), &indices = call.x(1);
  const std::size_t axis = call.axis(call.integer("axis", 0), call.rank());
  const std::int64_t extent = x.shape[axis];
  List to(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  to.insert(to.end(), indices.shape.begin(), indices.shape.end());
  to.insert(to.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  if (indices.constant) {
    if (extent == kAnyRows) throw Rejection{"it picks rows of the batch"};
    List at;
    for (const double index : numbers_of(indices))
      at.push_back(static_cast<std::int64_t>(index) + (index < 0 ? extent : 0));
    return call.graph.reshape(call.graph.take(x, axis, at), to);
  }
  // graphrun checks the range of an index that is an input; ONNX counts a negative one from the end.
  if (x.by_sample || axis != 0 || extent < 1 || !indices.is_input) throw Rejection{"its indices are computed"};
  const GraphValue table = call.graph.reshape(x, {extent, elements_of(x.shape) / extent});
  GraphValue found{"", indices.shape, x.dtype, indices.by_sample, x.dtype == DType::f32};
  found.text = fmt::format("gather({}, {})", call.graph.text(table), call.graph.text(indices));
  found.shape.push_back(table.shape[1]);
  return call.graph.reshape(found, to);
}

GraphValue argument(Call& call, const char* function) {
  const std::size_t axis = call.axis(call.integer("axis", 0), call.rank());
  if (call.integer("select_last_index", 0) != 0) throw Rejection{"its select_last_index is set"};
  GraphValue found = call.graph.call(function, call.x(), axis);
  List kept = found.shape;
  kept[axis] = 1;
  found.dtype = DType::i32, found.trained = false;
  found.shape.erase(found.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return call.integer("keepdims", 1) == 0 ? found : call.graph.reshape(found, kept);
}

GraphValue shape_of(Call& call) {
  const List& shape = call.x().shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t first = clamp(call.integer("start", 0)), end = std::max(first, clamp(call.integer("end", rank)));
  const std::vector<double> numbers(shape.begin() + first, shape.begin() + end);
  return constant_of(call.node.outputs[0], DType::i32, {end - first}, numbers);
}

GraphValue size_of_value(Call& call) {
  const std::int64_t size = elements_of(call.x().shape);
  if (size < 0 || size > INT32_MAX) throw Rejection{"the size of the batch varies"};
  return constant_of(call.node.outputs[0], DType::i32, {}, {static_cast<double>(size)});
}

GraphValue constant_of_shape(Call& call) {
  const std::optional<List> shape = call.integers(0, "shape");
  for (const std::int64_t extent : *shape)
    if (extent < 1) throw Rejection{"its shape is not that of a constant"};
  if (shape->size() > static_cast<std::size_t>(kMaxRank) || elements_of(*shape) > 65536)
    throw Rejection{"it computes a large constant"};
  const Attribute* value = call.node.find("value");
  GraphValue one = number(0);
  if (value != nullptr && value->t.size() == 1) one = constant_value("value", value->t[0], call.file);
  if (elements_of(one.shape) != 1) throw Rejection{"its value is not a number"};
  return constant_of(call.node.outputs[0], one.dtype, *shape,
                     std::vector<double>(static_cast<std::size_t>(elements_of(*shape)), numbers_of(one)[0]));
}

GraphValue constant(Call& call) {
  const std::string& name = call.node.outputs[0];
  for (const Attribute& one : call.node.attributes) {
    const auto count = static_cast<std::int64_t>(one.floats.size() + one.ints.size());
    if (one.name == "value" && one.t.size() == 1) return constant_value(name, one.t[0], call.file);
    if (one.name == "value_float") return constant_of(name, DType::f32, {}, {one.f});
    if (one.name == "value_floats")
      return constant_of(name, DType::f32, {count}, {one.floats.begin(), one.floats.end()});
    List integers = one.name == "value_int" ? List{one.i} : one.ints;
    for (std::int64_t& number : integers) number = std::clamp<std::int64_t>(number, INT32_MIN, INT32_MAX);
    if (one.name == "value_int") return constant_of(name, DType::i32, {}, {integers.begin(), integers.end()});
    if (one.name == "value_ints") return constant_of(name, DType::i32, {count}, {integers.begin(), integers.end()});
  }
  throw Rejection{"only tensors and numbers are supported"};
}

// ---- products, reductions, normalization

GraphValue matmul(Call& call) {
  GraphValue a = call.x(), b = call.x(1);
  if (a.shape.empty() || b.shape.empty()) throw Rejection{"its input is a scalar"};
  const bool row = a.shape.size() == 1, column = b.shape.size() == 1;
  if (row) a = call.graph.reshape(a, {1, a.shape[0]});
  if (column) b = call.graph.reshape(b, {b.shape[0], 1});
  GraphValue made = call.graph.product(a, b);
  List to = made.shape;
  if (column) to.pop_back();
  if (row) to.erase(to.end() - (column ? 1 : 2));
  return call.graph.reshape(made, to);
}

GraphValue gemm(Call& call) {
  GraphValue a = call.x(), b = call.x(1);
  const float alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  if (a.shape.size() != 2 || b.shape.size() != 2) throw Rejection{"its inputs are not matrices"};
  if (call.integer("transA", 0) != 0) {
    if (a.shape[0] == kAnyRows) throw Rejection{"transA is set"};
    a = call.graph.transpose(a, {1, 0});
  }
  if (call.integer("transB", 0) != 0) {
    if (b.shape[0] == kAnyRows) throw Rejection{"transB is set, and its second input is not a constant"};
    b = call.graph.transpose(b, {1, 0});
  }
  GraphValue made = call.graph.product(a, b);
  if (alpha != 1) made = call.graph.apply(fmt::format("x * ({})", alpha), {made});
  if (!call.has(2)) return made;
  const List to = made.shape;
  made = call.graph.apply(beta == 1 ? "x + y" : fmt::format("x + y * ({})", beta), {made, call.x(2)});
  if (made.shape != to) throw Rejection{"its third input does not broadcast"};
  return made;
}

GraphValue softmax(Call& call, const char* function) {
  const bool merges = call.opset < 13;  // all axes from the given one on are one
  const std::size_t axis = call.axis(call.integer("axis", merges ? 1 : -1), call.rank());
  if (!merges || axis + 1 == call.rank()) return call.graph.call(function, call.x(), axis);
  const List of = call.x().shape;
  List merged(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(axis));
  merged.push_back(elements_of({of.begin() + static_cast<std::ptrdiff_t>(axis), of.end()}));
  return call.graph.reshape(call.graph.call(function, call.graph.reshape(call.x(), merged), axis), of);
}

struct Reduction {
  const char *op, *before, *function, *after;
};
// clang-format off
constexpr Reduction kReductions[] = {
    {"ReduceSum", "", "sum", ""}, {"ReduceMean", "", "mean", ""}, {"ReduceMax", "", "max", ""},
    {"ReduceMin", "", "min", ""}, {"ReduceProd", "", "prod", ""}, {"ReduceL1", "abs(x)", "sum", ""},
    {"ReduceL2", "square(x)", "sum", "sqrt(x)"}, {"ReduceSumSquare", "square(x)", "sum", ""},
    {"ReduceLogSum", "", "sum", "log(x)"}, {"ReduceLogSumExp", "", "logsumexp", ""}};
// clang-format on

GraphValue reduction(Call& call, const Reduction& rule) {
  List axes = call.axes(call.integers(1, "axes").value_or(List()), call.rank());
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) == 0) axes = axes_from(0, call.x().shape);
  GraphValue x = call.x();
  if (*rule.before != 0) x = call.graph.apply(rule.before, {x});
  x = call.graph.reduce(rule.function, x, axes, call.integer("keepdims", 1) != 0);
  return *rule.after != 0 ? call.graph.apply(rule.after, {x}) : x;
}

GraphValue batch_normalization(Call& call) {
  if (call.integer("training_mode", 0) != 0 || (call.opset < 7 && call.integer("is_test", 0) == 0))
    throw Rejection{"its training_mode is set"};
  if (call.rank() < 2) throw Rejection{"its input has no channels"};
  std::vector<GraphValue> operands = {call.x()};
  List shape(call.rank() - 1, 1);
  shape[0] = call.x().shape[1];
  for (const std::size_t i : std::array<std::size_t, 4>{3, 4, 1, 2}) {
    operands.push_back(call.graph.reshape(call.x(i), shape));
    if (i >= 3 && operands.back().constant) operands.back().constant->trainable = false;  // running statistics
  }
  return call.graph.apply(fmt::format("(x - y) / sqrt(z + {}) * u + v", call.number("epsilon", 1e-5f)), operands);
}

std::string inverse_root(const Call& call) {
  return fmt::format("1 / sqrt(x + {})", call.number("epsilon", 1e-5f));
}

// (x - mean) / std over the axes; the mean and 1 / std are the outputs 1 and 2.
GraphValue normalized(Call& call, const List& axes) {
  Graph& graph = call.graph;
  const GraphValue x = graph.named(call.x()), center = graph.reduce("mean", x, axes, true);
  const GraphValue rest = graph.named(graph.apply("x - y", {x, center}));
  const GraphValue variance = graph.reduce("mean", graph.apply("square(x)", {rest}), axes, true);
  const GraphValue scale = graph.apply(inverse_root(call), {variance});
  call.more.emplace_back(1, center), call.more.emplace_back(2, scale);
  return graph.apply("x * y", {rest, scale});
}

GraphValue scaled(Call& call, GraphValue x, const List& shape = {}) {
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (!call.has(i)) continue;
    const GraphValue by = shape.empty() ? call.x(i) : call.graph.reshape(call.x(i), shape);
    const List before = x.shape;
    x = call.graph.apply(i == 1 ? "x * y" : "x + y", {x, by});
    if (x.shape != before) throw Rejection{"its scale does not fit its input"};
  }
  return x;
}

GraphValue layer_normalization(Call& call) {
  const auto axis = static_cast<std::int64_t>(call.axis(call.integer("axis", -1), call.rank()));
  return scaled(call, normalized(call, axes_from(axis, call.x().shape)));
}

GraphValue rms_normalization(Call& call) {
  const auto axis = static_cast<std::int64_t>(call.axis(call.integer("axis", -1), call.rank()));
  const GraphValue x = call.graph.named(call.x());
  const GraphValue mean = call.graph.reduce("mean", call.graph.apply("square(x)", {x}), axes_from(axis, x.shape), true);
  return scaled(call, call.graph.apply("x * y", {x, call.graph.apply(inverse_root(call), {mean})}));
}

GraphValue instance_normalization(Call& call) {
  if (call.rank() < 3) throw Rejection{"its input is not (batch, channels, extents)"};
  List shape(call.rank() - 1, 1);
  shape[0] = call.x().shape[1];
  return scaled(call, normalized(call, axes_from(2, call.x().shape)), shape);
}

// ---- the table

// clang-format off
const Rules& table() {
  static const Rules rules = [] {
    Rules all = {
        {"Identity", 1, 1, [](Call& call) { return call.x(); }}, {"Clip", 1, 3, clip}, {"Dropout", 1, 3, dropout},
        {"Cast", 1, 1, cast_to}, {"CastLike", 2, 2, [](Call& call) { return call.graph.cast(call.x(), call.x(1).dtype); }},
        {"Mean", 1, kAnyNumber, mean}, {"Mod", 2, 2, mod}, {"Gelu", 1, 1, gelu},
        {"Softmax", 1, 1, [](Call& call) { return softmax(call, "softmax"); }},
        {"LogSoftmax", 1, 1, [](Call& call) { return softmax(call, "log_softmax"); }},
        {"ArgMax", 1, 1, [](Call& call) { return argument(call, "argmax"); }},
        {"ArgMin", 1, 1, [](Call& call) { return argument(call, "argmin"); }},
        {"Flatten", 1, 1, flatten}, {"Reshape", 1, 2, reshape}, {"Squeeze", 1, 2, squeeze},
        {"Unsqueeze", 1, 2, unsqueeze}, {"Transpose", 1, 1, transpose}, {"Concat", 1, kAnyNumber, concat},
        {"Slice", 1, 5, slice}, {"Split", 1, 2, split}, {"Pad", 1, 4, pad}, {"Expand", 2, 2, expand},
        {"Gather", 2, 2, gather}, {"Shape", 1, 1, shape_of}, {"Size", 1, 1, size_of_value},
        {"Constant", 0, 0, constant}, {"ConstantOfShape", 1, 1, constant_of_shape}, {"MatMul", 2, 2, matmul},
        {"Gemm", 2, 3, gemm}, {"BatchNormalization", 5, 5, batch_normalization},
        {"LayerNormalization", 2, 3, layer_normalization}, {"RMSNormalization", 2, 2, rms_normalization},
        {"InstanceNormalization", 3, 3, instance_normalization}};
    // clang-format on
    for (const Formula& one : kPairwise)
      all.push_back({one.op, 1, kAnyNumber, [&one](Call& call) { return variadic(call, one.formula); }});
    for (const Formula& one : kFormulas) {
      const std::string_view types = one.types;
      all.push_back({one.op, types.find('>'), types.find('>'), [&one](Call& call) { return elements(call, one); }});
    }
    for (const Reduction& one : kReductions)
      all.push_back({one.op, 1, 2, [&one](Call& call) { return reduction(call, one); }});
    for (Rules more : {window_rules(), machine_learning_rules()}) all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rules;
}

}  // namespace

const OpRule* find_rule(const Node& node) {
  const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
  for (const OpRule& one : table())
    if (node.op == one.op && domain == one.domain) return &one;
  return nullptr;
}

std::vector<std::string> imported_ops() {
  std::vector<std::string> ops;
  for (const OpRule& one : table()) ops.emplace_back(one.op);
  std::sort(ops.begin(), ops.end());
  return ops;
}

}  // namespace graphrun::onnx
