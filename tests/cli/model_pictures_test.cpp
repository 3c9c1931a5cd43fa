// `graphrun plot model.json --weights ...`: plots by model, their content, and rejected requests.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "fixture.h"

namespace graphrun::testing {
namespace {

// One of the three rows of the test split cannot be right: its picture is that of the other class.
constexpr const char* kImages = R"json({
  "format": 1,
  "name": "images",
  "data": {
    "train": {"inline": {"x": [[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9], [9,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]],
                         "y": [[1, 0], [0, 1]]}},
    "test": {"inline": {"x": [[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9], [9,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],
                              [9,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]],
                        "y": [[1, 0], [0, 1], [1, 0]]}}
  },
  "inputs": {"x": ["batch", 16], "y": ["batch", 2]},
  "graph": [
    {"name": "logits", "op": "dense", "inputs": ["x"], "units": 2},
    "loss = mean(softmax_cross_entropy(logits, y))"
  ],
  "outputs": {"logits": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 50, "seed": 1}
})json";

constexpr const char* kPlane = R"json({
  "format": 1,
  "name": "plane",
  "data": {"train": {"grid": {"u": [-1, 1, 5], "v": [0, 8, 9]}, "x": ["u", "v"], "y": "u + v"},
           "transform": {"x": ["standardize"], "y": ["standardize"]}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean((p - y) ^ 2)"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 200, "batch": "all", "seed": 1}
})json";

class ModelPictures : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& from) {
    std::ifstream stream(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string trained(const std::string& model) {
    const std::string weights = model + ".npz";
    const Outcome outcome = graphrun({model, "--quiet", "--save-weights", weights});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return weights;
  }
  static std::string drawn(std::vector<std::string> words) {
    words.insert(words.begin(), "plot");
    const Outcome outcome = graphrun(words, {.environment = {"LC_ALL=C"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(ModelPictures, OfClasses) {
  const std::string model = file("images.json", kImages), weights = trained(model);
  const std::string confusion = drawn({model, "--weights", weights});
  EXPECT_EQ(confusion, "y on test: 66.67 % of 3 correct\nactual\n  0 1\n0 1 1\n1 0 1\n  predicted\n");
  EXPECT_EQ(drawn({model, "--weights", weights, "--what=confusion", "--split=train"}),
            "y on train: 100 % of 2 correct\nactual\n  0 1\n0 1 0\n1 0 1\n  predicted\n");
  EXPECT_EQ(drawn({model, "--weights", weights, "--what=misclassified"}),
            "test: 1 of 3 misclassified\n0 as 1\n@@\n\n\n\n");
  EXPECT_EQ(drawn({model, "--weights", weights, "--what=misclassified", "--split=train"}),
            "train: 0 of 2 misclassified\n");
}

// The probabilities are those of x: 0.1 and 0.4 of rows that are not positive, 0.35 and 0.8 of rows that are.
constexpr const char* kSigmoid = R"json({
  "format": 1,
  "name": "sigmoid",
  "data": {"train": {"inline": {"x": [[-2.1972246], [-0.4054651], [-0.6190392], [1.3862944]], "y": [[0], [0], [1], [1]]}}},
  "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
  "parameters": {"w": {"shape": [], "init": 1}},
  "graph": ["z = x * w", "loss = mean(sigmoid_cross_entropy(z, y))"],
  "outputs": {"z": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 0}
})json";

TEST_F(ModelPictures, OfThresholds) {
  const std::string model = file("sigmoid.json", kSigmoid), weights = trained(model);
  const auto plot = [&](const char* what) { return drawn({model, "--weights", weights, "--what", what}); };
  const std::string roc = plot("roc");
  for (const char* part : {"y on train: ROC curve\ntrue positive rate", "false positive rate", "a 1 (AUC 0.7500)",
                           "threshold 0.5", "guessing"})
    EXPECT_TRUE(has(roc, part)) << part << "\n" << roc;
  EXPECT_TRUE(has(plot("pr"), "1 (average precision 0.8333)"));
  EXPECT_TRUE(has(plot("calibration"), "fraction of positive rows"));
  for (const char* what : {"roc", "pr", "calibration"}) {
    for (const char* name : {"a.svg", "a.png"}) {
      EXPECT_EQ(drawn({model, "--weights", weights, "--what", what, "-o", path(name)}), "");
      EXPECT_GT(read(path(name)).size(), 1000u);
    }
  }
  EXPECT_EQ(graphrun({"eval", model, "--weights", weights, "--report", path("page.html")}).code, 0);
  for (const char* part : {"ROC curve", "precision-recall curve", "calibration"})
    EXPECT_TRUE(has(read(path("page.html")), part)) << part;
  // The second class of images.json, as one of two; rows of a single class have no curve.
  const std::string images = file("images.json", kImages), others = trained(images);
  EXPECT_TRUE(has(drawn({images, "--weights", others, "--what=roc"}), "1 (AUC 0.7500)"));
  std::string single(kSigmoid);
  single.replace(single.find("[[0], [0]"), 9, "[[1], [1]");
  expect_rejected(graphrun({"plot", file("single.json", single), "--weights", weights, "--what=roc"}),
                  {"the split 'train' has no ROC curve"});
  expect_rejected(graphrun({"plot", model_, "--weights", trained(model_), "--what=pr"}),
                  {"a regression has no precision-recall curve", "its plots are predicted, residuals"});
}

TEST_F(ModelPictures, OfNumbers) {
  const std::string model = file("plane.json", kPlane), weights = trained(model);
  const std::string surface = drawn({model, "--weights", weights});
  EXPECT_TRUE(has(surface, "plane: surface on the train split\np, predicted")) << surface;
  EXPECT_TRUE(has(surface, "y, actual"));
  for (const std::string& line : lines(surface)) {
    // The prediction equals the target, at least inside the cells.
    EXPECT_TRUE(!line.starts_with("4 ") || has(line, "++")) << surface;
  }
  // In original units: the line of equal values goes from -1 to 9.
  const std::string predicted = drawn({model, "--weights", weights, "--what=predicted"});
  EXPECT_TRUE(has(predicted, "predicted = actual") && has(predicted, "\n8 +")) << predicted;
  const std::string residuals = drawn({model, "--weights", weights, "--what=residuals", "--title=Mine"});
  EXPECT_TRUE(has(residuals, "Mine") && has(residuals, "predicted - actual")) << residuals;
  for (const char* name : {"a.svg", "a.png", "a.txt"}) {
    for (const char* what : {"surface", "surface3d", "predicted", "residuals", "weights", "histogram"}) {
      EXPECT_EQ(drawn({model, "--weights", weights, "--what", what, "-o", path(name)}), "");
      EXPECT_GT(read(path(name)).size(), 10u);
    }
  }
}

// Rows in places of their own are points on the surface, which has the units of the table.
TEST_F(ModelPictures, SurfacesHavePointsAndUnits) {
  file("plane.csv", "u,v,z\n-10,0,-1\n0,30,3\n10,20,3\n-10,60,5\n10,80,9\n");
  std::string text(kPlane);
  const std::string grid = R"("grid": {"u": [-1, 1, 5], "v": [0, 8, 9]}, "x": ["u", "v"], "y": "u + v")";
  text.replace(text.find(grid), grid.size(), R"("csv": "plane.csv", "x": ["u", "v"], "y": "z")");
  const std::string x = R"("x": ["standardize"])";
  text.replace(text.find(x), x.size(), R"("u": ["standardize"], "v": ["standardize"])");
  const std::string model = file("points.json", text), weights = trained(model);
  for (const char* what : {"surface", "surface3d"}) {
    ASSERT_EQ(drawn({model, "--weights", weights, "--what", what, "-o", path("a.svg")}), "");
    const std::string svg = read(path("a.svg"));
    EXPECT_TRUE(has(svg, ">-10</text>") || has(svg, ">-10, 0</text>")) << svg;
    EXPECT_TRUE(has(svg, ">80</text>") && has(svg, ">u</text>")) << svg;
    std::size_t dots = 0;
    for (std::size_t at = 0; (at = svg.find("stroke-linecap=\"round\"", at)) != std::string::npos; ++at) ++dots;
    EXPECT_EQ(dots, 10u) << what;  // with rims; on both surfaces
  }
}

// Transforms by column and by input standardize the same values.
TEST_F(ModelPictures, AreEqualForTransformsByColumn) {
  file("plane.csv", "u,v,z\n-1,0,-1\n0,3,3\n1,2,3\n-1,6,5\n1,8,9\n");
  std::string by_input(kPlane);
  const std::string grid = R"("grid": {"u": [-1, 1, 5], "v": [0, 8, 9]}, "x": ["u", "v"], "y": "u + v")";
  by_input.replace(by_input.find(grid), grid.size(), R"("csv": "plane.csv", "x": ["u", "v"], "y": "z")");
  std::string by_column = by_input;
  const std::string x = R"("x": ["standardize"])";
  by_column.replace(by_column.find(x), x.size(), R"("u": ["standardize"], "v": ["standardize"])");
  const auto plots = [&](const std::string& name, const std::string& text) {
    const std::string model = file(name, text), weights = trained(model);
    return drawn({model, "--weights", weights, "--what=predicted"}) +
           drawn({model, "--weights", weights, "--what=residuals"});
  };
  EXPECT_EQ(plots("by_column.json", by_column), plots("by_input.json", by_input));
}

// The plane is u + v: its contours are straight, in the surface and in the data alike.
TEST_F(ModelPictures, HaveContours) {
  const std::string model = file("plane.json", kPlane), weights = trained(model);
  ASSERT_EQ(drawn({model, "--weights", weights, "-o", path("a.svg")}), "");
  const std::string svg = read(path("a.svg"));
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<path class=\"l"); at != std::string::npos; at = svg.find("<path class=\"l", at + 1))
    ++lines;
  EXPECT_GE(lines, 12u);
  // No surface: images.json has more than two inputs, and class indices have no order.
  std::string classes(kPlane);
  const auto replace = [&](const std::string& one, const std::string& other) {
    ASSERT_TRUE(has(classes, one));
    classes.replace(classes.find(one), one.size(), other);
  };
  replace("\"y\": \"u + v\"", "\"y\": \"v > 4\"");
  replace(", \"y\": [\"standardize\"]", ", \"y\": [{\"one_hot\": 2}]");
  replace("\"y\": [\"batch\", 1]", "\"y\": [\"batch\", 2]");
  replace("\"units\": 1", "\"units\": 2");
  replace("mean((p - y) ^ 2)", "mean(softmax_cross_entropy(p, y))");
  const std::string other = file("classes.json", classes), learnt = trained(other);
  ASSERT_EQ(drawn({other, "--weights", learnt, "--what=surface", "-o", path("b.svg")}), "");
  EXPECT_FALSE(has(read(path("b.svg")), "<path class=\"l"));
}

TEST_F(ModelPictures, OfWeights) {
  const std::string weights = trained(model_);
  EXPECT_TRUE(has(drawn({model_, "--weights", weights, "--what=weights"}), "p.W (1, 1)\n"));
  EXPECT_TRUE(has(drawn({model_, "--weights", weights, "--what=weights", "--array=p.b"}), "p.b (1)\n"));
  const std::string all = drawn({model_, "--weights", weights, "--what=histogram"});
  EXPECT_TRUE(has(all, "p.W (1, 1)") && has(all, "% of its elements")) << all;  // the only matrix
  const std::string one = drawn({model_, "--weights", weights, "--what=histogram", "--array=p.b"});
  EXPECT_TRUE(has(one, "p.b (1)") && !has(one, "p.W")) << one;
}

TEST_F(ModelPictures, OfARun) {
  ASSERT_EQ(graphrun({model_, "--quiet", "--run-dir", path("runs")}).code, 0);
  EXPECT_TRUE(has(drawn({path("runs/0001")}), "epoch"));
  EXPECT_TRUE(has(drawn({path("runs/0001"), "--what=predicted"}), "test split: predicted vs. actual"));
}

TEST_F(ModelPictures, Errors) {
  const std::string weights = trained(model_), images = file("images.json", kImages), others = trained(images);
  const auto rejected = [&](std::vector<std::string> words, const std::vector<std::string>& parts) {
    words.insert(words.begin(), "plot");
    expect_rejected(graphrun(words), parts);
  };
  rejected({model_}, {"need its weights"});
  rejected({weights}, {"is a file of weights", "--weights"});
  rejected({model_, model_, "--weights", weights}, {"one model at a time"});
  rejected({model_, "--weights", weights, "--what=residual"}, {"no plot 'residual'", "did you mean residuals?"});
  rejected({model_, "--weights", weights, "--split=tst"}, {"no split 'tst'", "train, test"});
  rejected({model_, "--weights", weights, "--what=surface"}, {"two numbers per row", "has 1"});
  rejected({model_, "--weights", weights, "--what=confusion"}, {"no confusion matrix"});
  rejected({model_, "--weights", weights, "--what=misclassified"}, {"no image input"});
  rejected({model_, "--weights", weights, "--what=weights", "--array=p.w"},
           {"no parameter 'p.w'", "did you mean p.W?"});
  rejected({model_, "--weights", weights, "--what=histogram", "--array=p.w"},
           {"no parameter 'p.w'", "did you mean p.W?"});
  rejected({model_, "--weights", weights, "--log-scale=y"}, {"go with logs"});
  rejected({model_, "--weights", weights, "-o", weights + ".svg", "--what=weights", "--array=q"}, {"no parameter"});
  rejected({images, "--weights", others, "--what=predicted"}, {"no numeric output"});
  std::filesystem::create_symlink(weights, path("link.svg"));
  rejected({model_, "--weights", weights, "-o", path("link.svg")}, {"is a file that is read"});
}

}  // namespace
}  // namespace graphrun::testing
