// Splits, ranges, shapes, file lookup, and error messages.
#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data_fixture.h"

namespace graphrun {
namespace {

constexpr const char* kXor = R"({"m": 4, "n": 2, "m_test": 2, "x": [0, 0, 0, 1, 1, 0, 1, 1], "y": [0, 1, 1, 0],
                                "x_test": [5, 6, 7, 8], "y_test": [9, 10]})";

TEST_F(DataTest, InlineArrays) {
  const DataSet set = read(R"({"train": {"inline": {"x": [[0, 1], [2, 3], [4, 5]], "y": [6, 7, 8]}}})");
  ASSERT_EQ(set.splits.size(), 1u);
  EXPECT_EQ(set.splits[0].samples(), 3);
  EXPECT_EQ(values(set, "train", "x"), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{6, 7, 8}));
  EXPECT_EQ(column(set, "train", "y").shape(), (Shape{3, 1}));  // (rows) fits (batch, 1)
  EXPECT_TRUE(set.standardizations.empty());
  EXPECT_TRUE(set.warnings.empty());
}

TEST_F(DataTest, ARowOfOneFitsAScalarInput) {
  inputs = {{"y", Shape{}, DType::f64, true}};
  const DataSet set = read(R"({"train": {"inline": {"y": [[6], [7]]}}})");
  EXPECT_EQ(column(set, "train", "y").shape(), (Shape{2}));
  EXPECT_EQ(elements<double>(set, "train", "y"), (std::vector<double>{6, 7}));
}

TEST_F(DataTest, FlatJsonGivesTrainAndTestAtOnce) {
  write("xor.json", kXor);
  const DataSet set = read(R"({"source": {"json": "xor.json"}})");
  ASSERT_EQ(set.splits.size(), 2u);
  EXPECT_EQ(values(set, "train", "x"), (Floats{0, 0, 0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(values(set, "test", "x"), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(values(set, "test", "y"), (Floats{9, 10}));
}

// Two fractions divide the training rows; validation gets the remainder.
TEST_F(DataTest, FlatJsonWithTestRowsIsSplitInTwo) {
  write("xor.json", kXor);
  const DataSet set = read(R"({"source": {"json": "xor.json"}, "split": [0.7, 0.3]})");
  ASSERT_EQ(set.splits.size(), 3u);
  EXPECT_EQ(values(set, "train", "y").size(), 2u);
  EXPECT_EQ(values(set, "validation", "y").size(), 2u);
  EXPECT_EQ(values(set, "test", "y"), (Floats{9, 10}));
  const DataSet again = read(R"({"source": {"json": "xor.json"}, "split": [0.7, 0.3]})");
  EXPECT_EQ(again.provenance, set.provenance);
  EXPECT_NE(set.provenance.find("\"fractions\": [0.7, 0.3]"), std::string::npos) << set.provenance;
}

TEST_F(DataTest, FlatJsonUnderASplitGivesItsRows) {
  write("xor.json", kXor);
  const DataSet set =
      read(R"({"train": {"json": "xor.json", "range": [1, 3], "rows": 2}, "test": {"json": "xor.json"}})");
  ASSERT_EQ(set.splits.size(), 2u);
  EXPECT_EQ(values(set, "train", "x"), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(values(set, "test", "y"), (Floats{9, 10}));  // the file's own test rows
}

TEST_F(DataTest, FlatJsonMayHaveNoTestRowsAndWideTargets) {
  inputs[1].sample = Shape{2};
  write("a.json", R"({"m": 2, "n": 2, "x": [1, 2, 3, 4], "y": [1, 2, 3, 4]})");
  const DataSet set = read(R"({"source": {"json": "a.json"}})");
  EXPECT_EQ(set.splits.size(), 1u);
  EXPECT_EQ(column(set, "train", "y").shape(), (Shape{2, 2}));
}

TEST_F(DataTest, ErrorsOfAFlatFileHaveItsPlace) {
  write("a.json", "{\"m\": 2, \"n\": 2,\n \"x\": [1, 2, 3],\n \"y\": [1, 2],\n \"m_tst\": 3}");
  EXPECT_EQ(errors(R"({"source": {"json": "a.json"}})"),
            "DIR/a.json:2:7: /x: expected 2 x 2 = 4 numbers, got 3\n"
            "     \"x\": [1, 2, 3],\n"
            "          ^\n"
            "DIR/a.json:4:2: /m_tst: unknown key 'm_tst'\n"
            "     \"m_tst\": 3}\n"
            "     ^\n"
            "    hint: did you mean 'm_test'?");
}

TEST_F(DataTest, ASeededPermutationDividesASource) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  std::string rows = "0";
  for (int i = 1; i < 100; ++i) rows += "," + std::to_string(i);
  const std::string block = R"({"source": {"inline": {"x": [)" + rows + R"(]}}, "split": [0.29, 0.155, 0.555]})";
  const DataSet set = read(block);
  ASSERT_EQ(set.splits.size(), 3u);
  EXPECT_EQ(set.splits[0].samples(), 29);
  EXPECT_EQ(set.splits[1].samples(), 15);
  EXPECT_EQ(set.splits[2].samples(), 56);
  std::set<float> seen;
  for (const Split& split : set.splits) {
    for (const float value : values(set, split.name, "x")) EXPECT_TRUE(seen.insert(value).second);
  }
  EXPECT_EQ(seen.size(), 100u);
  const Floats train = values(set, "train", "x");
  EXPECT_FALSE(std::is_sorted(train.begin(), train.end()));
  EXPECT_EQ(values(read(block), "train", "x"), train);
  DataOptions other{folder(), "", 1};
  EXPECT_NE(values(read(block, other), "train", "x"), train);
}

TEST_F(DataTest, APermutedRangeStaysInItsRange) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  const DataSet set =
      read(R"({"source": {"inline": {"x": [0, 1, 2, 3, 4, 5, 6, 7]}, "range": [3, 7]}, "split": [0.5, 0, 0.5]})");
  ASSERT_EQ(set.splits.size(), 2u);
  Floats all = values(set, "train", "x"), test = values(set, "test", "x");
  all.insert(all.end(), test.begin(), test.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Floats{3, 4, 5, 6}));
}

TEST_F(DataTest, FilesAreFoundBesideTheModelThenInTheDataFolderThenInTheEnvironment) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  const std::string block = R"({"train": {"csv": "a.csv"}})";
  write("environment/a.csv", "x\n3\n");
  setenv("GRAPHRUN_DATA", path("environment").c_str(), 1);
  const DataOptions options{path("model"), path("data"), 0};
  EXPECT_EQ(values(read(block, options), "train", "x"), (Floats{3}));
  write("data/a.csv", "x\n2\n");
  EXPECT_EQ(values(read(block, options), "train", "x"), (Floats{2}));
  write("model/a.csv", "x\n1\n");
  EXPECT_EQ(values(read(block, options), "train", "x"), (Floats{1}));
  EXPECT_EQ(values(read(R"({"train": {"csv": ")" + path("data/a.csv") + "\"}}", options), "train", "x"), (Floats{2}));
  unsetenv("GRAPHRUN_DATA");
  EXPECT_EQ(errors(R"({"train": {"csv": "b.csv"}})", options),
            "model.json:1:19: /train/csv: data file 'b.csv' not found; tried DIR/model/b.csv, DIR/data/b.csv\n"
            "    {\"train\": {\"csv\": \"b.csv\"}}\n"
            "                      ^\n"
            "    hint: did you mean 'a.csv'?");
  EXPECT_NE(errors(R"({"train": {"csv": "below/a.csv"}})", options)
                .find("hint: 'DIR/data/a.csv' exists, but the model file says 'below/a.csv'"),
            std::string::npos);
}

TEST_F(DataTest, TheCurrentDirectoryIsNeverSearched) {
  write("here/a.csv", "x\n1\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(path("here"));
  const std::string text = errors(R"({"train": {"csv": "a.csv"}})", DataOptions{"", path("data"), 0});
  std::filesystem::current_path(before);
  EXPECT_NE(text.find("data file 'a.csv' not found; tried DIR/data/a.csv"), std::string::npos) << text;
}

// All errors of a block in one pass.
TEST_F(DataTest, AllErrorsAreReportedAtOnce) {
  EXPECT_EQ(errors("{\n"
                   "  \"train\": {\"inlin\": {}},\n"
                   "  \"validation\": {\"inline\": {\"x\": [[1, 2], [3]], \"y\": [1, 2]}},\n"
                   "  \"test\": {\"inline\": {\"x\": [[1, 2]], \"y\": [1]}, \"range\": [0, 2], \"rws\": 1},\n"
                   "  \"transform\": {\"x\": [\"standardise\"]}\n"
                   "}"),
            "model.json:2:13: /train/inlin: unknown source 'inlin'; expected one of json, inline, idx, images, npy, "
            "npz, csv, "
            "records, grid, random\n"
            "      \"train\": {\"inlin\": {}},\n"
            "                ^\n"
            "    hint: did you mean 'inline'?\n"
            "model.json:3:43: /validation/inline/x/1: expected 2 items as in the first row, got 1\n"
            "      \"validation\": {\"inline\": {\"x\": [[1, 2], [3]], \"y\": [1, 2]}},\n"
            "                                              ^\n"
            "model.json:4:58: /test/range: the range [0, 2) ends beyond the 1 rows of the source\n"
            "      \"test\": {\"inline\": {\"x\": [[1, 2]], \"y\": [1]}, \"range\": [0, 2], \"rws\": 1},\n"
            "                                                             ^\n"
            "model.json:4:66: /test/rws: unknown key 'rws'\n"
            "      \"test\": {\"inline\": {\"x\": [[1, 2]], \"y\": [1]}, \"range\": [0, 2], \"rws\": 1},\n"
            "                                                                     ^\n"
            "    hint: did you mean 'rows'?\n"
            "model.json:5:23: /transform/x/0: unknown transform 'standardise'; expected one of \"standardize\", "
            "\"minmax\", \"robust\", \"log\", \"log1p\", {\"scale\": a number}, \"flatten\", \"one_hot\", \"classes\", "
            "{\"class_weight\": \"balanced\" or weights by category}\n"
            "      \"transform\": {\"x\": [\"standardise\"]}\n"
            "                          ^\n"
            "    hint: did you mean 'standardize'?");
}

struct DatasetMistake {
  const char* block;
  const char* says;
};

TEST_F(DataTest, EachMistakeHasItsMessage) {
  write("xor.json", kXor);
  write("no_test.json", R"({"m": 2, "n": 2, "x": [1, 2, 3, 4], "y": [1, 2]})");
  const DatasetMistake errors_of[] = {
      {"{}", ": missing key 'train' or 'source': there is nothing to train on"},
      {"[]", "must be an object, got an array"},
      {R"({"train": {}})",
       "/train: no source is named; expected one of json, inline, idx, images, npy, npz, csv, records, grid, random"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}, "csv": "a"}})",
       "/train/csv: one source is enough: 'inline' and 'csv'"},
      {R"({"train": {"inline": {"x": [[1, 2]], "w": [1]}}})",
       "/train/inline: no array for input 'y'; the source has x, w"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1, 2]}}})", "/train: 'x' has 1 rows, but 'y' has 2"},
      {R"({"train": {"inline": {"x": [[1, 2, 3]], "y": [1]}}})",
       "/train: input 'x' of train: declared (batch, 2), but the data are (batch, 3)"},
      {R"({"train": {"inline": {"x": [[[1], [2]]], "y": [1]}}})",
       "declared (batch, 2), but the data are (batch, 2, 1)\n"},
      {R"({"train": {"inline": {"x": [[[1], [2]]], "y": [1]}}})",
       "hint: \"transform\": {\"x\": [\"flatten\"]} makes them one"},
      {R"({"train": {"inline": {"x": [[1, "a"]], "y": [1]}}})", "/train/inline/x/0/1: must be a number"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": 1}}})", "/train/inline/y: expected an array with one item a row"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1e39]}}})",
       "input 'y' of train: row 0, column 0: 1e+39 is too large for f32"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}, "rows": 2}})",
       "/train/rows: 2 rows are declared, but there are 1"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}, "rows": 0}})", "/train/rows: must be > 0, got 0"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}, "range": [1, 1]}})",
       "/train/range: the range [1, 1) is empty"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}, "range": [1]}})", "/train/range: must be [first, end)"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}, "header": true}})",
       "/train/header: key 'header' has no meaning here"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}}, "source": {"json": "xor.json"}})",
       "/train: 'train' cannot be combined with 'source'"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}}, "split": [1, 0, 0]})", "/split: 'split' divides a 'source'"},
      {R"({"source": {"json": "xor.json"}, "split": [0.5, 0.25, 0.25]})",
       R"(hint: for instance "split": [0.8, 0.2] of train)"},
      {R"({"source": {"json": "no_test.json"}, "split": [0.5, 0.25, 0.2]})", "/split: must be three fractions"},
      {R"({"source": {"json": "no_test.json"}, "split": [0.5, 0.5]})",
       "/split: the source has no test rows of its own"},
      {R"({"source": {"json": "xor.json"}, "missing": "mean"})", R"(hint: it belongs inside "source": {"csv": ...,)"},
      {R"({"source": {"json": "no_test.json"}, "split": [0.5, 0.25, 0.25]})",
       "/split: validation would get none of the 2 rows"},
      {R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}}, "tset": {}})", "/tset: unknown key 'tset'"},
      {R"({"train": {"json": 3}})", "/train/json: must be a string, got 3"},
      {R"({"train": {"idx": {"x": 3, "y": "a"}}})", "/train/idx/x: must be a string, got 3"},
  };
  for (const DatasetMistake& m : errors_of)
    EXPECT_NE(errors(m.block).find(m.says), std::string::npos) << m.block << '\n' << errors(m.block);
}

TEST_F(DataTest, AnArrayWithAMistakeIsNotMissingToo) {
  for (const char* x : {"[]", "1", "[[1, \"a\"]]"}) {
    const std::string found = errors(fmt::format(R"({{"train": {{"inline": {{"x": {}, "y": [1]}}}}}})", x));
    EXPECT_NE(found.find("/train/inline/x"), std::string::npos) << found;
    EXPECT_EQ(found.find("no array"), std::string::npos) << found;
  }
}

TEST_F(DataTest, IntegersAreChecked) {
  inputs = {{"y", Shape{}, DType::i32, true}};
  EXPECT_EQ(elements<std::int32_t>(read(R"({"train": {"inline": {"y": [3, -1]}}})"), "train", "y"),
            (std::vector<std::int32_t>{3, -1}));
  EXPECT_NE(errors(R"({"train": {"inline": {"y": [3, 0.5]}}})").find("row 1, column 0: 0.5 is no i32"),
            std::string::npos);
  EXPECT_NE(errors(R"({"train": {"inline": {"y": [3000000000]}}})").find("is no i32"), std::string::npos);
  inputs[0].dtype = DType::boolean;
  EXPECT_EQ(elements<std::uint8_t>(read(R"({"train": {"inline": {"y": [1, 0]}}})"), "train", "y"),
            (std::vector<std::uint8_t>{1, 0}));
  EXPECT_NE(errors(R"({"train": {"inline": {"y": [2]}}})").find("2 is no bool"), std::string::npos);
}

}  // namespace
}  // namespace graphrun
