// Predictions: bitwise identical for a row in any batch, columns selected by name, transforms fitted once.
#include <bit>
#include <numeric>
#include <set>

#include "archives.h"
#include "prediction_fixture.h"
#include "support/rounds.h"

namespace graphrun {
namespace {

// ---- a row's prediction is its own

// A table and a data section by dice: sources, lists, what is left, formulas with and without aggregates, missing
// values, and every transform.
TEST_F(PredictionTest, OneByOneShuffledOrAllAtOnceGiveTheSameBytes) {
  const char* formulas[] = {"a - mean(a)",
                            "(a - mean(a)) / sqrt(variance(a) + 1)",
                            "(b - min(b)) / (max(b) - min(b) + 1)",
                            "exp(-(a - mean(a))^2 / 1e4) + b / sum(abs(b))",
                            "log(1 + (a * b)^2)",
                            "a - logsumexp(a / 10)",
                            "where(a > mean(b), a, b)",
                            "t - mean(t)",
                            "prod(tanh(a / 100) * 0 + 1) * b",
                            "sin(a) + cos(b) - mean(sin(a) * t)"};
  const char* lists[] = {R"(["a", "b"])", R"(["t", "a", "b"])", R"(["b", "t"])"};
  const int widths[] = {2, 3, 2};
  for (unsigned seed = 1; seed <= test::cases(20, 60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const int rows = 5 + dice.below(12);
    const bool gaps = dice.coin();
    const auto number = [&](double value) {
      return gaps && dice.below(6) == 0 ? std::string("NA") : std::to_string(value);
    };
    TextRows table;
    for (int i = 0; i < rows; ++i)
      table.push_back({number(dice.real()), std::to_string(dice.below(4)), number(dice.real()),
                       number(1.7e9 + 60 * dice.below(5000)), std::to_string(dice.real())});
    for (std::size_t i = 0; i < table.size(); i += 2) {  // more than the others: no column of train is without a value
      table[i][0] = std::to_string(1.25 * static_cast<double>(i));
      table[i][2] = std::to_string(0.7 * static_cast<double>(i) - 3);
      table[i][3] = std::to_string(1700000000 + i);
    }
    write_csv("rows.csv", {"a", "c", "b", "t", "y"}, table);
    int width = 1;
    std::string x, transform;
    const int kind = dice.below(5);
    if (kind == 0) {
      const int list = dice.below(3);
      x = R"("x": )" + std::string(lists[list]) + ", ";
      width = widths[list];
    } else if (kind == 1) {
      width = 4;  // the rest
    } else if (kind == 2) {
      x = R"("x": "c", )";
      width = 4;
      transform = dice.coin() ? R"([{"one_hot": 4}])" : R"([{"scale": 1}, {"one_hot": 4}, "flatten"])";
    } else {
      x = R"("x": ")" + std::string(formulas[dice.below(10)]) + R"(", )";
    }
    if (transform.empty()) {
      const char* choices[] = {"[]", R"(["standardize"])", R"([{"scale": 0.01}])",
                               R"([{"scale": 3}, "standardize", {"scale": 0.5}])", R"(["flatten", "standardize"])"};
      transform = choices[dice.below(5)];
    }
    const std::string y = dice.coin() ? R"(["standardize"])" : R"([{"scale": 0.1}])";
    const bool divided = dice.coin();
    const std::string source = R"js({"csv": "rows.csv", )js" + x + R"js("y": "y", "missing": "mean"})js";
    write_model(std::string("{") + (divided ? R"("split": [0.6, 0.2, 0.2], "source": )" : R"("train": )") + source +
                    R"(, "transform": {"x": )" + transform + R"(, "y": )" + y + "}}",
                width);
    train({{"train.seed", std::to_string(seed)}});

    const std::vector<float> all = predict("rows.csv");
    ASSERT_EQ(all.size(), table.size());
    std::vector<std::size_t> order(table.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), dice.engine);
    TextRows shuffled;  // without y, and the columns in another order too
    for (const std::size_t i : order) shuffled.push_back({table[i][3], table[i][2], table[i][1], table[i][0]});
    write_csv("shuffled.csv", {"t", "b", "c", "a"}, shuffled);
    const std::vector<float> other = predict("shuffled.csv", {{"train.batch", "3"}});
    for (std::size_t i = 0; i < order.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(other[i]), std::bit_cast<std::uint32_t>(all[order[i]]))
          << "row " << order[i];
    for (std::size_t i = 0; i < table.size(); ++i) {
      write_csv("one.csv", {"a", "c", "b", "t", "y"}, {table[i]});
      const std::vector<float> one = predict("one.csv");
      ASSERT_EQ(one.size(), 1u);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(one[0]), std::bit_cast<std::uint32_t>(all[i])) << "row " << i;
    }
  }
}

// Transforms are fitted to the training rows, and equal in the other splits and with weights.
TEST_F(PredictionTest, MeansAndAggregatesAreThoseOfTheTrainingRows) {
  inputs[0].sample = Shape{1};
  write("a.csv", "a,y\n1,10\n3,NA\n,30\n100,1000\n");
  write("b.csv", "a,y\n,1\n5,2\n");
  const DataSet set =
      read(R"js({"train": {"csv": "a.csv", "range": [0, 3], "x": "a - mean(a)", "y": "y", "missing": "mean"},
      "test": {"csv": "b.csv", "x": "a - mean(a)", "y": "y", "missing": "mean"}})js");
  EXPECT_EQ(values(set, "train", "x"), (Floats{-1, 1, 0}));  // the mean of 1 and 3, and of 1, 3 and 2
  EXPECT_EQ(values(set, "train", "y"), (Floats{10, 20, 30}));
  EXPECT_EQ(values(set, "test", "x"), (Floats{0, 3}));
  ASSERT_EQ(set.fitted.size(), 3u);
  EXPECT_EQ(set.fitted[0].name, "a:mean");
  EXPECT_EQ(set.fitted[0].values, (std::vector<double>{2}));
  EXPECT_EQ(set.fitted[1].name, "x:aggregate.0 of a - mean(a)");
  EXPECT_EQ(set.fitted[2].name, "y:mean");
  // Predictions apply exactly these fitted values; without them graphrun reports an error.
  DataOptions options;
  options.weights = &set;
  const DataSet again =
      read(R"js({"train": {"csv": "b.csv", "x": "a - mean(a)", "y": "y", "missing": "mean"}})js", options);
  EXPECT_EQ(values(again, "train", "x"), (Floats{0, 3}));
  EXPECT_TRUE(has(errors(R"js({"train": {"csv": "b.csv", "x": "a - max(a)", "y": "y", "missing": "mean"}})js", options),
                  "none came of the same formula"));
  EXPECT_TRUE(has(errors(R"js({"train": {"csv": "b.csv", "x": "a", "y": "y", "missing": "mean"}})js", options),
                  "the weights come with 'x:aggregate.0 of a - mean(a)', which is not used here"));
  EXPECT_TRUE(has(errors(R"js({"train": {"csv": "a.csv", "x": "a - mean(a)", "y": "y", "missing": "drop"},
                                 "test": {"csv": "b.csv", "x": "a - mean(a)", "y": "y", "missing": "mean"}})js"),
                  "no mean of it was fitted to the training rows"));
  EXPECT_TRUE(has(errors(R"js({"train": {"csv": "a.csv", "x": "a - mean(a)", "y": "a"},
                                 "test": {"csv": "b.csv", "x": "a - min(a)", "y": "y"}})js"),
                  "the value is missing"));
}

// The valid formulas do not depend on the dtype of the columns.
TEST_F(PredictionTest, FormulasInDoubleMixTypesAsThoseInF32) {
  inputs[0].sample = Shape{1};
  for (const char* formula : {"a * where(b > 1, 1, 0)", "cast(b > 1, dtype=f32) * a",
                              "a * sum(one_hot(cast(b > 1, dtype=i32), classes=2) * [0, 1], axis=1)",
                              "where(b > 1, a, 0) + 0 * random_normal(a)"}) {
    SCOPED_TRACE(formula);
    const DataSet set = read(std::string(R"js({"train": {"inline": {"a": [1, 1e39, 4], "b": [0, 2, 0], "y": [1, 2, 3]},
        "x": ")js") + formula +
                             R"js("}, "transform": {"x": [{"scale": 1e-39}]}})js");
    EXPECT_EQ(values(set, "train", "x"), (Floats{0, 1, 0}));
  }
}

// ---- columns by name

TEST_F(PredictionTest, ColumnsGoByTheirNamesWhateverTheModelWasTrainedWith) {
  struct Case {
    const char* data;
    const char *header, *turned;
    const char* missing;
  };
  write_csv("t.csv", {"u", "v", "y"}, {{"0", "1", "2"}, {"3", "4", "5"}, {"1", "1", "0"}});
  write("flat.json", R"({"m": 3, "n": 2, "x": [0, 1, 3, 4, 1, 1], "y": [2, 5, 0]})");
  const Case cases[] = {
      {R"js({"train": {"inline": {"x": [[0, 1], [3, 4]], "y": [1, 2]}}})js", "x0,x1", "x1,x0", "'x1'"},
      {R"js({"train": {"inline": {"u": [0, 3], "v": [1, 4], "y": [1, 2]}, "x": ["u", "v"]}})js", "u,v", "v,u", "'v'"},
      {R"js({"train": {"inline": {"w": [[0, 1], [3, 4]], "y": [1, 2]}, "x": "w"}})js", "w0,w1", "w1,w0", "'w1'"},
      {R"js({"train": {"inline": {"w": [[0, 1], [3, 4]], "y": [1, 2]}, "x": "w - mean(w, axis=0)"}})js", "w0,w1",
       "w1,w0", "an aggregate of the formula has 1 number, and 2 were fitted"},
      {R"js({"source": {"json": "flat.json"}})js", "x0,x1", "x1,x0", "'x1'"},
      {R"js({"train": {"grid": {"u": [0, 1, 3], "v": [0, 2, 3]}, "x": ["u", "v"], "y": "u * v"}})js", "u,v", "v,u",
       "'v'"},
      {R"js({"train": {"grid": {"u": [0, 1, 3], "v": [0, 2, 3], "w": [1, 1, 1]}, "y": "w * 2"}})js", "u,v", "v,u",
       "'v'"},
      {R"js({"train": {"random": {"rows": 9, "columns": {"u": {"normal": 1}, "v": {"normal": 1}, "y": {"normal": 1}}},
        "y": "y"}})js",
       "u,v", "v,u", "'v'"},
      {R"js({"train": {"csv": "t.csv", "y": "y"}})js", "u,v", "v,u", "'v'"},
      {R"js({"train": {"csv": "t.csv", "x": ["u", "v"], "y": "y"}})js", "u,v", "v,u", "'v'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.data);
    write_model(c.data);
    train();
    const std::string header = c.header, turned = c.turned;
    write("p.csv", header + "\n0.5,2\n-1,3\n4,4\n");
    const std::vector<float> straight = predict("p.csv");
    ASSERT_EQ(straight.size(), 3u);
    EXPECT_NE(straight[0], straight[1]);
    write("p.csv", "other," + turned + ",y\nno number,2,0.5,\n7,3,-1,\n7,4,4,\n");
    EXPECT_EQ(predict("p.csv"), straight);
    write("p.csv", header.substr(0, header.find(',')) + ",foo\n0.5,2\n");
    const std::string text = message([&] { predict("p.csv"); });
    EXPECT_TRUE(has(text, c.missing)) << text;
    write("p.csv", "foo,bar\n0.5,2\n");
    EXPECT_TRUE(has(message([&] { predict("p.csv"); }), "foo, bar"));
    write("p.csv", "0.5,2\n-1,3\n");
    EXPECT_TRUE(has(message([&] { predict("p.csv"); }), "p.csv:1:1: the first line should name the columns"));
  }
  // A single number a row is the column of its name.
  write_model(R"js({"train": {"inline": {"x": [1, 2], "y": [1, 2]}}})js", 1);
  train();
  write("p.csv", "k,x\n9,0.5\n");
  EXPECT_EQ(predict("p.csv").size(), 1u);
  write("p.csv", "k,x0\n9,0.5\n");
  EXPECT_TRUE(has(message([&] { predict("p.csv"); }), "no column 'x'; the source has k, x0"));
}

TEST_F(PredictionTest, SplitsWithoutAListTakeTheColumnsOfTheTrainingByName) {
  write("a.csv", "a,b,y\n1,2,3\n");
  write("b.csv", "y,extra,b,a\n30,7,20,10\n");
  const DataSet set = read(R"({"train": {"csv": "a.csv", "y": "y"}, "test": {"csv": "b.csv", "y": "y"}})");
  EXPECT_EQ(values(set, "test", "x"), (Floats{10, 20}));
  write("b.csv", "y,c,a\n30,20,10\n");
  EXPECT_TRUE(has(errors(R"({"train": {"csv": "a.csv", "y": "y"}, "test": {"csv": "b.csv", "y": "y"}})"),
                  "no column 'b'; the source has y, c, a"));
}

TEST_F(PredictionTest, AHeaderOfNumbersIsRejected) {
  for (const char* first : {"1,2,3", "\"1\",\"2\",\"3\"", "0,+1.5e3,NA", "1,,3"}) {
    write("a.csv", std::string(first) + "\n4,5,6\n");
    EXPECT_TRUE(has(errors(R"({"train": {"csv": "a.csv", "y": "3"}})"), "DIR/a.csv:1:1: the first line should name"))
        << first;
  }
  write("a.csv", "1,2,three\n4,5,6\n");
  EXPECT_EQ(values(read(R"({"train": {"csv": "a.csv", "y": "three"}})"), "train", "x"), (Floats{4, 5}));
  write("a.csv", "1,2,3\n4,5,6\n");
  EXPECT_EQ(values(read(R"({"train": {"csv": "a.csv", "y": "2", "header": false}})"), "train", "y"), (Floats{3, 6}));
}

// Each row of the file has its line of the predictions.
TEST_F(PredictionTest, NoRowIsLeftOut) {
  write_csv("t.csv", {"u", "v", "y"}, {{"0", "1", "2"}, {"3", "", "5"}, {"1", "1", "0"}});
  write_model(R"js({"train": {"csv": "t.csv", "x": ["u", "v"], "y": "y", "missing": "drop"}})js");
  train();
  write("p.csv", "u,v,y\n1,2,\n3,4,NA\n");  // the missing target is not needed
  EXPECT_EQ(predict("p.csv").size(), 2u);
  EXPECT_TRUE(has(message([&] { predict("t.csv"); }), "t.csv:3:3: row 1, column 'v': the value is missing"));
}

// ---- the same rows in an evaluation

TEST_F(PredictionTest, AnEvaluationSplitsAsTheTrainingDid) {
  TextRows table;
  for (int i = 0; i < 40; ++i) table.push_back({std::to_string(i), std::to_string(i % 7), std::to_string(i * i)});
  write_csv("t.csv", {"u", "v", "y"}, table);
  const std::string data = R"js({"source": {"csv": "t.csv", "y": "y"}, "split": [0.5, 0.25, 0.25]})js";
  write_model(data);
  train({{"train.seed", "5"}});
  LoadOptions options;
  options.overrides = {{"train.seed", "5"}};
  const DataSet of_five = load_model(path("model.json"), options).data;
  options.overrides.clear();
  const DataSet of_zero = load_model(path("model.json"), options).data;
  const DataSet again = evaluated();
  EXPECT_NE(values(of_five, "test", "x"), values(of_zero, "test", "x"));
  EXPECT_EQ(values(again, "test", "x"), values(of_five, "test", "x"));
  EXPECT_EQ(again.split_mismatch, "");
  EXPECT_EQ(evaluated({{"train.seed", "9"}}).split_mismatch, "");  // the seed of the weights
  EXPECT_EQ(of_five.split_mismatch, "");

  EXPECT_TRUE(
      has(evaluated({{"data.split", "[0.25, 0.25, 0.5]"}}).split_mismatch, "trained with the split [0.5, 0.25, 0.25]"));
  // A session that was split otherwise does not take them.
  Session session(load_model(path("model.json")));
  EXPECT_TRUE(
      has(message([&] { load_weights(session, path("w.npz")); }), "the split of seed 5, here it is that of seed 0"));
  std::swap(table[3], table[4]);
  write_csv("t.csv", {"u", "v", "y"}, table);
  EXPECT_TRUE(has(evaluated().split_mismatch, "not those that the weights were trained with"));
  table.push_back({"1", "2", "3"});
  write_csv("t.csv", {"u", "v", "y"}, table);
  EXPECT_TRUE(has(evaluated().split_mismatch, "had 40 rows when the weights were trained, now it has 41"));
  write_model(R"js({"source": {"csv": "t.csv", "y": "y"}})js");
  train();
  write_model(data);
  EXPECT_TRUE(has(evaluated().split_mismatch, "trained without a split"));

  // A random table without a seed of its own has that of the training.
  write_model(R"js({"train": {"random": {"rows": 9, "columns": {"u": {"normal": 1, "shape": [2]}}}, "x": "u",
    "y": "sum(u, axis=1)"}})js");
  train({{"train.seed", "5"}});
  options.overrides = {{"train.seed", "5"}};
  EXPECT_EQ(values(evaluated(), "train", "x"), values(load_model(path("model.json"), options).data, "train", "x"));
}

// ---- in double until it is fitted

TEST_F(PredictionTest, TimesStayApart) {
  TextRows table;
  for (int i = 0; i < 1000; ++i) table.push_back({std::to_string(1700000000 + 3 * i), std::to_string(i / 1000.0)});
  write_csv("t.csv", {"t", "y"}, table);
  std::string t, y;
  for (int i = 0; i < 1000; ++i) {
    t += (i > 0 ? "," : "") + std::to_string(1700000000 + 3 * i);
    y += (i > 0 ? "," : "") + std::to_string(i);
  }
  write("flat.json", R"({"m": 1000, "n": 1, "x": [)" + t + R"(], "y": [)" + y + "]}");
  const std::string standardized = R"(, "transform": {"x": ["standardize"]}})";
  for (const std::string& data :
       {R"({"train": {"csv": "t.csv", "x": ["t"], "y": "y"})" + standardized,
        R"({"train": {"csv": "t.csv", "x": "t", "y": "y"})" + standardized,
        R"({"train": {"csv": "t.csv", "x": "t + 1", "y": "y"})" + standardized,
        std::string(R"js({"train": {"csv": "t.csv", "x": "(t - mean(t)) / sqrt(variance(t))", "y": "y"}})js"),
        R"({"source": {"json": "flat.json"})" + standardized,
        R"({"source": {"json": "flat.json", "x": "x / 60"})" + standardized,
        R"({"train": {"grid": {"t": [1700000000, 1700002997, 1000]}, "x": ["t"], "y": "t - 1700000000"})" +
            standardized}) {
    SCOPED_TRACE(data);
    write_model(data, 1, "", "x * sum(W)");
    const Model model = load_model(path("model.json"));
    const Floats x = values(model.data, "train", "x");
    EXPECT_EQ(std::set<float>(x.begin(), x.end()).size(), 1000u);
    train();
    std::string text = data.find("flat") != std::string::npos ? "x\n" : "t\n";
    for (int i = 0; i < 1000; ++i) text += std::to_string(1700000000 + 3 * i) + "\n";
    write("p.csv", text);
    const std::vector<float> z = predict("p.csv");
    EXPECT_EQ(std::set<float>(z.begin(), z.end()).size(), 1000u);
  }
}

// ---- batches

TEST_F(PredictionTest, RowsThatKnowEachOtherArePredictedAsTheyAreEvaluated) {
  TextRows table;
  for (int i = 0; i < 7; ++i) table.push_back({std::to_string(i), std::to_string(i * i % 5), "0"});
  write_csv("t.csv", {"u", "v", "y"}, table);
  for (const char* batch : {", \"batch\": 3", ", \"batch\": 5", ""}) {
    SCOPED_TRACE(batch);
    write_model(R"js({"train": {"csv": "t.csv", "x": ["u", "v"], "y": "y"}})js", 2, batch,
                "(x - mean(x, axis=0)) @ (W @ V)");
    train();
    // y is 0: the loss is the mean of the squares of the predictions.
    LoadOptions options;
    options.weights = path("w.npz");
    const double loss = Session(load_model(path("model.json"), options)).evaluate("train").loss;
    double sum = 0;
    for (const float z : predict("t.csv")) sum += static_cast<double>(z) * static_cast<double>(z) / 7;
    EXPECT_NEAR(sum, loss, 1e-5 * loss);
    options.predicts = 7;
    const Model model = load_model(path("model.json"), options);
    ASSERT_EQ(model.data.warnings.size(), 1u);
    EXPECT_TRUE(has(model.data.warnings[0], "'z' depends on the rest of its batch"));
  }
}

TEST_F(PredictionTest, MoreRowsThanTheTrainingHad) {
  write_model(R"js({"train": {"inline": {"x": [[0, 1], [3, 4]], "y": [1, 2]}}})js");
  train();
  std::string text = "x0,x1\n";
  for (int i = 0; i < 3000; ++i) text += std::to_string(i) + ",1\n";
  write("p.csv", text);
  const std::vector<float> all = predict("p.csv");
  ASSERT_EQ(all.size(), 3000u);
  EXPECT_EQ(predict("p.csv", {{"train.batch", "7"}}), all);
  EXPECT_EQ(predict("p.csv", {{"train.batch", "\"all\""}}), all);
}

// Not how many there are: executors take sums in an order that follows the size of the batch.
TEST_F(PredictionTest, TheProgramFollowsFromTheModelAlone) {
  const auto program = [&](std::int64_t rows) {
    LoadOptions options;
    options.weights = path("w.npz");
    options.predicts = rows;
    return plan_program(load_model(path("model.json"), options));
  };
  write_model(R"js({"train": {"inline": {"x": [[0, 1], [3, 4]], "y": [1, 2]}}})js");
  train();
  EXPECT_EQ(to_string(program(1)), to_string(program(3000)));
  EXPECT_EQ(program(1).phases.at(0).capacity, 1024);

  // Wide rows: x, y and one more make 2^24 / 40,002 rows.
  write("wide.json", R"js({"format": 1,
    "data": {"train": {"random": {"rows": 2, "columns": {"a": {"normal": 1, "shape": [40000]}, "b": {"normal": 1}}},
                       "x": "a", "y": "b"}},
    "inputs": {"x": ["batch", 40000], "y": ["batch", 1]}, "parameters": {"W": {"shape": [40000, 1], "init": "zeros"}},
    "graph": ["z = x @ W", "loss = mse(z, y)"], "outputs": {"z": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})js");
  LoadOptions options;
  options.predicts = 3000;
  EXPECT_EQ(plan_program(load_model(path("wide.json"), options)).phases.at(0).capacity, 419);
}

TEST_F(PredictionTest, AnOutputOfNoInputIsRejected) {
  write_model(R"js({"train": {"inline": {"x": [[0, 1], [3, 4]], "y": [1, 2]}}})js", 2, "",
              "random_normal(y) * sum(V) + 0 * sum(W)");
  EXPECT_TRUE(has(message([&] {
                    train();
                    write("p.csv", "x0,x1\n1,2\n");
                    predict("p.csv");
                  }),
                  "no output depends on an input"));
}

// A gap of an array becomes the number of the training rows, in a file of any format.
TEST_F(PredictionTest, GapsOfArraysAreFilled) {
  const auto array = [](float gap) { return test::npy("<f4", "(3, 2)", test::raw<float>({1, 2, 3, 250, 5, gap})); };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  write("x.npy", array(kNan));
  write("y.npy", test::npy("<f4", "(3,)", test::raw<float>({1, 2, 3})));
  write_model(R"({"train": {"npy": {"x": "x.npy", "y": "y.npy"}, "missing": "mean"}, "transform": {"x": ["minmax"]}})");
  train();
  write("filled.npy", array(126));
  const std::vector<float> expected = predict("filled.npy");
  EXPECT_EQ(predict("x.npy"), expected);
  write("rows.csv", "x0,x1\n1,2\n3,250\n5,\n");
  EXPECT_EQ(predict("rows.csv"), expected);
}

// One array in every format that holds one, plain or compressed, whatever the file is called.
TEST_F(PredictionTest, EveryFormatOfAnArrayGivesTheSameBytes) {
  write_model(R"({"train": {"inline": {"x": [[1, 2], [3, 250]], "y": [1, 2]}}, "transform": {"x": ["standardize"]}})");
  train();
  write("rows.csv", "x0,x1\n1,2\n3,250\n7,0\n");
  const std::vector<float> expected = predict("rows.csv");
  using namespace test;
  const std::string values("\x01\x02\x03\xfa\x07\x00", 6), array = npy("|u1", "(3, 2)", values);
  const std::pair<const char*, std::string> files[] = {{"a.npy", array},
                                                       {"b.npy.gz", gzip(array)},
                                                       {"c", array},
                                                       {"d.npz", zip("x.npy", array, 8)},
                                                       {"e-idx2-ubyte", idx(0x08, {3, 2}, values)},
                                                       {"f.gz", gzip(idx(0x08, {3, 2}, values))},
                                                       {"G.CSV", "x1,x0\n2,1\n250,3\n0,7\n"},
                                                       {"h.csv.gz", gzip("x1,x0\n2,1\n250,3\n0,7\n")},
                                                       {"i.json", R"([{"x": [1, 2]}, {"x": [3, 250]}, {"x": [7, 0]}])"},
                                                       {"j",
                                                        "{\"x1\": 2, \"x0\": 1}\n{\"x0\": 3, \"x1\": 250}\n"
                                                        "{\"x0\": 7, \"x1\": 0}\n"}};
  for (const auto& [name, bytes] : files) {
    write(name, bytes);
    EXPECT_EQ(predict(name), expected) << name;
  }
}

}  // namespace
}  // namespace graphrun
