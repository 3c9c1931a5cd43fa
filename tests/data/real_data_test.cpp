// The real files: those of the repository, and others where they are at hand: GRAPHRUN_TEST_DATA names their folder.
#include <algorithm>
#include <cmath>

#include "data/formats/npy.h"
#include "data_fixture.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

class RealData : public DataTest {
 protected:
  void SetUp() override {
    const char* environment = std::getenv("GRAPHRUN_TEST_DATA");
    options.model_dir = source_folder() + "/models";
    options.data_dir = environment ? environment : source_folder() + "/../shared/data";
  }
  bool has(const std::string& name) const {
    return std::filesystem::exists(options.model_dir + "/" + name) ||
           std::filesystem::exists(options.data_dir + "/" + name);
  }

  DataOptions options;
};

#define NEEDS(name) \
  if (!has(name)) GTEST_SKIP() << name << " is not there; set GRAPHRUN_TEST_DATA to the folder that has it"

TEST_F(RealData, RealEstate) {
  inputs[0].sample = Shape{6};
  const DataSet set = read(R"({"source": {"json": "data/realestate.json"},
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

TEST_F(RealData, Spam) {
  inputs[0].sample = Shape{19};
  const DataSet set = read(R"({"source": {"json": "data/spam.json"}})", options);
  EXPECT_EQ(set.find("train")->samples(), 3530);
  EXPECT_EQ(set.find("test")->samples(), 391);
}

TEST_F(RealData, Digits) {
  inputs = {{"x", Shape{64}, DType::f32, false}, {"y", Shape{10}, DType::f32, true}};
  const DataSet set = read(R"({
      "train": {"idx": {"x": "data/digits-images-idx3-ubyte.gz", "y": "data/digits-labels-idx1-ubyte.gz"}, "rows": 1797},
      "transform": {"x": ["flatten"], "y": [{"one_hot": 10}]}})",
                           options);
  const auto x = column(set, "train", "x").elements<float>();
  const auto y = column(set, "train", "y").elements<float>();
  const std::vector<float> top = {0, 0, 5, 13, 9, 1, 0, 0};  // first row of the first image, a zero
  EXPECT_TRUE(std::equal(top.begin(), top.end(), x.begin()));
  EXPECT_EQ(*std::max_element(x.begin(), x.end()), 16);
  std::vector<int> counts(10);
  for (std::size_t i = 0; i < y.size(); ++i) counts[i % 10] += y[i] == 1;
  EXPECT_EQ(counts, (std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));  // UCI: optdigits.names
  EXPECT_EQ(y[0], 1);
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
  const std::string start = "/mnist/mlp_init.npz";
  const bool beside = std::filesystem::exists(options.model_dir + start);
  const data::Npz npz((beside ? options.model_dir : options.data_dir) + start);
  EXPECT_EQ(npz.names().size(), 6u);
  const data::Array w1 = npz.read("W1");
  EXPECT_EQ(w1.shape, (Shape{784, 256}));
}

}  // namespace
}  // namespace graphrun
