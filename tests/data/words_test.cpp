// CSV files with categorical values, dates and missing values: categories, imputation, number formats.
#include "data_fixture.h"

namespace graphrun {
namespace {

class WordsTest : public DataTest {
 protected:
  // Values of x, `width` numbers per row, from a table with an additional column y of zeros.
  Floats x_of(const std::string& csv, int width, const std::string& source, const std::string& more = "") {
    write("a.csv", csv);
    inputs = {{"x", width == 1 ? Shape{} : Shape{width}, DType::f32, false}};
    set_ = read(block(source, more));
    return values(set_, "train", "x");
  }
  std::string wrong(const std::string& csv, const std::string& source, const std::string& more = "", int width = 1) {
    write("a.csv", csv);
    inputs = {{"x", width == 1 ? Shape{} : Shape{width}, DType::f32, false}};
    return errors(block(source, more));
  }
  static std::string block(const std::string& source, const std::string& more) {
    return R"({"train": {"csv": "a.csv")" + (source.empty() ? "" : ", " + source) + "}" +
           (more.empty() ? "" : ", " + more) + "}";
  }
  DataSet set_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(WordsTest, OneHotOfWordsInOrderOfTheFile) {
  EXPECT_EQ(x_of("s\nb\na\nb\nc\n", 3, R"("x": "s")", R"("transform": {"x": ["one_hot"]})"),
            (Floats{1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(x_of("s\nb\na\nb\nc\n", 1, R"("x": "s")", R"("transform": {"x": ["classes"]})"), (Floats{0, 1, 0, 2}));
  EXPECT_TRUE(contains(set_.provenance, R"("categories": {"x": ["b", "a", "c"]})")) << set_.provenance;
}

TEST_F(WordsTest, AColumnIsTransformedBeforeListsAndFormulasSeeIt) {
  EXPECT_EQ(
      x_of("s,a\nm,1\nf,3\n", 3, R"("x": ["s", "a"])", R"("transform": {"s": ["one_hot"], "a": ["standardize"]})"),
      (Floats{1, 0, -1, 0, 1, 1}));
  EXPECT_EQ(x_of("s,a\nm,1\nf,3\n", 1, R"("x": "s * 10 + a")", R"("transform": {"s": ["classes"], "a": ["minmax"]})"),
            (Floats{0, 11}));
}

TEST_F(WordsTest, CategoriesMayBeGiven) {
  EXPECT_EQ(x_of("s\nb\na\n", 1, R"("x": "s")", R"("transform": {"x": [{"classes": ["a", "b"]}]})"), (Floats{1, 0}));
  // A number is a category however it is written; a code is a word.
  EXPECT_EQ(x_of("s\n1\n1.0\n2e0\n", 2, R"("x": "s")", R"("transform": {"x": [{"one_hot": [2, 1]}]})"),
            (Floats{0, 1, 0, 1, 1, 0}));
  EXPECT_EQ(x_of("s\n007\n7\n007\n", 1, R"("x": "s")", R"("transform": {"x": ["classes"]})"), (Floats{0, 1, 0}));
}

TEST_F(WordsTest, OtherWordsAreRejectedOrOneCategory) {
  const std::string text =
      wrong("s\nred\ngreen\n", R"("x": "s")", R"("transform": {"x": [{"classes": ["red", "gren"]}]})");
  EXPECT_TRUE(contains(text, "a.csv:3:1: row 1, column 's': 'green' is not one of the categories red, gren")) << text;
  EXPECT_TRUE(contains(text, "did you mean 'gren'?")) << text;
  EXPECT_EQ(x_of("s\nb\na\nz\n", 3, R"("x": "s")",
                 R"("transform": {"x": [{"one_hot": {"categories": ["a", "b"], "other": true}}]})"),
            (Floats{0, 1, 0, 1, 0, 0, 0, 0, 1}));
}

// The categories are those of the training rows: a word of another split is unknown.
TEST_F(WordsTest, CategoriesAreThoseOfTheTrainingRows) {
  write("test.csv", "s\na\nq\n");
  const std::string test = R"("test": {"csv": "test.csv", "x": "s"}, "transform": {"x": )";
  EXPECT_TRUE(
      contains(wrong("s\nb\na\n", R"("x": "s")", test + R"(["classes"]})"), "'q' is not one of the categories b, a"));
  x_of("s\nb\na\n", 3, R"("x": "s")", test + R"([{"one_hot": {"other": true}}]})");
  EXPECT_EQ(values(set_, "test", "x"), (Floats{0, 1, 0, 0, 0, 1}));
}

TEST_F(WordsTest, LabelsOfTargets) {
  write("a.csv", "a,s\n1,yes\n2,no\n");
  inputs = {{"x", Shape{}, DType::f32, false}, {"y", Shape{1}, DType::f32, true}};
  const auto labels =
      read(R"({"train": {"csv": "a.csv", "x": "a", "y": "s"}, "transform": {"y": ["classes"]}})").labels;
  ASSERT_EQ(labels.size(), 1u);
  EXPECT_EQ(labels[0].first, "y");
  EXPECT_EQ(labels[0].second, (std::vector<std::string>{"yes", "no"}));
  const auto of_column =
      read(R"({"train": {"csv": "a.csv", "x": "a", "y": "s"}, "transform": {"s": ["classes"]}})").labels;
  EXPECT_EQ(of_column, labels);
}

TEST_F(WordsTest, TrueAndFalseAreNumbers) {
  EXPECT_EQ(x_of("s\ntrue\nFALSE\nTrue\n", 1, ""), (Floats{1, 0, 1}));
}

TEST_F(WordsTest, ErrorsOfWords) {
  EXPECT_TRUE(contains(wrong("s,a\nm,1\nf,2\n", R"("x": ["a", "s"])", R"("transform": {"x": ["one_hot"]})", 3),
                       "only a single column can become classes; input 'x' takes a formula or several columns"));
  EXPECT_TRUE(contains(wrong("sex\nm\n", "", R"("transform": {"sexx": ["one_hot"]})"), "did you mean 'sex'?"));
  EXPECT_TRUE(contains(wrong("s\nm\nf\n", "", R"("transform": {"s": ["one_hot"]})"), "the columns are s[m], s[f]"));
  EXPECT_TRUE(contains(wrong("s\nm\n", "", R"("transform": {"s": [{"one_hot": ["m", "m"]}]})"), "two categories 'm'"));
  EXPECT_TRUE(contains(wrong("s\nm\n", "", R"("transform": {"s": [{"one_hot": []}]})"), "a list of categories"));
  EXPECT_TRUE(contains(wrong("s\nm\n", "", R"("transform": {"s": ["standardize", "one_hot"]})"), "not standardized"));
  EXPECT_TRUE(contains(wrong("s\n2\n", "", R"("transform": {"s": ["standardize", "log"]})"), "first step"));
  EXPECT_TRUE(contains(wrong("s\n0\n", "", R"("transform": {"s": ["log"]})"), "0 has no logarithm"));
}

// ---- gaps

TEST_F(WordsTest, WhatTakesThePlaceOfAMissingValue) {
  const std::string csv = "a\n1\nNA\n5\n5\n1\n\n8\n";  // the empty line has no value
  const auto filled = [&](const std::string& missing) { return x_of(csv, 1, R"("missing": )" + missing)[1]; };
  EXPECT_EQ(filled(R"("mean")"), 4.0f);
  EXPECT_EQ(filled(R"("median")"), 5.0f);
  EXPECT_EQ(filled(R"("most_frequent")"), 1.0f);  // as often as 5, and smaller
  EXPECT_EQ(filled("-2.5"), -2.5f);
  EXPECT_EQ(filled(R"({"value": 7})"), 7.0f);
  EXPECT_EQ(x_of(csv, 1, R"("missing": "drop")").size(), 5u);
  EXPECT_TRUE(
      contains(wrong(csv, R"("missing": {"value": "x"})"), "'x' cannot replace missing values: it is not a number"));
  EXPECT_TRUE(contains(wrong(csv, R"("missing": "medien")"), "did you mean 'median'?"));
  EXPECT_TRUE(contains(wrong(csv, R"("missing": {"b": "mean"})"), "no column 'b'"));
}

TEST_F(WordsTest, EachColumnHasItsOwnPolicy) {
  EXPECT_EQ(x_of("a,s\n1,u\n,v\n3,\n5,v\n", 3, R"("x": ["a", "s"], "missing": {"a": "median", "s": "most_frequent"})",
                 R"("transform": {"s": ["one_hot"]})"),
            (Floats{1, 1, 0, 3, 0, 1, 3, 0, 1, 5, 0, 1}));
  EXPECT_EQ(x_of("a,s\n1,u\n,v\n3,\n", 3, R"("x": ["a", "s"], "missing": {"a": "drop", "s": {"value": "none"}})",
                 R"("transform": {"s": ["one_hot"]})"),
            (Floats{1, 1, 0, 3, 0, 1}));
}

TEST_F(WordsTest, WordsHaveNoMean) {
  EXPECT_TRUE(contains(wrong("s\nu\n?\n", R"("x": "s", "missing": "mean")", R"("transform": {"x": ["classes"]})"),
                       "the value is missing, and words have no mean"));
  EXPECT_TRUE(contains(wrong("s\nu\n?\n", R"("x": "s")", R"("transform": {"x": ["classes"]})"), "most_frequent"));
}

// ---- dates and quoted names

TEST_F(WordsTest, DatesByFormulas) {
  const std::string csv = "d,e\n1970-01-02,2024-02-29T12:00:00Z\n2000-03-01,1969-12-31 23:30-01:00\n";
  const auto of = [&](const std::string& x) { return x_of(csv, 1, R"("x": ")" + x + "\""); };
  EXPECT_EQ(of("days(d)"), (Floats{1, 11017}));
  EXPECT_EQ(of("days(e)"), (Floats{19782.5f, 1800.0f / 86400}));
  EXPECT_EQ(of("year(d) * 100 + month(d)"), (Floats{197001, 200003}));
  EXPECT_EQ(of("weekday(d)"), (Floats{5, 3}));  // a Friday, a Wednesday
  EXPECT_EQ(of("day(e)"), (Floats{29, 1}));
  EXPECT_EQ(of("hour(e) + minute(e) / 100"), (Floats{12, 0.3f}));
  EXPECT_EQ(x_of(csv, 2, R"js("x": ["year(d)", "seconds(d) / 86400 - days(d)"])js"), (Floats{1970, 0, 2000, 0}));
  EXPECT_TRUE(contains(wrong("d\n2023-02-29\n", R"js("x": "days(d)")js"), "'2023-02-29' is not a date"));
  EXPECT_TRUE(contains(wrong("d\n31.02.2023\n", R"js("x": "days(d)")js"), "there is no such day in the calendar"));
  EXPECT_TRUE(contains(wrong("d\nsoon\n", R"js("x": "days(d)")js"), "a date is written as in 2024-02-29T12:30"));
  EXPECT_TRUE(contains(wrong("d\n2023-02-28\n", R"("x": "d")"), "a date becomes a number by a formula: days(d)"));
}

TEST_F(WordsTest, DatesInOtherForms) {
  const auto seconds = [&](const std::string& date) {
    return x_of("d;e\n" + date + ";0\n", 1, R"js("x": "seconds(d) - 1545397200", "delimiter": ";")js").front();
  };
  for (const char* date :
       {"2018-12-21 13:00:07 UTC", "2018-12-21T13:00:07z", "2018-12-21 14:00:07+01", "21/12/2018 13:00:07",
        "2018-12-21 08:00:07 -0500", "21.12.2018 13:00:07", "12/21/2018 13:00:07", "2018/12/21 13:00:07"})
    EXPECT_EQ(seconds(date), 7) << date;
  EXPECT_EQ(seconds("2018-12-21 13:00:00,250"), 0.25f);
  EXPECT_EQ(seconds("2018-12-21 24:00:00"), 11 * 3600);
  EXPECT_EQ(seconds("1.1.2019"), 11 * 3600 + 10 * 86400);
  for (const char* date :
       {"2018-12-21 24:00:01", "31.4.2018", "13/13/2018", "1.2.18", "2018-12/21", "2018-12-21 13:00+1"})
    EXPECT_TRUE(contains(wrong(std::string("d\n") + date + "\n", R"js("x": "days(d)")js"), "is not a date")) << date;
}

// Day and month are in the same order in the whole column, which one date decides.
TEST_F(WordsTest, OrderOfDayAndMonth) {
  const auto months = [&](const std::string& csv, const std::string& more) {
    return x_of(csv, 1, R"js("x": "month(d)")js" + more);
  };
  EXPECT_EQ(months("d\n03/04/2024\n4/13/2024\n2024-05-06\n", ""), (Floats{3, 4, 5}));
  EXPECT_EQ(months("d\n03/04/2024\n13/4/2024\n", ""), (Floats{4, 4}));
  EXPECT_EQ(months("d\n03/04/2024\n", R"(, "dates": "dd/mm/yyyy")"), (Floats{4}));
  const auto error = [&](const std::string& csv, const std::string& more) {
    return wrong(csv, R"js("x": "month(d)")js" + more);
  };
  EXPECT_TRUE(contains(error("d\n03/04/2024\n12/11/2024\n", ""),
                       "row 0, column 'd': '03/04/2024' may be dd/mm/yyyy or mm/dd/yyyy, and no date of the column"));
  EXPECT_TRUE(contains(error("d\n03/04/2024\n12/13/2024\n13/12/2024\n", ""),
                       "'13/12/2024' has another order of day and month than the column"));
  EXPECT_TRUE(contains(error("d\n12/31/2024\n", R"(, "dates": "dd/mm/yyyy")"), "'12/31/2024' has another order"));
  EXPECT_TRUE(contains(error("d\n12/31/2024\n", R"(, "dates": "dmy")"), "must be \"dd/mm/yyyy\" or"));
}

TEST_F(WordsTest, NamesWithSpacesAreQuotedInFormulas) {
  EXPECT_EQ(x_of("house price,a\n10,1\n20,2\n", 1, R"("x": "`house price` / 10 + 'a'")"), (Floats{2, 4}));
  EXPECT_EQ(x_of("house price,sold on\n10,1970-01-02\n", 1, R"("x": "days(`sold on`) + `house price`")"), (Floats{11}));
  EXPECT_TRUE(contains(wrong("a\n1\n", R"("x": "`b c` + 1")"), "no column 'b c'"));
  EXPECT_TRUE(contains(wrong("a\n1\n", R"("x": "`a + 1")"), "the quote is not closed"));
}

// ---- how numbers are written

TEST_F(WordsTest, DecimalsThousandsAndPercent) {
  EXPECT_EQ(x_of("a;b\n1,5;-1.234.567,25\n0;12\n", 2,
                 R"("x": ["a", "b"], "delimiter": ";", "decimal": ",", "thousands": ".")"),
            (Floats{1.5f, -1234567.25f, 0, 12}));
  EXPECT_EQ(x_of("a\n\"1,234\"\n\"12,345,678\"\n5\n", 1, R"("thousands": ",")"), (Floats{1234, 12345678, 5}));
  EXPECT_EQ(x_of("a\n12 %\n-0.5%\n3\n", 1, R"("percent": true)"), (Floats{0.12f, -0.005f, 3}));
  for (const char* number : {"1.2345", "12.34", "1.234.56", ".123", "1..234", "1,5.000"})
    EXPECT_TRUE(contains(wrong(std::string("a;b\n") + number + ";1\n",
                               R"("x": "a", "delimiter": ";", "decimal": ",", "thousands": ".")"),
                         "expected a number"))
        << number;
}

// No-break spaces and typographic apostrophes between thousands, and signs of currencies.
TEST_F(WordsTest, SpacesApostrophesAndCurrencies) {
  EXPECT_EQ(x_of("a;b\n1\u00A0234\u202F567,5;0\n12 345;0\n-7\u2009000;0\n", 1,
                 R"("x": "a", "delimiter": ";", "decimal": ",", "thousands": " ")"),
            (Floats{1234567.5f, 12345, -7000}));
  EXPECT_EQ(x_of("a\n1\u202F234\n", 1, "\"thousands\": \"\u00A0\""), (Floats{1234}));
  EXPECT_EQ(x_of("a\n1'234.5\n2\u2019000\n", 1, R"("thousands": "'")"), (Floats{1234.5f, 2000}));
  EXPECT_EQ(x_of("a\n\"$1,234.50\"\n($4)\n-$5\n$-6\n- $ 7\n8\n", 1, R"("thousands": ",", "currency": "$")"),
            (Floats{1234.5f, -4, -5, -6, -7, 8}));
  EXPECT_EQ(x_of("a;b\n1\u202F234,50\u00A0€;0\n€ 5;0\n", 1,
                 R"("x": "a", "delimiter": ";", "decimal": ",", "thousands": " ", "currency": "€")"),
            (Floats{1234.5f, 5}));
  for (const char* number : {"1 23", "030 123 456", "1  234", "0'500", "(-5)", "5$"})
    EXPECT_TRUE(contains(wrong(std::string("a\n") + number + "\n", R"("thousands": " ", "currency": "€")"),
                         "expected a number"))
        << number;
  EXPECT_TRUE(contains(wrong("a\n1\u00A0234\n", ""), R"("decimal": ".", "thousands": " " next to the file name)"));
  EXPECT_TRUE(contains(wrong("a\n$1'234.50\n", ""), R"("thousands": "'", "currency": "$" next to the file name)"));
}

TEST_F(WordsTest, NumbersInAnotherNotationAreReportedOf) {
  EXPECT_TRUE(contains(wrong("a\n12%\n", ""), R"("percent": true)"));
  EXPECT_TRUE(contains(wrong("a;b\n1,5;2\n", R"("x": "a", "delimiter": ";")"), R"("decimal": ",")"));
  EXPECT_TRUE(contains(wrong("a\n\"12,345.5\"\n", ""), R"("thousands": ",")"));
  EXPECT_TRUE(contains(wrong("a;b\n1,5;2\n", ""), R"("delimiter": ";")"));
  EXPECT_TRUE(contains(wrong("a\n1\n", R"("decimal": ",", "delimiter": ",")"), "are the same character"));
}

TEST_F(WordsTest, ColumnsSeparatedByBlanks) {
  const std::string more = R"("x": ["a", "b c"], "delimiter": " ")";
  EXPECT_EQ(x_of("  a \t 'b\n", 1, R"("x": "a", "delimiter": " ", "names": ["b", "a"], "missing": 3, "na": "'b")"),
            (Floats{3}));
  EXPECT_EQ(x_of("  a   \"b c\"  \n1\t 2\r\n\n   \n 3    4  \n5 6", 2, more), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(contains(wrong("a \"b c\"\n1 2 3\n", more), "expected 2 fields as in the first line, got 3"));
  EXPECT_TRUE(contains(wrong("a \"b c\"\n1\n", more), "expected 2 fields as in the first line, got 1"));
}

TEST_F(WordsTest, NamesOfColumnsWithoutAHeader) {
  EXPECT_EQ(x_of("1,2\n3,4\n", 2, R"("x": ["b", "a"], "names": ["a", "b", "more"])"), (Floats{2, 1, 4, 3}));
  EXPECT_TRUE(contains(wrong("1,2\n", R"("x": "a", "names": ["a"])"), "the row has 2 fields, and \"names\" lists 1"));
  EXPECT_TRUE(contains(wrong("1,2\n", R"("x": "c", "names": ["a", "b", "c"])"), "no column 'c'"));
  EXPECT_TRUE(contains(wrong("1,2\n", R"("x": "a", "names": ["a", "a"])"), "there are two columns 'a'"));
  EXPECT_EQ(x_of("no name\n1\n", 1, R"("x": "a", "names": ["a"], "header": true)"), (Floats{1}));
}

TEST_F(WordsTest, Libsvm) {
  const std::string text = "# saved\n1 1:0.5 3:1.2\n-1 2:7 # note\n\n+1\r\n";
  EXPECT_EQ(x_of(text, 4, R"("x": ["c0", "c1", "c2", "c3"], "libsvm": 0)"),
            (Floats{1, 0.5f, 0, 1.2f, -1, 0, 7, 0, 1, 0, 0, 0}));
  EXPECT_EQ(x_of(text, 1, R"("x": "c5", "libsvm": 5)"), (Floats{0, 0, 0}));
  const auto error = [&](const std::string& row, const std::string& column = "c1") {
    return wrong("1 1:2\n" + row + "\n", "\"x\": \"" + column + "\", \"libsvm\": 4");
  };
  EXPECT_TRUE(contains(error("1 5:2"), "a.csv:2: feature 5 exceeds 4, the value of \"libsvm\""));
  EXPECT_TRUE(contains(error("1 2:1 2:3"), "feature 2 follows feature 2\n    hint: indices ascend"));
  EXPECT_TRUE(contains(error("1 qid:3 1:2"), "expected index:value, got 'qid:3'"));
  EXPECT_TRUE(contains(error("1 7"), "expected index:value, got '7'"));
  EXPECT_TRUE(contains(error("1 0:7"), "a feature has the index 0\n    hint: indices count from 1"));
  EXPECT_TRUE(contains(wrong("1 9223372036854775807:1\n", R"("x": "c1", "libsvm": 0)"), "a.csv"));
  EXPECT_TRUE(contains(error("1 1:x"), "a.csv:2: expected index:value, got '1:x'\n    hint: both are numbers"));
  EXPECT_TRUE(contains(error("1 1:"), "expected index:value, got '1:'"));
  EXPECT_TRUE(contains(error("1:7", "c0"), "row 1, column 'c0': the value is missing"));
}

TEST_F(WordsTest, CommentsAndTextsOfMissingValues) {
  EXPECT_EQ(x_of("# made in 2024\na\n1\n#2\n-999\n3\n", 1, R"("comment": "#", "na": ["-999"], "missing": 0)"),
            (Floats{1, 0, 3}));
  EXPECT_EQ(x_of("a\n1\nn.a.\n", 1, R"("na": "n.a.", "missing": "mean")"), (Floats{1, 1}));
}

TEST_F(WordsTest, TabsAndOtherNamesOfFiles) {
  write("a.tsv", "a\tb\n1\t2\n");
  write("B.CSV", "a,b\n1,2\n");
  inputs = {{"x", Shape{2}, DType::f32, false}};
  EXPECT_EQ(values(read(R"({"train": {"csv": "a.tsv"}})"), "train", "x"), (Floats{1, 2}));
  EXPECT_EQ(values(read(R"({"train": {"csv": "B.CSV"}})"), "train", "x"), (Floats{1, 2}));
}

// ---- weights of classes

TEST_F(WordsTest, ClassWeights) {
  EXPECT_EQ(x_of("s\na\nb\na\na\n", 1, R"("x": "s")", R"("transform": {"x": [{"class_weight": "balanced"}]})"),
            (Floats{4.0f / 6, 2, 4.0f / 6, 4.0f / 6}));
  EXPECT_EQ(x_of("s\na\nb\na\n", 1, R"("x": "s")", R"("transform": {"x": [{"class_weight": {"b": 3, "a": 0.5}}]})"),
            (Floats{0.5f, 3, 0.5f}));
  EXPECT_TRUE(contains(wrong("s\na\n", R"("x": "s")", R"("transform": {"x": [{"class_weight": {"b": 3}}]})"),
                       "'a' is not one of the categories b"));
}

}  // namespace
}  // namespace graphrun
