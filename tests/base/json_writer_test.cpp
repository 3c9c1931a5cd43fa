#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace graphrun {
namespace {

TEST(JsonWriter, NestsWithCommasWhereTheyBelong) {
  JsonWriter json;
  json.begin_object().member("a", 1).key("b").begin_array().value(true).null().begin_object().end_object().end_array();
  json.member("c", std::vector<int>{}).member("d", std::vector<int>{1, 2}).member("e", "x").end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[true,null,{}],"c":[],"d":[1,2],"e":"x"})");
}

TEST(JsonWriter, NumbersReadBackToTheSameBits) {
  const std::vector<double> numbers = {
      0.1, 1.0 / 3, 1e300, 5e-324, -0.0, 123456789.123456789, 1e22, 3, 2.5e-10, std::numeric_limits<double>::max()};
  const auto read = nlohmann::json::parse(JsonWriter().value(numbers).text());
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(read[i].get<double>(), numbers[i]);
  EXPECT_EQ(JsonWriter().value(std::numeric_limits<std::uint64_t>::max()).text(), "18446744073709551615");
  EXPECT_EQ(JsonWriter().value(std::numeric_limits<double>::quiet_NaN()).text(), "null");
  EXPECT_EQ(JsonWriter().value(-std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(JsonWriter, StringsAreEscapedAndAlwaysUtf8) {
  EXPECT_EQ(JsonWriter().value("a\"b\\c\n\x01").text(), "\"a\\\"b\\\\c\\n\\u0001\"");
  const std::string good = "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(nlohmann::json::parse(JsonWriter().value(good).text()), good);
  // A lone tail, an overlong slash, a surrogate, beyond U+10FFFF, cut short.
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
    const std::string text = JsonWriter().value(bad).text();
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
    EXPECT_NE(text.find("\xef\xbf\xbd"), std::string::npos);
  }
}

}  // namespace
}  // namespace graphrun
