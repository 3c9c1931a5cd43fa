// Tables that are not UTF-8: reported where they are read, with the line, the likely encoding and a command.
#include <functional>

#include "archives.h"
#include "graphrun/model_template.h"
#include "prediction_fixture.h"

namespace graphrun {
namespace {

constexpr const char* kCsv = R"({"train": {"csv": "a.csv", "x": ["a", "b"], "y": "y"}})";

// The text with `before` and `after` so many zero bytes around each character.
std::string widened(const std::string& text, std::size_t before, std::size_t after) {
  std::string wide;
  for (const char c : text) wide += std::string(before, '\0') + c + std::string(after, '\0');
  return wide;
}

class EncodingTest : public PredictionTest {
 protected:
  std::string says(const std::string& name, const std::string& bytes, const std::string& block) const {
    write(name, bytes);
    return errors(block);
  }
};

TEST_F(EncodingTest, OneByteACharacter) {
  const std::string expected =
      "DIR/a.csv:3:4: byte 0xF6 is not UTF-8; the file is likely Windows-1252 (Latin-1)\n"
      "    hint: iconv -f WINDOWS-1252 -t UTF-8 'DIR/a.csv' > 'DIR/a-utf8.csv'";
  EXPECT_EQ(says("a.csv", "a,b,y,w\n1,2,3,Ulm\n4,K\xF6ln,6,b\n", kCsv), expected);
  EXPECT_TRUE(has(says("a.csv", "\x89PNG\r\n\x1a\n", kCsv), "a.csv: the file is a PNG image, not a table"));
  EXPECT_TRUE(has(says("a.csv", "\xFF\xD8\xFF\xE0", kCsv), "the file is a JPEG image"));
  // A column that no input takes is text too.
  EXPECT_TRUE(has(says("a.csv", "a,b,y,w\n1,2,3,Ulm\n4,5,6,K\xF6ln\n", kCsv), "a.csv:3:8: byte 0xF6 is not UTF-8"));
  EXPECT_TRUE(has(says("a.csv", "a,b,y\nB\xC3\xBCro,2,3\n4,\xF6,6\n", kCsv), "3:3: byte 0xF6 is not UTF-8, and other"));
  write("a.csv.gz", test::gzip("a,b,y\n1,\xE9,3\n"));
  EXPECT_TRUE(has(errors(R"({"train": {"csv": "a.csv.gz", "y": "y"}})"),
                  "hint: gzip -dc 'DIR/a.csv.gz' | iconv -f WINDOWS-1252 -t UTF-8 > 'DIR/a-utf8.csv'"));
}

TEST_F(EncodingTest, SeveralBytesACharacter) {
  const std::string table = "a,b,y\n1,2,3\n4,5,7\n";
  for (const auto& [mark, before, after, name] :
       {std::tuple{"", 0, 1, "UTF-16LE"}, {"", 1, 0, "UTF-16BE"}, {"", 0, 3, "UTF-32LE"}, {"", 3, 0, "UTF-32BE"}}) {
    const std::string wide = widened(mark + table, static_cast<std::size_t>(before), static_cast<std::size_t>(after));
    EXPECT_TRUE(has(says("a.csv", wide, kCsv), std::string("the file is ") + name)) << name;
  }
  EXPECT_TRUE(has(says("a.csv", "\xFF\xFE" + widened(table, 0, 1), kCsv), "a.csv:1:1: the file is UTF-16LE, expected"));
  EXPECT_TRUE(has(says("a.csv", "\xFE\xFF" + widened(table, 1, 0), kCsv), "iconv -f UTF-16BE -t UTF-8 'DIR/a.csv'"));
  EXPECT_TRUE(has(message([&] { model_template(path("a.csv"), "y", "a.csv"); }), "the file is UTF-16BE"));
}

TEST_F(EncodingTest, JsonAndJsonLines) {
  const std::string records = R"({"train": {"records": "a.jsonl", "x": ["a", "b"], "y": "y"}})";
  EXPECT_TRUE(has(says("a.jsonl", "{\n \"m\": 1\n}\n", records), "a.jsonl:1:1: expected one object per line"));
  EXPECT_TRUE(has(says("a.jsonl", "{\"a\": 1, \"b\": 2, \"y\": 3}\n{\"a\": \"K\xF6ln\"}\n", records),
                  "a.jsonl:2:9: byte 0xF6 is not UTF-8"));
  EXPECT_TRUE(
      has(says("a.jsonl", "\xFF\xFE" + widened("{\"a\": 1}\n", 0, 1), records), "a.jsonl:1:1: the file is UTF-16"));
  EXPECT_TRUE(
      has(says("a.json", "{\"m\": 1,\n \"\xF6\": 2}", R"({"train": {"json": "a.json"}})"), "a.json:2:3: byte 0xF6"));
}

TEST_F(EncodingTest, RowsToPredict) {
  write("t.csv", "a,b,y\n1,2,3\n4,5,7\n");
  write_model(R"({"train": {"csv": "t.csv", "x": ["a", "b"], "y": "y"}})");
  train();
  write("p.csv", "a,b,note\n1,2,ok\n4,5,\xE9t\xE9\n");
  EXPECT_TRUE(has(message([&] { predict("p.csv"); }), "p.csv:3:5: byte 0xE9 is not UTF-8"));
}

// Every character of UTF-8 is read, whatever its place among eight bytes; what only looks like one is not.
TEST_F(EncodingTest, WhatIsUtf8) {
  for (const std::string good : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                 "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    for (std::size_t i = 0; i < 9; ++i)
      EXPECT_EQ(says("a.csv", "a,b,y,w\n1,2,3," + std::string(i, 'w') + good + "\n", kCsv), "no mistake was found");
  }
  for (const std::string bad : {"\x80", "\xC1\xBF", "\xC3", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    for (int i = 0; i < 9; ++i) {
      const std::string at = "a.csv:2:" + std::to_string(7 + i) + ": byte 0x";
      EXPECT_TRUE(
          has(says("a.csv", "a,b,y,w\n1,2,3," + std::string(static_cast<std::size_t>(i), 'w') + bad, kCsv), at));
    }
  }
}

}  // namespace
}  // namespace graphrun
