// json_text_test.cpp: what is written reads back as the same, and stands on one line where it fits.
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace graphrun::json {
namespace {

std::string again(const std::string& text) {
  return json::text(parse("text", text).root);
}

TEST(JsonText, IsItsOwnFixedPoint) {
  for (const char* given :
       {"null", "[]", "{}", "[1,2.5,-0.0,1e300,\"a\\n\\u00fc\\\"\"]", "{\"a\":{\"b\":[[1],[]]},\"c\":true}"}) {
    const std::string once = again(given);
    EXPECT_EQ(again(once), once);
  }
}

TEST(JsonText, NumbersComeBack) {
  for (const double v : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e15, 123456789012.0}) {
    const Value read = parse("text", json::text(make(v))).root;
    EXPECT_EQ(read.real, v);
    EXPECT_EQ(std::signbit(read.real), std::signbit(v));
  }
  EXPECT_EQ(json::text(make(0.1f)), "0.1\n");
  EXPECT_EQ(json::text(make(2.0)), "2\n");
  for (const float v : {1.0f / 3, std::numeric_limits<float>::denorm_min(), 3.4e38f}) {
    EXPECT_EQ(static_cast<float>(parse("text", json::text(make(v))).root.real), v);
  }
}

TEST(JsonText, BreaksWhatDoesNotFitALine) {
  std::vector<Value> many;
  for (int i = 0; i < 60; ++i) many.push_back(make(std::int64_t{1000 + i}));
  const std::string text = json::text(make_object({{"short", make_array({make(true)})}, {"long", make_array(many)}}));
  EXPECT_TRUE(text.starts_with("{\n  \"short\": [true],\n  \"long\": [\n    1000, 1001,")) << text;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 100u);
  }
}

}  // namespace
}  // namespace graphrun::json
