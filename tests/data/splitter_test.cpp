// Splits of a source: stratified splits, folds, and split seeds.
#include <fmt/format.h>

#include <map>
#include <set>

#include "prediction_fixture.h"

namespace graphrun {
namespace {

class DivisionTest : public DataTest {
 protected:
  // Rows 0, 1, 2, ... in x; every third one of class 1 in y, the last of a class 2 of its own size.
  void write_rows(int rows, int rare = 0) const {
    std::string text = "x,y\n";
    for (int i = 0; i < rows; ++i) text += std::to_string(i) + "," + (i < rare ? "c" : i % 3 == 0 ? "a" : "b") + "\n";
    write("a.csv", text);
  }
  DataSet divided(const std::string& how, std::uint64_t seed = 1) const {
    return read(
        R"({"source": {"csv": "a.csv", "x": "x", "y": "y"}, "transform": {"y": [{"classes": ["a", "b", "c"]}]}, )" +
            how + "}",
        with_seed(seed));
  }
  DataOptions with_seed(std::uint64_t seed) const { return {folder(), "", seed}; }
  std::map<float, int> counts(const DataSet& set, const std::string& split) const {
    std::map<float, int> found;
    for (const float y : values(set, split, "y")) ++found[y];
    return found;
  }
  DivisionTest() { inputs = {{"x", Shape{}, DType::f32, false}, {"y", Shape{}, DType::f32, true}}; }
};

TEST_F(DivisionTest, StratifiedPartsHaveTheirShareOfEachClass) {
  for (const int rows : {30, 100, 101, 997}) {
    write_rows(rows, rows / 10);
    const DataSet set = divided(R"("split": [0.6, 0.2, 0.2], "stratify": "y")");
    const DataSet plain = divided(R"("split": [0.6, 0.2, 0.2])");
    std::map<float, int> total;
    std::set<float> seen;
    for (const Split& split : set.splits) {
      for (const auto& [label, count] : counts(set, split.name)) total[label] += count;
      for (const float x : values(set, split.name, "x")) EXPECT_TRUE(seen.insert(x).second);
      EXPECT_EQ(split.samples(), plain.find(split.name)->samples());
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(rows));
    for (const Split& split : set.splits) {
      const double share = static_cast<double>(split.samples()) / rows;
      for (const auto& [label, count] : total)
        EXPECT_NEAR(counts(set, split.name)[label], share * count, 1.5) << split.name << " of " << rows;
    }
  }
}

// The rows of the source in the order of a column of dates: sizes as ever, and equal dates in their order.
TEST_F(DivisionTest, SplitsByTime) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  std::string text = "x,sold,year\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("{},{:02}.03.2024 12:00,{}\n", i, 1 + i * 7 % 20 / 2, 2000 + (i + 10) % 20);
  write("a.csv", text);
  const auto block = [](const std::string& more, const std::string& of = "") {
    return R"({"source": {"csv": "a.csv", "x": "x")" + of + R"(}, "split": [0.5, 0.25, 0.25], )" + more + "}";
  };
  const DataSet set = read(block(R"("split_by": "sold")"), with_seed(7));
  using Floats = std::vector<float>;
  EXPECT_EQ(values(set, "train", "x"), (Floats{0, 3, 6, 9, 12, 15, 1, 18, 4, 7}));
  EXPECT_EQ(values(set, "validation", "x"), (Floats{10, 13, 16, 19, 2}));
  EXPECT_EQ(values(set, "test", "x"), (Floats{5, 8, 11, 14, 17}));
  EXPECT_EQ(set.find("train")->first + " " + set.find("train")->last, "01.03.2024 05.03.2024");
  EXPECT_EQ(set.find("test")->first + " " + set.find("test")->last, "08.03.2024 10.03.2024");
  EXPECT_NE(set.provenance.find(R"("by": "sold")"), std::string::npos) << set.provenance;
  const DataSet ranged = read(block(R"("split_by": "year")", R"(, "range": [4, 12])"));
  EXPECT_EQ(values(ranged, "train", "x"), (Floats{10, 11, 4, 5}));
  EXPECT_EQ(ranged.find("test")->last, "2019");
  EXPECT_NE(errors(block(R"("split_by": "sol")")).find("there is no column 'sol'; the source has x, sold, year"),
            std::string::npos);
  for (const char* other : {R"("stratify": "x")", R"("split_seed": 3)"})
    EXPECT_NE(errors(block(std::string(R"("split_by": "sold", )") + other)).find("cannot be combined with 'split_by'"),
              std::string::npos);
  EXPECT_NE(errors(R"({"train": {"csv": "a.csv", "x": "x"}, "split_by": "sold"})").find("'split_by' needs 'split'"),
            std::string::npos);
  write("a.csv", "x,sold,year\n1,2024-01-01,\n2,,3\n3,2024-01-03,4\n");
  EXPECT_NE(errors(block(R"("split_by": "sold")")).find("row 1, column 'sold': the value is missing"),
            std::string::npos);
  EXPECT_NE(errors(block(R"("split_by": "year")", R"(, "missing": "mean")")).find("'year' is missing in row 0"),
            std::string::npos);
}

TEST_F(DivisionTest, FoldsAreDisjointAndComplete) {
  for (const int rows : {10, 53, 200}) {
    write_rows(rows);
    for (const std::string more : {"", R"(, "stratify": "y")"}) {
      std::set<float> tested;
      for (int fold = 0; fold < 5; ++fold) {
        const DataSet set = divided(R"("folds": {"k": 5, "fold": )" + std::to_string(fold) + more + "}");
        EXPECT_EQ(set.find("validation"), nullptr);
        const Floats test = values(set, "test", "x"), train = values(set, "train", "x");
        EXPECT_EQ(test.size() + train.size(), static_cast<std::size_t>(rows));
        EXPECT_NEAR(static_cast<double>(test.size()), rows / 5.0, 1);
        for (const float x : test) {
          EXPECT_TRUE(tested.insert(x).second);
          EXPECT_EQ(std::count(train.begin(), train.end(), x), 0);
        }
        if (!more.empty()) {
          EXPECT_NEAR(counts(set, "test")[0], static_cast<double>(test.size()) / 3, 1.5);
        }
      }
      EXPECT_EQ(tested.size(), static_cast<std::size_t>(rows));
    }
  }
}

TEST_F(DivisionTest, TheSplitHasASeedOfItsOwn) {
  write_rows(50);
  const auto train = [&](const std::string& seed, std::uint64_t own) {
    return values(divided(R"("split": [0.5, 0, 0.5])" + seed, own), "train", "x");
  };
  EXPECT_EQ(train(R"(, "split_seed": 7)", 1), train(R"(, "split_seed": 7)", 2));
  EXPECT_EQ(train(R"(, "split_seed": 7)", 1), train("", 7));
  EXPECT_NE(train("", 1), train("", 2));
}

TEST_F(DivisionTest, Errors) {
  write_rows(20);
  const auto wrong = [&](const std::string& how) {
    return errors(
        R"({"source": {"csv": "a.csv", "x": "x", "y": "y"}, "transform": {"y": [{"classes": ["a", "b", "c"]}]}, )" +
        how + "}");
  };
  const std::pair<const char*, const char*> all[] = {
      {R"("folds": {"k": 5, "fold": 5})", "from 0 to 4"},
      {R"("folds": {"k": 1, "fold": 0})", "/folds/k: "},
      {R"("folds": {"k": 5})", "missing key 'fold'"},
      {R"("folds": {"k": 21, "fold": 0})", "test would get none of the 20 rows"},
      {R"("folds": {"k": 5, "fold": 0}, "split": [1, 0, 0])", "'folds' cannot be combined with 'split'"},
      {R"("split": [1, 0, 0], "stratify": "z")", "no input and no column 'z'"},
      {R"("split": [1, 0, 0], "stratify": "x")", "'x' has 20 values in 20 rows"},
      {R"("stratify": "y")", "'stratify' needs 'split' or 'folds'"},
      {R"("split_seed": 1)", "'split_seed' needs 'split' or 'folds'"},
      {R"("split": [1, 0, 0], "split_seed": -1)", "split_seed"}};
  for (const auto& [how, says] : all) EXPECT_NE(wrong(how).find(says), std::string::npos) << how << "\n" << wrong(how);
  // A wrong column is reported once.
  const std::string column =
      errors(R"({"source": {"csv": "a.csv", "x": "x", "y": "z"}, "split": [1, 0, 0], "stratify": "y"})");
  EXPECT_NE(column.find("no column 'z'"), std::string::npos) << column;
  EXPECT_EQ(column.find("single column"), std::string::npos) << column;
}

// ---- with weights

class DividedTraining : public PredictionTest {
 protected:
  void write_data(const std::string& how) const {
    write_model(R"({"source": {"csv": "a.csv", "x": ["a", "b"], "y": "c"}, "stratify": "c", )" + how + "}");
  }
  DividedTraining() {
    TextRows rows;
    for (int i = 0; i < 40; ++i) rows.push_back({std::to_string(i), std::to_string(i % 7), std::to_string(i % 2)});
    write_csv("a.csv", {"a", "b", "c"}, rows);
  }
};

TEST_F(DividedTraining, WeightsKeepTheSplitWhateverTheSeed) {
  write_data(R"("split": [0.6, 0.2, 0.2], "split_seed": 5)");
  train();
  const DataSet same = evaluated({{"train.seed", "99"}});
  EXPECT_EQ(same.split_mismatch, "");
  const std::string other = evaluated({{"data.split_seed", "6"}}).split_mismatch;
  EXPECT_TRUE(has(other, "the split of seed 5, here it is that of seed 6")) << other;
  const std::string shares = evaluated({{"data.split", "[0.5, 0.25, 0.25]"}}).split_mismatch;
  EXPECT_TRUE(has(shares, "[0.6, 0.2, 0.2] stratified by 'c', here it is the split [0.5, 0.25, 0.25]")) << shares;
}

TEST_F(DividedTraining, WeightsKeepTheFold) {
  write_data(R"("folds": {"k": 4, "fold": 1})");
  train();
  EXPECT_EQ(evaluated({{"train.seed", "99"}}).split_mismatch, "");
  const std::string other = evaluated({{"data.folds.fold", "2"}}).split_mismatch;
  EXPECT_TRUE(has(other, "trained with fold 1 of 4 stratified by 'c', here it is fold 2 of 4")) << other;
}

}  // namespace
}  // namespace graphrun
