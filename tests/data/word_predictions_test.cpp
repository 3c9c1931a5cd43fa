// Predictions over real-world tables: categorical values, dates, missing values, transforms of columns. The prediction
// of a row is bitwise identical in any batch and order, and transforms are fitted to the training rows.
#include <bit>
#include <numeric>

#include "prediction_fixture.h"
#include "support/rounds.h"

namespace graphrun {
namespace {

// A column: how a cell of it is drawn, the items of x that it may give and how many numbers each is.
struct DrawnColumn {
  std::string name, item, transform, missing;
  int width = 1;
};

class DrawnTable {
 public:
  explicit DrawnTable(unsigned seed) : dice(seed), decimal(dice.coin() ? ',' : '.') {
    const int count = 1 + dice.below(4);
    for (int i = 0; i < count; ++i) columns.push_back(column(i));
    rows.resize(static_cast<std::size_t>(12 + dice.below(20)));
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const DrawnColumn& one : columns) rows[r].push_back(cell(one, r));
      rows[r].push_back(number(dice.real()));
    }
  }

  std::vector<std::string> header() const {
    std::vector<std::string> names;
    for (const DrawnColumn& one : columns) names.push_back(one.name);
    names.emplace_back("y");
    return names;
  }
  std::string data() const {
    std::string items, transforms, missing;
    for (const DrawnColumn& one : columns) {
      items += (items.empty() ? "\"" : ", \"") + one.item + "\"";
      if (!one.transform.empty()) transforms += "\"" + one.name + "\": " + one.transform + ", ";
      if (!one.missing.empty()) missing += (missing.empty() ? "\"" : ", \"") + one.name + "\": " + one.missing;
    }
    return R"js({"source": {"csv": "rows.csv", "delimiter": ";", "decimal": ")js" + std::string(1, decimal) +
           R"js(", "missing": {)js" + missing + R"js(}, "x": [)js" + items + R"js(], "y": "y"}, "split": [0.7, 0, 0.3],
           "transform": {)js" +
           transforms + R"js("y": ["standardize"]}})js";
  }
  int width() const {
    int total = 0;
    for (const DrawnColumn& one : columns) total += one.width;
    return total;
  }

  Dice dice;
  char decimal;
  std::vector<DrawnColumn> columns;
  TextRows rows;

 private:
  DrawnColumn column(int i) {
    const std::string own = std::to_string(i);
    DrawnColumn made;
    switch (dice.below(4)) {
      case 0: {  // words, of which there is always one more category
        made = {"w" + own, "w" + own, R"([{"one_hot": {"categories": ["red", "green"], "other": true}}])", "", 3};
        if (dice.coin()) made = {"w" + own, "w" + own, R"([{"classes": {"other": true}}])", "", 1};
        const char* policies[] = {R"("most_frequent")", R"({"value": "green"})"};
        made.missing = policies[dice.below(2)];
        return made;
      }
      case 1:
        return {"d " + own, "days(`d " + own + "`) / 1000 + weekday(`d " + own + "`)", "", R"("error")", 1};
      default: {
        const char* steps[] = {R"(["standardize"])",
                               R"(["minmax"])",
                               R"(["robust"])",
                               R"(["log1p", "standardize"])",
                               R"([{"scale": 0.1}, "robust"])",
                               ""};
        const char* policies[] = {R"("mean")", R"("median")", R"("most_frequent")", "3"};
        made = {"n " + own, "n " + own, steps[dice.below(6)], policies[dice.below(4)], 1};
        if (dice.below(3) == 0) made.item = "`n " + own + "` - mean(`n " + own + "`)";
        return made;
      }
    }
  }
  std::string number(double value) {
    std::string text = std::to_string(value);
    std::replace(text.begin(), text.end(), '.', decimal);
    return text;
  }
  std::string cell(const DrawnColumn& one, std::size_t row) {
    if (one.name[0] == 'd')
      return "20" + std::to_string(10 + dice.below(20)) + "-0" + std::to_string(1 + dice.below(9)) + "-11";
    if (row > 2 && dice.below(5) == 0) return "NA";
    const char* words[] = {"red", "green", "blue", "dark blue"};
    return one.name[0] == 'w' ? words[dice.below(4)] : number(std::abs(dice.real()));
  }
};

class WordPredictions : public PredictionTest {
 protected:
  void write_rows(const std::string& name, const std::vector<std::string>& header, const TextRows& rows) const {
    std::string text;
    const auto add = [&](const std::vector<std::string>& line) {
      for (std::size_t i = 0; i < line.size(); ++i) text += (i > 0 ? ";" : "") + line[i];
      text += '\n';
    };
    add(header);
    for (const auto& row : rows) add(row);
    write(name, text);
  }
};

TEST_F(WordPredictions, OneByOneShuffledOrAllAtOnceGiveTheSameBytes) {
  for (unsigned seed = 1; seed <= test::cases(20, 80); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DrawnTable table(seed);
    write_rows("rows.csv", table.header(), table.rows);
    write_model(table.data(), table.width());
    SCOPED_TRACE(table.data());
    train({{"train.seed", std::to_string(seed)}});
    const std::vector<float> all = predict("rows.csv");
    ASSERT_EQ(all.size(), table.rows.size());

    std::vector<std::size_t> order(table.rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), table.dice.engine);
    std::vector<std::string> header = table.header();  // in another order, and without y
    header.pop_back();
    std::reverse(header.begin(), header.end());
    TextRows shuffled;
    for (const std::size_t i : order) {
      std::vector<std::string> row = table.rows[i];
      row.pop_back();
      std::reverse(row.begin(), row.end());
      shuffled.push_back(std::move(row));
    }
    write_rows("shuffled.csv", header, shuffled);
    const std::vector<float> other = predict("shuffled.csv", {{"train.batch", "3"}});
    for (std::size_t i = 0; i < order.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(other[i]), std::bit_cast<std::uint32_t>(all[order[i]])) << order[i];
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      write_rows("one.csv", header, {shuffled[i]});
      ASSERT_EQ(std::bit_cast<std::uint32_t>(predict("one.csv").at(0)), std::bit_cast<std::uint32_t>(other[i])) << i;
    }
  }
}

TEST_F(WordPredictions, AnUnknownWordIsNamed) {
  write_rows("rows.csv", {"s", "a", "y"}, {{"m", "1", "1"}, {"f", "2", "2"}, {"m", "3", "1"}});
  write_model(R"js({"train": {"csv": "rows.csv", "delimiter": ";", "x": ["s", "a"], "y": "y"},
                    "transform": {"s": ["one_hot"]}})js",
              3);
  train();
  write_rows("new.csv", {"s", "a"}, {{"f", "1"}, {"fem", "1"}});
  const std::string text = message([&] { predict("new.csv"); });
  EXPECT_TRUE(has(text, "new.csv:3:1: row 1, column 's': 'fem' is not one of the categories m, f")) << text;
}

// Rejects a model whose transforms differ from those of the weights, because its inputs would have another meaning.
TEST_F(WordPredictions, OtherTransformsThanThoseOfTheWeightsAreRejected) {
  write_rows("rows.csv", {"s", "a", "y"}, {{"1", "1", "1"}, {"2", "2", "2"}, {"1", "3", "1"}});
  const auto model = [&](const std::string& transform) {
    write_model(R"js({"train": {"csv": "rows.csv", "delimiter": ";", "x": ["s", "a"], "y": "y"}, "transform": {)js" +
                transform + "}}");
  };
  model(R"("a": ["standardize"], "s": ["classes"], "y": ["log", "standardize"])");
  train();
  const std::pair<const char*, const char*> others[] = {
      {R"("a": ["minmax"], "s": ["classes"], "y": ["log", "standardize"])", "column 'a'"},
      {R"("s": ["classes"], "y": ["log", "standardize"])", "'a:standardize', which is not used here"},
      {R"("a": ["standardize"], "s": [{"classes": ["2", "1"]}], "y": ["log", "standardize"])",
       "other categories of 's'"},
      {R"("a": ["standardize"], "s": ["classes"], "y": ["log1p", "standardize"])", "logarithm"},
      {R"("a": ["standardize"], "s": ["classes"], "y": ["standardize"])", "'y:curve', which is not used here"}};
  for (const auto& [transform, says] : others) {
    model(transform);
    const std::string text = message([&] { evaluated(); });
    EXPECT_TRUE(has(text, says)) << transform << "\n" << text;
  }
}

// The logarithm of a target is undone: predictions and metrics are in its own unit.
TEST_F(WordPredictions, LogarithmsOfTargetsAreUndone) {
  TextRows rows;
  for (int i = 0; i < 64; ++i) {
    const double a = i / 8.0;
    rows.push_back({std::to_string(a), std::to_string(std::exp(0.5 * a + 1))});
  }
  write_rows("rows.csv", {"a", "y"}, rows);
  for (const char* log : {"log", "log1p"}) {
    write_model(R"js({"train": {"csv": "rows.csv", "delimiter": ";", "x": ["a"], "y": "y"}, "transform": {"y": [")js" +
                    std::string(log) + R"js(", "standardize"]}})js",
                1, R"(, "batch": "all")");
    Session session(load_model(path("model.json")));
    session.train();
    save_weights(session, path("w.npz"));
    const std::vector<float> predicted = predict("rows.csv");
    double squares = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double error = static_cast<double>(predicted[i]) - std::stod(rows[i][1]);
      squares += error * error;
      EXPECT_GT(predicted[i], -1.0f);
    }
    const double mse = session.evaluate("train").values.front().second;
    EXPECT_NEAR(mse, squares / static_cast<double>(rows.size()), 1e-4 * mse) << log;
  }
}

}  // namespace
}  // namespace graphrun
