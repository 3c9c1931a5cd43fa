#include "export/c/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/c/text.h"
#include "graphrun/family_op.h"
#include "graphrun/scalar_op.h"

namespace graphrun::c99 {
namespace {

struct ScalarText {
  Op op;
  std::string_view reference;  // C++ expression over doubles
  bool has_attributes;
};

#define GRAPHRUN_TEXT(name, Functor, ulps, result, ...) {scalar_op::name, #__VA_ARGS__, false},
#define GRAPHRUN_TEXT_OF_PARAMETERS(name, Functor, ulps, result, ...) {scalar_op::name, #__VA_ARGS__, true},
constexpr ScalarText kScalars[] = {GRAPHRUN_BINARY_OPS(GRAPHRUN_TEXT) GRAPHRUN_PLAIN_OPS(GRAPHRUN_TEXT)
                                       GRAPHRUN_PARAMETRIC_OPS(GRAPHRUN_TEXT_OF_PARAMETERS)
                                           GRAPHRUN_COMPARE_OPS(GRAPHRUN_TEXT) GRAPHRUN_LOGICAL_OPS(GRAPHRUN_TEXT)};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// <cmath> and <math.h> functions share their names. std::max occurs only as a lower bound that avoids -infinity.
std::string in_c(std::string_view reference) {
  std::string text(reference);
  replace_all(text, "std::max(x, -1e3)", "(x < -1e3 ? -1e3 : x)");
  replace_all(text, "std::", "");
  return text;
}

// <math.h> functions, called through a macro that selects the version for the computation type.
constexpr std::string_view kMath[] = {"ceil", "copysign", "cos",  "erf",  "erfc", "exp",   "expm1",
                                      "fabs", "floor",    "fmax", "fmod", "log",  "log1p", "nearbyint",
                                      "pow",  "sin",      "sqrt", "tan",  "tanh"};
void choose_math(std::string& text, const std::string& macro) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  for (const std::string_view name : kMath) {
    const std::string call = fmt::format("{}(", name), chosen = fmt::format("{}({})(", macro, name);
    for (std::size_t at = text.find(call); at != std::string::npos; at = text.find(call, at)) {
      const bool is_call = at == 0 || !is_letter(text[at - 1]);
      if (is_call) text.replace(at, call.size(), chosen);
      at += is_call ? chosen.size() : call.size();
    }
  }
}

constexpr std::string_view kOperands[] = {"p", "q", "r"}, kValues[] = {"x", "y", "z"};

}  // namespace

std::string Functions::add(const std::string& name, const std::string& arguments, std::string body) {
  const std::string full = prefix_ + "_" + name;
  if (name.find("_f64") != std::string::npos) {  // preprocessing of columns stays in double with -DNET_FLOAT
    replace_all(body, "REAL", "double");
    choose_math(body, "");
  }
  if (known_.emplace(full, fmt::format("static void {}({}) {{\n{}}}\n", full, arguments, body)).second)
    order_.push_back(full);
  return full;
}

std::string Functions::name_of_types(std::string_view base, std::span<const DType> inputs, DType output) const {
  std::string name(base);
  const bool plain = output == DType::f32 &&
                     std::all_of(inputs.begin(), inputs.end(), [](DType dtype) { return dtype == DType::f32; });
  if (plain) return name;
  for (const DType dtype : inputs) name += fmt::format("_{}", graphrun::name_of(dtype));
  return fmt::format("{}_{}", name, graphrun::name_of(output));
}

std::string Functions::store(DType dtype, const std::string& place, const std::string& value) {
  if (dtype == DType::boolean) return fmt::format("{} = (uint8_t)(({}) != 0);", place, value);
  if (dtype != DType::i32) return fmt::format("{} = ({})({});", place, type_name(dtype), value);
  clamps_ = true;
  return fmt::format("{} = {}_integer((double)({}));", place, prefix_, value);
}

std::string Functions::scalar(Op op, std::span<const DType> inputs, DType output) {
  std::string expression;
  bool has_attributes = false;
  if (op == Op::where) expression = "x != 0 ? y : z";
  for (const ScalarText& scalar : kScalars) {
    if (scalar.op != op) continue;
    expression = in_c(scalar.reference);
    has_attributes = scalar.has_attributes;
  }
  if (expression.empty()) return "";
  std::string arguments, body = "  int i;\n  for (i = 0; i < n; i++) {\n";
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    arguments += fmt::format("const {} *{}, int {}s, ", type_name(inputs[k]), kOperands[k], kOperands[k]);
    body += fmt::format("    const REAL {} = (REAL){}[i * {}s];\n", kValues[k], kOperands[k], kOperands[k]);
  }
  if (has_attributes) {
    arguments += "REAL a, REAL b, ";
    if (op != scalar_op::clip) body += "    (void)b;\n";
  }
  body += "    " + store(output, "out[i * os]", expression) + "\n  }\n";
  return add(name_of_types(graphrun::name_of(op), inputs, output),
             fmt::format("{}{} *out, int os, int n", arguments, type_name(output)), body);
}

std::string Functions::cast(DType input, DType output) {
  const DType inputs[] = {input};
  return add(name_of_types("copy", inputs, output),
             fmt::format("const {} *p, int ps, {} *out, int os, int n", type_name(input), type_name(output)),
             fmt::format("  int i;\n  for (i = 0; i < n; i++) {}\n",
                         input == output ? "out[i * os] = p[i * ps];" : store(output, "out[i * os]", "p[i * ps]")));
}

std::string Functions::fill(DType dtype) {
  return add(name_of_types("fill", {}, dtype), fmt::format("double value, {} *out, int os, int n", type_name(dtype)),
             fmt::format("  int i;\n  for (i = 0; i < n; i++) {}\n", store(dtype, "out[i * os]", "value")));
}

std::string Functions::matmul(DType dtype) {
  return add(name_of_types("matmul", {}, dtype),
             fmt::format("const {0} *p, int pi, int pk, const {0} *q, int qk, int qj, {0} *out, int m, int n, int k",
                         type_name(dtype)),
             fmt::format(R"(  int i, j, l;
  for (i = 0; i < m; i++)
    for (j = 0; j < n; j++) {{
      REAL sum = 0;
      for (l = 0; l < k; l++) sum += (REAL)p[i * pi + l * pk] * (REAL)q[l * qk + j * qj];
      out[i * n + j] = ({})sum;
    }}
)",
                         type_name(dtype)));
}

namespace {

// Nested loops over two axes of the operand; `x` is the current element.
std::string over_terms(std::string_view statement) {
  return fmt::format(R"(  for (i = 0; i < n0; i++)
    for (j = 0; j < n1; j++) {{
      const REAL x = (REAL)p[i * s0 + j * s1];
      {}
    }}
)",
                     statement);
}

constexpr std::string_view kLarger = "if (!(top >= x || isnan(top))) top = x;";
constexpr std::string_view kSmaller = "if (!(top <= x || isnan(top))) top = x;";

}  // namespace

std::string Functions::reduction(Op op, DType dtype) {
  std::string body;
  if (op == Op::sum)
    body = "  REAL sum = 0;\n  int i, j;\n" + over_terms("sum += x;") + "  " + store(dtype, "*out", "sum") + "\n";
  else if (op == Op::prod)
    body = "  REAL all = 1;\n  int i, j;\n" + over_terms("all *= x;") + "  " + store(dtype, "*out", "all") + "\n";
  else if (op == Op::max)
    body = "  REAL top = -INFINITY;\n  int i, j;\n" + over_terms(kLarger) + "  " + store(dtype, "*out", "top") + "\n";
  else if (op == Op::min)
    body = "  REAL top = INFINITY;\n  int i, j;\n" + over_terms(kSmaller) + "  " + store(dtype, "*out", "top") + "\n";
  else if (op == Op::logsumexp)
    body = "  REAL top = -INFINITY, sum = 0;\n  int i, j;\n" + over_terms(kLarger) +
           over_terms("sum += exp(x - top);") + "  " + store(dtype, "*out", "isinf(top) ? top : top + log(sum)") + "\n";
  else
    return "";
  return add(name_of_types(graphrun::name_of(op), {}, dtype),
             fmt::format("const {0} *p, int n0, int s0, int n1, int s1, {0} *out", type_name(dtype)), body);
}

std::string Functions::along_axis(Op op, DType dtype) {
  if (op == Op::argmax || op == Op::argmin) {
    const char sign = op == Op::argmax ? '>' : '<';
    const DType inputs[] = {dtype};
    return add(name_of_types(graphrun::name_of(op), inputs, DType::i32),
               fmt::format("const {} *p, int ps, int n, int32_t *out, int os", type_name(dtype)),
               fmt::format(R"(  int j, best = 0;
  (void)os;
  for (j = 1; j < n; j++) {{
    const REAL x = (REAL)p[j * ps], y = (REAL)p[best * ps];
    if (!isnan(y) && (isnan(x) || x {} y)) best = j;
  }}
  *out = best;
)",
                           sign));
  }
  if (op != family_op::softmax && op != family_op::log_softmax) return "";
  const bool is_log = op == family_op::log_softmax;
  return add(name_of_types(graphrun::name_of(op), {}, dtype),
             fmt::format("const {0} *p, int ps, int n, {0} *out, int os", type_name(dtype)),
             fmt::format(R"(  REAL top = -INFINITY, sum = 0, rest;
  int j;
  for (j = 0; j < n; j++) {{
    const REAL x = (REAL)p[j * ps];
    {}
  }}
  for (j = 0; j < n; j++) sum += exp((REAL)p[j * ps] - top);
  rest = log(sum);
  for (j = 0; j < n; j++) out[j * os] = ({})({}(REAL)p[j * ps] - top - rest{});
)",
                         kLarger, type_name(dtype), is_log ? "" : "exp(", is_log ? "" : ")"));
}

std::string Functions::gather(DType dtype) {
  return add(name_of_types("gather", {}, dtype),
             fmt::format("const {0} *table, int rows, int columns, int row, int column, const int32_t *index, int is, "
                         "{0} *out, int n",
                         type_name(dtype)),
             fmt::format(R"(  int i, j;
  for (i = 0; i < n; i++) {{
    const int32_t at = index[i * is];
    for (j = 0; j < columns; j++)
      out[i * columns + j] = at >= 0 && at < rows ? table[at * row + j * column] : ({})0;
  }}
)",
                         type_name(dtype)));
}

std::string Functions::one_hot(DType dtype) {
  return add(name_of_types("one_hot", {}, dtype),
             fmt::format("const int32_t *index, int is, int classes, {} *out, int n", type_name(dtype)),
             fmt::format(R"(  int i, j;
  for (i = 0; i < n; i++)
    for (j = 0; j < classes; j++) out[i * classes + j] = ({})(index[i * is] == j);
)",
                         type_name(dtype)));
}

// Transforms are computed in double even if the layers use float: values may be large compared with their differences.
// The parentheses in (log)(x) prevent the replacement by the float function.
std::string Functions::to_stored(DType given, LogTransform log) {
  const std::string_view on = log == LogTransform::none ? "" : log == LogTransform::log ? "(log)" : "(log1p)";
  const std::string_view named = log == LogTransform::none ? "" : log == LogTransform::log ? "_log" : "_log1p";
  const DType inputs[] = {given};
  return add(name_of_types(fmt::format("stored{}", named), inputs, DType::f32),
             fmt::format("const {} *p, const double *shift, const double *scale, int columns, float *out, int n",
                         type_name(given)),
             fmt::format("  int i;\n  for (i = 0; i < n; i++)\n    out[i] = (float)(({}((double)p[i]) - shift[i % "
                         "columns]) / scale[i % columns]);\n",
                         on));
}

std::string Functions::to_user(LogTransform log) {
  const std::string_view off = log == LogTransform::none ? "" : log == LogTransform::log ? "(exp)" : "(expm1)";
  const std::string_view named = log == LogTransform::none ? "" : log == LogTransform::log ? "_exp" : "_expm1";
  return add(
      fmt::format("user{}", named),
      "const float *p, const double *shift, const double *scale, int columns, float *out, int n",
      fmt::format("  int i;\n  for (i = 0; i < n; i++)\n    out[i] = (float){}((double)p[i] * scale[i % columns] "
                  "+ shift[i % columns]);\n",
                  off));
}

std::string Functions::text() const {
  std::string result;
  if (clamps_) {
    result += fmt::format(R"(static int32_t {}_integer(double x) {{
  if (isnan(x)) return 0;
  if (x <= -2147483648.0) return -2147483647 - 1;
  if (x >= 2147483647.0) return 2147483647;
  return (int32_t)x;
}}

)",
                          prefix_);
  }
  for (const std::string& name : order_) result += known_.at(name) + "\n";
  std::string text = result;
  replace_all(text, "REAL", prefix_ + "_real");
  choose_math(text, big_ + "_MATH");
  return text;
}

}  // namespace graphrun::c99
