#include "graphrun/error.h"

#include <gtest/gtest.h>

namespace graphrun {
namespace {

Diagnostic full() {
  Diagnostic d;
  d.code = "model.range";
  d.message = "must be > 0, got -3";
  d.hint = "units is the width of the layer";
  d.file = "models/a.json";
  d.line = 12;
  d.column = 6;
  d.pointer = "/graph/2/units";
  d.source_line = "\t\t\"units\": -3";
  return d;
}

TEST(Diagnostic, AllParts) {
  EXPECT_EQ(to_string(full()),
            "models/a.json:12:6: /graph/2/units: must be > 0, got -3\n"
            "    \t\t\"units\": -3\n"
            "    \t\t   ^\n"
            "    hint: units is the width of the layer");
}

TEST(Diagnostic, EmptyPartsAreLeftOut) {
  Diagnostic d = full();
  d.pointer = d.hint = d.source_line = "";
  EXPECT_EQ(to_string(d), "models/a.json:12:6: must be > 0, got -3");
  d.line = 0;
  EXPECT_EQ(to_string(d), "models/a.json: must be > 0, got -3");
  d.file = "";
  EXPECT_EQ(to_string(d), "must be > 0, got -3");
}

TEST(Diagnostic, CaretStandsUnderCharactersNotBytes) {
  Diagnostic d;
  d.message = "m";
  d.source_line = "\"\xc3\xa9\xe2\x82\xac\" x";  // "é€" x
  d.column = 9;
  EXPECT_EQ(to_string(d), "m\n    \"\xc3\xa9\xe2\x82\xac\" x\n         ^");
}

TEST(Diagnostic, CaretMayStandAfterTheLine) {
  Diagnostic d;
  d.message = "m";
  d.source_line = "[1";
  d.column = 3;
  EXPECT_EQ(to_string(d), "m\n    [1\n      ^");
}

TEST(Diagnostic, LongLineIsCutAroundTheCaret) {
  Diagnostic d;
  d.message = "m";
  d.source_line = std::string(500, 'a') + "X" + std::string(500, 'b');
  d.column = 501;
  const std::string text = to_string(d);
  const std::size_t line = text.find('\n') + 1, caret = text.find('\n', line) + 1;
  EXPECT_LT(text.size(), 300u);
  EXPECT_EQ(text.substr(line, 7), "    ...");
  EXPECT_EQ(text[line + (text.size() - 1 - caret)], 'X');
}

TEST(Diagnostic, ControlCharactersDoNotReachTheTerminal) {
  Diagnostic d;
  d.message = "m";
  d.source_line = "a\x1b[2Jb";
  EXPECT_EQ(to_string(d), "m\n    a?[2Jb");
}

TEST(Diagnostic, EveryTextIsFitForATerminal) {
  Diagnostic d;
  d.file = "a\x1b]0;b";
  d.line = 1;
  d.pointer = "/k\n";
  d.message = std::string("m\0n", 3);
  d.hint = "\xc2\x9bh\xe2\x80\xae";  // a control character of two bytes, and one of text direction
  d.source_line = "\xc2\x9b[2J X";
  d.column = 7;
  EXPECT_EQ(to_string(d), "a\\x1b]0;b:1:7: /k\\n: m\\x00n\n    ?[2J X\n         ^\n    hint: \\u009bh\\u202e");
}

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("a \xc3\xa9\xe2\x82\xac \xf0\x9f\x98\x80"), "a \xc3\xa9\xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\t\r\n\x7f"), "\\t\\r\\n\\x7f");
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");                           // no UTF-8
  EXPECT_EQ(printable("\xc0\x9b\xed\xa0\x80"), "\\xc0\\x9b\\xed\\xa0\\x80");  // overlong, half of a pair
}

TEST(Error, KeepsFiftyAndCountsTheOthers) {
  std::vector<Diagnostic> many(kMaxDiagnostics + 7, full());
  const Error error(ErrorKind::input, many, 3);
  EXPECT_EQ(error.diagnostics().size(), kMaxDiagnostics);
  EXPECT_EQ(error.more(), 10u);
  EXPECT_TRUE(std::string_view(error.what()).ends_with("\nand 10 more"));
  EXPECT_EQ(Error(ErrorKind::input, std::vector<Diagnostic>(kMaxDiagnostics)).more(), 0u);
}

TEST(Error, CutsTextsOfMegabytes) {
  Diagnostic d;
  d.message = "got '" + std::string(3000000, 'a') + "', expected a number";
  d.hint = d.pointer = d.file = d.source_line = std::string(3000000, '\xa4');
  d.line = 1;
  d.column = 2500000;
  const Error error(ErrorKind::input, {d});
  EXPECT_LT(std::string_view(error.what()).size(), 30000u);
  EXPECT_NE(std::string_view(error.what()).find("got 'aaa"), std::string_view::npos);
  EXPECT_NE(std::string_view(error.what()).find("', expected a number"), std::string_view::npos);
  EXPECT_LT(error.diagnostics()[0].source_line.size(), 20000u);
}

TEST(Error, TextHoldsAllDiagnostics) {
  Diagnostic second;
  second.message = "other";
  const Error error(ErrorKind::check, {full(), second});
  EXPECT_EQ(std::string(error.what()), to_string(full()) + "\nother");
  EXPECT_EQ(error.kind(), ErrorKind::check);
  EXPECT_EQ(error.diagnostics().size(), 2u);
}

TEST(Error, FromOneMessage) {
  const Error error(ErrorKind::run, "run.not_finite", "the loss is nan", "lower lr");
  ASSERT_EQ(error.diagnostics().size(), 1u);
  EXPECT_EQ(error.diagnostics()[0].code, "run.not_finite");
  EXPECT_STREQ(error.what(), "the loss is nan\n    hint: lower lr");
}

TEST(NearestName, WithinThreeEdits) {
  EXPECT_EQ(nearest_name("unts", {"name", "units", "bias"}), "units");
  EXPECT_EQ(nearest_name("abcdxyz", {"abcdefg"}), "abcdefg");  // 3 replaced
  EXPECT_EQ(nearest_name("abcwxyz", {"abcdefg"}), "");         // 4 replaced
  EXPECT_EQ(nearest_name("softmax", {"softmaxxyz"}), "softmaxxyz");
  EXPECT_EQ(nearest_name("softmax", {"softmaxwxyz"}), "");
  EXPECT_EQ(nearest_name("relu", {}), "");
}

TEST(NearestName, SwappedNeighboursAreOneEdit) {
  EXPECT_EQ(nearest_name("rleu", {"rlea_", "relu"}), "relu");
  EXPECT_EQ(nearest_name("ab", {"ba"}), "ba");  // two edits would be as many as the name is long
}

TEST(NearestName, WhatHasTheSameLettersIsNearer) {
  EXPECT_EQ(nearest_name("tahn", {"tan", "tanh", "than_"}), "tanh");
  EXPECT_EQ(nearest_name("mena", {"men", "mean"}), "mean");
}

TEST(NearestName, ShortNamesAreNotNearToAnything) {
  EXPECT_EQ(nearest_name("adam", {"train", "plan", "eval", "sgd"}), "");
  EXPECT_EQ(nearest_name("abcd", {"abxy"}), "abxy");
  EXPECT_EQ(nearest_name("abcd", {"axyz"}), "");
}

TEST(NearestName, LongNamesHaveNone) {
  EXPECT_EQ(nearest_name(std::string(64, 'a'), {std::string(63, 'a')}), std::string(63, 'a'));
  EXPECT_EQ(nearest_name(std::string(65, 'a'), {std::string(64, 'a')}), "");
}

TEST(NearestName, NearerThanTheNameIsLong) {
  EXPECT_EQ(nearest_name("xy", {"ab"}), "");
  EXPECT_EQ(nearest_name("", {"a"}), "");
  EXPECT_EQ(nearest_name("lr", {"l2"}), "l2");
}

TEST(NearestName, CaseBreaksTiesAndCountsOnce) {
  EXPECT_EQ(nearest_name("Units", {"knits", "units"}), "units");
  EXPECT_EQ(nearest_name("aXc", {"abc", "axc"}), "axc");
  EXPECT_EQ(nearest_name("SIGMOID", {"sigmoid"}), "sigmoid");
  EXPECT_EQ(nearest_name("bat", {"cat", "rat"}), "cat");  // the first of equals
}

}  // namespace
}  // namespace graphrun
