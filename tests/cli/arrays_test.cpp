// `show --weights`: the arrays of a file, with their statistics, without a model.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Arrays : public Cli {
 protected:
  void SetUp() override {
    ASSERT_EQ(graphrun({model_, "--quiet", "--save-weights", npz_}).code, 0);
    ASSERT_EQ(graphrun({model_, "--quiet", "--save-weights", safe_}).code, 0);
  }
  Json listed(const std::string& file, std::vector<std::string> names = {}) {
    names.insert(names.begin(), {"show", "--weights", file, "--json"});
    const Outcome outcome = graphrun(names);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["arrays"];
  }
  const std::string npz_ = (folder_ / "w.npz").string(), safe_ = (folder_ / "w.safetensors").string();
};

TEST_F(Arrays, HaveTheirStatistics) {
  const Json arrays = listed(npz_);
  ASSERT_GE(arrays.size(), 2u);
  for (const Json& array : arrays) {
    const Json one = listed(npz_, {array["name"]})[0];
    double sum = 0, squares = 0, least = 1e300, most = -1e300;
    for (const Json& value : one["values"]) {
      const double x = value;
      sum += x, squares += x * x, least = std::min(least, x), most = std::max(most, x);
    }
    const auto count = static_cast<double>(one["values"].size());
    EXPECT_EQ(one["values"].size(), array["elements"].get<std::size_t>());
    EXPECT_DOUBLE_EQ(array["min"], least);
    EXPECT_DOUBLE_EQ(array["max"], most);
    EXPECT_NEAR(array["mean"], sum / count, 1e-9);
    EXPECT_NEAR(array["norm"], std::sqrt(squares), 1e-9);
    EXPECT_FALSE(array.contains("values"));
    const Json other = listed(safe_, {array["name"]});
    EXPECT_EQ(other[0], one) << "the same in either format";
  }
}

TEST_F(Arrays, AreShownAndSaved) {
  const Outcome table = graphrun({"show", "--weights", npz_});
  EXPECT_TRUE(has(table.out, " std ")) << table.out;
  const std::string name = listed(npz_)[0]["name"];
  const Outcome one = graphrun({"show", "--weights", npz_, name});
  EXPECT_GT(lines(one.out).size(), 3u);
  const std::string csv = (folder_ / "array.csv").string(), npy = (folder_ / "array.npy").string();
  for (const std::string& path : {csv, npy})
    EXPECT_EQ(graphrun({"show", "--weights", npz_, name, "--save-array", path}).code, 0);
  std::ifstream file(csv);
  double first = 0;
  file >> first;
  EXPECT_NEAR(first, listed(npz_, {name})[0]["values"][0].get<double>(), 1e-6);
  std::ifstream bytes(npy, std::ios::binary);
  char magic[6] = {};
  bytes.read(magic, 6);
  EXPECT_EQ(std::string(magic, 6), "\x93NUMPY");
}

TEST_F(Arrays, ThatAreNotThereAreRejected) {
  const std::string name = listed(npz_)[0]["name"];
  expect_rejected(graphrun({"show", "--weights", npz_, name + "x"}), {"has no array", "did you mean '" + name + "'?"});
  expect_rejected(graphrun({"show", "--weights", npz_, "--save-array", npz_ + ".csv"}), {"goes with one array"});
  expect_rejected(graphrun({"show", "--weights", (folder_ / "none.npz").string()}), {"none.npz"});
  expect_rejected(graphrun({"show", "--weights", file("odd.npz", "PK\x03\x04 and no more")}), {"odd.npz"});
  expect_rejected(graphrun({"show", "--weights", file("empty.npz", "")}), {"empty.npz"});
}

}  // namespace
}  // namespace graphrun::testing
