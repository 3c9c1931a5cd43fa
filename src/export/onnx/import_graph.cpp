#include "export/onnx/import_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/checked.h"
#include "base/json_text.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/types.h"

namespace graphrun::onnx {
namespace {

constexpr std::size_t kMaxFolded = std::size_t{1} << 20;  // elements of a computed constant
constexpr std::size_t kMaxParts = 256;                    // slices that one node may need

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool in_name(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '.';
}

// The constant with element i of the result at from(index of i in the result).
template <class F>
GraphValue moved(const GraphValue& value, List shape, F from) {
  const HostTensor& old = value.constant->tensor;
  if (old.shape().elements() < elements_of(shape) && elements_of(shape) > static_cast<std::int64_t>(kMaxFolded))
    throw Rejection{"it computes a large constant"};
  HostTensor to(old.dtype(), Shape(shape));
  const std::size_t width = size_of(old.dtype());
  for (std::size_t i = 0; i < static_cast<std::size_t>(to.shape().elements()); ++i)
    std::memcpy(to.bytes().data() + i * width, old.bytes().data() + from(index_of(to.shape(), i)) * width, width);
  GraphValue moved = value;
  moved.shape = std::move(shape), moved.transposed = false;
  moved.constant = std::make_shared<Constant>(Constant{value.constant->name, std::move(to), {}});
  return moved;
}

// Position of an element of a constant, of which `value` may be the transpose.
std::size_t position(const GraphValue& value, const List& index) {
  if (value.transposed) return static_cast<std::size_t>(index[1] * value.shape[0] + index[0]);
  std::int64_t at = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) at = at * value.shape[axis] + index[axis];
  return static_cast<std::size_t>(at);
}

}  // namespace

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), in_name);
}

bool is_weights(const GraphValue& value) {
  return value.constant && value.constant->trainable && value.dtype == DType::f32 && !value.shape.empty();
}

List axes_from(std::int64_t first, const List& shape) {
  List axes;
  for (auto axis = first; axis < static_cast<std::int64_t>(shape.size()); ++axis) axes.push_back(axis);
  return axes;
}

std::string listing(const List& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

std::int64_t elements_of(const List& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count = checked_mul(count, extent);
  return count;
}

std::vector<double> numbers_of(const GraphValue& value) {
  const HostTensor& tensor = value.constant->tensor;
  const std::vector<double> stored = as_doubles(tensor);
  if (!value.transposed) return stored;
  std::vector<double> numbers;
  const Shape shape(value.shape);
  for (std::size_t i = 0; i < stored.size(); ++i) numbers.push_back(stored[position(value, index_of(shape, i))]);
  return numbers;
}

GraphValue constant_of(const std::string& name, DType dtype, List shape, const std::vector<double>& numbers) {
  HostTensor tensor = from_doubles(numbers, {dtype, Shape(shape), 0});
  GraphValue value{"", std::move(shape), dtype};
  value.constant = std::make_shared<Constant>(Constant{name, std::move(tensor), {}});
  return value;
}

std::string Graph::unique(const std::string& text) {
  static const std::set<std::string_view> reserved{"and", "or", "not", "true", "false", "none", "pi", "e", "batch"};
  std::string wanted;
  for (const char c : text) {
    const bool kept = in_name(c) && c != '_' && c != '.';
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

std::string Graph::parameter(const std::string& name, HostTensor values, bool trainable) {
  const std::span<const float> numbers = std::as_const(values).elements<float>();
  if (!std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); }))
    throw Rejection{fmt::format("'{}' has numbers that are not finite; a parameter is finite", printable(name)),
                    "onnx.value"};
  const std::string own = unique(name);
  parameters.push_back({own, std::move(values), trainable});
  return own;
}

std::int64_t Graph::axis(const GraphValue& value, std::size_t axis) const {
  return static_cast<std::int64_t>(axis) + (whole_ && value.by_sample ? 1 : 0);
}

std::string Graph::extents(const GraphValue& value, const List& shape) const {
  std::vector<std::string> texts;
  if (whole_ && value.by_sample) texts.emplace_back("-1");
  for (const std::int64_t extent : shape) texts.push_back(extent == kAnyRows ? "-1" : std::to_string(extent));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string Graph::text(const GraphValue& value, std::size_t rank) {
  if (value.constant == nullptr) {
    used.insert(value.text);
    if (!whole_ || !value.by_sample || value.shape.size() >= rank) return value.text;
    List shape(rank - value.shape.size(), 1);
    shape.insert(shape.end(), value.shape.begin(), value.shape.end());
    return fmt::format("reshape({}, shape=[{}])", value.text, extents(value, shape));
  }
  Constant& constant = *value.constant;
  const DType dtype = constant.tensor.dtype();
  if (constant.parameter.empty()) {
    const std::vector<double> numbers = numbers_of(value);
    if (dtype == DType::i32 && std::any_of(numbers.begin(), numbers.end(), [](double x) { return std::abs(x) > 1e7; }))
      throw Rejection{fmt::format("'{}' has integers above 10,000,000", printable(constant.name))};
    if (value.shape.empty() && dtype != DType::boolean && std::isfinite(numbers[0]))
      return numbers[0] < 0 ? fmt::format("({})", static_cast<float>(numbers[0]))
                            : fmt::format("{}", static_cast<float>(numbers[0]));
    constant.stored_transposed = value.transposed;
    constant.parameter = parameter(constant.name, from_doubles(numbers, {DType::f32, Shape(value.shape), 0}),
                                   dtype == DType::f32 && constant.trainable);
  }
  if (dtype == DType::i32) return fmt::format("cast({}, dtype=i32)", constant.parameter);
  if (dtype == DType::boolean) return fmt::format("({} != 0)", constant.parameter);
  return value.transposed == constant.stored_transposed ? constant.parameter
                                                        : fmt::format("transpose({}, axes=[1, 0])", constant.parameter);
}

GraphValue Graph::named(GraphValue value, const std::string& name) {
  if (value.constant || is_name(value.text)) return value;
  std::string formula = value.text;
  int depth = 0;  // nested parentheses; those around the whole expression are dropped
  for (std::size_t i = 0; i + 1 < formula.size(); ++i) {
    depth += formula[i] == '(' ? 1 : formula[i] == ')' ? -1 : 0;
    if (depth == 0) break;
    if (i + 2 == formula.size()) formula = formula.substr(1, formula.size() - 2);
  }
  used.insert(value.text);
  value.text = unique(name.empty() ? node_ + "_step" : name);
  add_formula(value.text, formula);
  return value;
}

// Expression with the dtype and the dependencies of `of`.
GraphValue Graph::result(std::string text, const GraphValue& of, List shape) const {
  GraphValue value{std::move(text), std::move(shape), of.dtype, of.by_sample, of.trained || is_weights(of)};
  if (!whole_ && of.by_sample &&
      (value.shape.empty() || value.shape[0] != kAnyRows ||
       std::count(value.shape.begin(), value.shape.end(), kAnyRows) != 1))
    throw Rejection{"its first dimension is not the batch"};
  if (value.shape.size() + (whole_ ? 1 : 0) > static_cast<std::size_t>(kMaxRank))
    throw Rejection{fmt::format("its result has {} dimensions", value.shape.size())};
  if (std::any_of(value.shape.begin(), value.shape.end(), [](auto extent) { return extent < 1 && extent != kAnyRows; }))
    throw Rejection{"its result is empty"};
  return value;
}

List Graph::broadcast(const List& first, const List& second) const {
  List a = first, b = second;
  if (a.size() < b.size()) a.swap(b);
  for (std::size_t i = 0; i < b.size(); ++i) {
    std::int64_t& x = a[a.size() - b.size() + i];
    if (x != b[i] && x != 1 && b[i] != 1) throw Rejection{"its operands do not broadcast"};
    if (x == 1) x = b[i];
  }
  return a;
}

GraphValue Graph::apply(std::string_view formula, const std::vector<GraphValue>& operands, std::string_view types) {
  static constexpr std::string_view kNames = "xyzuv";
  GraphValue of;
  std::vector<int> uses(operands.size());
  const auto each_token = [&](auto f) {  // f(token, index of an operand or -1)
    for (std::size_t i = 0; i < formula.size();) {
      std::size_t end = i + 1;
      while (in_name(formula[i]) && end < formula.size() && in_name(formula[end])) ++end;
      const std::string_view token = formula.substr(i, end - i);
      const std::size_t operand = token.size() == 1 ? kNames.find(token[0]) : kNames.npos;
      f(token, operand < operands.size() ? static_cast<int>(operand) : -1);
      i = end;
    }
  };
  each_token([&](std::string_view, int operand) {
    if (operand >= 0) ++uses[static_cast<std::size_t>(operand)];
  });
  std::vector<GraphValue> read = operands;
  const DType* shared = nullptr;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    GraphValue& value = read[i];
    const char letter = types[i];
    const DType wanted = letter == 'F' ? DType::f32 : letter == 'B' ? DType::boolean : value.dtype;
    if (value.dtype != wanted || (letter == 'T' && shared != nullptr && *shared != value.dtype))
      throw Rejection{fmt::format("its operand {} is {}; {}", i + 1,
                                  value.dtype == DType::i32 ? "integers" : name_of(value.dtype),
                                  letter == 'T'   ? "it must be like the others"
                                  : letter == 'F' ? "only f32 is supported"
                                                  : "it must be bool")};
    if (letter == 'T') shared = &value.dtype;
    of.shape = i == 0 ? value.shape : broadcast(of.shape, value.shape);
    of.by_sample = of.by_sample || value.by_sample;
    of.trained = of.trained || value.trained || is_weights(value);
    if (uses[i] > 1) value = named(value);
  }
  for (const GraphValue& value : read)
    if (!whole_ && value.by_sample && value.shape.size() < of.shape.size())
      throw Rejection{"its operands would pair each row with every other"};
  std::string text;
  bool is_call = true;
  int depth = 0;
  each_token([&](std::string_view token, int operand) {
    depth += token == "(" ? 1 : token == ")" ? -1 : 0;
    is_call = is_call && (depth > 0 || token == ")" || (text.empty() && is_letter(token[0])));
    text += operand < 0 ? std::string(token) : this->text(read[static_cast<std::size_t>(operand)], of.shape.size());
  });
  const char letter = types.substr(types.find('>') + 1)[0];
  of.dtype = letter == 'F' ? DType::f32 : letter == 'B' || !shared ? DType::boolean : *shared;
  of.trained = of.trained && of.dtype == DType::f32;
  GraphValue value = result(is_call ? text : "(" + text + ")", of, of.shape);
  value.trained = of.trained;
  return value;
}

GraphValue Graph::reshape(const GraphValue& value, List to) {
  if (to == value.shape) return value;
  if (elements_of(to) != elements_of(value.shape)) throw Rejection{"its shape does not fit its input"};
  if (value.constant)
    return moved(value, to, [&](const List& index) {
      const std::size_t at = position({"", to}, index);
      return value.transposed ? position(value, index_of(Shape(value.shape), at)) : at;
    });
  GraphValue made = result("", value, std::move(to));
  made.text = fmt::format("reshape({}, shape=[{}])", text(value), extents(value, made.shape));
  return made;
}

GraphValue Graph::pad(const GraphValue& value, std::size_t axis, std::int64_t before, std::int64_t after,
                      double number) {
  if (before == 0 && after == 0) return value;
  if (value.shape[axis] == kAnyRows || before < 0 || after < 0 || std::max(before, after) > 65536)
    throw Rejection{"its pads do not fit its input"};
  List to = value.shape;
  to[axis] += before + after;
  if (!std::isfinite(number) || value.dtype != DType::f32)
    throw Rejection{"it pads with numbers that are not finite f32"};
  GraphValue made = result("", value, std::move(to));
  made.text = fmt::format("pad({}, axis={}, before={}, after={}, value={})", text(value), this->axis(value, axis),
                          before, after, number);
  return made;
}

GraphValue Graph::transpose(const GraphValue& value, const List& axes) {
  List sorted = axes, to;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != axes_from(0, value.shape)) throw Rejection{"its axes do not fit its input"};
  if (axes == sorted) return value;
  for (const std::int64_t axis : axes) to.push_back(value.shape[static_cast<std::size_t>(axis)]);
  if (value.constant && axes.size() == 2) {
    GraphValue flipped = value;
    flipped.transposed = !flipped.transposed, flipped.shape = std::move(to);
    return flipped;
  }
  if (value.constant)
    return moved(value, to, [&](const List& index) {
      List from(index.size());
      for (std::size_t i = 0; i < axes.size(); ++i) from[static_cast<std::size_t>(axes[i])] = index[i];
      return position(value, from);
    });
  GraphValue made = result("", value, std::move(to));
  List order;
  if (whole_ && value.by_sample) order.push_back(0);
  for (const std::int64_t one : axes) order.push_back(axis(value, static_cast<std::size_t>(one)));
  made.text = fmt::format("transpose({}, axes=[{}])", text(value), listing(order));
  return made;
}

GraphValue Graph::take(const GraphValue& value, std::size_t axis, const List& indices) {
  const std::int64_t extent = value.shape[axis];
  if (std::any_of(indices.begin(), indices.end(), [&](auto i) { return i < 0 || i >= extent; }))
    throw Rejection{"an index is out of range"};
  List to = value.shape;
  to[axis] = static_cast<std::int64_t>(indices.size());
  if (value.constant)
    return moved(value, to, [&](List index) {
      index[axis] = indices[static_cast<std::size_t>(index[axis])];
      return position(value, index);
    });
  GraphValue made = result("", value, to);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // first, end
  for (const std::int64_t i : indices) {
    if (!ranges.empty() && ranges.back().second == i)
      ++ranges.back().second;
    else
      ranges.emplace_back(i, i + 1);
  }
  if (ranges.size() > kMaxParts) throw Rejection{fmt::format("it needs {} slices", ranges.size())};
  const GraphValue source = ranges.size() > 1 ? named(value) : value;
  std::vector<GraphValue> parts;
  for (const auto& [first, end] : ranges) {
    GraphValue part = source;
    part.shape[axis] = end - first;
    if (end - first < extent)
      part.text =
          fmt::format("slice({}, axis={}, start={}, stop={})", text(source), this->axis(value, axis), first, end);
    parts.push_back(std::move(part));
  }
  for (GraphValue& part : parts) part.is_input = false;
  return parts.size() == 1 ? parts[0] : concat(std::move(parts), axis);
}

GraphValue Graph::concat(std::vector<GraphValue> parts, std::size_t axis) {
  GraphValue of = parts[0];
  of.shape[axis] = 0;
  bool constant = true;
  for (const GraphValue& part : parts) {
    List shape = part.shape;
    if (shape.size() == of.shape.size()) shape[axis] = of.shape[axis];
    if (shape != of.shape || part.dtype != of.dtype) throw Rejection{"its inputs do not fit each other"};
    of.shape[axis] = checked_add(of.shape[axis], part.shape[axis]);
    of.by_sample = of.by_sample || part.by_sample;
    of.trained = of.trained || part.trained || is_weights(part);
    constant = constant && part.constant;
  }
  if (constant) {
    if (elements_of(of.shape) > static_cast<std::int64_t>(kMaxFolded)) throw Rejection{"it computes a large constant"};
    std::vector<std::vector<double>> numbers;
    for (const GraphValue& part : parts) numbers.push_back(numbers_of(part));
    std::vector<double> all;
    List outer(of.shape.begin(), of.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    const std::int64_t blocks = elements_of(outer);
    if (blocks < 1) throw Rejection{"its result is empty"};
    for (std::int64_t block = 0; block < blocks; ++block)
      for (const std::vector<double>& part : numbers) {
        const auto size = static_cast<std::ptrdiff_t>(part.size()) / blocks;
        all.insert(all.end(), part.begin() + block * size, part.begin() + (block + 1) * size);
      }
    return constant_of(parts[0].constant->name, of.dtype, of.shape, all);
  }
  of.constant = nullptr, of.is_input = false;
  GraphValue made = result("", of, of.shape);
  for (GraphValue& part : parts) {
    if (part.by_sample != of.by_sample) throw Rejection{"it joins constants with computed values"};
    part.text = text(part), part.constant = nullptr;
  }
  while (parts.size() > 1) {
    std::vector<GraphValue> joined;
    for (std::size_t i = 0; i < parts.size(); i += 8) {
      std::vector<std::string> texts;
      for (std::size_t k = i; k < std::min(i + 8, parts.size()); ++k) texts.push_back(parts[k].text);
      of.text = texts.size() == 1 ? texts[0]
                                  : fmt::format("concat({}, axis={})", fmt::join(texts, ", "), this->axis(of, axis));
      joined.push_back(of);
    }
    parts.swap(joined);
  }
  made.text = parts[0].text;
  return made;
}

GraphValue Graph::cast(const GraphValue& value, DType dtype) {
  if (value.dtype == dtype) return value;
  if (value.constant && elements_of(value.shape) <= static_cast<std::int64_t>(kMaxFolded)) {
    std::vector<double> numbers = numbers_of(value);
    for (double& x : numbers) {
      if (dtype == DType::boolean) x = x != 0 ? 1 : 0;
      if ((dtype == DType::i32 || value.dtype == DType::i32) && !(std::abs(x) < 2e9))
        throw Rejection{"it casts the batch, or numbers above 2,000,000,000"};
    }
    return constant_of(value.constant->name, dtype, value.shape, numbers);
  }
  GraphValue made = result("", value, value.shape);
  made.dtype = dtype, made.trained = false;
  made.text = dtype == DType::boolean ? fmt::format("({} != 0)", text(value))
                                      : fmt::format("cast({}, dtype={})", text(value), name_of(dtype));
  return made;
}

GraphValue Graph::reduce(const char* function, const GraphValue& value, const List& axes, bool keepdims) {
  if (value.dtype != DType::f32) throw Rejection{"its input is not f32; only f32 is supported"};
  if (axes.empty()) return value;
  List to, at;
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    const bool reduced = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) > 0;
    if (reduced) at.push_back(axis(value, i));
    if (!reduced || keepdims) to.push_back(reduced ? 1 : value.shape[i]);
  }
  GraphValue made = result("", value, std::move(to));
  made.text = fmt::format("{}({}, axis=[{}]{})", function, text(value), listing(at), keepdims ? ", keepdims=true" : "");
  return made;
}

GraphValue Graph::call(const std::string& function, const GraphValue& value, std::size_t axis) {
  if (value.dtype != DType::f32) throw Rejection{"its input is not f32; only f32 is supported"};
  if (value.shape[axis] == kAnyRows) throw Rejection{"it works along the batch"};
  GraphValue made = result("", value, value.shape);
  made.text = fmt::format("{}({}, axis={})", function, text(value), this->axis(value, axis));
  return made;
}

GraphValue Graph::product(const GraphValue& a, const GraphValue& b) {
  const std::size_t m = a.shape.size(), n = b.shape.size(), rank = std::max(m, n);
  if (a.dtype != DType::f32 || b.dtype != DType::f32)
    throw Rejection{"its operands are not f32; only f32 is supported"};
  if (a.shape[m - 1] != b.shape[n - 2] || a.shape[m - 1] == kAnyRows) throw Rejection{"its shapes do not fit"};
  if (!whole_ && ((b.by_sample && n == 2) || (a.by_sample && m < n) || (b.by_sample && n < m)))
    throw Rejection{"its shapes do not fit a product for each row"};
  List to = broadcast(List(a.shape.begin(), a.shape.end() - 2), List(b.shape.begin(), b.shape.end() - 2));
  to.push_back(a.shape[m - 2]), to.push_back(b.shape[n - 1]);
  GraphValue of;
  of.by_sample = a.by_sample || b.by_sample;
  of.trained = a.trained || b.trained || is_weights(a) || is_weights(b);
  GraphValue made = result("", of, std::move(to));
  const std::string left = text(a, n > 2 ? rank : 0);
  made.text = fmt::format("({} @ {})", left, text(b, m > 2 ? rank : 0));
  return made;
}

}  // namespace graphrun::onnx
