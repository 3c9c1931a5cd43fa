// The real files, where they are at hand: GRAPHRUN_TEST_DATA names their folder.
#include <cmath>

#include "data/npy.h"
#include "data_fixture.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

class RealData : public DataTest {
 protected:
  void SetUp() override {
    const char* environment = std::getenv("GRAPHRUN_TEST_DATA");
    options.data_dir = environment ? environment : source_folder() + "/../shared/data";
  }
  bool has(const std::string& name) const { return std::filesystem::exists(options.data_dir + "/" + name); }

  DataOptions options;
};

#define NEEDS(name) \
  if (!has(name)) GTEST_SKIP() << name << " is not there; set GRAPHRUN_TEST_DATA to the folder that has it"

TEST_F(RealData, RealEstate) {
  NEEDS("realestate.json");
  inputs[0].sample = Shape{6};
  const DataSet set = read(R"({"source": {"json": "realestate.json"},
                               "transform": {"x": ["standardize"], "y": ["standardize"]}})",
                           options);
  EXPECT_EQ(set.find("train")->samples(), 321);
  EXPECT_EQ(set.find("test")->samples(), 93);
  EXPECT_EQ(set.standardizations.size(), 2u);
  EXPECT_TRUE(set.warnings.empty());
  double mean = 0, square = 0;
  for (const float y : values(set, "train", "y")) mean += y, square += double{y} * y;
  EXPECT_NEAR(mean / 321, 0, 1e-6);
  EXPECT_NEAR(square / 321, 1, 1e-6);
}

TEST_F(RealData, SpamAndXor) {
  NEEDS("spam.json");
  NEEDS("xor.json");
  EXPECT_EQ(read(R"({"source": {"json": "xor.json"}})", options).find("train")->samples(), 4);
  inputs[0].sample = Shape{19};
  const DataSet set = read(R"({"source": {"json": "spam.json"}})", options);
  EXPECT_EQ(set.find("train")->samples(), 3530);
  EXPECT_EQ(set.find("test")->samples(), 391);
}

TEST_F(RealData, Mnist) {
  NEEDS("mnist/t10k-images-idx3-ubyte.gz");
  inputs = {{"x", Shape{784}, DType::f32, false}, {"y", Shape{10}, DType::f32, true}};
  const DataSet set = read(R"({
      "train": {"idx": {"x": "mnist/train-images-idx3-ubyte.gz", "y": "mnist/train-labels-idx1-ubyte.gz"},
                "range": [0, 50000], "rows": 50000},
      "validation": {"idx": {"x": "mnist/train-images-idx3-ubyte.gz", "y": "mnist/train-labels-idx1-ubyte.gz"},
                     "range": [50000, 60000]},
      "test": {"idx": {"x": "mnist/t10k-images-idx3-ubyte.gz", "y": "mnist/t10k-labels-idx1-ubyte.gz"}},
      "transform": {"x": [{"scale": 0.00390625}, "flatten"], "y": [{"one_hot": 10}]}})",
                           options);
  EXPECT_EQ(set.find("train")->samples(), 50000);
  EXPECT_EQ(set.find("validation")->samples(), 10000);
  EXPECT_EQ(set.find("test")->samples(), 10000);
  // The first test digit is a 7, the first training digit a 5.
  EXPECT_EQ(column(set, "test", "y").elements<float>()[7], 1.0f);
  EXPECT_EQ(column(set, "train", "y").elements<float>()[5], 1.0f);
  float highest = 0;
  for (const float x : column(set, "test", "x").elements<float>()) highest = std::max(highest, x);
  EXPECT_EQ(highest, 255.0f / 256.0f);
}

TEST_F(RealData, NumpyWeights) {
  NEEDS("mnist/mlp_init.npz");
  const data::Npz npz(options.data_dir + "/mnist/mlp_init.npz");
  EXPECT_EQ(npz.names().size(), 6u);
  const data::Array w1 = npz.read("W1");
  EXPECT_EQ(w1.shape, (Shape{784, 256}));
}

}  // namespace
}  // namespace graphrun
