// `graphrun init`: the model that is written from a table loads and trains as it is, and says how the table is written.
#include "graphrun/model_template.h"

#include <fmt/format.h>

#include <functional>
#include <regex>

#include "prediction_fixture.h"

namespace graphrun {
namespace {

class StartingModelTest : public PredictionTest {
 protected:
  std::string model_of(const std::string& csv, const std::string& target = "y") {
    write("a.csv", csv);
    const ModelTemplate made = model_template(path("a.csv"), target, "a.csv");
    notes = made.notes;
    write("model.json", made.text);
    return made.text;
  }
  // Rows of varying numbers, so that no column is constant or a counter.
  static std::string rows(int count, const std::function<std::string(int)>& row) {
    std::string text;
    for (int i = 0; i < count; ++i) text += row(i) + "\n";
    return text;
  }
  bool noted(const std::string& part) const {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) { return has(note, part); });
  }
  void expect_trains() const {
    LoadOptions options;
    options.overrides = {{"train.epochs", "1"}};
    Session session(load_model(path("model.json"), options));
    EXPECT_EQ(session.train().epochs, 1);
  }
  std::vector<std::string> notes;
};

std::string digits(int i) {
  return std::to_string((i * 37) % 101);
}

TEST_F(StartingModelTest, OrderOfDayAndMonth) {
  const std::string text = model_of("sold,seen,a,y\n" + rows(40, [](int i) {
                                      return std::to_string(1 + i % 28) + "/3/2024," + std::to_string(1 + i % 9) +
                                             ".12.2023," + digits(i) + "," + digits(3 * i);
                                    }));
  EXPECT_TRUE(has(text, R"("dates": "dd/mm/yyyy")")) << text;
  EXPECT_TRUE(has(text, R"js("x": ["days(sold)", "days(seen)", "a"])js")) << text;
  expect_trains();
  const std::string other = model_of("sold,a,y\n" + rows(40, [](int i) {
                                       return std::to_string(1 + i % 12) + "/3/2024," + digits(i) + "," + digits(3 * i);
                                     }));
  EXPECT_TRUE(has(other, R"("x": ["a"])")) << other;
  EXPECT_TRUE(noted("'sold' is omitted: its dates, such as '1/3/2024', may be dd/mm/yyyy or mm/dd/yyyy"));
}

TEST_F(StartingModelTest, SignsInNumbers) {
  for (const auto& [number, says] : {std::pair{"$%,000.50", R"("thousands": ",", "currency": "$")"},
                                     {"%'000.5", R"("thousands": "'")"},
                                     {"%\u202F000,50\u00A0€", R"("decimal": ",", "thousands": " ", "currency": "€")"},
                                     {"£%", R"("currency": "£")"},
                                     {"% 500,5", R"("decimal": ",", "thousands": " ")"}}) {
    const std::string text = model_of("a;y\n" + rows(40, [&, form = std::string(number)](int i) {
                                        std::string cell = form;
                                        cell.replace(cell.find('%'), 1, std::to_string(1 + (i * 37) % 101));
                                        return cell + ";" + digits(3 * i);
                                      }));
    EXPECT_TRUE(has(std::regex_replace(text, std::regex(",\n *"), ", "), says)) << text;
    EXPECT_TRUE(has(text, R"("inputs": {"x": ["batch", 1])")) << text;
    expect_trains();
  }
  const std::string phones =
      model_of("phone,a,y\n" + rows(40, [](int i) {
                 return "030 123 4" + std::to_string(10 + i) + "," + digits(i) + "," + digits(3 * i);
               }));
  EXPECT_FALSE(has(phones, "thousands")) << phones;
}

TEST_F(StartingModelTest, NumbersWordsDatesAndGaps) {
  const std::string text = model_of("id,a,sex,born,name,same,y\n" + rows(60, [](int i) {
                                      return std::to_string(i + 1) + "," + (i % 5 == 0 ? "" : digits(i)) + "," +
                                             (i % 3 == 0 ? "m" : "f") + ",19" + std::to_string(50 + i % 40) +
                                             "-01-02,N" + std::to_string(i) + ",7," + digits(3 * i);
                                    }));
  EXPECT_TRUE(has(text, R"js("x": ["a", "sex", "days(born)"])js")) << text;
  EXPECT_TRUE(has(text, R"("missing": {"a": "median"})")) << text;
  EXPECT_TRUE(has(text, R"("sex": [{"classes": ["m", "f"]}])")) << text;
  EXPECT_TRUE(has(text, R"("inputs": {"x": ["batch", 3], "y": ["batch", 1]})")) << text;
  EXPECT_TRUE(has(text, R"("metrics": ["rmse", "mae", "r2"])")) << text;
  EXPECT_TRUE(noted("'id' is omitted: it counts the rows"));
  EXPECT_TRUE(noted("'name' is omitted: it has more than 40 different strings"));
  EXPECT_TRUE(noted("'same' is omitted: all its values are equal"));
  EXPECT_TRUE(has(text, R"("early_stopping": {"patience": 20})")) << text;
  expect_trains();
}

TEST_F(StartingModelTest, RunningNumbersAreLeftOutAndTimesAreNot) {
  const std::string text = model_of("id,back,saleYear,step,a,y\n" + rows(30, [](int i) {
                                      return std::to_string(1000 + i) + "," + std::to_string(90 - i) + "," +
                                             std::to_string(1990 + i) + "," + std::to_string(3 * i) + "," + digits(i) +
                                             "," + digits(3 * i);
                                    }));
  EXPECT_TRUE(has(text, R"("x": ["saleYear", "step", "a"])")) << text;
  EXPECT_TRUE(noted("'id' is omitted: it counts the rows; to use it"));
  EXPECT_TRUE(noted("'back' is omitted: it counts the rows"));
  EXPECT_TRUE(noted("'saleYear' counts the rows, but is used, because its name suggests a time"));
}

TEST_F(StartingModelTest, ColumnsNamedLikeInputs) {
  const auto table = [](const std::string& header) {
    return header + "\n" + rows(40, [](int i) { return digits(i) + "," + digits(7 * i) + "," + digits(3 * i); });
  };
  EXPECT_TRUE(has(model_of(table("x,y,z"), "z"), R"("features": ["x", "y"], "target": "z")"));
  expect_trains();
  EXPECT_TRUE(has(model_of(table("x,y,z"), "x"), R"("features": ["y", "z"], "target": "x")"));
  expect_trains();
  EXPECT_TRUE(has(model_of(table("a,b,y"), "y"), R"("x": ["a", "b"], "y": "y")"));
  EXPECT_TRUE(
      has(model_of(table("x,features,target"), "target"), R"("features_": ["x", "features"], "target": "target")"));
  expect_trains();
}

// A guess from the first lines is checked with all of them.
TEST_F(StartingModelTest, WhatComesLate) {
  const auto table = [](const std::string& late, int at) {
    return "size,age,y\n" + rows(14000, [&](int i) {
             return (i == at ? late : digits(i)) + "," + digits(7 * i) + ".25," + digits(3 * i);
           });
  };
  const std::string text = model_of(table("n.a.", 13900));
  EXPECT_TRUE(has(text, R"("x": ["size", "age"])")) << text;
  EXPECT_TRUE(noted("'n.a.' is read as a missing value (line 13902, column 'size'): correct the file"));
  expect_trains();
  model_of(table("12b", 13900));
  EXPECT_TRUE(noted("'size' is omitted: it has more than 40 different strings, such as '12b'"));
  expect_trains();
  const std::string comma =
      model_of("a;y\n" + rows(40000, [](int i) { return digits(i) + ";" + digits(3 * i) + (i < 39000 ? "" : ",5"); }));
  EXPECT_TRUE(has(comma, R"("decimal": ",")")) << comma;
  expect_trains();
}

TEST_F(StartingModelTest, FewRows) {
  for (int count = 2; count <= 25; ++count) {
    for (const bool words : {false, true}) {
      const std::string text = model_of("a,b,y\n" + rows(count, [&](int i) {
                                          return digits(i) + (i % 2 == 0 ? ",u," : ",v,") +
                                                 (words ? std::string(i % 3 == 1 ? "no" : "yes") : digits(3 * i));
                                        }));
      SCOPED_TRACE(text);
      EXPECT_EQ(has(text, "early_stopping"), count >= 20);
      EXPECT_EQ(noted("too few"), count < 20);
      expect_trains();
    }
  }
  EXPECT_TRUE(has(message([&] { model_of("a,y\n1,2\n"); }), "'y' has a value in one row"));
}

TEST_F(StartingModelTest, NamesThatCannotBeUsed) {
  const std::string text = model_of("id,a,note,b,note,y,,\n" + rows(30, [](int i) {
                                      return digits(2 * i) + "," + digits(i) + ",u," + digits(5 * i) + ",v," +
                                             digits(3 * i) + ",k" + std::to_string(i) + "," + digits(i);
                                    }));
  EXPECT_TRUE(has(text, R"("x": ["id", "a", "b"])")) << text;
  EXPECT_TRUE(noted("'note' is omitted: another column has the same name"));
  EXPECT_TRUE(noted("'' is omitted: it has no name"));
  expect_trains();
  EXPECT_TRUE(has(message([&] { model_of("a,y,y\n1,2,3\n2,3,4\n"); }), "'y' is the name of two columns"));
}

TEST_F(StartingModelTest, AFirstLineThatIsARow) {
  const std::string cars = "vhigh,vhigh,2,small,low,bad\nvhigh,low,2,small,med,good\nlow,vhigh,3,big,low,bad\n";
  EXPECT_TRUE(has(message([&] { model_of(cars, "5"); }), "put a line of names above it"));
  EXPECT_TRUE(has(message([&] { model_of(cars, "bad"); }), "it is a row like those below it"));
  EXPECT_TRUE(has(message([&] { model_of("39,Private,low\n40,State,low\n41,Private,high\n", "low"); }),
                  "it is a row like those below it"));
  EXPECT_TRUE(has(message([&] { model_of("red,big\ngreen,small\n", "1"); }), "use init --no-header"));
  EXPECT_TRUE(has(message([&] { model_of("2020-01-01,5\n2020-01-02,7\n", "1"); }), "it is a row like those below it"));
  // Files that were put one behind the other have their names in between.
  EXPECT_TRUE(has(model_of("a,y\n1,p\n2,q\n1,p\na,y\n3,q\n", "y"), R"("y": "y")"));
  EXPECT_TRUE(
      has(model_of("land,2019,2020\n" + rows(9, [](int i) { return "n," + digits(i) + "," + digits(2 * i); }), "2020"),
          R"("x": ["2019"])"));
}

TEST_F(StartingModelTest, DelimitersInQuotesAndAtTheEndOfLines) {
  const std::string pipes = model_of(
      "a,p|q,y\n" + rows(20, [](int i) { return digits(i) + (i % 2 == 0 ? ",u|v," : ",w|x,") + digits(3 * i); }));
  EXPECT_TRUE(has(pipes, R"("x": ["a", "p|q"])")) << pipes;
  for (const std::string sign : {";", "\t", "|"}) {
    for (const char* ends : {"", "h", "r", "hr"}) {
      const auto end = [&](char line) { return std::string(ends).find(line) == std::string::npos ? "" : sign; };
      for (const bool words : {false, true}) {
        if (!words && std::string(ends).size() == 1) continue;  // its first line is a row
        const std::string header = words ? "\"a, b\"" + sign + "y" : "1.001,5" + sign + "2,5 %";
        const std::string text =
            model_of(header + end('h') + "\n" +
                         rows(20, [&](int i) { return digits(i) + ",5" + sign + digits(3 * i) + ",25" + end('r'); }),
                     words ? "y" : "1");
        EXPECT_TRUE(has(text, fmt::format(R"("delimiter": "{}")", sign == "\t" ? "\\t" : sign))) << text;
        EXPECT_TRUE(has(text, R"("decimal": ",")")) << text;
        expect_trains();
      }
    }
  }
}

TEST_F(StartingModelTest, AColumnThatCountsTheRowsIsTakenWhereNoOtherIsLeft) {
  const std::string text =
      model_of("name,t,y\n" + rows(60, [](int i) {
                 return "N" + std::to_string(i) + "," + std::to_string(i + 1) + "," + digits(3 * i);
               }));
  EXPECT_TRUE(has(text, R"js("x": ["t"])js")) << text;
  EXPECT_TRUE(noted("column 't' counts the rows, but is used"));
  EXPECT_FALSE(noted("'t' is omitted"));
  EXPECT_TRUE(noted("'name' is omitted"));
  expect_trains();
}

TEST_F(StartingModelTest, WordsAsTargetAreAClassification) {
  const std::string two = model_of("a,y\n" + rows(40, [](int i) { return digits(i) + (i % 3 == 0 ? ",yes" : ",no"); }));
  EXPECT_TRUE(has(two, R"("y": [{"classes": ["no", "yes"]}])")) << two;
  EXPECT_TRUE(has(two, "sigmoid_cross_entropy")) << two;
  EXPECT_TRUE(has(two, R"("stratify": "y")")) << two;
  EXPECT_TRUE(noted(R"(probability, precision and recall are those of 'yes'; ["yes", "no"] in "classes")"));
  expect_trains();
  const char* kinds[] = {",b", ",a", ",c"};
  const std::string three = model_of("a,y\n" + rows(40, [&](int i) { return digits(i) + kinds[i % 3]; }));
  EXPECT_TRUE(has(three, R"("y": [{"one_hot": ["a", "b", "c"]}])")) << three;
  EXPECT_TRUE(has(three, R"("y": ["batch", 3])")) << three;
  expect_trains();
  EXPECT_TRUE(has(model_of("a,y\n" + rows(40, [](int i) { return digits(i) + (i % 3 == 0 ? ",1" : ",0"); })),
                  R"("y": [{"classes": ["0", "1"]}])"));
  expect_trains();
}

TEST_F(StartingModelTest, HowTheFileIsWritten) {
  const std::string text = model_of("# made by hand\nmy a;b;share;y\n" + rows(50, [](int i) {
                                      return "1." + std::to_string(100 + i) + "," + std::to_string(i % 7) + ";" +
                                             (i % 9 == 4 ? "-999" : digits(i)) + ";" + digits(i) + ",5 %;" +
                                             (i % 10 == 3 ? "k. A." : digits(7 * i) + ",25");
                                    }));
  for (const char* key : {R"("delimiter": ";")", R"("decimal": ",")", R"("thousands": ".")", R"("percent": true)",
                          R"("comment": "#")", R"("na": ["k. A.", "-999"])", R"("b": "median")", R"("y": "drop")"})
    EXPECT_TRUE(has(text, key)) << key << " in " << text;
  EXPECT_TRUE(noted("'k. A.' is read as a missing value (5 cells, first in line 6, column 'y')"));
  EXPECT_TRUE(noted("'-999' is read as a missing value (6 cells, first in line 7, column 'b')"));
  EXPECT_TRUE(noted("5 rows without a value of 'y' are omitted"));
  expect_trains();
}

TEST_F(StartingModelTest, NumbersWithSignsAreWords) {
  model_of("price,b,floor,y\n" + rows(12, [](int i) {
             return "#" + digits(i % 4) + "," + digits(i) + (i % 2 == 0 ? ",A1," : ",B2,") + digits(3 * i);
           }));
  EXPECT_TRUE(noted("column 'price' contains text, such as '#0'; to use it as numbers, remove the symbols from it"));
  EXPECT_FALSE(noted("'floor'"));
  expect_trains();
}

TEST_F(StartingModelTest, AFileWithoutNamesHasNumbersForThem) {
  const std::string text = model_of(rows(30, [](int i) { return digits(i) + "\t" + digits(5 * i); }), "1");
  EXPECT_TRUE(has(text, R"("names": ["c0", "c1"])")) << text;
  EXPECT_TRUE(has(text, R"("delimiter": "\t")")) << text;
  expect_trains();
}

TEST_F(StartingModelTest, BlanksAndLibsvm) {
  const std::string text =
      model_of(rows(40, [](int i) { return " " + digits(i) + "    " + digits(5 * i) + " "; }), "1");
  EXPECT_TRUE(has(text, R"("delimiter": " ")")) << text;
  EXPECT_TRUE(has(text, R"("x": ["c0"])")) << text;
  expect_trains();
  const std::string sparse = model_of("# saved by scikit-learn\n#\n" + rows(40,
                                                                            [](int i) {
                                                                              return std::to_string(i % 2) + " " +
                                                                                     std::to_string(1 + i % 2) + ":" +
                                                                                     digits(i) + " 4:" + digits(3 * i);
                                                                            }),
                                      "0");
  EXPECT_TRUE(has(sparse, R"("libsvm": 4, "x": ["c1", "c2", "c4"], "y": "c0")")) << sparse;
  EXPECT_TRUE(noted("column 'c3' is omitted: all its values are equal"));
  expect_trains();
  train();
  write("rows.svm", "0 1:5\n0 4:1\n");
  EXPECT_EQ(predict("rows.svm").size(), 2u);
}

TEST_F(StartingModelTest, ClassesOfNumbersAscendAndListsOfLabelsAreNoted) {
  const std::string text =
      model_of("a,y\n" + rows(40, [](int i) { return digits(i) + (i % 3 == 0 ? ",+1" : ",-1"); }), "y");
  EXPECT_TRUE(has(text, R"([{"classes": ["-1", "+1"]}])")) << text;
  const char* const tags[] = {"a;b", "b", "a"};
  model_of("a,y\n" + rows(40, [&](int i) { return digits(i) + "," + tags[i % 3]; }), "y");
  EXPECT_TRUE(
      noted("'a;b' in column 'y' is one class; if it lists several labels of a row, make a column of 0 and 1 for "
            "each label"));
}

TEST_F(StartingModelTest, ManyCategoriesHaveOneForTheOthers) {
  const std::string text =
      model_of("w,y\n" + rows(90, [](int i) { return "w" + std::to_string(i % 30) + "," + digits(i); }));
  EXPECT_TRUE(has(text, R"("other": true)")) << text;
  EXPECT_TRUE(has(text, R"("x": ["batch", 13])")) << text;
  expect_trains();
}

TEST_F(StartingModelTest, Errors) {
  const std::string table = "a,price\n" + rows(30, [](int i) { return digits(i) + "," + digits(3 * i); });
  EXPECT_TRUE(has(message([&] { model_of(table, "pice"); }), "did you mean 'price'?"));
  EXPECT_TRUE(has(message([&] { model_of("a,y\n1,2\n3,2\n"); }), "'y' has one value"));
  EXPECT_TRUE(has(message([&] { model_of("a,y\n1,\n3,NA\n"); }), "'y' has no value"));
  EXPECT_TRUE(has(message([&] { model_of("a,y\n7,1\n7,2\n"); }), "no column is left to predict from"));
  EXPECT_TRUE(has(message([&] { model_of("a\n1\n2\n"); }), "the first line is one column"));
  EXPECT_TRUE(has(message([&] { model_of("y\n1\n2\n"); }), "no column is left to predict from"));
  EXPECT_TRUE(has(message([&] { model_of(""); }), "the file has no rows"));
  EXPECT_TRUE(has(message([&] { model_of("a,y\n1,2\n3\n"); }), "a.csv:3:1: expected 2 fields"));
  EXPECT_TRUE(has(message([&] { model_template(path("none.csv"), "y", ""); }), "none.csv"));
}

// Whatever a table holds: the model that is written is read, trains and predicts.
TEST_F(StartingModelTest, WhatIsWrittenTrainsAndPredicts) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const char* separators[] = {",", ";", "\t", "|"};
    const std::string separator = separators[dice.below(4)];
    const int columns = 1 + dice.below(5), count = dice.coin() ? 20 + dice.below(60) : 2 + dice.below(18);
    const char* names[] = {"x",     "y",          "y_hat", "h",    "value",  "loss",       "mean",  "days(x)",
                           "a + b", "\"'x\"\"\"", "1",     "e",    "Fläche", "\"target\"", "batch", "x0",
                           "a, b",  "it's",       "y0",    "a\\b", "",       "csv"};
    std::vector<int> kinds;
    std::string text;
    for (int c = 0; c < columns; ++c) {
      kinds.push_back(dice.below(5));
      const std::string name = names[dice.below(22)];
      text += (name == "a, b" ? "\"a, b\"" : name) + separator;
    }
    const int target = dice.below(3);
    const std::string own = dice.coin() ? "x" : "the target";
    const std::string ends = dice.below(4) == 0 ? separator : "";
    text += own + (dice.below(4) == 0 ? separator : "") + "\n";
    for (int r = 0; r < count; ++r) {
      for (const int kind : kinds) {
        const std::string number = std::to_string(dice.below(1000)) + (separator == "," ? ".5" : ",5");
        const std::string cells[] = {number, std::to_string(dice.below(3)),
                                     std::string(1, static_cast<char>('a' + dice.below(4))),
                                     "202" + std::to_string(dice.below(9)) + "-05-1" + std::to_string(dice.below(9)),
                                     dice.coin() ? "true" : "false"};
        text += (r > 3 && dice.below(12) == 0 ? "" : cells[kind]) + separator;
      }
      const std::string targets[] = {std::to_string(dice.below(1000)), dice.coin() ? "yes" : "no",
                                     std::string(1, static_cast<char>('p' + dice.below(3)))};
      text += targets[target] + ends + "\n";
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text.substr(0, 300));
    try {
      SCOPED_TRACE(model_of(text, own));
      LoadOptions options;
      options.overrides = {{"train.epochs", "1"}};
      Session session(load_model(path("model.json"), options));
      session.train();
      save_weights(session, path("w.npz"));
      options.weights = path("w.npz");
      const auto given = load_inputs(path("model.json"), path("a.csv"), options);
      EXPECT_EQ(given.front().second.shape()[0], count);
      session.predict_all(given);
    } catch (const Error& error) {
      const bool is_known = has(error.what(), "no column is left") || has(error.what(), "the target '" + own + "'");
      EXPECT_TRUE(is_known) << error.what();
    }
  }
}

}  // namespace
}  // namespace graphrun
