// Gradients that are sums of many parts: of slices of one value, and of a weight that many products read.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "graphrun/model.h"
#include "graphrun/session.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using Sums = std::vector<double>;

// d loss / d p in a step of sgd of rate 1 from p = 0. All numbers are small integers, so that sums are exact.
Sums exact_gradient(const std::function<Value(GraphBuilder& g, Value p, Value ones)>& make, const Shape& shape) {
  GraphBuilder g(2);
  const Value ones = g.input("ones", {kBatch, 3});
  const Value loss = make(g, g.parameter("p", shape), ones);
  Model model(std::move(g));
  model.train.minimize = loss;
  model.train.optimizer.attributes = {{"lr", 1.0}};
  model.data.splits = {{"train", {{"ones", HostTensor({2, 3}, std::vector<float>(6, 1))}}}};
  Session session(std::move(model));
  session.train();
  Sums gradient = test::to_doubles(session.read("p"));
  for (double& value : gradient) value = 0 - value;
  return gradient;
}

TEST(SummedGradients, OfSlices) {
  std::mt19937 random(1);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int run = 0; run < 40; ++run) {
    const Shape shape = {4, 20};
    Sums wanted(80, 0);
    const std::int64_t parts = run < 20 ? 1 + below(20) : 1 + below(4);
    const auto make = [&](GraphBuilder& g, Value p, Value) {
      Value loss = g.constant(0.0);
      for (std::int64_t k = 0; k < parts; ++k) {
        // The first runs tile the last axis, with or without gaps; the others overlap on both axes.
        const std::int64_t axis = run < 20 ? 1 : below(2), extent = shape[static_cast<int>(axis)];
        const std::int64_t start = run < 20 ? k * extent / parts : below(extent);
        const std::int64_t stop = run < 20 ? (k + 1) * extent / parts : start + 1 + below(extent - start);
        const std::int64_t factor = run < 10 ? k + 1 : below(4);
        if (run >= 10 && factor == 0) continue;
        const Value cut = g.op("slice", {p}, {{"axis", axis}, {"start", start}, {"stop", stop}});
        loss = loss + g.op("sum", {cut}) * static_cast<double>(factor);
        for (std::int64_t i = 0; i < 80; ++i) {
          const std::int64_t at = axis == 1 ? i % 20 : i / 20;
          if (at >= start && at < stop) wanted[static_cast<std::size_t>(i)] += static_cast<double>(factor);
        }
      }
      return loss + g.op("sum", {p});
    };
    const Sums got = exact_gradient(make, shape);
    for (double& value : wanted) value += 1;
    EXPECT_EQ(got, wanted) << "run " << run;
  }
}

TEST(SummedGradients, OfAWeightThatManyProductsRead) {
  for (int products = 1; products <= 11; ++products) {
    // Every third product reads two rows of a sample, every fourth the transposed weight.
    double sum = 0;
    const auto make = [&](GraphBuilder& g, Value p, Value ones) {
      Value loss = g.op("sum", {p});
      for (int k = 1; k <= products; ++k) {
        Value x = ones * static_cast<double>(k);
        if (k % 3 == 0)
          x = g.op("reshape", {g.op("concat", {x, x}, {{"axis", std::int64_t{1}}})},
                   {{"shape", std::vector<std::int64_t>{-1, 3}}});
        loss = loss + g.op("sum", {g.op("matmul", {x, p}, {{"transpose_b", k % 4 == 0}})});
        sum += 2 * k * (k % 3 == 0 ? 2 : 1);
      }
      return loss;
    };
    const Sums got = exact_gradient(make, {3, 3});
    EXPECT_EQ(got, Sums(9, 1 + sum)) << products;
  }
}

}  // namespace
}  // namespace graphrun
