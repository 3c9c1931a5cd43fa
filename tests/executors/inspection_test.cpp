// Values and gradients of a model over a batch, beside a training step's and finite differences.
#include "graphrun/inspection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/model.h"
#include "graphrun/verify.h"
#include "support/temporary_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using test::classifier;
using test::to_doubles;
using test::verified_model;
using Kind = Inspection::Kind;

InspectionOptions with_gradients(std::string executor = "cpu", std::string of = {}) {
  InspectionOptions options;
  options.executor = std::move(executor);
  options.gradients = true;
  options.of = std::move(of);
  return options;
}

double scalar(const Inspection& inspection, std::string_view name) {
  return to_doubles(inspection.read(name))[0];
}

double summed(const HostTensor& tensor) {
  double sum = 0;
  for (const double x : to_doubles(tensor)) sum += x;
  return sum;
}

void expect_near(const HostTensor& got, const HostTensor& expected, double tolerance, const std::string& name) {
  const std::vector<double> a = to_doubles(got), b = to_doubles(expected);
  ASSERT_EQ(got.shape(), expected.shape()) << name;
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << name << " " << i;
}

TEST(Inspection, ListsInputsParametersValuesAndGradientsOfWhatTheLossDependsOn) {
  const Inspection inspection(verified_model(), with_gradients());
  EXPECT_EQ(inspection.split(), "train");
  EXPECT_EQ(inspection.rows(), 3);
  EXPECT_EQ(inspection.of(), "loss");
  std::vector<std::string> names;
  for (const Inspection::NamedValue& entry : inspection.entries()) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.kind == Kind::gradient, entry.name.ends_with(":gradient")) << entry.name;
    EXPECT_EQ(inspection.read(entry.name).shape(), entry.type.shape) << entry.name;
  }
  EXPECT_EQ((std::vector<std::string>{names.begin(), names.begin() + 7}),
            (std::vector<std::string>{"x", "y", "W", "V", "c", "wide", "z"}));
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  for (const char* name : {"W:gradient", "x:gradient", "y:gradient", "h:gradient", "mixed", "above"})
    EXPECT_TRUE(has(name)) << name;
  EXPECT_FALSE(has("above:gradient")) << "a bool has none";
  EXPECT_FALSE(has("loss:gradient"));
  EXPECT_EQ(Inspection(verified_model()).of(), "");
}

// The first training step sees the same rows, unshuffled, and the same parameters.
TEST(Inspection, GradientsAreThoseOfATrainingStep) {
  const Inspection inspection(verified_model(), with_gradients());
  for (const char* name : {"W", "V", "c", "wide"}) {
    const std::string gradient = std::string(name) + ":gradient";
    ValueOptions plain;
    plain.passes = false;
    expect_near(inspection.read(gradient), value_after(verified_model(), "train/" + gradient, plain), 1e-6, gradient);
  }
  for (const char* name : {"z", "h", "mixed", "p", "loss"})
    expect_near(inspection.read(name), value_after(verified_model(), name), 1e-6, name);
}

TEST(Inspection, GradientsOfInputsAndValuesAreFiniteDifferences) {
  for (const char* executor : {"ref", "cpu"}) {
    SCOPED_TRACE(executor);
    const std::vector<double> gradient =
        to_doubles(Inspection(verified_model(), with_gradients(executor)).read("x:gradient"));
    const auto loss_with = [&](std::size_t element, float change) {
      Model model = verified_model();
      model.data.splits[0].columns[0].second.elements<float>()[element] += change;
      return scalar(Inspection(std::move(model), with_gradients(executor)), "loss");
    };
    constexpr float kStep = 1e-2F;
    for (const std::size_t element : {std::size_t{0}, std::size_t{5}, std::size_t{11}})
      EXPECT_NEAR(gradient[element], (loss_with(element, kStep) - loss_with(element, -kStep)) / (2 * kStep), 2e-3)
          << element;
  }
}

TEST(Inspection, GradientsMayBeOfAnyExpression) {
  // d sum(h) / da = 1 - h^2, and d sum(z) / dx is the sum of W's rows.
  const Inspection of_h(verified_model(), with_gradients("cpu", "h"));
  const std::vector<double> h = to_doubles(of_h.read("h")), gradient = to_doubles(of_h.read("a:gradient"));
  for (std::size_t i = 0; i < h.size(); ++i) EXPECT_NEAR(gradient[i], 1 - h[i] * h[i], 1e-5);
  const Inspection of_column(verified_model(), with_gradients("cpu", "slice(z, axis=1, start=2, stop=3)"));
  const std::vector<double> w = to_doubles(of_column.read("W")), x = to_doubles(of_column.read("x:gradient"));
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(x[i]), static_cast<float>(w[i % 4 * 4 + 2]));
  EXPECT_NEAR(summed(of_column.read("z:gradient")), 3, 1e-6);
}

// Ops without a gradient, dropout, integers and views; a split that is smaller than the batch.
TEST(Inspection, AgreesWithTheReferenceOnEveryValue) {
  for (const bool small : {true, false}) {
    InspectionOptions options = with_gradients("ref");
    if (small) options.split = "test";
    const Inspection reference(small ? verified_model() : classifier(), options);
    options.executor = "cpu";
    const Inspection inspection(small ? verified_model() : classifier(), options);
    ASSERT_EQ(inspection.entries().size(), reference.entries().size());
    for (const Inspection::NamedValue& entry : reference.entries())
      expect_near(inspection.read(entry.name), reference.read(entry.name), 1e-4, entry.name);
  }
  InspectionOptions options;
  options.split = "test";
  Model model = verified_model();
  model.data.splits[1].columns = {{"x", test::random_tensor(DType::f32, {2, 4}, -1, 1, "x")},
                                  {"y", test::random_tensor(DType::f32, {2, 4}, -1, 1, "y")}};
  EXPECT_EQ(Inspection(std::move(model), options).read("h").shape(), (Shape{2, 4}));
  // Dropout passes on what it gets.
  const Inspection dropped(classifier());
  expect_near(dropped.read("kept"), dropped.read("x"), 0, "kept");
}

// What a batch norm computes beside training: its gradients reach the means of all batches.
TEST(Inspection, ABatchNormHasTheGradientsOfAnEvaluation) {
  const std::string path = test::write_model(R"json({"format": 1, "name": "normed",
  "data": {"train": {"inline": {"x": [[1, 2], [3, -1], [0, 4]], "y": [[0, 0], [1, 0], [0, 1]]}}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 2]},
  "graph": [{"name": "n", "op": "batch_norm", "inputs": ["x"]}, "loss = mean(square(n - y))"],
  "outputs": {"n": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})json");
  const double slope = 1 / std::sqrt(1 + 1e-5);  // of the initial variance
  for (const char* executor : {"ref", "cpu"}) {
    const Inspection of_loss(load_model(path), with_gradients(executor));
    EXPECT_EQ(of_loss.read("n.mean:gradient").shape(), (Shape{2}));
    const Inspection inspection(load_model(path), with_gradients(executor, "sum(n)"));
    for (const double g : to_doubles(inspection.read("x:gradient"))) EXPECT_NEAR(g, slope, 1e-6);
    for (const double g : to_doubles(inspection.read("n.b:gradient"))) EXPECT_NEAR(g, 3, 1e-6);
    for (const double g : to_doubles(inspection.read("n.mean:gradient"))) EXPECT_NEAR(g, -3 * slope, 1e-5);
  }
}

TEST(Inspection, ErrorsAreReportedWithTheNearestName) {
  const auto told = [](const InspectionOptions& options, std::string_view name = {}) {
    try {
      const Inspection inspection(verified_model(), options);
      if (!name.empty()) (void)inspection.read(name);
      return std::string("none");
    } catch (const Error& error) {
      const Diagnostic& first = error.diagnostics()[0];
      return first.code + ": " + first.message + "; " + first.hint;
    }
  };
  InspectionOptions options;
  EXPECT_EQ(told(options, "leakx"), "value.unknown: there is no value 'leakx'; did you mean 'leaky'?");
  options.gradients = true;
  EXPECT_EQ(
      told(options, "above:gradient"),
      "value.unknown: there is no gradient 'above:gradient': loss does not depend on above; or it is not a float");
  options.split = "tests";
  EXPECT_EQ(told(options).substr(0, 14), "split.unknown:");
  options.split.clear();
  options.of = "mixd";
  EXPECT_NE(told(options).find("did you mean 'mixed'?"), std::string::npos) << told(options);
  options.of = "above";
  EXPECT_NE(told(options).find("float"), std::string::npos) << told(options);
}

}  // namespace
}  // namespace graphrun
