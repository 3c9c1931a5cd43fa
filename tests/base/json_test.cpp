#include "base/json.h"

#include <gtest/gtest.h>

#include "graphrun/error.h"
#include "support/cpu_time.h"

namespace graphrun::json {
namespace {

std::vector<Diagnostic> errors_of(const std::string& text) {
  try {
    parse("m.json", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.diagnostics();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {Diagnostic{}};
}

std::string text_of(const std::string& text) {
  const std::vector<Diagnostic> errors = errors_of(text);
  return errors[0].code + " " + to_string(errors[0]);
}

TEST(JsonValue, LinesCountFromTheGivenOne) {
  EXPECT_EQ(parse("m.json", "\n[1]", 7).root.items[0].line, 8);
  for (const char* text : {"[1,\n x]", "{\"a\": 1,\n\"a\": 2}", "\n\xEF"}) {
    try {
      parse("m.json", text, 7);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().front().line, 8) << error.what();
    }
  }
}

TEST(JsonValue, KindsAndNumbers) {
  const Document d =
      parse("m.json", R"([null, true, -7, 2.5, "a\u00e9\n", [], {}, 9223372036854775807, 18446744073709551615])");
  const std::vector<Value>& v = d.root.items;
  ASSERT_EQ(v.size(), 9u);
  EXPECT_EQ(v[0].kind, Kind::null);
  EXPECT_TRUE(v[1].kind == Kind::boolean && v[1].boolean);
  EXPECT_TRUE(v[2].kind == Kind::integer && v[2].integer == -7 && v[2].real == -7.0);
  EXPECT_TRUE(v[3].kind == Kind::real && v[3].real == 2.5);
  EXPECT_EQ(v[4].string, "a\xc3\xa9\n");
  EXPECT_EQ(v[5].kind, Kind::array);
  EXPECT_EQ(v[6].kind, Kind::object);
  EXPECT_TRUE(v[7].kind == Kind::integer && v[7].integer == INT64_MAX);
  EXPECT_TRUE(v[8].kind == Kind::real && v[8].real == 18446744073709551616.0);
}

TEST(JsonValue, MembersKeepTheOrderOfTheFile) {
  const Document d = parse("m.json", R"({"b": 1, "a": {"c": 2}})");
  ASSERT_EQ(d.root.members.size(), 2u);
  EXPECT_EQ(d.root.members[0].key, "b");
  ASSERT_NE(d.root.find("a"), nullptr);
  EXPECT_EQ(d.root.find("a")->value.find("c")->value.integer, 2);
  EXPECT_EQ(d.root.find("c"), nullptr);
}

void expect_at(const Value& value, int line, int column) {
  EXPECT_EQ(value.line, line);
  EXPECT_EQ(value.column, column);
}

TEST(JsonPosition, WhereTheValueBegins) {
  const Document d = parse("m.json",
                           "\n"
                           " {\"a\": 12,\n"
                           "\t\"b\" : [ -1.5,\"x\" , true,null ,[],\n"
                           "  {\"c\":3}],\"d\"\n"
                           ":\n"
                           "7}\n");
  expect_at(d.root, 2, 2);
  const Member* a = d.root.find("a");
  EXPECT_EQ(std::pair(a->line, a->column), std::pair(2, 3));
  expect_at(a->value, 2, 8);
  const Value& b = d.root.find("b")->value;
  expect_at(b, 3, 8);
  expect_at(b.items[0], 3, 10);
  expect_at(b.items[1], 3, 15);
  expect_at(b.items[2], 3, 21);
  expect_at(b.items[3], 3, 26);
  expect_at(b.items[4], 3, 32);
  expect_at(b.items[5], 4, 3);
  expect_at(b.items[5].find("c")->value, 4, 8);
  EXPECT_EQ(d.root.find("d")->line, 4);
  EXPECT_EQ(d.root.find("d")->column, 12);
  expect_at(d.root.find("d")->value, 6, 1);
}

TEST(JsonPosition, NumbersAtEveryEnd) {
  expect_at(parse("m", "42").root, 1, 1);
  expect_at(parse("m", " 4.5e1").root, 1, 2);
  const Document d = parse("m", "[1,2\n,3 ,4]");
  expect_at(d.root.items[1], 1, 4);
  expect_at(d.root.items[2], 2, 2);
  expect_at(d.root.items[3], 2, 5);
}

TEST(JsonPosition, ColumnsAreBytesAndStringsAreSkippedWhole) {
  const Document d = parse("m", "[\"\xe2\x82\xac,:\\\"]\\u20ac\", 1]");
  expect_at(d.root.items[1], 1, 20);
}

TEST(JsonPosition, CarriageReturnsAreNoLines) {
  const Document d = parse("m", "{\r\n\"a\":\r\n 1}");
  EXPECT_EQ(d.root.find("a")->line, 2);
  expect_at(d.root.find("a")->value, 3, 2);
  EXPECT_EQ(text_of("{\r\n\"a\": x}\r\n"),
            "json.syntax m.json:2:6: expected a value, got 'x'\n"
            "    \"a\": x}\n"
            "         ^\n"
            "    hint: write \"x\", in double quotes");
}

struct Golden {
  const char* text;
  const char* message;
};

TEST(JsonError, GoldenMessages) {
  const Golden cases[] = {
      {"", "json.syntax m.json:1:1: the file is empty, expected a JSON value"},
      {" \n\n", "json.syntax m.json:1:1: the file is empty, expected a JSON value"},
      {"[1,,2]", "json.syntax m.json:1:4: expected a value, got ','\n    [1,,2]\n       ^"},
      {"[1 2]",
       "json.syntax m.json:1:4: expected ',' or ']', got '2'\n    [1 2]\n       ^\n"
       "    hint: is a comma missing before it?"},
      {"{\"a\" 1}", "json.syntax m.json:1:6: expected ':', got '1'\n    {\"a\" 1}\n         ^"},
      {"{\"a\":1,}",
       "json.syntax m.json:1:8: expected a key in double quotes, got '}'\n    {\"a\":1,}\n           ^\n"
       "    hint: remove the comma before it: JSON allows none after the last"},
      {"{a:1}",
       "json.syntax m.json:1:2: expected a key in double quotes or '}', got 'a'\n    {a:1}\n     ^\n"
       "    hint: write \"a\", in double quotes"},
      {"{\"a\":1 \"b\":2}",
       "json.syntax m.json:1:8: expected ',' or '}', got a string\n    {\"a\":1 \"b\":2}\n"
       "           ^\n    hint: is a comma missing before it?"},
      {"[1] 2", "json.syntax m.json:1:5: expected the end of the file, got '2'\n    [1] 2\n        ^"},
      {"[1:2]",
       "json.syntax m.json:1:3: expected ',' or ']', got ':'\n    [1:2]\n      ^\n"
       "    hint: keys belong in an object: { }, not [ ]"},
      {"[1}",
       "json.syntax m.json:1:3: expected ',' or ']', got '}'\n    [1}\n      ^\n"
       "    hint: the bracket opened in line 1 is not closed"},
      {"[tru]",
       "json.syntax m.json:1:2: expected a value or ']', got 'tru'\n    [tru]\n     ^\n"
       "    hint: did you mean 'true'?"},
      {"['a']",
       "json.syntax m.json:1:2: expected a value or ']', got a single quote\n    ['a']\n     ^\n"
       "    hint: JSON strings are written in double quotes"},
      {"[01]",
       "json.syntax m.json:1:3: expected ',' or ']', got '1'\n    [01]\n      ^\n"
       "    hint: a number has no leading zeros"},
      {"[1.]",
       "json.syntax m.json:1:2: '1.' is not a JSON number\n    [1.]\n     ^\n"
       "    hint: a digit has to follow '-', '.' and 'e'"},
      {"[.5]",
       "json.syntax m.json:1:2: expected a value or ']', got '.'\n    [.5]\n     ^\n"
       "    hint: a number begins with a digit: 0.5, not .5"},
      {"[\"a\\q\"]",
       "json.syntax m.json:1:5: invalid string: forbidden character after backslash\n    [\"a\\q\"]\n"
       "        ^\n    hint: a backslash is written \\\\"},
      {"[\"ab\xff\"]",
       "json.syntax m.json:1:5: invalid string: not UTF-8\n    [\"ab?\"]\n        ^\n"
       "    hint: save the file as UTF-8"},
  };
  for (const Golden& golden : cases) EXPECT_EQ(text_of(golden.text), golden.message);
}

TEST(JsonError, Truncated) {
  EXPECT_EQ(text_of("{\n  \"a\": [1, 2\n\n"),
            "json.syntax m.json:2:13: expected ',' or ']', got the end of the file\n"
            "      \"a\": [1, 2\n"
            "                ^\n"
            "    hint: the bracket opened in line 2 is not closed");
  EXPECT_EQ(errors_of("{\"a\": 1,")[0].message, "expected a key in double quotes, got the end of the file");
  EXPECT_EQ(errors_of("{\"a\":")[0].message, "expected a value, got the end of the file");
  const Diagnostic string = errors_of("[1,\n \"abc")[0];
  EXPECT_EQ(string.message, "this string has no closing quote in its line");
  EXPECT_EQ(std::pair(string.line, string.column), std::pair(2, 2));
}

// Every prefix of a good text is an error of ours with a place inside of the text, and nothing else is thrown.
TEST(JsonError, EveryTruncation) {
  const std::string text = "{\"a\\u20ac\": [1.5e3, -2, true, null, \"x\\n\"],\n \"b\": {\"c\": false}}";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const Diagnostic error = errors_of(text.substr(0, length))[0];
    EXPECT_TRUE(error.line == 1 || error.line == 2) << length;
    EXPECT_GE(error.column, 1) << length;
  }
}

TEST(JsonError, Comments) {
  const std::string rest =
      "comments are not allowed: model files are strict JSON\n    {\"a\": 1, // one\n             ^\n"
      "    hint: remove the comment; \"description\" is the place for a remark";
  EXPECT_EQ(text_of("{\"a\": 1, // one\n}"), "json.comment m.json:1:10: " + rest);
  for (const char* text : {"/* x */ 1", "1 // x", "[1 /* x */, 2]", "{\"a\": /**/ 1}", "# x\n1", "{// x\n}"}) {
    EXPECT_EQ(errors_of(text)[0].code, "json.comment") << text;
  }
  EXPECT_EQ(errors_of("[1 / 2]")[0].code, "json.syntax");
}

TEST(JsonError, NotFinite) {
  EXPECT_EQ(text_of("[NaN]"),
            "json.number m.json:1:2: NaN is not a JSON number\n    [NaN]\n     ^\n"
            "    hint: JSON has no NaN and no Infinity: write a finite number");
  for (const char* text : {"[nan]", "[1, Infinity]", "{\"a\": -Infinity}", "[inf]", "-inf", "[+Infinity]"}) {
    EXPECT_EQ(errors_of(text)[0].code, "json.number") << text;
  }
}

TEST(JsonError, OutOfRange) {
  EXPECT_EQ(text_of("[0,\n 1e999]"),
            "json.number m.json:2:2: the number 1e999 is out of range\n     1e999]\n     ^\n"
            "    hint: the largest is about 1.8e308");
  EXPECT_EQ(errors_of("-1e999")[0].message, "the number -1e999 is out of range");
  EXPECT_EQ(parse("m", "1e-999").root.real, 0.0);
}

TEST(JsonError, Depth) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse("m", nested(64)));
  const Diagnostic error = errors_of(nested(65))[0];
  EXPECT_EQ(error.code, "json.depth");
  EXPECT_EQ(error.message, "arrays and objects are nested deeper than 64 levels");
  EXPECT_EQ(error.column, 65);
  EXPECT_EQ(errors_of(std::string(1000000, '['))[0].code, "json.depth");
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += "{\"a\":";
  EXPECT_EQ(errors_of(objects)[0].code, "json.depth");
}

TEST(JsonError, DuplicateKeysNameBothLines) {
  EXPECT_EQ(text_of("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"),
            "json.duplicate_key m.json:3:2: /a: duplicate key \"a\" in line 3, first in line 1\n"
            "     \"a\": 3}\n     ^\n    hint: keep one of the two");
  const std::vector<Diagnostic> errors = errors_of("{\"x/y\": [0, {\"~\": 1,\n \"~\": 2}],\n \"z\": 1, \"z\": 2}");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].pointer, "/x~1y/1/~0");
  EXPECT_EQ(errors[1].pointer, "/z");
  EXPECT_NO_THROW(parse("m", "[{\"a\": 1}, {\"a\": 2}, {\"b\": {\"a\": 1}, \"a\": 3}]"));
  EXPECT_EQ(errors_of("{\"a\": 1, \"\\u0061\": 2}")[0].code, "json.duplicate_key");  // compared as decoded
}

TEST(JsonError, ByteOrderMarks) {
  EXPECT_EQ(text_of("\xEF\xBB\xBF{}"),
            "json.encoding m.json:1:1: the file begins with a byte order mark\n"
            "    hint: save it as UTF-8 without a byte order mark (BOM)");
  EXPECT_EQ(errors_of("\xFF\xFE{")[0].message, "the file is UTF-16, expected UTF-8");
}

TEST(JsonError, ZeroBytesAreNoEnd) {
  EXPECT_EQ(errors_of(std::string("[1]\0[", 5))[0].message, "expected the end of the file, got the byte 0x00");
  EXPECT_EQ(errors_of(std::string("[1\0]", 4))[0].message, "expected ',' or ']', got the byte 0x00");
}

TEST(JsonSpeed, TenMegabytesOfNumbersTakeTimeInProportion) {
  const auto seconds = [](int size) {
    std::string text = "[0";
    while (text.size() < static_cast<std::size_t>(size)) text += ",0.1234567,-12";
    text += "]";
    const test::CpuTime time;
    const Document d = parse("m", std::move(text));
    const double taken = time.seconds();
    EXPECT_GT(d.root.items.size(), static_cast<std::size_t>(size) / 10);
    return taken;
  };
  test::expect_linear(seconds, 2'500'000);
}

TEST(JsonSpeed, ManyKeys) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 100'000; ++i) text += ",\"k" + std::to_string(i) + "\":1";
  EXPECT_EQ(parse("m", text + "}").root.members.size(), 100'001u);
}

TEST(JsonQuote, Escapes) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\r\x01\xc3\xa9"), "\"a\\\"b\\\\c\\n\\t\\r\\u0001\xc3\xa9\"");
  EXPECT_EQ(parse("m", json_string("\x1f/\"")).root.string, "\x1f/\"");
  EXPECT_EQ(escape_pointer("a/b~c"), "a~1b~0c");
}

}  // namespace
}  // namespace graphrun::json
