// Windows over consecutive rows: samples, targets, statistics of rows, and splits before windows.
#include <gtest/gtest.h>

#include "prediction_fixture.h"

namespace graphrun {
namespace {

class WindowsTest : public DataTest {
 protected:
  WindowsTest() {
    inputs = {{"x", Shape{2, 2}, DType::f32, false}, {"y", Shape{1}, DType::f32, true}};
    write("a.csv", "t,a,b\n3,30,3\n1,10,1\n2,20,2\n6,60,6\n5,50,5\n4,40,4\n8,80,8\n7,70,7\n");
  }
  static std::string block(const std::string& window, const std::string& more = "") {
    return R"({"source": {"csv": "a.csv", "x": ["a", "b"], "y": "a", "window": )" + window + "}" + more + "}";
  }
};

TEST_F(WindowsTest, HoldRowsInTheOrderOfTheFile) {
  const DataSet set = read(block(R"({"length": 2, "hop": 2, "target": 1})"));
  EXPECT_EQ(values(set, "train", "x"), (Floats{30, 3, 10, 1, 20, 2, 60, 6, 50, 5, 40, 4}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{20, 50, 80}));
  EXPECT_TRUE(set.find("train")->windows.empty());  // windows that do not overlap share no row
  const DataSet next = read(block(R"({"length": 2, "target": 3})"));
  EXPECT_EQ(values(next, "train", "y"), (Floats{50, 40, 80, 70}));
  ASSERT_EQ(next.find("train")->windows.size(), 1u);
  EXPECT_EQ(next.find("train")->windows.front().rows(4), 5);
}

TEST_F(WindowsTest, StayWithinASplitByTime) {
  const DataSet set =
      read(block(R"({"length": 2})", R"(, "split": [0.5, 0, 0.5], "split_by": "t", "transform": {"x": ["minmax"]})"));
  // Rows 10, 1 to 40, 4 are in train; both rows of a window have its statistics.
  const float third = 1.0f / 3, rest = 2.0f / 3;
  EXPECT_EQ(values(set, "train", "x"), (Floats{0, 0, third, third, third, third, rest, rest}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{30, 40}));
  EXPECT_EQ(values(set, "test", "y"), (Floats{70, 80}));
  ASSERT_EQ(set.standardizations.size(), 1u);
  EXPECT_EQ(set.standardizations.front().shift, (std::vector<double>{10, 1, 10, 1}));
}

}  // namespace
}  // namespace graphrun
