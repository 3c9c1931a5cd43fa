// Curves over all decision thresholds: points worked out by hand.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/pictures/model_pictures.h"
#include "graphrun/error.h"

namespace graphrun::test {
namespace {

// The output is the input, as the probability of the second class.
Session session_of(const std::string& probabilities, const std::string& classes) {
  LoadOptions options;
  options.text = std::make_shared<std::optional<std::string>>(
      R"J({"format": 1, "data": {"train": {"inline": {"x": )J" + probabilities + R"J(, "y": )J" + classes +
      R"J(}}}, "inputs": {"x": ["batch", 1], "y": ["batch", 1]}, "parameters": {"w": {"shape": [], "init": 1}},
      "graph": ["p = x * w", "z = p * 2", "loss = mean(sigmoid_cross_entropy(z, y))"], "outputs": {"p": "y"},
      "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})J");
  return Session(load_model("curves.json", options));
}

TEST(CurvePicture, HasThePointsOfEveryThreshold) {
  Session session = session_of("[[0.125], [0.375], [0.25], [0.75]]", "[[0], [0], [1], [1]]");
  session.set_thresholds({{"p", {0.375}}});
  const auto drawn = [&](const char* what) {
    return std::get<plot::Figure>(cli::model_picture(session, what, "train")).series;
  };
  using Numbers = std::vector<double>;
  const std::vector<plot::Series> roc = drawn("roc"), pr = drawn("pr"), calibration = drawn("calibration");
  ASSERT_EQ(roc.size(), 3u);
  EXPECT_EQ(roc[0].name, "1 (AUC 0.7500)");
  EXPECT_EQ(roc[0].x, (Numbers{0, 0, 0.5, 0.5, 1}));
  EXPECT_EQ(roc[0].y, (Numbers{0, 0.5, 0.5, 1, 1}));
  EXPECT_EQ(roc[1].name, "threshold 0.375");
  EXPECT_EQ(roc[1].x[1], 0.5);
  EXPECT_EQ(roc[1].y[1], 0.5);
  ASSERT_EQ(pr.size(), 3u);
  EXPECT_EQ(pr[0].x, (Numbers{0, 0.5, 0.5, 1}));
  EXPECT_EQ(pr[0].y, (Numbers{1, 1, 2.0 / 3, 2.0 / 3}));
  EXPECT_EQ(pr[2].y, (Numbers{0.5, 0.5})) << "half of the rows are positive";
  ASSERT_EQ(calibration.size(), 2u);
  EXPECT_EQ(calibration[0].x, (Numbers{0.125, 0.25, 0.375, 0.75}));
  EXPECT_EQ(calibration[0].y, (Numbers{0, 1, 0, 1}));
}

TEST(CurvePicture, MeansTheProbabilitiesOfABin) {
  Session session = session_of("[[0.5], [0.4375], [0.40625], [0.5625]]", "[[0], [1], [0], [1]]");
  const auto figure = std::get<plot::Figure>(cli::model_picture(session, "calibration", "train"));
  EXPECT_EQ(figure.series[0].x, (std::vector<double>{(0.5 + 0.4375 + 0.40625) / 3, 0.5625}));
  EXPECT_EQ(figure.series[0].y, (std::vector<double>{1.0 / 3, 1})) << "1/2 belongs to the bin below";
}

TEST(CurvePicture, NeedsProbabilitiesForCalibration) {
  Session session = session_of("[[1.5], [0.25]]", "[[1], [0]]");
  EXPECT_NO_THROW(cli::model_picture(session, "roc", "train"));
  EXPECT_THROW(cli::model_picture(session, "calibration", "train"), Error);
}

}  // namespace
}  // namespace graphrun::test
