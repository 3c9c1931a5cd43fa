// Metrics that a model writes itself: over all rows of a split, the same for every batch, or refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

constexpr std::int64_t kMetricRows = 37;
const HostTensor& inputs() {
  static const HostTensor x = random_tensor(DType::f32, {kMetricRows, 3}, -1, 2, "x");
  return x;
}

Model model(const std::string& metric, std::int64_t batch) {
  GraphBuilder graph(batch);
  graph.input("x", {kBatch, 3});
  graph.parameter("w", {3, 1}, Init::constant(0.5));
  for (const char* text :
       {"a = slice(x, start=0, stop=1)", "b = slice(x, start=1, stop=2)", "p = x @ w", "loss = mean(square(p - a))"}) {
    graph.expression(text);
  }
  const Value value = graph.expression("m = " + metric);
  Model built(std::move(graph));
  built.outputs = {{built.graph.find("p"), "p", ""}};
  built.train.minimize = built.graph.find("loss");
  built.train.metrics = {{"m", value}};
  Split split;
  split.name = "train";
  split.columns.emplace_back("x", inputs());
  built.data.splits.push_back(std::move(split));
  return built;
}

// Sums over all rows, in double.
double sum(const std::function<double(double a, double b, double p)>& of) {
  double total = 0;
  const std::span<const float> x = inputs().elements<float>();
  for (std::size_t i = 0; i < kMetricRows; ++i) {
    const double a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
    total += of(a, b, (a + b + c) / 2);
  }
  return total;
}
double mean(const std::function<double(double a, double b, double p)>& of) {
  return sum(of) / kMetricRows;
}

struct MetricCase {
  std::string metric;
  double expected;
};

std::vector<MetricCase> metric_cases() {
  const auto error = [](double a, double, double p) { return (p - a) * (p - a); };
  const double mean_a = mean([](double a, double, double) { return a; });
  const double of_squares = mean([](double a, double, double) { return a * a; });
  const auto hits = [](double a, double b, double) { return a > 1 && b > 1 ? 1.0 : 0.0; };
  const auto found = [](double a, double, double) { return a > 1 ? 1.0 : 0.0; };
  const auto there = [](double, double b, double) { return b > 1 ? 1.0 : 0.0; };
  std::vector<double> all;
  for (const float v : inputs().elements<float>()) all.push_back(v);
  const double log_of_sum = std::log(sum([](double a, double, double) { return std::exp(a); }));
  const auto of_class = [](int k) {
    return sum([k](double a, double b, double p) {
      const double c = 2 * p - a - b;
      return (a >= b && a >= c ? 0 : b >= c ? 1 : 2) == k ? a : 0;
    });
  };
  return {
      {"mean(square(p - a))", mean(error)},
      {"sqrt(mean(square(p - a)))", std::sqrt(mean(error))},
      {"1 - sum(square(p - a)) / (sum(square(a)) - sum(a)^2 / 37)", 1 - mean(error) / (of_squares - mean_a * mean_a)},
      {"1 - mean(square(p - a)) / (mean(square(a)) - mean(a)^2)", 1 - mean(error) / (of_squares - mean_a * mean_a)},
      {"2 * sum(cast(a > 1 and b > 1, dtype=f32)) / (sum(a > 1) + sum(b > 1))",
       2 * sum(hits) / (sum(found) + sum(there))},
      {"sum(a > 1 and b > 1) / sum(b > 1)", sum(hits) / sum(there)},
      {"sum(a > 1)", sum(found)},
      {"100 * mean(a > 1) + 0.01 * sum(square(w))", 100 * mean(found) + 0.01 * 0.75},
      {"max(x)", *std::max_element(all.begin(), all.end())},
      {"min(x) * max(x)", *std::min_element(all.begin(), all.end()) * *std::max_element(all.begin(), all.end())},
      {"logsumexp(a)", log_of_sum},
      {"log(mean(exp(a)))", log_of_sum - std::log(static_cast<double>(kMetricRows))},
      {"max(mean(x, axis=0))", std::max({mean_a, mean([](double, double b, double) { return b; }),
                                         mean([](double a, double b, double p) { return 2 * p - a - b; })})},
      {"sum(matmul(a, b, transpose_a=true)) / 37", mean([](double a, double b, double) { return a * b; })},
      {"where(mean(a) > mean(b), 1, 2) * mean(a)",
       (mean_a > mean([](double, double b, double) { return b; }) ? 1 : 2) * mean_a},
      {"prod(1 + 0.01 * a)", std::exp(sum([](double a, double, double) { return std::log(1 + 0.01 * a); }))},
      {"sqrt(sum(square(w))) * 2", 2 * std::sqrt(0.75)},
      {"max(abs(scatter_add(argmax(x, axis=1), a, entries=3)))",
       std::max({std::fabs(of_class(0)), std::fabs(of_class(1)), std::fabs(of_class(2))})},
  };
}

double evaluated(const std::string& metric, std::int64_t batch, const std::string& executor) {
  SessionOptions options;
  options.executor = executor;
  options.threads = 1;
  Session session(model(metric, batch), options);
  return session.evaluate("train").values.at(0).second;
}

TEST(MetricParts, AreTheSameWhateverTheBatches) {
  for (const MetricCase& c : metric_cases()) {
    for (const char* executor : {"cpu", "ref"}) {
      for (const std::int64_t batch : {1, 2, 5, 16, 36, 37}) {
        EXPECT_NEAR(evaluated(c.metric, batch, executor), c.expected, 3e-6 * std::max(1.0, std::fabs(c.expected)))
            << c.metric << " in batches of " << batch << " on " << executor;
      }
    }
  }
}

// The loss of an evaluation is such a number, too.
TEST(MetricParts, ALossThatIsNoMeanIsEvaluatedOverAllRows) {
  for (const std::int64_t batch : {1, 5, 37}) {
    Model root = model("mean(a)", batch);
    root.train.minimize = root.graph.expression("root = sqrt(mean(square(p - a)) + 0.01)");
    Session session(std::move(root));
    const double expected = std::sqrt(mean([](double a, double, double p) { return (p - a) * (p - a); }) + 0.01);
    EXPECT_NEAR(session.evaluate("train").loss, expected, 3e-6) << batch;
  }
}

TEST(MetricParts, WhatNeedsAllRowsInEachIsRejectedUnlessABatchHoldsThem) {
  for (const char* metric : {"1 - sum(square(p - a)) / sum(square(a - mean(a)))", "sum(a / mean(square(b)))",
                             "mean(square(x - mean(x, axis=0)))", "variance(a)"}) {
    EXPECT_TRUE(std::isfinite(evaluated(metric, kMetricRows, "cpu"))) << metric;
    try {
      evaluated(metric, 5, "cpu");
      ADD_FAILURE() << metric;
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().front().code, "metric.batches") << metric;
      EXPECT_NE(error.diagnostics().front().hint.find("mean(square(y)) - mean(y)^2"), std::string::npos);
    }
  }
}

// How rows fall into batches is then part of what the model predicts.
TEST(MetricParts, AModelThatCouplesItsRowsHasMetrics) {
  Model coupled = model("mean(a)", 5);
  const Value centred = coupled.graph.expression("centred = p - mean(p)");
  coupled.outputs.push_back({centred, "centred", ""});
  coupled.train.metrics = {{"apart", coupled.graph.expression("apart = mean(abs(centred - a))")}};
  Session session(std::move(coupled));
  EXPECT_GT(session.evaluate("train").values.at(0).second, 0);
}

}  // namespace
}  // namespace graphrun::test
