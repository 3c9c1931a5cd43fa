// elementwise.cpp: the scalar ops, applied element by element with NumPy broadcasting: one entry and one gradient each.
// Their values are defined in op_list.h; a new one is a row there and an entry here.
// Un-broadcasting is not done here: the reverse sweep sums what was broadcast.
#include <cmath>
#include <numbers>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/params/scalar.h"

namespace graphrun::ops {
namespace {

using ir::NodeId;

// ---- inference

TensorType infer_comparison(const InferContext& context) {
  TensorType out = infer::broadcast(context);
  out.dtype = DType::boolean;
  return out;
}

TensorType infer_logical(const InferContext& context) {
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    if (context.inputs[i].dtype != DType::boolean) {
      context.fail("dtype.bool", context.operand(i) + " must be bool", "a comparison such as x > 0 gives bool");
    }
  }
  return infer::broadcast(context);
}

TensorType infer_where(const InferContext& context) {
  if (context.inputs[0].dtype != DType::boolean) context.fail("dtype.bool", context.operand(0) + " must be bool");
  if (context.inputs[1].dtype != context.inputs[2].dtype) {
    context.fail("dtype.mismatch", context.operand(1) + " and " + context.operand(2) + " must have the same dtype");
  }
  std::vector<TensorType> as_values(context.inputs.begin(), context.inputs.end());
  as_values[0].dtype = as_values[1].dtype;
  return infer::broadcast({as_values, context.attrs, context.operand_names});
}

// ---- gradients; g is the gradient of the output y

NodeId where(NodeFactory& f, NodeId condition, NodeId a, NodeId b) {
  return f.add("where", {condition, a, b});
}
NodeId positive(NodeFactory& f, NodeId x) {
  return f.add("greater", {x, make::like(f, 0, x)});
}
NodeId one_minus(NodeFactory& f, NodeId x) {
  return make::sub(f, make::like(f, 1, x), x);
}
NodeId plus(NodeFactory& f, NodeId x, double number) {
  return make::add(f, x, make::like(f, number, x));
}

// dy/dx as a node, from x, y; for the unary ops: result = g * derivative.
using Derivative = NodeId (*)(NodeFactory& f, NodeId x, NodeId y);
template <Derivative derivative>
void chain(GradContext& c) {
  c.result[0] = make::mul(c.make, c.gradient, derivative(c.make, c.inputs[0], c.output));
}

void flat(GradContext&) {}  // zero almost everywhere

void grad_add(GradContext& c) {
  c.result = {c.gradient, c.gradient};
}
void grad_sub(GradContext& c) {
  c.result[0] = c.gradient;
  if (c.wanted[1]) c.result[1] = make::neg(c.make, c.gradient);
}
void grad_mul(GradContext& c) {
  if (c.wanted[0]) c.result[0] = make::mul(c.make, c.gradient, c.inputs[1]);
  if (c.wanted[1]) c.result[1] = make::mul(c.make, c.gradient, c.inputs[0]);
}
void grad_div(GradContext& c) {  // d(a/b)/db = -(a/b)/b
  const NodeId scaled = make::div(c.make, c.gradient, c.inputs[1]);
  c.result[0] = scaled;
  if (c.wanted[1]) c.result[1] = make::neg(c.make, make::mul(c.make, scaled, c.output));
}
void grad_mod(GradContext& c) {  // x - floor(x/y) y
  c.result[0] = c.gradient;
  if (!c.wanted[1]) return;
  const NodeId quotient = c.make.add("floor", {make::div(c.make, c.inputs[0], c.inputs[1])});
  c.result[1] = make::neg(c.make, make::mul(c.make, c.gradient, quotient));
}
// y x^(y-1), and 0 where y = 0;  x^y log x, and 0 where x = 0 <= y. What is not taken stays finite, or its own gradient
// would be 0 times infinity.
void grad_pow(GradContext& c) {
  NodeFactory& f = c.make;
  const NodeId x = c.inputs[0];
  const NodeId y = c.inputs[1];
  const NodeId no_power = make::like(f, 0, y);
  if (c.wanted[0]) {
    const NodeId lower = where(f, f.add("equal", {y, no_power}), no_power, plus(f, y, -1));
    c.result[0] = make::mul(f, c.gradient, make::mul(f, y, f.add("pow", {x, lower})));
  }
  if (c.wanted[1]) {
    const NodeId at_zero =
        f.add("logical_and", {f.add("equal", {x, make::like(f, 0, x)}), f.add("greater_equal", {y, no_power})});
    const NodeId log_x = f.add("log", {where(f, at_zero, make::like(f, 1, x), x)});
    c.result[1] = make::mul(f, c.gradient, make::mul(f, c.output, log_x));
  }
}
// The larger (smaller) operand takes the gradient; equal ones take half each.
void grad_extremum(GradContext& c, std::string_view strictly) {
  NodeFactory& f = c.make;
  const NodeId half = make::scale(f, c.gradient, 0.5);
  const NodeId zero = make::like(f, 0, c.gradient);
  const NodeId equal = f.add("equal", {c.inputs[0], c.inputs[1]});
  for (std::size_t i = 0; i < 2; ++i) {
    const NodeId wins = f.add(strictly, {c.inputs[i], c.inputs[1 - i]});
    if (c.wanted[i]) c.result[i] = where(f, equal, half, where(f, wins, c.gradient, zero));
  }
}
void grad_maximum(GradContext& c) {
  grad_extremum(c, "greater");
}
void grad_minimum(GradContext& c) {
  grad_extremum(c, "less");
}

void grad_where(GradContext& c) {
  const NodeId zero = make::like(c.make, 0, c.gradient);
  if (c.wanted[1]) c.result[1] = where(c.make, c.inputs[0], c.gradient, zero);
  if (c.wanted[2]) c.result[2] = where(c.make, c.inputs[0], zero, c.gradient);
}

void grad_neg(GradContext& c) {
  c.result[0] = make::neg(c.make, c.gradient);
}
NodeId d_abs(NodeFactory& f, NodeId x, NodeId) {
  return f.add("sign", {x});
}
NodeId d_sqrt(NodeFactory& f, NodeId, NodeId y) {
  return make::div(f, make::like(f, 0.5, y), y);
}
NodeId d_rsqrt(NodeFactory& f, NodeId, NodeId y) {
  return make::scale(f, make::mul(f, y, make::square(f, y)), -0.5);
}
NodeId d_reciprocal(NodeFactory& f, NodeId, NodeId y) {
  return make::neg(f, make::square(f, y));
}
NodeId d_exp(NodeFactory&, NodeId, NodeId y) {
  return y;
}
NodeId d_expm1(NodeFactory& f, NodeId, NodeId y) {
  return plus(f, y, 1);
}
void grad_log(GradContext& c) {
  c.result[0] = make::div(c.make, c.gradient, c.inputs[0]);
}
void grad_log1p(GradContext& c) {
  c.result[0] = make::div(c.make, c.gradient, plus(c.make, c.inputs[0], 1));
}
NodeId d_sin(NodeFactory& f, NodeId x, NodeId) {
  return f.add("cos", {x});
}
NodeId d_cos(NodeFactory& f, NodeId x, NodeId) {
  return make::neg(f, f.add("sin", {x}));
}
NodeId d_tan(NodeFactory& f, NodeId, NodeId y) {
  return plus(f, make::square(f, y), 1);
}
NodeId d_erf(NodeFactory& f, NodeId x, NodeId) {
  return make::scale(f, f.add("exp", {make::neg(f, make::square(f, x))}), 2 * std::numbers::inv_sqrtpi);
}
NodeId d_silu(NodeFactory& f, NodeId x, NodeId) {  // s (1 + x (1 - s))
  const NodeId s = f.add("sigmoid", {x});
  return make::mul(f, s, plus(f, make::mul(f, x, one_minus(f, s)), 1));
}
NodeId d_gelu(NodeFactory& f, NodeId x, NodeId) {  // Phi(x) + x phi(x)
  const double inv_sqrt2 = 1 / std::numbers::sqrt2;
  const NodeId cdf = make::scale(f, plus(f, f.add("erf", {make::scale(f, x, inv_sqrt2)}), 1), 0.5);
  const NodeId pdf =
      make::scale(f, f.add("exp", {make::scale(f, make::square(f, x), -0.5)}), std::numbers::inv_sqrtpi * inv_sqrt2);
  return make::add(f, cdf, make::mul(f, x, pdf));
}
NodeId d_gelu_tanh(NodeFactory& f, NodeId x, NodeId) {  // y = x (1 + t) / 2, t = tanh(k (x + c x^3))
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double cubic = 0.044715;
  const NodeId x2 = make::square(f, x);
  const NodeId inner = make::scale(f, make::mul(f, x, plus(f, make::scale(f, x2, cubic), 1)), k);
  const NodeId t = f.add("tanh", {inner});
  const NodeId d_inner = make::scale(f, plus(f, make::scale(f, x2, 3 * cubic), 1), k);
  const NodeId half_x = make::scale(f, x, 0.5);
  const NodeId through_t = make::mul(f, make::mul(f, half_x, one_minus(f, make::square(f, t))), d_inner);
  return make::add(f, make::scale(f, plus(f, t, 1), 0.5), through_t);
}

// Gradients in one pass over `g`, asking the result where it tells enough: then x itself need not be kept.
void grad_square(GradContext& c) {
  c.result[0] = c.make.add("square_gradient", {c.inputs[0], c.gradient});
}
void grad_relu(GradContext& c) {
  c.result[0] = c.make.add("relu_gradient", {c.output, c.gradient});
}
void grad_tanh(GradContext& c) {
  c.result[0] = c.make.add("tanh_gradient", {c.output, c.gradient});
}
void grad_sigmoid(GradContext& c) {
  c.result[0] = c.make.add("sigmoid_gradient", {c.output, c.gradient});
}
void grad_softplus(GradContext& c) {
  c.result[0] = c.make.add("softplus_gradient", {c.inputs[0], c.gradient});
}

// Their own: result = op(v, g) is linear in g; `slope` is its derivative by v over g, none where that is 0.
void grad_of_gradient(GradContext& c, std::string_view op, NodeId (*slope)(NodeFactory& f, NodeId v)) {
  if (c.wanted[1]) c.result[1] = c.make.add(op, {c.inputs[0], c.gradient});
  if (c.wanted[0] && slope != nullptr) {
    c.result[0] = make::mul(c.make, make::mul(c.make, c.gradient, c.inputs[1]), slope(c.make, c.inputs[0]));
  }
}
void grad_square_gradient(GradContext& c) {
  grad_of_gradient(c, "square_gradient", [](NodeFactory& f, NodeId x) { return make::like(f, 2, x); });
}
void grad_relu_gradient(GradContext& c) {
  grad_of_gradient(c, "relu_gradient", nullptr);
}
void grad_tanh_gradient(GradContext& c) {
  grad_of_gradient(c, "tanh_gradient", [](NodeFactory& f, NodeId y) { return make::scale(f, y, -2); });
}
void grad_sigmoid_gradient(GradContext& c) {
  grad_of_gradient(c, "sigmoid_gradient", [](NodeFactory& f, NodeId y) { return plus(f, make::scale(f, y, -2), 1); });
}
void grad_softplus_gradient(GradContext& c) {
  grad_of_gradient(c, "softplus_gradient", [](NodeFactory& f, NodeId x) {
    const NodeId s = f.add("sigmoid", {x});
    return make::mul(f, s, one_minus(f, s));
  });
}

void grad_leaky_relu(GradContext& c) {
  const NodeId small = make::scale(c.make, c.gradient, c.attrs.real("slope"));
  c.result[0] = where(c.make, positive(c.make, c.inputs[0]), c.gradient, small);
}
// For x <= 0, y = s a (e^x - 1), so dy/dx = y + s a; for x > 0 it is s.
void grad_exponential_unit(GradContext& c, double scale, double alpha) {
  NodeFactory& f = c.make;
  const NodeId left = make::mul(f, c.gradient, plus(f, c.output, scale * alpha));
  c.result[0] = where(f, positive(f, c.inputs[0]), make::scale(f, c.gradient, scale), left);
}
void grad_elu(GradContext& c) {
  grad_exponential_unit(c, 1, c.attrs.real("alpha"));
}
// Klambauer et al. 2017, "Self-normalizing neural networks".
void grad_selu(GradContext& c) {
  grad_exponential_unit(c, 1.0507009873554804934, 1.6732632423543772848);
}
// 0 at the bounds, as relu's is at 0.
void grad_clip(GradContext& c) {
  NodeFactory& f = c.make;
  const NodeId x = c.inputs[0];
  const NodeId above = f.add("greater", {x, make::like(f, c.attrs.real("low"), x)});
  const NodeId below = f.add("less", {x, make::like(f, c.attrs.real("high"), x)});
  c.result[0] = where(f, f.add("logical_and", {above, below}), c.gradient, make::like(f, 0, c.gradient));
}

// ---- attributes, in the order of ScalarParams

Params pack_one(const ir::Attrs& attrs, std::string_view a) {
  return ScalarParams{attrs.real(a), 0};
}
Params pack_leaky_relu(const ir::Attrs& attrs, std::span<const TensorType>, const TensorType&) {
  return pack_one(attrs, "slope");
}
Params pack_elu(const ir::Attrs& attrs, std::span<const TensorType>, const TensorType&) {
  return pack_one(attrs, "alpha");
}
Params pack_clip(const ir::Attrs& attrs, std::span<const TensorType>, const TensorType&) {
  return ScalarParams{attrs.real("low"), attrs.real("high")};
}
TensorType infer_clip(const InferContext& context) {
  if (context.attrs.real("low") > context.attrs.real("high")) {
    context.fail("attribute.range", "'low' must not be above 'high'");
  }
  return infer::same_float(context);
}

// ---- entries

OpDef unary(Op op, std::string_view doc, GradFn grad) {
  return {.op = op, .doc = doc, .operands = {"x"}, .infer = infer::same_float, .grad = grad};
}
OpDef binary(Op op, std::string_view doc, GradFn grad) {
  return {.op = op, .doc = doc, .operands = {"x", "y"}, .infer = infer::float_broadcast, .grad = grad};
}
OpDef gradient_op(Op op, std::string_view doc, std::string_view value, GradFn grad) {
  OpDef def = binary(op, doc, grad);
  def.operands = {value, "gradient"};
  def.internal = true;
  return def;
}
OpDef comparison(Op op, std::string_view doc) {
  return {.op = op, .doc = doc, .operands = {"x", "y"}, .infer = infer_comparison, .no_gradient = "its result is bool"};
}
OpDef with_attrs(OpDef op, ir::AttrSchema attrs, PackFn pack) {
  op.attrs = std::move(attrs);
  op.pack = pack;
  return op;
}
ir::AttrDef number(std::string_view name, double fallback, std::string_view doc, bool required = false) {
  return {name, fallback, doc, required};
}

}  // namespace

std::vector<OpDef> elementwise() {
  std::vector<OpDef> list = {
      binary(Op::add, "x + y", grad_add),
      binary(Op::sub, "x - y", grad_sub),
      binary(Op::mul, "x * y", grad_mul),
      binary(Op::div, "x / y", grad_div),
      binary(Op::mod, "x - floor(x / y) * y, with the sign of y", grad_mod),
      binary(Op::pow, "x to the power y", grad_pow),
      binary(Op::minimum, "the smaller of x and y; NaN if either is", grad_minimum),
      binary(Op::maximum, "the larger of x and y; NaN if either is", grad_maximum),
      unary(Op::neg, "-x", grad_neg),
      unary(Op::abs, "|x|", chain<d_abs>),
      unary(Op::sign, "-1, 0 or 1", flat),
      unary(Op::square, "x * x", grad_square),
      unary(Op::sqrt, "square root", chain<d_sqrt>),
      unary(Op::rsqrt, "1 / sqrt(x)", chain<d_rsqrt>),
      unary(Op::reciprocal, "1 / x", chain<d_reciprocal>),
      unary(Op::exp, "e to the power x", chain<d_exp>),
      unary(Op::expm1, "exp(x) - 1, exact near 0", chain<d_expm1>),
      unary(Op::log, "natural logarithm", grad_log),
      unary(Op::log1p, "log(1 + x), exact near 0", grad_log1p),
      unary(Op::sin, "sine of radians", chain<d_sin>),
      unary(Op::cos, "cosine of radians", chain<d_cos>),
      unary(Op::tan, "tangent of radians", chain<d_tan>),
      unary(Op::tanh, "hyperbolic tangent", grad_tanh),
      unary(Op::sigmoid, "1 / (1 + exp(-x))", grad_sigmoid),
      unary(Op::softplus, "log(1 + exp(x))", grad_softplus),
      unary(Op::relu, "x where x > 0, else 0", grad_relu),
      with_attrs(unary(Op::leaky_relu, "x where x > 0, else slope * x", grad_leaky_relu),
                 {number("slope", 0.01, "factor for x <= 0")}, pack_leaky_relu),
      with_attrs(unary(Op::elu, "x where x > 0, else alpha * (exp(x) - 1)", grad_elu),
                 {number("alpha", 1.0, "minus the limit for x to -infinity")}, pack_elu),
      unary(Op::selu, "elu with the self-normalizing scale 1.0507 and alpha 1.6733", grad_selu),
      unary(Op::gelu, "x * (1 + erf(x / sqrt(2))) / 2", chain<d_gelu>),
      unary(Op::gelu_tanh, "x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) / 2", chain<d_gelu_tanh>),
      unary(Op::silu, "x * sigmoid(x)", chain<d_silu>),
      unary(Op::erf, "error function", chain<d_erf>),
      unary(Op::floor, "the largest integer <= x", flat),
      unary(Op::ceil, "the smallest integer >= x", flat),
      unary(Op::round, "the nearest integer, halves to even", flat),
      with_attrs(unary(Op::clip, "x, but at least low and at most high", grad_clip),
                 {number("low", 0.0, "lower bound", true), number("high", 1.0, "upper bound", true)}, pack_clip),
      gradient_op(Op::square_gradient, "2 * x * gradient", "x", grad_square_gradient),
      gradient_op(Op::relu_gradient, "gradient where y > 0, else 0", "y", grad_relu_gradient),
      gradient_op(Op::tanh_gradient, "gradient * (1 - y * y)", "y", grad_tanh_gradient),
      gradient_op(Op::sigmoid_gradient, "gradient * y * (1 - y)", "y", grad_sigmoid_gradient),
      gradient_op(Op::softplus_gradient, "gradient * sigmoid(x)", "x", grad_softplus_gradient),
      comparison(Op::equal, "x == y"),
      comparison(Op::not_equal, "x != y"),
      comparison(Op::less, "x < y"),
      comparison(Op::less_equal, "x <= y"),
      comparison(Op::greater, "x > y"),
      comparison(Op::greater_equal, "x >= y"),
  };
  for (OpDef& def : list) {
    if (def.op == Op::clip) def.infer = infer_clip;
    for (const Op exact : {Op::minimum, Op::maximum, Op::neg, Op::abs, Op::sign, Op::relu, Op::relu_gradient, Op::floor,
                           Op::ceil, Op::round, Op::clip}) {
      if (def.op == exact) def.agreement = Agreement::exact;
    }
  }
  for (auto [op, doc, operands] : {std::tuple{Op::logical_and, "x and y", 2}, std::tuple{Op::logical_or, "x or y", 2},
                                   std::tuple{Op::logical_not, "not x", 1}}) {
    OpDef def{.op = op, .doc = doc, .infer = infer_logical, .no_gradient = "its result is bool"};
    def.operands = operands == 2 ? std::vector<std::string_view>{"x", "y"} : std::vector<std::string_view>{"x"};
    list.push_back(std::move(def));
  }
  list.push_back({.op = Op::where,
                  .doc = "x where the condition holds, else y",
                  .operands = {"condition", "x", "y"},
                  .infer = infer_where,
                  .grad = grad_where,
                  .agreement = Agreement::exact});
  return list;
}

}  // namespace graphrun::ops
