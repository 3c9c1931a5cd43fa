// Ticks are round, labels differ, and no values make a scale fail.
#include "plot/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace graphrun::plot {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();

std::string labels_of(const std::vector<double>& values, bool log = false, int labels = 5) {
  std::string text;
  for (const Tick& tick : make_scale({&values}, log, labels, 0).ticks) {
    if (!tick.label.empty()) text += (text.empty() ? "" : " ") + tick.label;
  }
  return text;
}

TEST(Ticks, AreRound) {
  EXPECT_EQ(labels_of({0, 100}), "0 20 40 60 80 100");
  EXPECT_EQ(labels_of({0, 3}), "0 1 2 3");  // epochs: whole numbers have no halves
  EXPECT_EQ(labels_of({-0.13, 0.37}), "-0.1 0 0.1 0.2 0.3");
  EXPECT_EQ(labels_of({0, 2500000}), "0 5e5 1e6 1.5e6 2e6 2.5e6");
  EXPECT_EQ(labels_of({0, 2e-7}), "0 5e-8 1e-7 1.5e-7 2e-7");
  EXPECT_EQ(labels_of({1000000.25, 1000000.75}), "1000000.3 1000000.4 1000000.5 1000000.6 1000000.7");
}

TEST(Ticks, OfALogarithmicAxis) {
  EXPECT_EQ(labels_of({1e-3, 1e2}, true), "0.001 0.01 0.1 1 10 100");
  EXPECT_EQ(labels_of({1e-12, 1e12}, true), "1e-10 1e-5 1 1e5 1e10");
  EXPECT_EQ(labels_of({0.1, 5}, true), "0.1 0.2 0.5 1 2 5");
  EXPECT_EQ(labels_of({6.1, 6.4}, true), "6.1 6.2 6.3 6.4");
}

TEST(Scales, PlaceValues) {
  const std::vector<double> line = {0, 10}, powers = {1, 100, -5, 0};
  EXPECT_DOUBLE_EQ(make_scale({&line}, false, 5, 0).place(2.5), 0.25);
  const Scale log = make_scale({&powers}, true, 5, 0);
  EXPECT_DOUBLE_EQ(log.place(10), 0.5);
  EXPECT_FALSE(log.shows(0));
  EXPECT_FALSE(log.shows(-5));
  EXPECT_DOUBLE_EQ(make_scale({&line}, false, 5, 0.5).from, -5);
}

TEST(Scales, AnyValuesMakeOne) {
  const std::vector<std::vector<double>> odd = {{},
                                                {0},
                                                {5, 5},
                                                {-kMax, kMax},
                                                {kMax},
                                                {5e-324},
                                                {0, 5e-324},
                                                {kInf, -kInf, NAN},
                                                {1, 1 + 1e-16},
                                                {1e15, 1e15 + 2},
                                                {5e-324, kMax},
                                                {-1, 0}};
  for (const std::vector<double>& values : odd) {
    for (const bool log : {false, true}) {
      const Scale scale = make_scale({&values}, log, 5, 0.04);
      SCOPED_TRACE(::testing::PrintToString(values) + (log ? " log" : ""));
      EXPECT_LT(scale.from, scale.to);
      EXPECT_LT(scale.ticks.size(), 7000u);
      std::set<std::string> labels;
      for (std::size_t i = 0; i < scale.ticks.size(); ++i) {
        EXPECT_TRUE(i == 0 || scale.ticks[i - 1].value < scale.ticks[i].value);
        const std::string& label = scale.ticks[i].label;
        EXPECT_TRUE(label.empty() || labels.insert(label).second) << label;
      }
      EXPECT_FALSE(labels.empty()) << scale.from << " " << scale.to << " " << log;
      for (const double value : values) {
        if (!scale.shows(value)) continue;
        EXPECT_GE(scale.place(value), 0);
        EXPECT_LE(scale.place(value), 1);
      }
    }
  }
}

}  // namespace
}  // namespace graphrun::plot
