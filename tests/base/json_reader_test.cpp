#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace graphrun::json {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// What `read` reports about the text.
std::vector<Diagnostic> reported(const std::string& text, const std::function<void(Reader&)>& read) {
  const Document document = parse("m.json", text);
  Reader reader(document);
  read(reader);
  try {
    reader.throw_if_failed();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.diagnostics().size(), reader.errors());
    return error.diagnostics();
  }
  EXPECT_FALSE(reader.failed());
  return {};
}

TEST(Ref, PointersAreEscaped) {
  const Document document = parse("m.json", R"({"a/b": {"~": [1, {"": 2}]}})");
  const Ref root = Reader(document).root();
  EXPECT_EQ(root.pointer, "");
  const Ref ab = root.member(document.root.members[0]);
  const Ref tilde = ab.member(ab.value->members[0]);
  EXPECT_EQ(tilde.pointer, "/a~1b/~0");
  EXPECT_EQ(tilde.item(1).pointer, "/a~1b/~0/1");
  EXPECT_EQ(tilde.item(1).member(tilde.item(1).value->members[0]).pointer, "/a~1b/~0/1/");
}

TEST(Reader, ReportHasAllParts) {
  const auto errors = reported("{\n  \"units\": -3\n}", [](Reader& r) {
    ObjectReader object(r, r.root());
    EXPECT_EQ(object.integer("units", 1, kMax), std::nullopt);
  });
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, "model.range");
  EXPECT_EQ(to_string(errors[0]), "m.json:2:12: /units: must be > 0, got -3\n      \"units\": -3\n               ^");
}

TEST(Reader, KeepsFiftyAndCountsTheOthers) {
  const Document document = parse("m.json", "{\"list\": [" + std::string(3, ' ') + "1" + std::string(99, ' ') + "]}");
  Reader reader(document);
  EXPECT_FALSE(reader.full());
  for (int i = 0; i < 80; ++i) reader.report(reader.root(), "c", std::to_string(i));
  EXPECT_TRUE(reader.full());
  EXPECT_EQ(reader.errors(), 80u);
  reader.report_more(5);
  reader.report(reader.root(), Error(ErrorKind::input, std::vector<Diagnostic>(3), 4));
  try {
    reader.throw_if_failed();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().size(), kMaxDiagnostics);
    EXPECT_EQ(error.diagnostics()[49].message, "49");
    EXPECT_EQ(error.more(), 80 + 5 + 3 + 4 - kMaxDiagnostics);
  }
}

TEST(Reader, KeysOfALargeObjectAreFound) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"k" + std::to_string(i) + "\": " + std::to_string(i) + ", ";
  const auto errors = reported(text + "\"last\": 0}", [](Reader& r) {
    ObjectReader object(r, r.root());
    for (int i = 0; i < 1000; i += 2) EXPECT_EQ(object.number("k" + std::to_string(i)), i);
    EXPECT_EQ(object.get("k1000"), std::nullopt);
    EXPECT_EQ(object.unread().size(), 501u);
    object.get("k1");
    EXPECT_EQ(object.unread().size(), 500u);
  });
  EXPECT_TRUE(errors.empty());
}

TEST(Reader, APointerSaysLongKeysInShort) {
  const Document document = parse("m.json", "{\"" + std::string(1000, 'k') + "\": [0]}");
  const Ref at = Reader(document).root().member(document.root.members[0]).item(0);
  EXPECT_EQ(at.pointer, "/" + std::string(256, 'k') + ".../0");
}

TEST(Reader, Conversions) {
  const Document document = parse("m.json", R"(["s", true, 2, 2.5, 1e3, [1, 2.5], null, {}])");
  Reader reader(document);
  const auto at = [&](std::size_t i) { return reader.root().item(i); };
  EXPECT_EQ(reader.string(at(0)), "s");
  EXPECT_EQ(reader.boolean(at(1)), true);
  EXPECT_EQ(reader.number(at(2)), 2.0);
  EXPECT_EQ(reader.number(at(3)), 2.5);
  EXPECT_EQ(reader.integer(at(2), 0, 2), 2);
  EXPECT_EQ(reader.integer(at(4), 0, kMax), 1000);
  EXPECT_EQ(reader.numbers(at(5)), (std::vector<double>{1, 2.5}));
  EXPECT_FALSE(reader.failed());
  EXPECT_NO_THROW(reader.throw_if_failed());
}

TEST(Reader, MismatchesSayWhatWasExpected) {
  const auto errors = reported(R"(["s", true, 2, 2.5, null, [0, "x", {}], {}])", [](Reader& r) {
    const auto at = [&](std::size_t i) { return r.root().item(i); };
    EXPECT_EQ(r.number(at(0)), std::nullopt);
    EXPECT_EQ(r.string(at(1)), std::nullopt);
    EXPECT_EQ(r.integer(at(2), 3, 5), std::nullopt);
    EXPECT_EQ(r.integer(at(3), 0, kMax), std::nullopt);
    EXPECT_EQ(r.boolean(at(4)), std::nullopt);
    EXPECT_EQ(r.numbers(at(5)), std::nullopt);
    EXPECT_EQ(r.numbers(at(6)), std::nullopt);
  });
  std::vector<std::string> messages;
  for (const Diagnostic& error : errors) messages.push_back(error.pointer + " " + error.message);
  EXPECT_EQ(messages, (std::vector<std::string>{
                          "/0 must be a number, got the string \"s\"",
                          "/1 must be a string, got true",
                          "/2 must be from 3 to 5, got 2",
                          "/3 must be an integer, got 2.5",
                          "/4 must be true or false, got null",
                          "/5/1 must be a number, got the string \"x\"",
                          "/5/2 must be a number, got an object",
                          "/6 must be an array of numbers, got an object",
                      }));
}

TEST(Reader, RangesInWords) {
  const auto message = [](std::int64_t low, std::int64_t high) {
    return reported("-3", [&](Reader& r) { r.integer(r.root(), low, high); }).at(0).message;
  };
  EXPECT_EQ(message(1, kMax), "must be > 0, got -3");
  EXPECT_EQ(message(0, kMax), "must be >= 0, got -3");
  EXPECT_EQ(message(0, 8), "must be from 0 to 8, got -3");
  EXPECT_EQ(message(kMin, -4), "must be <= -4, got -3");
}

TEST(Reader, ReportsComeInOrderOfTheFile) {
  const auto errors = reported("[1,\n2, 3]", [](Reader& r) {
    r.report(r.root().item(2), "c", "third");
    r.report(r.root().item(0), "c", "first");
    r.report(r.root().item(1), "c", "second");
  });
  EXPECT_EQ(errors.at(0).message, "first");
  EXPECT_EQ(errors.at(1).message, "second");
  EXPECT_EQ(errors.at(2).message, "third");
}

TEST(Reader, ManyWrongItemsAreCut) {
  std::string text = "[null";
  for (int i = 0; i < 1000; ++i) text += ",null";
  EXPECT_EQ(reported(text + "]", [](Reader& r) { r.numbers(r.root()); }).size(), 10u);
}

TEST(Reader, TakesOverErrors) {
  Diagnostic elsewhere;
  elsewhere.message = "bad row";
  elsewhere.file = "data.csv";
  elsewhere.line = 4;
  elsewhere.column = 2;
  const auto errors = reported("{\"a\":\n 1}", [&](Reader& r) {
    const Ref a = r.root().member(r.document().root.members[0]);
    r.report(a, Error(ErrorKind::input, {elsewhere}));
    r.report(a, Error(ErrorKind::input, "shape.mismatch", "shapes differ", "transpose"));
  });
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(to_string(errors[0]), "m.json:2:2: /a: shapes differ\n     1}\n     ^\n    hint: transpose");
  EXPECT_EQ(errors[0].code, "shape.mismatch");
  EXPECT_EQ(to_string(errors[1]), "data.csv:4:2: bad row");
}

// The literal and, for each decoded byte, the column of what wrote it.
TEST(Reader, InsideOfStringsHonoursEscapes) {
  // columns:            123456789012345678901234567890123
  const char* text = R"(["a\n\u00e9x\ud83d\ude00\"y\\z"])";
  const std::vector<int> columns = {3, 4, 6, 6, 12, 13, 13, 13, 13, 25, 27, 28, 30, 31, 31};
  for (std::size_t offset = 0; offset < columns.size(); ++offset) {
    const auto errors = reported(text, [&](Reader& r) {
      if (offset == 0) {
        EXPECT_EQ(r.root().item(0).value->string.size(), 13u);
      }
      r.report_inside(r.root().item(0), offset, "expr.syntax", "here");
    });
    EXPECT_EQ(errors.at(0).column, columns[offset]) << "decoded byte " << offset;
  }
}

TEST(Reader, InsideOfStringsInUtf8AndLaterLines) {
  const auto errors = reported("{\n  \"g\": \"\xc3\xa9 = relu(q)\"}", [](Reader& r) {
    const Ref g = r.root().member(r.document().root.members[0]);
    r.report_inside(g, 10, Error(ErrorKind::input, "expr.name", "unknown name 'q'"));
  });
  EXPECT_EQ(to_string(errors.at(0)),
            "m.json:2:19: /g: unknown name 'q'\n      \"g\": \"\xc3\xa9 = relu(q)\"}\n                     ^");
}

TEST(Reader, InsideOfWhatIsNoString) {
  const auto errors = reported("[12]", [](Reader& r) { r.report_inside(r.root().item(0), 1, "c", "m"); });
  EXPECT_EQ(errors.at(0).column, 2);
}

TEST(ObjectReader, UnknownKeys) {
  const auto errors = reported("{\"name\": \"h\",\n \"unts\": 3, \"wholly_other\": 1}", [](Reader& r) {
    ObjectReader object(r, r.root());
    EXPECT_EQ(object.string("name"), "h");
    EXPECT_EQ(object.integer("units", 1, kMax), std::nullopt);
    EXPECT_EQ(object.unread().size(), 2u);
    object.finish();
  });
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].code, "model.unknown_key");
  EXPECT_EQ(to_string(errors[0]),
            "m.json:2:2: /unts: unknown key 'unts'\n     \"unts\": 3, \"wholly_other\": 1}\n     ^\n"
            "    hint: did you mean 'units'?");
  EXPECT_EQ(errors[1].hint, "known keys: 'name', 'units'");
  EXPECT_EQ(errors[1].column, 13);
}

TEST(ObjectReader, KeysKnownElsewhere) {
  const auto errors = reported(R"({"momentum": 1, "momentm": 2})", [](Reader& r) {
    ObjectReader object(r, r.root());
    object.get("lr");
    object.also_known({"momentum"});
    object.finish();
  });
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].message, "key 'momentum' has no meaning here");
  EXPECT_EQ(errors[0].hint, "known keys: 'lr'");
  EXPECT_EQ(errors[1].hint, "did you mean 'momentum'?");
}

TEST(ObjectReader, AMisspeltRequiredKeyIsOneMistake) {
  const auto errors = reported(R"({"shap": 1, "unit": 2})", [](Reader& r) {
    ObjectReader object(r, r.root());
    object.require("shape");
    object.report_missing("units", "test.missing", "units are missing");
    object.get("init");  // as near to "unit" as units, but not missing
    object.require("name", "say who");
    object.finish();
  });
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0].message, "missing key 'name'");
  EXPECT_EQ(errors[0].hint, "say who");
  EXPECT_EQ(errors[1].hint, "did you mean 'shape'?");
  EXPECT_EQ(errors[2].hint, "did you mean 'units'?");
}

TEST(ObjectReader, RequiredKeysAndWrongTypes) {
  const auto errors = reported(R"({"a": {}, "b": "x", "c": 1})", [](Reader& r) {
    ObjectReader object(r, r.root());
    ObjectReader a(r, *object.require("a"));
    EXPECT_FALSE(a.require("shape"));
    a.finish();
    ObjectReader b(r, *object.require("b"));
    EXPECT_FALSE(b.is_object());
    EXPECT_FALSE(b.require("anything"));  // says nothing more
    b.finish();
    EXPECT_EQ(object.boolean("c"), std::nullopt);
    EXPECT_EQ(object.number("c"), 1.0);
    EXPECT_EQ(object.number("absent"), std::nullopt);
    object.finish();
  });
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(to_string(errors[0]),
            "m.json:1:7: /a: missing key 'shape'\n    {\"a\": {}, \"b\": \"x\", \"c\": 1}\n          ^");
  EXPECT_EQ(errors[1].message, "must be an object, got the string \"x\"");
  EXPECT_EQ(errors[2].message, "must be true or false, got 1");
}

}  // namespace
}  // namespace graphrun::json
