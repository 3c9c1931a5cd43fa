#include "data/transforms/transforms.h"

#include <cmath>

#include "data_fixture.h"

namespace graphrun {
namespace {

TEST_F(DataTest, StandardizeIsFittedOnTrainAndUsedAgain) {
  const DataSet set = read(R"({"train": {"inline": {"x": [[1, 10], [3, 50]], "y": [0, 0]}},
                               "test": {"inline": {"x": [[5, 30]], "y": [1]}},
                               "transform": {"x": ["standardize"]}})");
  EXPECT_EQ(values(set, "train", "x"), (Floats{-1, -1, 1, 1}));
  EXPECT_EQ(values(set, "test", "x"), (Floats{3, 0}));
  ASSERT_EQ(set.standardizations.size(), 1u);
  EXPECT_EQ(set.standardizations[0].input, "x");
  EXPECT_EQ(set.standardizations[0].shift, (std::vector<double>{2, 30}));
  EXPECT_EQ(set.standardizations[0].scale, (std::vector<double>{1, 20}));  // population standard deviation
}

TEST_F(DataTest, ThePassesAreInDouble) {
  // In float, and in one pass, the variance of these is lost.
  const DataSet set = read(R"({"train": {"inline": {"x": [[1e9, 0], [1000000001, 1]], "y": [0, 0]}},
                               "transform": {"x": ["standardize"]}})");
  EXPECT_EQ(values(set, "train", "x"), (Floats{-1, -1, 1, 1}));
}

TEST_F(DataTest, AConstantColumnIsCentredAndNamed) {
  const DataSet set = read(R"({"train": {"inline": {"x": [[0.1, 1], [0.1, 3], [0.1, 5]], "y": [0, 0, 0]}},
                               "test": {"inline": {"x": [[2.1, 3]], "y": [0]}},
                               "transform": {"x": ["standardize"]}})");
  EXPECT_EQ(values(set, "train", "x")[0], 0.0f);
  EXPECT_EQ(values(set, "test", "x"), (Floats{2, 0}));
  ASSERT_EQ(set.warnings.size(), 1u);
  EXPECT_EQ(set.warnings[0], "input 'x': column 0 is constant in train; it is centred and its scale is 1");
}

TEST_F(DataTest, AConstantColumnOfATableIsNamed) {
  write("a.csv", "age,rooms,y\n1,3,1\n2,3,2\n");
  const DataSet set = read(R"({"train": {"csv": "a.csv", "y": "y"}, "transform": {"x": ["standardize"]}})");
  EXPECT_EQ(
      set.warnings,
      (std::vector<std::string>{"input 'x': column 'rooms' is constant in train; it is centred and its scale is 1"}));
}

TEST_F(DataTest, StepsAreDoneInOrderAndComposeIntoOneRecord) {
  const DataSet set = read(R"({"train": {"inline": {"x": [[0, 0], [0, 0]], "y": [1, 3]}},
                               "transform": {"y": [{"scale": 10}, "standardize", {"scale": 0.5}]}})");
  EXPECT_EQ(values(set, "train", "y"), (Floats{-0.5, 0.5}));
  ASSERT_EQ(set.standardizations.size(), 1u);
  const Standardization& record = set.standardizations[0];
  // stored = (original - shift) / scale
  EXPECT_DOUBLE_EQ(record.shift[0], 2);
  EXPECT_DOUBLE_EQ(record.scale[0], 2);
}

TEST_F(DataTest, FlattenKeepsColumnsAndOneHotMakesThem) {
  inputs = {{"x", Shape{4}, DType::f32, false}, {"y", Shape{3}, DType::f32, true}};
  const DataSet set = read(R"({"train": {"inline": {"x": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "y": [2, 0]}},
                               "transform": {"x": ["flatten", {"scale": 2}], "y": [{"one_hot": 3}]}})");
  EXPECT_EQ(values(set, "train", "x"), (Floats{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{0, 0, 1, 1, 0, 0}));
  ASSERT_EQ(set.standardizations.size(), 1u);
  EXPECT_EQ(set.standardizations[0].scale, (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
}

TEST_F(DataTest, ErrorsOfTransforms) {
  struct Mistake {
    const char* y;
    const char* transform;
    const char* says;
  };
  const Mistake errors_of[] = {
      {"[3, 0]", R"({"y": [{"one_hot": 3}]})", "input 'y' of train: row 0: 3 is not a class from 0 to 2"},
      {"[0, 0.5]", R"({"y": [{"one_hot": 3}]})", "input 'y' of train: row 1: 0.5 is not a class from 0 to 2"},
      {"[[0, 1], [0, 1]]", R"({"y": [{"one_hot": 3}]})", "\"one_hot\" needs one integer a row, got (batch, 2)"},
      {"[0, 1]", R"({"y": [{"one_hot": 0}]})", "/transform/y/0/one_hot: must be from 1 to"},
      {"[0, 1]", R"({"y": [{"one_hot": 2}, "standardize"]})",
       "/transform/y/1: only \"flatten\" can follow \"one_hot\""},
      {"[0, 1]", R"({"y": [{"scale": 0}]})", "/transform/y/0/scale: must not be 0"},
      {"[0, 1]", R"({"y": ["scale"]})", "/transform/y/0: 'scale' takes an argument"},
      {"[0, 1]", R"({"y": [{"flatten": 1}]})", "/transform/y/0: 'flatten' takes no argument"},
      {"[0, 1]", R"({"y": [7]})", "/transform/y/0: expected one of \"standardize\""},
      {"[0, 1]", R"({"y": "flatten"})", "/transform/y: must be an array of transforms"},
      {"[0, 1]", R"(["y"])", "/transform: must be an object"},
  };
  inputs[1].sample = Shape{3};
  for (const Mistake& m : errors_of) {
    const std::string text = errors(std::string(R"({"train": {"inline": {"x": [[1, 2], [3, 4]], "y": )") + m.y +
                                    R"(}}, "transform": )" + m.transform + "}");
    EXPECT_NE(text.find(m.says), std::string::npos) << m.transform << '\n' << text;
  }
  inputs[1].dtype = DType::i32;
  EXPECT_NE(errors(R"({"train": {"inline": {"x": [[1, 2]], "y": [1]}}, "transform": {"y": ["standardize"]}})")
                .find("/transform/y/0: input 'y' is i32; only f32 and f64 can be scaled"),
            std::string::npos);
}

}  // namespace
}  // namespace graphrun
