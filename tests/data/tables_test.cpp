// Grids, random tables, and formulas over the columns of any source.
#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "data/sources/sources.h"
#include "data_fixture.h"

namespace graphrun {
namespace {

TEST_F(DataTest, AGridHasEveryCombinationTheLastAxisFastest) {
  inputs = {{"x", Shape{2}, DType::f32, false}};
  const DataSet set = read(R"js({"train": {"grid": {"u": [0, 1, 3], "v": [-1, 5, 2]}}})js");
  EXPECT_EQ(values(set, "train", "x"), (Floats{0, -1, 0, 5, 0.5, -1, 0.5, 5, 1, -1, 1, 5}));
}

TEST_F(DataTest, AnAxisEndsAtItsLastPoint) {
  inputs = {{"x", Shape{}, DType::f64, false}};
  const DataSet set = read(R"js({"train": {"grid": {"u": [-0.1, 0.7, 7]}}})js");
  const std::vector<double> points = elements<double>(set, "train", "x");
  ASSERT_EQ(points.size(), 7u);
  EXPECT_EQ(points.front(), -0.1);
  EXPECT_EQ(points.back(), 0.7);
  EXPECT_NEAR(points[3], 0.3, 1e-15);
  EXPECT_EQ(elements<double>(read(R"js({"train": {"grid": {"u": [2, 2, 1]}}})js"), "train", "x"),
            (std::vector<double>{2}));
}

// MATLAB's peaks, against the same formula in double.
TEST_F(DataTest, AFormulaOverAGrid) {
  const DataSet set = read(R"js({"train": {"grid": {"u": [-3, 3, 200], "v": [-3, 3, 200]}, "x": ["u", "v"],
    "y": "3*(1-u)^2*exp(-u^2-(v+1)^2) - 10*(u/5-u^3-v^5)*exp(-u^2-v^2) - 1/3*exp(-(u+1)^2-v^2)"}})js");
  const Floats x = values(set, "train", "x"), y = values(set, "train", "y");
  ASSERT_EQ(x.size(), 80000u);
  ASSERT_EQ(y.size(), 40000u);
  EXPECT_EQ(column(set, "train", "y").shape(), (Shape{40000, 1}));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double u = -3 + 6 * static_cast<double>(i / 200) / 199, v = -3 + 6 * static_cast<double>(i % 200) / 199;
    const double z = 3 * (1 - u) * (1 - u) * std::exp(-u * u - (v + 1) * (v + 1)) -
                     10 * (u / 5 - u * u * u - std::pow(v, 5)) * std::exp(-u * u - v * v) -
                     std::exp(-(u + 1) * (u + 1) - v * v) / 3;
    ASSERT_NEAR(x[2 * i], u, 1e-6);
    ASSERT_NEAR(x[2 * i + 1], v, 1e-6);
    ASSERT_NEAR(y[i], z, 2e-5) << u << ' ' << v;
  }
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 8.1059, 1e-4);
  EXPECT_NEAR(*std::min_element(y.begin(), y.end()), -6.5487, 1e-4);
}

TEST_F(DataTest, FormulasTakeColumnsOfAnySource) {
  write("a.csv", "a,b,price per unit\n1,10,3\n2,20,5\n3,30,7\n");
  // A column that a formula names is not left over; a whole name is the column itself, whatever is in it.
  DataSet set = read(R"js({"train": {"csv": "a.csv", "y": "a * gain + mean(a)"}})js");
  EXPECT_EQ(values(set, "train", "x"), (Floats{10, 3, 20, 5, 30, 7}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{3.5, 5, 6.5}));
  inputs[0].sample = Shape{1};
  const std::string named = R"js({"train": {"csv": "a.csv", "x": "b", "y": "price per unit"}})js";
  EXPECT_EQ(values(read(named), "train", "y"), (Floats{3, 5, 7}));
  // Its aggregates are those of the rows that train: of the range.
  set = read(R"js({"train": {"csv": "a.csv", "x": "b", "y": "a - mean(a)", "range": [1, 3]}})js");
  EXPECT_EQ(values(set, "train", "y"), (Floats{-0.5, 0.5}));
}

TEST_F(DataTest, FormulasTakeMatrices) {
  DataSet set = read(R"js({"train": {"inline": {"m": [[1, 2], [3, 4]], "w": [10, 20]},
                        "x": "m * reshape(w, shape=[-1, 1])", "y": "sum(m, axis=1)"}})js");
  EXPECT_EQ(values(set, "train", "x"), (Floats{10, 20, 60, 80}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{3, 7}));
  // The number of rows is another in each split: it is not written.
  const std::string counted = errors(R"js({"train": {"inline": {"m": [[1, 2], [3, 4]], "w": [10, 20]},
                                       "x": "m * reshape(w, shape=[2, 1])", "y": "sum(m, axis=1)"}})js");
  EXPECT_NE(counted.find("-1 as the first extent is inferred, the batch included"), std::string::npos) << counted;
  // A comparison is 0 or 1; a column hides the constant of its name.
  set = read(R"js({"train": {"inline": {"x": [[1, 2], [3, 4]], "e": [5, 6]}, "y": "e > 5"}})js");
  EXPECT_EQ(values(set, "train", "y"), (Floats{0, 1}));
  inputs[1].dtype = DType::i32;
  set = read(R"js({"train": {"inline": {"x": [[1, 9], [8, 4]], "k": [0, 0]}, "y": "argmax(x, axis=1)"}})js");
  EXPECT_EQ(elements<std::int32_t>(set, "train", "y"), (std::vector<std::int32_t>{1, 0}));
}

TEST_F(DataTest, RandomColumnsComeFromTheirOwnStreams) {
  inputs = {{"x", Shape{3}, DType::f32, false},
            {"c", Shape{}, DType::i32, false},
            {"b", Shape{}, DType::f32, true},
            {"u", Shape{1}, DType::f32, true}};
  const std::string columns = R"js("x": {"normal": [1, 2], "shape": [3]}, "c": {"integers": [-2, 5]},
                                 "b": {"bernoulli": 0.25}, "u": {"uniform": [3, 4]})js";
  const std::string take = R"js(}}, "x": "x", "c": "c", "b": "b", "u": "u"}})js";
  const DataSet set = read(R"js({"train": {"random": {"rows": 20000, "seed": 9, "columns": {)js" + columns + take);
  const Floats x = values(set, "train", "x");
  Floats expected(60000);
  fill_normal(Stream::named(9, "x"), 0, 1, 2, expected);
  EXPECT_EQ(x, expected);
  double sum = 0, squares = 0;
  for (const float v : x) sum += v, squares += (v - 1.0) * (v - 1.0);
  EXPECT_NEAR(sum / 60000, 1, 0.03);
  EXPECT_NEAR(squares / 60000, 4, 0.1);
  Floats uniform(20000);
  fill_uniform(Stream::named(9, "u"), 0, 3, 4, uniform);
  EXPECT_EQ(values(set, "train", "u"), uniform);
  std::vector<int> counts(7);
  for (const std::int32_t v : elements<std::int32_t>(set, "train", "c")) {
    ASSERT_TRUE(v >= -2 && v < 5) << v;
    ++counts[static_cast<std::size_t>(v + 2)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 20000.0 / 7, 250);
  const Floats b = values(set, "train", "b");
  EXPECT_TRUE(std::all_of(b.begin(), b.end(), [](float v) { return v == 0 || v == 1; }));
  EXPECT_NEAR(static_cast<double>(std::count(b.begin(), b.end(), 1.0f)), 5000, 250);

  // Fewer rows are the first ones, and other columns change nothing.
  const DataSet fewer =
      read(R"js({"train": {"random": {"rows": 10, "seed": 9, "columns": {"z": {"normal": 1}, )js" + columns + take);
  EXPECT_EQ(values(fewer, "train", "x"), Floats(x.begin(), x.begin() + 30));
  EXPECT_EQ(values(fewer, "train", "b"), Floats(b.begin(), b.begin() + 10));
  // Without a seed the model's is taken.
  const std::string no_seed = R"js({"train": {"random": {"rows": 10, "columns": {)js" + columns + take;
  EXPECT_EQ(values(read(no_seed, {folder(), "", 9}), "train", "x"), values(fewer, "train", "x"));
  EXPECT_NE(values(read(no_seed, {folder(), "", 8}), "train", "x"), values(fewer, "train", "x"));
}

TEST_F(DataTest, ATargetOfARandomTableIsAFormulaAndNoise) {
  const DataSet set = read(R"js({"train": {"random": {"rows": 1000, "columns": {
      "a": {"normal": 1}, "b": {"normal": 1}, "noise": {"normal": 0.01}}},
      "x": ["a", "b"], "y": "sin(a) + b*b + noise"}})js");
  const Floats x = values(set, "train", "x"), y = values(set, "train", "y");
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double clean = std::sin(double{x[2 * i]}) + double{x[2 * i + 1]} * double{x[2 * i + 1]};
    squares += (y[i] - clean) * (y[i] - clean);
  }
  EXPECT_NEAR(std::sqrt(squares / 1000), 0.01, 0.001);
}

struct TableMistake {
  const char* block;
  const char* says;
};

TEST_F(DataTest, EachMistakeInATableHasItsMessage) {
  const TableMistake errors_of[] = {
      {R"js({"train": {"grid": {}}})js", "/train/grid: a grid needs an axis"},
      {R"js({"train": {"grid": {"u": [0, 1]}}})js", "/train/grid/u: an axis is [first, last, points]"},
      {R"js({"train": {"grid": {"u": [0, 1, 0]}}})js", "/train/grid/u/2: must be from 1 to 2147483647, got 0"},
      {R"js({"train": {"grid": {"u": [0, 1, 1]}}})js", "/train/grid/u: one point cannot be both 0 and 1"},
      {R"js({"train": {"grid": {"u": [0, 1, 2.5]}}})js", "/train/grid/u/2: must be an integer"},
      {R"js({"train": {"grid": {"u": [0, 1, 100000], "v": [0, 1, 100000]}}})js",
       "/train/grid: the grid has more than 2147483647 points"},
      {R"js({"train": {"grid": {"u": [0, 1, 2]}, "y": "u"}})js", "/train/grid: no column is left for input 'x'"},
      {R"js({"train": {"grid": {"u": [0, 1, 2]}}})js",
       "/train/grid: only one input can take the columns that are left"},
      {R"js({"train": {"random": {"columns": {"a": {"normal": 1}}}}})js", "/train/random: missing key 'rows'"},
      {R"js({"train": {"random": {"rows": 3}}})js", "/train/random: missing key 'columns'"},
      {R"js({"train": {"random": {"rows": 3, "columns": {}}}})js", "/train/random/columns: a table needs a column"},
      {R"js({"train": {"random": {"rows": 0, "columns": {"a": {"normal": 1}}}}})js",
       "/train/random/rows: must be from 1 to 2147483647"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {}}}}})js",
       R"js(/train/random/columns/a: expected one of "normal", "uniform", "integers", "bernoulli")js"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"normal": 1, "uniform": [0, 1]}}}}})js",
       "/train/random/columns/a: expected one of"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"norml": 1}}}}})js", "did you mean 'normal'?"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"normal": -1}}}}})js",
       "a standard deviation must be >= 0, got -1"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"uniform": [1, 1]}}}}})js",
       "with low < high, got [1, 1]"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"integers": [0, 1.5]}}}}})js",
       "expected 32-bit integers"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"integers": [0, 1e10]}}}}})js",
       "expected 32-bit integers"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"bernoulli": 1.5}}}}})js",
       "a probability is from 0 to 1"},
      {R"js({"train": {"random": {"rows": 3, "columns": {"a": {"normal": 1, "shape": [0]}}}}})js",
       "/a/shape/0: must be from 1 to 2147483647"},
      {R"js({"train": {"random": {"rows": 2000000000, "columns": {"a": {"normal": 1, "shape": [2000000000]}}}}})js",
       "/a: more than 8589934592 numbers"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "sin(u) + w"}})js",
       "1:86: /train/y: no column 'w'; the source has u, v"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "1 + sine(u)"}})js",
       "1:81: /train/y: there is no function named sine"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "u +"}})js", "1:80: /train/y:"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "pi + 1"}})js",
       "/train/y: the formula names no column"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "y = u"}})js",
       "/train/y: a formula names no value"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "mean(u)"}})js",
       "/train/y: a formula gives a value for each row; this gives one f32()"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "w"], "y": "u"}})js",
       "/train/x/1: no column 'w'; the source has u, v"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": [], "y": "u"}})js",
       "/train/x: the list names no column"},
      {R"js({"train": {"grid": {"u": [0, 1, 2], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "log(u)"}})js",
       "input 'y' of train: row 0, column 0: -inf is not a finite number"},
      {R"js({"train": {"inline": {"a": [1, 2], "b": [1, 2, 3]}, "x": ["a", "a"], "y": "a + b"}})js",
       "/train/y: 'a' has 2 rows, but 'b' has 3"},
  };
  for (const TableMistake& m : errors_of)
    EXPECT_NE(errors(m.block).find(m.says), std::string::npos) << m.block << '\n' << errors(m.block);
}

// The errors of a table are reported together with those of the rest of the block.
TEST_F(DataTest, ABrokenFormulaIsReportedWithTheOthers) {
  EXPECT_EQ(errors("{\"train\": {\"grid\": {\"u\": [0, 1, 2]},\n  \"x\": [\"u\", \"v\"],\n  \"y\": \"exp(w)\"}}"),
            "model.json:2:14: /train/x/1: no column 'v'; the source has u\n"
            "      \"x\": [\"u\", \"v\"],\n"
            "                 ^\n"
            "model.json:3:13: /train/y: no column 'w'; the source has u\n"
            "      \"y\": \"exp(w)\"}}\n"
            "                ^");
}

}  // namespace
}  // namespace graphrun
