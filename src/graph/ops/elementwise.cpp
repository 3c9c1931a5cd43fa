// elementwise.cpp: the scalar ops, applied element by element with NumPy broadcasting: one entry and one gradient each.
// scalar_op_list.h defines their values; a new op needs a row there and an entry here.
// Gradients here need not un-broadcast: the reverse sweep does.
#include <numbers>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun::ops {
namespace {

// ---- gradients; g is dL/dy for the output y

using make::op;
using make::square;
using Gradient = Var (*)(Var g, Var x, Var y);  // dL/dx of a unary op

Var where(Var condition, Var a, Var b) {
  return op("where", {condition, a, b});
}
Var greater(Var x, double bound) {
  return op("greater", {x, make::like(bound, x)});
}
Var none(Var g) {
  return make::like(0, g);
}

void flat(GradContext&) {}  // zero almost everywhere

void grad_div(GradContext& c) {  // d(a/b)/db = -(a/b)/b
  const Var scaled = c.gradient / c.inputs[1];
  c.result[0] = scaled;
  if (c.wanted[1]) c.result[1] = -(scaled * c.output);
}
// d/dx = y x^(y-1), and 0 where y = 0; d/dy = x^y log x, and 0 where x = 0 <= y. The branch that is not selected must
// be finite, or its own gradient would be 0 times infinity.
void grad_pow(GradContext& c) {
  const Var x = c.inputs[0];
  const Var y = c.inputs[1];
  const Var no_power = none(y);
  if (c.wanted[0]) {
    const Var less = y - 1;
    const Var lower = where(op("equal", {y, no_power}), no_power, less);
    c.result[0] = c.gradient * (y * op("pow", {x, lower}));
  }
  if (c.wanted[1]) {
    const Var at_zero = op("logical_and", {op("equal", {x, none(x)}), op("greater_equal", {y, no_power})});
    c.result[1] = c.gradient * (c.output * op("log", {where(at_zero, make::like(1, x), x)}));
  }
}
// The larger (smaller) operand gets the gradient; equal operands get half each.
GradFn extremum(std::string_view strictly) {
  return [strictly](GradContext& c) {
    const Var half = c.gradient * 0.5;
    const Var zero = none(c.gradient);
    const Var equal = op("equal", {c.inputs[0], c.inputs[1]});
    for (std::size_t i = 0; i < 2; ++i) {
      const Var wins = op(strictly, {c.inputs[i], c.inputs[1 - i]});
      if (c.wanted[i]) c.result[i] = where(equal, half, where(wins, c.gradient, zero));
    }
  };
}

Var grad_silu(Var g, Var x, Var) {  // s (1 + x (1 - s))
  const Var s = op("sigmoid", {x});
  return g * (s * (x * (1 - s) + 1));
}
Var grad_gelu(Var g, Var x, Var) {  // Phi(x) + x phi(x)
  const double inv_sqrt2 = 1 / std::numbers::sqrt2;
  const Var cdf = (op("erf", {x * inv_sqrt2}) + 1) * 0.5;
  const Var pdf = op("exp", {square(x) * -0.5}) * (std::numbers::inv_sqrtpi * inv_sqrt2);
  return g * (cdf + x * pdf);
}
Var grad_gelu_tanh(Var g, Var x, Var) {  // y = x (1 + t) / 2, t = tanh(k (x + c x^3))
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double cubic = 0.044715;
  const Var x2 = square(x);
  const Var t = op("tanh", {x * (x2 * cubic + 1) * k});
  const Var d_inner = (x2 * (3 * cubic) + 1) * k;
  const Var half_x = x * 0.5;
  const Var through_t = half_x * (1 - square(t)) * d_inner;
  return g * ((t + 1) * 0.5 + through_t);
}

// Second derivative of a one-pass gradient op(v, g), which is linear in g. `slope` gives (d op / dv) / g.
GradFn of_gradient(std::string_view name, Var (*slope)(Var v)) {
  return [name, slope](GradContext& c) {
    if (c.wanted[1]) c.result[1] = op(name, {c.inputs[0], c.gradient});
    if (!c.wanted[0] || slope == nullptr) return;
    const Var by_v = slope(c.inputs[0]);
    c.result[0] = c.gradient * c.inputs[1] * by_v;
  };
}

void grad_leaky_relu(GradContext& c) {
  const Var small = c.gradient * c.attrs.real("slope");
  c.result[0] = where(greater(c.inputs[0], 0), c.gradient, small);
}
// For x <= 0, y = s a (e^x - 1), so dy/dx = y + s a; for x > 0, dy/dx = s.
Var grad_exponential_unit(Var g, Var x, Var y, double scale, double alpha) {
  const Var left = g * (y + scale * alpha);
  const Var right = g * scale;
  return where(greater(x, 0), right, left);
}
// Klambauer et al. 2017, "Self-normalizing neural networks".
Var grad_selu(Var g, Var x, Var y) {
  return grad_exponential_unit(g, x, y, 1.0507009873554804934, 1.6732632423543772848);
}
// The gradient is 0 at the bounds, like that of relu at 0.
void grad_clip(GradContext& c) {
  const Var x = c.inputs[0];
  const Var above = greater(x, c.attrs.real("low"));
  const Var below = op("less", {x, make::like(c.attrs.real("high"), x)});
  const Var zero = none(c.gradient);
  c.result[0] = where(op("logical_and", {above, below}), c.gradient, zero);
}

// ---- entries

Params pack_numbers(const OpCall& call) {
  const auto [a, b] = infer::two_reals(call.attrs);
  return ScalarParams{a, b};
}

OpDef unary(Op op, std::string_view doc, GradFn grad, ir::AttrSchema attrs = {}) {
  const PackFn pack = attrs.empty() ? nullptr : pack_numbers;
  return {.op = op, .doc = doc, .operands = {"x"}, .attrs = std::move(attrs), .grad = std::move(grad), .pack = pack};
}
OpDef unary(Op op, std::string_view doc, Gradient gradient) {
  return unary(op, doc, [gradient](GradContext& c) { c.result[0] = gradient(c.gradient, c.inputs[0], c.output); });
}
// Unary op whose gradient is the one-pass op `gradient` of the result or of x.
OpDef unary_by(Op op, std::string_view doc, std::string_view gradient, bool from_result = true) {
  return unary(op, doc, [gradient, from_result](GradContext& c) {
    c.result[0] = make::op(gradient, {from_result ? c.output : c.inputs[0], c.gradient});
  });
}
OpDef binary(Op op, std::string_view doc, GradFn grad) {
  return {.op = op, .doc = doc, .operands = {"x", "y"}, .grad = std::move(grad)};
}
OpDef gradient_op(Op op, std::string_view doc, std::string_view value, Var (*slope)(Var v)) {
  OpDef def = binary(op, doc, of_gradient(name_of(op), slope));
  def.operands = {value, "gradient"};
  def.internal = true;
  return def;
}
OpDef boolean(Op op, std::string_view doc, std::vector<std::string_view> operands = {"x", "y"}) {
  return {.op = op, .doc = doc, .operands = std::move(operands), .no_gradient = "its result is bool"};
}

}  // namespace

// A one-pass gradient op reads the result instead of x where possible, so that x need not stay in memory.
std::vector<OpDef> elementwise() {
  std::vector<OpDef> list = {
      binary(Op::add, "x + y",
             [](GradContext& c) {
               c.result = {c.gradient, c.gradient};
             }),
      binary(Op::sub, "x - y",
             [](GradContext& c) {
               c.result[0] = c.gradient;
               if (c.wanted[1]) c.result[1] = -c.gradient;
             }),
      binary(Op::mul, "x * y",
             [](GradContext& c) {
               if (c.wanted[0]) c.result[0] = c.gradient * c.inputs[1];
               if (c.wanted[1]) c.result[1] = c.gradient * c.inputs[0];
             }),
      binary(Op::div, "x / y", grad_div),
      binary(scalar_op::mod, "x - floor(x / y) * y, with the sign of y",
             [](GradContext& c) {
               c.result[0] = c.gradient;
               if (c.wanted[1]) c.result[1] = -(c.gradient * op("floor", {c.inputs[0] / c.inputs[1]}));
             }),
      binary(scalar_op::pow, "x to the power y", grad_pow),
      binary(Op::minimum, "the smaller of x and y; NaN if either is NaN", extremum("less")),
      binary(Op::maximum, "the larger of x and y; NaN if either is NaN", extremum("greater")),
      unary(scalar_op::neg, "-x", [](Var g, Var, Var) { return -g; }),
      unary(scalar_op::abs, "|x|", [](Var g, Var x, Var) { return g * op("sign", {x}); }),
      unary(scalar_op::sign, "-1, 0 or 1", flat),
      unary_by(scalar_op::square, "x * x", "square_gradient", false),
      unary(scalar_op::sqrt, "square root", [](Var g, Var, Var y) { return g * (0.5 / y); }),
      unary(scalar_op::rsqrt, "1 / sqrt(x)", [](Var g, Var, Var y) { return g * (y * square(y) * -0.5); }),
      unary(scalar_op::reciprocal, "1 / x", [](Var g, Var, Var y) { return g * -square(y); }),
      unary(scalar_op::exp, "e to the power x", [](Var g, Var, Var y) { return g * y; }),
      unary(scalar_op::expm1, "exp(x) - 1, accurate near 0", [](Var g, Var, Var y) { return g * (y + 1); }),
      unary(scalar_op::log, "natural logarithm", [](Var g, Var x, Var) { return g / x; }),
      unary(scalar_op::log1p, "log(1 + x), accurate near 0", [](Var g, Var x, Var) { return g / (x + 1); }),
      unary(scalar_op::sin, "sine of radians", [](Var g, Var x, Var) { return g * op("cos", {x}); }),
      unary(scalar_op::cos, "cosine of radians", [](Var g, Var x, Var) { return g * -op("sin", {x}); }),
      unary(scalar_op::tan, "tangent of radians", [](Var g, Var, Var y) { return g * (square(y) + 1); }),
      unary_by(scalar_op::tanh, "hyperbolic tangent", "tanh_gradient"),
      unary_by(scalar_op::sigmoid, "1 / (1 + exp(-x))", "sigmoid_gradient"),
      unary_by(scalar_op::softplus, "log(1 + exp(x))", "softplus_gradient", false),
      unary_by(scalar_op::relu, "x where x > 0, else 0", "relu_gradient"),
      unary(scalar_op::leaky_relu, "x where x > 0, else slope * x", grad_leaky_relu,
            {{"slope", 0.01, "factor for x <= 0"}}),
      unary(scalar_op::elu, "x where x > 0, else alpha * (exp(x) - 1)",
            [](GradContext& c) {
              c.result[0] = grad_exponential_unit(c.gradient, c.inputs[0], c.output, 1, c.attrs.real("alpha"));
            },
            {{"alpha", 1.0, "negated limit of the function as x approaches -infinity"}}),
      unary(scalar_op::selu, "elu with the self-normalizing scale 1.0507 and alpha 1.6733", grad_selu),
      unary(scalar_op::gelu, "x * (1 + erf(x / sqrt(2))) / 2", grad_gelu),
      unary(scalar_op::gelu_tanh, "x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) / 2", grad_gelu_tanh),
      unary(scalar_op::silu, "x * sigmoid(x)", grad_silu),
      unary(scalar_op::erf, "error function",
            [](Var g, Var x, Var) { return g * (op("exp", {-square(x)}) * (2 * std::numbers::inv_sqrtpi)); }),
      unary(scalar_op::floor, "the largest integer <= x", flat),
      unary(scalar_op::ceil, "the smallest integer >= x", flat),
      unary(scalar_op::round, "the nearest integer, halves to even", flat),
      unary(scalar_op::clip, "x, but at least low and at most high", grad_clip,
            {{"low", 0.0, "lower bound", true}, {"high", 1.0, "upper bound", true}}),
      gradient_op(scalar_op::square_gradient, "2 * x * gradient", "x", [](Var x) { return make::like(2, x); }),
      gradient_op(scalar_op::relu_gradient, "gradient where y > 0, else 0", "y", nullptr),
      gradient_op(scalar_op::tanh_gradient, "gradient * (1 - y * y)", "y", [](Var y) { return y * -2; }),
      gradient_op(scalar_op::sigmoid_gradient, "gradient * y * (1 - y)", "y", [](Var y) { return y * -2 + 1; }),
      gradient_op(scalar_op::softplus_gradient, "gradient * sigmoid(x)", "x",
                  [](Var x) {
                    const Var s = op("sigmoid", {x});
                    return s * (1 - s);
                  }),
      boolean(scalar_op::equal, "x == y"),
      boolean(scalar_op::not_equal, "x != y"),
      boolean(scalar_op::less, "x < y"),
      boolean(scalar_op::less_equal, "x <= y"),
      boolean(scalar_op::greater, "x > y"),
      boolean(scalar_op::greater_equal, "x >= y"),
      boolean(scalar_op::logical_and, "x and y"),
      boolean(scalar_op::logical_or, "x or y"),
      boolean(scalar_op::logical_not, "not x", {"x"}),
      {.op = Op::where,
       .doc = "x where the condition holds, else y",
       .operands = {"condition", "x", "y"},
       .grad =
           [](GradContext& c) {
             const Var zero = none(c.gradient);
             if (c.wanted[1]) c.result[1] = where(c.inputs[0], c.gradient, zero);
             if (c.wanted[2]) c.result[2] = where(c.inputs[0], zero, c.gradient);
           }},
  };
  for (OpDef& def : list) {
    for (const Op exact :
         {Op::minimum, Op::maximum, scalar_op::neg, scalar_op::abs, scalar_op::sign, scalar_op::relu,
          scalar_op::relu_gradient, scalar_op::floor, scalar_op::ceil, scalar_op::round, scalar_op::clip, Op::where}) {
      if (def.op == exact) def.agreement = Agreement::exact;
    }
  }
  return list;
}

}  // namespace graphrun::ops
