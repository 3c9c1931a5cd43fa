// `show --values`: a model's values and gradients over a batch; `verify` from trained weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Values : public Cli {
 protected:
  Json shown(std::vector<std::string> words) {
    words.insert(words.begin(), {"show", model_, "--values", "--json"});
    const Outcome outcome = graphrun(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
  std::string trained() {
    const std::string weights = (folder_ / "w.npz").string();
    EXPECT_EQ(graphrun({model_, "--quiet", "--save-weights", weights}).code, 0);
    return weights;
  }
};

const Json& array_named(const Json& shown, const std::string& name) {
  for (const Json& array : shown["arrays"]) {
    if (array["name"] == name) return array;
  }
  ADD_FAILURE() << name << " is not in " << shown.dump();
  return shown;
}

TEST_F(Values, HaveTheirStatisticsOverABatch) {
  const Json all = shown({});
  EXPECT_EQ(keys(all), (std::vector<std::string>{"model", "executor", "weights", "split", "rows", "of", "arrays"}));
  EXPECT_EQ(all["split"], "train");
  EXPECT_EQ(all["rows"], 4);
  const Json& x = array_named(all, "x");
  EXPECT_EQ(keys(x), (std::vector<std::string>{"kind", "name", "dtype", "shape", "elements", "finite", "min", "max",
                                               "mean", "std", "norm", "zeros"}));
  EXPECT_EQ(x["kind"], "input");
  EXPECT_EQ(x["max"], 3);
  EXPECT_EQ(x["mean"], 1.5);
  EXPECT_EQ(x["zeros"], 1);
  EXPECT_EQ(array_named(all, "p.W")["kind"], "parameter");
  EXPECT_EQ(array_named(shown({"--split", "test"}), "x")["min"], 4);
  EXPECT_EQ(array_named(shown({"--batch=2"}), "x")["max"], 1);
}

// d mean((w x + b - y)^2) / dw = mean(2 (p - y) x), and by x_i 2 (p_i - y_i) w / 4.
TEST_F(Values, GradientsAreThoseOfTheWeightsThatWereGiven) {
  const std::string weights = trained();
  const Json all = shown({"p", "p.W", "p.W:gradient", "x:gradient", "--weights", weights});
  EXPECT_EQ(all["weights"], weights);
  EXPECT_EQ(all["of"], "loss");
  const double w = all["arrays"][1]["values"][0];
  double expected = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto x = static_cast<double>(i);
    const double off = all["arrays"][0]["values"][i].get<double>() - (2 * x + 1);
    expected += 2 * off * x / 4;
    EXPECT_NEAR(all["arrays"][3]["values"][i], 2 * off * w / 4, 1e-5);
  }
  EXPECT_NEAR(all["arrays"][2]["values"][0], expected, 1e-5);
  EXPECT_NE(shown({"p.W:gradient"})["arrays"][0]["values"], all["arrays"][2]["values"]) << "of initial weights";
  const Json of_p = shown({"x:gradient", "--of=p", "--weights", weights});
  for (const Json& each : of_p["arrays"][0]["values"]) EXPECT_FLOAT_EQ(each.get<float>(), static_cast<float>(w));
}

TEST_F(Values, AreShownAndSaved) {
  const Outcome text = graphrun({"show", model_, "--values", "--gradients", "--executor=ref"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"line on ref, the first 4 rows of train, initial weights", "p.W:gradient", "x:gradient",
                           "gradients of loss", "25.0 %"})
    EXPECT_TRUE(has(text.out, part)) << part << " is not in\n" << text.out;
  EXPECT_FALSE(has(graphrun({"show", model_, "--values"}).out, "gradient"));
  const std::string csv = (folder_ / "x.csv").string();
  EXPECT_EQ(graphrun({"show", model_, "x", "--values", "--save-array", csv}).code, 0);
  std::ifstream stream(csv);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "0\n1\n2\n3\n");
}

TEST_F(Values, OfAMatrixAreDrawn) {
  Json model = Json::parse(kLine);
  model["graph"][0]["name"] = "h";
  model["graph"][0]["units"] = 8;
  model["graph"].insert(model["graph"].begin() + 1,
                        Json::parse(R"({"name": "p", "op": "dense", "inputs": ["h"], "units": 1})"));
  const std::string path = file("wide.json", model.dump());
  const auto shown_in = [&](const char* locale) {
    const Outcome outcome =
        graphrun({"show", path, "h", "--values"}, {.environment = {std::string("LC_ALL=") + locale}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string blocks = shown_in("C.UTF-8"), ascii = shown_in("C");
  const auto is_ascii = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  };
  EXPECT_TRUE(is_ascii(ascii)) << ascii;
  EXPECT_FALSE(is_ascii(blocks)) << blocks;
  // The map of 4 rows is between the histogram of 12 bins and the 4 rows of numbers.
  EXPECT_GE(lines(ascii).size(), 5u + 12 + 4 + 4) << ascii;
}

TEST_F(Values, ThatAreNotFiniteAreCounted) {
  const std::string path = file("huge.json", [] {
    Json model = Json::parse(kLine);
    model["graph"].insert(model["graph"].begin() + 1, "q = exp(x * 1e30)");
    return model.dump();
  }());
  const Outcome text = graphrun({"show", path, "--values"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "q: 3 of 4 numbers are not finite")) << text.out;
}

TEST_F(Values, ErrorsAreRejected) {
  expect_rejected(graphrun({"show", model_, "--values", "p.V"}), {"no value 'p.V'", "did you mean 'p.W'?"});
  expect_rejected(graphrun({"show", model_, "--values", "--split=tests"}), {"no split 'tests'", "train, test"});
  expect_rejected(graphrun({"show", model_, "--values", "--of=q"}), {"q"});
  expect_rejected(graphrun({"show", model_, "--of=p"}), {"--of goes with --values"});
  expect_rejected(graphrun({"show", model_, "--values", "--dot"}), {"no other form"});
  expect_rejected(graphrun({"show", model_, "--values", "--save-array", "x.npy"}), {"one array"});
  expect_rejected(graphrun({"show", model_, "--values", "x", "--save-array", model_}), {"is the model file"});
  expect_rejected(graphrun({"show", model_, "--values", "--weights", file("odd.npz", "no")}), {"odd.npz"});
  expect_rejected(graphrun({"show", model_, "--weights", "w.npz"}), {"goes with --values"});
  expect_rejected(graphrun({"show", model_, "--settings", "--dot"}), {"no other form"});
  expect_rejected(graphrun({"show", model_, "more"}), {"one model file at a time"});
}

TEST_F(Values, VerifyStartsFromTrainedWeights) {
  const std::string weights = trained();
  const Json values = shown({"p.W", "loss", "--weights", weights});
  const auto dumped = [&](const std::string& name) {
    const Outcome outcome = graphrun({"verify", model_, "--weights", weights, "--json", "--dump", name});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["values"];
  };
  EXPECT_EQ(dumped("p.W")[0].get<float>(), values["arrays"][0]["values"][0].get<float>());
  EXPECT_FLOAT_EQ(dumped("loss")[0].get<float>(), values["arrays"][1]["values"][0].get<float>());
  const Outcome verified = graphrun({"verify", model_, "--weights", weights});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_TRUE(has(verified.out, "verified: ")) << verified.out;
}

TEST_F(Values, SettingsAreWhatSetTakes) {
  const Outcome text = graphrun({"show", model_, "--settings"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* line :
       {"graph.p.units=1\n", "train.epochs=20\n", "train.optimizer=sgd  (sgd momentum", "train.optimizer.sgd.lr=0.05\n",
        "train.shuffle=false  (true false)\n", "train.clip_norm=\n"})
    EXPECT_TRUE(has(text.out, line)) << line << " is not in\n" << text.out;
  const Json json = Json::parse(graphrun({"show", model_, "--settings", "--json"}).out);
  // Each may be set to what it is, and to each word.
  for (const Json& setting : json) {
    std::vector<std::string> values = setting["choices"];
    if (setting["value"] != "") values.push_back(setting["value"]);
    for (const std::string& value : values) {
      const std::string flag = setting["path"].get<std::string>() + "=" + value;
      const Outcome outcome = graphrun({"show", model_, "--json", "--set", flag});
      EXPECT_EQ(outcome.code, 0) << flag << "\n" << outcome.err;
    }
  }
}

}  // namespace
}  // namespace graphrun::testing
