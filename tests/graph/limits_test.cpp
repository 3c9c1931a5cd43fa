// limits_test.cpp: extents and numbers at the end of what can be counted: refused where they are made, on both sides of
// each limit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graphrun/error.h"
#include "graphrun/graph_builder.h"
#include "graphrun/types.h"

namespace graphrun {
namespace {

using List = std::vector<std::int64_t>;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

struct Limits : testing::Test {
  GraphBuilder graph{4};
  Value x = graph.input("x", {kBatch, 6});
  Value c = graph.input("c", {kBatch}, DType::i32);

  std::string rejection(std::string_view op, std::initializer_list<Value> inputs, const AttrList& attributes) {
    try {
      const Value made = graph.op(op, inputs, attributes);
      return "accepted as " + to_string(graph.type(made));
    } catch (const Error& error) {
      return error.diagnostics().front().code;
    }
  }
};

TEST_F(Limits, ExtentsThatWrap) {
  // Twice the largest number and the extent of 6 wrap to 4, which is plausible.
  EXPECT_EQ(rejection("pad", {x}, {{"before", kMax}, {"after", kMax}}), "shape.size");
  EXPECT_EQ(rejection("pad", {x}, {{"before", kMax}, {"after", std::int64_t{0}}}), "shape.size");
  EXPECT_EQ(rejection("pad", {x}, {{"before", kMaxElements}}), "shape.size");
  EXPECT_EQ(rejection("one_hot", {c}, {{"classes", kMax}}), "shape.size");
  EXPECT_EQ(rejection("one_hot", {c}, {{"classes", kMaxElements + 1}}), "shape.size");
  EXPECT_EQ(rejection("one_hot", {c}, {{"classes", kMaxElements}}), "accepted as f32(batch, 1099511627776)");
  EXPECT_EQ(rejection("reshape", {x}, {{"shape", List{std::int64_t{1} << 32, std::int64_t{1} << 32, 24}}}),
            "shape.mismatch");
  EXPECT_EQ(rejection("reshape", {x}, {{"shape", List{kMax, 2, 12}}}), "shape.mismatch");
  EXPECT_EQ(rejection("reshape", {x}, {{"shape", List{-1, kMax, kMax}}}), "shape.mismatch");
  EXPECT_EQ(rejection("reshape", {graph.op("slice", {x}, {{"stop", std::int64_t{0}}})},
                      {{"shape", List{kBatch, 0, std::int64_t{1} << 62}}}),
            "shape.size");
}

TEST_F(Limits, SumsOfExtents) {
  const Value wide = graph.op("pad", {x}, {{"after", kMaxElements - 6}});
  EXPECT_EQ(rejection("concat", {wide, x}, {}), "shape.size");
  EXPECT_EQ(rejection("concat", {wide, wide}, {}), "shape.size");
  EXPECT_EQ(rejection("pad", {wide}, {{"before", std::int64_t{1}}}), "shape.size");
  const Value row = graph.op("pad", {graph.constant(std::vector<double>{1.0}, {1})}, {{"after", kMaxElements / 4 - 1}});
  EXPECT_EQ(rejection("add", {graph.op("reshape", {row}, {{"shape", List{kMaxElements / 4, 1}}}), row}, {}),
            "shape.size");
  EXPECT_EQ(rejection("matmul",
                      {graph.op("reshape", {row}, {{"shape", List{kMaxElements / 4, 1}}}),
                       graph.op("reshape", {row}, {{"shape", List{1, kMaxElements / 4}}})},
                      {}),
            "shape.size");
}

TEST_F(Limits, AxesAreNotCutToFewerBits) {
  for (const std::int64_t axis : {kMax, kMin, std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1}) {
    for (const char* op : {"slice", "pad", "softmax", "argmax"}) {
      EXPECT_EQ(rejection(op, {x}, {{"axis", axis}}), "attribute.axis") << op << " " << axis;
    }
    EXPECT_EQ(rejection("sum", {x}, {{"axes", List{axis}}}), "attribute.axis") << axis;
    EXPECT_EQ(rejection("transpose", {x}, {{"axes", List{axis, 1}}}), "attribute.axis") << axis;
  }
  EXPECT_EQ(rejection("slice", {x}, {{"start", kMin}, {"stop", kMax}}), "attribute.range");
  EXPECT_EQ(rejection("slice", {x}, {{"start", kMax}}), "attribute.range");
}

TEST_F(Limits, Parameters) {
  EXPECT_THROW(graph.parameter("W", {kMax, 2}), Error);
  EXPECT_THROW(graph.parameter("V", {std::int64_t{1} << 32, std::int64_t{1} << 32}), Error);
  EXPECT_THROW(graph.dense("h", x, kMax), Error);
  EXPECT_THROW(graph.input("z", {kBatch, kMaxElements + 1}), Error);
  EXPECT_NO_THROW(graph.input("y", {kBatch, kMaxElements}));
}

TEST_F(Limits, NumbersThatF32DoesNotHold) {
  EXPECT_EQ(rejection("leaky_relu", {x}, {{"slope", 1e300}}), "attribute.range");
  EXPECT_EQ(rejection("clip", {x}, {{"low", -1e300}, {"high", 1.0}}), "attribute.range");
  EXPECT_EQ(rejection("pad", {x}, {{"after", std::int64_t{1}}, {"value", 1e39}}), "attribute.range");
  EXPECT_EQ(rejection("pad", {x}, {{"after", std::int64_t{1}}, {"value", 1e38}}), "accepted as f32(batch, 7)");
  EXPECT_THROW(graph.constant(1e300), Error);
  EXPECT_NO_THROW(graph.constant(std::numeric_limits<double>::infinity()));  // is itself in f32
  EXPECT_THROW(graph.parameter("W", {2}, Init::constant(1e300)), Error);
  EXPECT_THROW(graph.parameter("W", {2}, Init::normal(std::nan(""))), Error);
}

TEST_F(Limits, IntegersOfExpressions) {
  const auto failure = [&](const std::string& text) -> std::string {
    try {
      graph.expression(text);
    } catch (const Error& error) {
      const Diagnostic& told = error.diagnostics().front();
      return told.code + " at " + std::to_string(told.column);
    }
    return "accepted";
  };
  EXPECT_EQ(failure("x * 9007199254740991"), "accepted");
  EXPECT_EQ(failure("x * 9007199254740992"), "expression.number at 5");
  EXPECT_EQ(failure("x * 9007199254740993"), "expression.number at 5");
  EXPECT_EQ(failure("x * 9007199254740993.0"), "accepted");  // may be rounded
  EXPECT_EQ(failure("slice(x, stop=9223372036854775807)"), "expression.number at 15");
  EXPECT_EQ(failure("slice(x, stop=9223372036854775808)"), "expression.number at 15");
  EXPECT_EQ(failure("x * 1e300"), "constant.range at 3");
}

}  // namespace
}  // namespace graphrun
