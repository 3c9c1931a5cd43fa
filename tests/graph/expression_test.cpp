// expression_test.cpp: the grammar of expressions, folding, and where mistakes stand.
#include "graph/frontend/expressions/expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graphrun/op.h"

namespace graphrun::expression {
namespace {

// The terms as a prefix text: "(sub (neg (pow x 2)) y)".
std::string show(const Expression& e, TermId id) {
  const Term& t = e.terms[id];
  switch (t.kind) {
    case Term::Kind::number:
      return e.text.substr(t.begin, t.end - t.begin);
    case Term::Kind::name:
      return t.word;
    case Term::Kind::text:
      return "'" + t.word + "'";
    default:
      break;
  }
  std::string text = t.kind == Term::Kind::list ? "([]" : "(" + t.word;
  for (const TermId operand : t.operands) text += " " + show(e, operand);
  for (const Argument& argument : t.attributes) text += " " + argument.key + "=" + show(e, argument.value);
  return text + ")";
}

std::string tree(std::string_view text) {
  const Expression e = parse(text);
  return show(e, static_cast<TermId>(e.terms.size() - 1));
}

struct Mistake {
  std::string code;
  std::size_t offset = 0;
  std::string hint = {};
};

Mistake syntax_error(std::string_view text) {
  try {
    parse(text);
  } catch (const ExpressionError& error) {
    return {error.diagnostics().front().code, error.offset, error.diagnostics().front().hint};
  }
  return {"none"};
}

TEST(Grammar, PowerIsRightAssociativeAndTighterThanMinus) {
  EXPECT_EQ(tree("-x^2"), "(neg (pow x 2))");
  EXPECT_EQ(tree("x^y^z"), "(pow x (pow y z))");
  EXPECT_EQ(tree("x**y^z"), "(pow x (pow y z))");
  EXPECT_EQ(tree("x^-y^2"), "(pow x (neg (pow y 2)))");
  EXPECT_EQ(tree("2 * -x"), "(mul 2 (neg x))");
  EXPECT_EQ(tree("--x"), "(neg (neg x))");
}

TEST(Grammar, PrecedenceFromProductsToLogic) {
  EXPECT_EQ(tree("a + b * c"), "(add a (mul b c))");
  EXPECT_EQ(tree("a - b - c"), "(sub (sub a b) c)");
  EXPECT_EQ(tree("a / b * c"), "(mul (div a b) c)");
  EXPECT_EQ(tree("x @ W + b"), "(add (matmul x W) b)");
  EXPECT_EQ(tree("a % b @ c"), "(matmul (mod a b) c)");
  EXPECT_EQ(tree("-a * b"), "(mul (neg a) b)");
  EXPECT_EQ(tree("a + b < c * d"), "(less (add a b) (mul c d))");
  EXPECT_EQ(tree("not a == b and c or d"), "(logical_or (logical_and (logical_not (equal a b)) c) d)");
  EXPECT_EQ(tree("a >= b or a != c"), "(logical_or (greater_equal a b) (not_equal a c))");
  EXPECT_EQ(tree("(a + b) * c"), "(mul (add a b) c)");
}

TEST(Grammar, CallsListsAndNames) {
  EXPECT_EQ(tree("mean(x, axis=[0, -1], keepdims=true)"), "(mean x axis=([] 0 (neg 1)) keepdims=true)");
  EXPECT_EQ(tree("f()"), "(f)");
  EXPECT_EQ(tree("h2.W * order"), "(mul h2.W order)");
  EXPECT_EQ(tree("cast(x, dtype=\"f32\")"), "(cast x dtype='f32')");
  EXPECT_EQ(tree("1.5e-3 * .5"), "(mul 1.5e-3 .5)");
  EXPECT_EQ(tree("f(a == b)"), "(f (equal a b))");
}

TEST(Grammar, Assignments) {
  EXPECT_EQ(parse(" h1 = a + b").name, "h1");
  EXPECT_EQ(parse("a == b").name, "");
  EXPECT_EQ(assigned_name("h1 = tanh("), "h1");
  EXPECT_EQ(assigned_name("tanh(x)"), "");
}

TEST(Grammar, ErrorsStandAtTheirByte) {
  EXPECT_EQ(syntax_error("a + ").offset, 4u);
  EXPECT_EQ(syntax_error("h = a + * b").offset, 8u);
  EXPECT_EQ(syntax_error("(a + b").offset, 6u);
  EXPECT_EQ(syntax_error("a b").offset, 2u);
  EXPECT_EQ(syntax_error("").offset, 0u);
  EXPECT_EQ(syntax_error("1e999").code, "expression.number");
  EXPECT_EQ(syntax_error("f(x, axis=0, y)").offset, 13u);
  EXPECT_EQ(syntax_error("f(x, axis=0, axis=1)").offset, 13u);
  EXPECT_EQ(syntax_error("a < b < c").offset, 6u);
  EXPECT_EQ(syntax_error("a = b = c").offset, 6u);
}

TEST(Grammar, HintsForOtherLanguages) {
  EXPECT_NE(syntax_error("x[0]").hint.find("slice"), std::string::npos);
  EXPECT_NE(syntax_error("a && b").hint.find("and, or, not"), std::string::npos);
  EXPECT_NE(syntax_error("2x").hint.find("*"), std::string::npos);
  EXPECT_NE(syntax_error("a \xE2\x88\x92 b").hint.find("plain"), std::string::npos);
}

TEST(Grammar, NestingIsLimitedButLengthIsNot) {
  EXPECT_EQ(syntax_error(std::string(60, '(') + "x" + std::string(60, ')')).code, "none");
  EXPECT_EQ(syntax_error(std::string(100000, '(')).code, "expression.depth");
  EXPECT_EQ(syntax_error(std::string(100000, '-') + "x").code, "expression.depth");
  std::string nots, powers = "x", sum = "x";
  for (int i = 0; i < 1000; ++i) nots += "not ";
  for (int i = 0; i < 1000; ++i) powers += "^x";
  for (int i = 0; i < 100000; ++i) sum += "+x";
  EXPECT_EQ(syntax_error(nots + "x").code, "expression.depth");
  EXPECT_EQ(syntax_error(powers).code, "expression.depth");
  EXPECT_EQ(syntax_error(sum).code, "none");
}

class Build : public testing::Test {
 protected:
  Build() {
    graph.input("x", std::vector<std::int64_t>{kBatch, 6}, DType::f32);
    graph.input("k", std::vector<std::int64_t>{kBatch}, DType::i32);
    graph.parameter("W", {6, 1}, {.init = Init::zeros()});
    graph.constants.emplace("gain", 1.5);
  }
  const ir::Node& node(std::string_view text) {
    const Expression parsed = parse(text);
    const Findings findings = check({graph}, parsed);
    if (!findings.errors.empty()) throw findings.errors.front();
    return graph.graph[build(graph, parsed)];
  }
  double number(std::string_view text) {
    const ir::Node& n = node(text);
    EXPECT_EQ(n.op, Op::constant) << text;
    return n.attrs.reals("values").at(0);
  }
  Mistake failure(std::string_view text) {
    try {
      node(text);
    } catch (const ExpressionError& error) {
      return {error.diagnostics().front().code, error.offset, error.diagnostics().front().hint};
    }
    return {"none"};
  }
  GraphBuilder::Impl graph;
};

TEST_F(Build, NumbersAreFoldedInDouble) {
  EXPECT_EQ(number("1 / 3"), 1.0 / 3.0);
  EXPECT_EQ(number("-2^2"), -4);
  EXPECT_EQ(number("2^3^2"), 512);
  EXPECT_EQ(number("2 * pi * gain"), 2 * 3.141592653589793 * 1.5);
  EXPECT_EQ(number("-7 % 3"), 2);
  EXPECT_EQ(number("sqrt(2)"), std::sqrt(2.0));
  EXPECT_EQ(number("sigmoid(2)"), 1 / (1 + std::exp(-2.0)));
  EXPECT_EQ(number("maximum(1/3, floor(0.5))"), 1.0 / 3.0);
  EXPECT_EQ(failure("x + 1 / 0").offset, 6u);
}

TEST_F(Build, SquareAndDTypesOfNumbers) {
  EXPECT_EQ(node("x^2").op, *find_op("square"));
  EXPECT_EQ(node("x^3").op, *find_op("pow"));
  EXPECT_EQ(node("k == 3").type.dtype, DType::boolean);  // 3 as i32
  EXPECT_EQ(node("where(x > 0, x, 0)").type.dtype, DType::f32);
  EXPECT_EQ(node("x * [1, 2, 3, 4, 5, 6]").type.rows, 1);
}

TEST_F(Build, Attributes) {
  EXPECT_EQ(node("sum(x, axis=1)").type.shape, Shape({kBatch}));
  EXPECT_EQ(node("sum(x, axis=-1, keepdims=true)").type.shape, Shape({kBatch, 1}));
  EXPECT_EQ(node("sum(x, axis=none)").type.shape, Shape());
  EXPECT_EQ(node("mean(x > 0)").type.dtype, DType::f32);
  EXPECT_EQ(node("leaky_relu(x, slope=1/4)").attrs.real("slope"), 0.25);
  EXPECT_EQ(node("cast(k, dtype=f32)").type.dtype, DType::f32);
}

TEST_F(Build, MeanOverRowsDividesByTheSamplesOfTheBatch) {
  const ir::Node over_all = node("mean(x)");
  EXPECT_EQ(over_all.op, Op::div);
  EXPECT_EQ(graph.graph[over_all.inputs[1]].op, Op::mul);  // samples * 6
  const ir::Node per_sample = node("mean(x, axis=1)");
  EXPECT_EQ(graph.graph[per_sample.inputs[1]].op, Op::constant);
  const ir::Node over_rows = node("mean(x, axis=0)");
  const ir::Node count = graph.graph[over_rows.inputs[1]];
  EXPECT_EQ(count.op, Op::cast);
  EXPECT_EQ(graph.graph[count.inputs[0]].name, "batch.count");
}

TEST_F(Build, ErrorsNameTheNearest) {
  EXPECT_EQ(failure("x + q").code, "name.unknown");
  EXPECT_EQ(failure("tanhh(x)").hint, "did you mean 'tanh'?");
  EXPECT_EQ(failure("x * gian").hint, "did you mean 'gain'?");
  EXPECT_EQ(failure("x + tanh").hint, "tanh is a function: tanh(…)");
  EXPECT_EQ(failure("x(2)").code, "function.unknown");
  EXPECT_EQ(failure("tanh(x, x)").code, "function.operands");
  EXPECT_EQ(failure("sum(x, 0)").hint, "attributes are given by name: axis=…");
  const Mistake attribute = failure("sum(x, axes_=0)");
  EXPECT_EQ(attribute.code, "attribute.unknown");
  EXPECT_EQ(attribute.offset, 7u);
  EXPECT_EQ(failure("sum(x, keepdims=3)").offset, 16u);
  EXPECT_EQ(failure("sum(x, axis=x)").code, "attribute.value");
  EXPECT_EQ(failure("x + true").code, "name.unknown");
}

TEST_F(Build, OperandsThatDoNotFitAreNamed) {
  try {
    node("tanh(x) @ (W + 1) @ x");
    FAIL();
  } catch (const ExpressionError& error) {
    EXPECT_EQ(error.offset, 18u);
    const std::string text = error.what();
    EXPECT_NE(text.find("x f32(batch, 6)"), std::string::npos) << text;
    EXPECT_NE(text.find("(tanh(x) @ (W + 1)) f32(batch, 1)"), std::string::npos) << text;
  }
}

TEST_F(Build, AllUnknownNamesAreFoundAtOnceButBrokenOnesAreNot) {
  Scope scope{graph, {"h"}, {{"z", "/graph/4 (line 9)"}}};
  const Findings findings = check(scope, parse("h + q1 * z"));
  EXPECT_TRUE(findings.broken);
  ASSERT_EQ(findings.errors.size(), 2u);
  EXPECT_EQ(findings.errors[0].offset, 4u);
  EXPECT_NE(findings.errors[1].diagnostics().front().hint.find("/graph/4"), std::string::npos);
}

}  // namespace
}  // namespace graphrun::expression
