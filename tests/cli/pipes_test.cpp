// Models, rows and predictions through pipes: answered row by row, in every format, and the same bytes as from a file.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fixture.h"

namespace graphrun::testing {
namespace {

constexpr const char* kPeople = R"js({
  "format": 1,
  "data": {
    "train": {"csv": "people.csv", "x": ["sex", "age", "year(born) / 1000"], "y": "group", "missing": {"age": "median"}},
    "transform": {"sex": ["one_hot"], "age": ["standardize"], "y": ["one_hot"]}
  },
  "inputs": {"x": ["batch", 4], "y": ["batch", 3]},
  "graph": [{"name": "logits", "op": "dense", "inputs": ["x"], "units": 3},
            "loss = mean(softmax_cross_entropy(logits, y))"],
  "outputs": {"logits": "y"},
  "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 5, "seed": 1}
})js";

class Pipes : public Cli {
 protected:
  void SetUp() override {
    people_ = file("people.json", kPeople);
    const char* groups[] = {"red", "green", "dark blue"};
    for (int i = 0; i < 30; ++i)
      rows_.push_back(std::string("\"P, ") + std::to_string(i) + "\"," + (i % 2 == 0 ? "m" : "f") + "," +
                      (i % 7 == 3 ? "" : std::to_string(20 + i)) + ",19" + std::to_string(50 + i) + "-03-04," +
                      groups[i % 3]);
    table_ = file("people.csv", header_ + joined(rows_));
    weights_ = (folder_ / "w.npz").string();
    ASSERT_EQ(graphrun({"train", people_, "--quiet", "--save-weights", weights_}).code, 0);
  }
  static std::string joined(const std::vector<std::string>& rows) {
    std::string text;
    for (const std::string& row : rows) text += row + "\n";
    return text;
  }
  Outcome predict(std::vector<std::string> words) const {
    words.insert(words.begin(), "predict");
    words.insert(words.end(), {"--quiet", "--weights", weights_});
    return graphrun(words);
  }
  // The same through sh, where stdin is what the command prints.
  Outcome through(const std::string& command, const std::string& words) const {
    return run({"/bin/sh", "-c", command + " | '" GRAPHRUN_CLI "' " + words});
  }
  std::string quoted(const std::string& path) const { return "'" + path + "'"; }
  std::string content(const std::string& name) const {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  const std::string header_ = "name,sex,age,born,group\n";
  std::vector<std::string> rows_;
  std::string people_, table_, weights_;
};

TEST_F(Pipes, RowsOfAPipeAreThoseOfTheFile) {
  const Outcome whole = predict({people_, table_});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string words = "predict " + quoted(people_) + " - --quiet --weights " + quoted(weights_);
  EXPECT_EQ(through("cat " + quoted(table_), words).out, whole.out);
  EXPECT_EQ(through("(while IFS= read -r line; do printf '%s\\n' \"$line\"; done) <" + quoted(table_), words).out,
            whole.out);
  EXPECT_EQ(through("sed 's/$/\\r/' " + quoted(table_), words).out, whole.out);          // CRLF
  EXPECT_EQ(through("head -c -1 " + quoted(table_), words).out, whole.out);              // no last line end
  EXPECT_EQ(through("dd bs=7 status=none if=" + quoted(table_), words).out, whole.out);  // in small pieces
  EXPECT_EQ(through("gzip -c " + quoted(table_), words).out, whole.out);
  EXPECT_EQ(
      through("cat " + quoted(people_), "predict - " + quoted(table_) + " --quiet --weights " + quoted(weights_)).out,
      whole.out);
}

// A prediction is there before the next row is written.
TEST_F(Pipes, EachRowIsAnsweredAsItComes) {
  std::array<int, 2> to{}, from{};
  ASSERT_EQ(::pipe(to.data()), 0);
  ASSERT_EQ(::pipe(from.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(to[0], STDIN_FILENO);
    ::dup2(from[1], STDOUT_FILENO);
    for (const int one : {to[0], to[1], from[0], from[1]}) ::close(one);
    ::execl(GRAPHRUN_CLI, GRAPHRUN_CLI, "predict", people_.c_str(), "-", "--quiet", "--weights", weights_.c_str(),
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  const auto say = [&](const std::string& text) {
    return ::write(to[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  };
  const auto hear = [&] {
    std::string line;
    for (char c = 0; ::read(from[0], &c, 1) == 1 && c != '\n';) line += c;
    return line;
  };
  EXPECT_TRUE(say(header_ + rows_[0].substr(0, 5)));
  EXPECT_TRUE(say(rows_[0].substr(5) + "\n"));
  EXPECT_EQ(hear(), "y,logits.red,logits.green,logits.dark blue");
  std::string heard = hear() + "\n";
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_TRUE(say(rows_[i] + "\n"));
    heard += hear() + "\n";
  }
  ::close(to[1]);
  EXPECT_EQ(hear(), "");
  ::close(from[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::string five = file("five.csv", header_ + joined({rows_.begin(), rows_.begin() + 5}));
  EXPECT_EQ("y,logits.red,logits.green,logits.dark blue\n" + heard, predict({people_, five}).out);
}

TEST_F(Pipes, JsonRowsAreThoseOfTheTable) {
  std::string lines, list;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Json row;
    row["born"] = "19" + std::to_string(50 + i) + "-03-04";
    row["age"] = i % 7 == 3 ? Json() : Json(20 + i);
    row["sex"] = i % 2 == 0 ? "m" : "f";
    lines += row.dump() + "\n";
    list += (i == 0 ? "[" : ",\n") + row.dump();
  }
  const std::string expected = predict({people_, table_}).out;
  EXPECT_EQ(predict({people_, file("a.jsonl", lines)}).out, expected);
  EXPECT_EQ(predict({people_, file("a.json", list + "]")}).out, expected);
  const std::string words = "predict " + quoted(people_) + " - --quiet --weights " + quoted(weights_);
  EXPECT_EQ(through("cat " + quoted((folder_ / "a.jsonl").string()), words).out, expected);
  EXPECT_EQ(through("cat " + quoted((folder_ / "a.json").string()), words + " --format=json").out, expected);
  const Outcome misspelt = predict(
      {people_,
       file("b.jsonl", "{\"sex\": \"m\", \"age\": 1, \"born\": \"1950-03-04\"}\n{\"sex\": \"m\", \"aeg\": 1}\n")});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_NE(misspelt.err.find("b.jsonl:2:1: row 1, column 'age': the row has no key 'age'"), std::string::npos)
      << misspelt.err;
}

TEST_F(Pipes, KeptColumnsLabelsAndProbabilities) {
  const Outcome plain = predict({people_, table_});
  const Outcome kept = predict({people_, table_, "--keep", "name,group", "--probabilities"});
  ASSERT_EQ(kept.code, 0) << kept.err;
  const std::vector<std::string> before = lines(plain.out), after = lines(kept.out);
  ASSERT_EQ(after.size(), 31u);
  EXPECT_EQ(after[0], "name,group,y,probability.red,probability.green,probability.dark blue");
  EXPECT_EQ(after[1].substr(0, 15), "\"P, 0\",red,red,");
  for (std::size_t i = 1; i < after.size(); ++i) {
    std::istringstream numbers(after[i].substr(after[i].find(',', after[i].rfind("\",")) + 1));
    const std::string label = before[i].substr(0, before[i].find(','));
    EXPECT_NE(after[i].find("," + label + ","), std::string::npos);
    double sum = 0;
    std::string cell;
    for (std::istringstream cells(after[i]); std::getline(cells, cell, ',');) {
      if (cell.find_first_not_of("0123456789.e-") == std::string::npos && !cell.empty()) sum += std::stod(cell);
    }
    EXPECT_NEAR(sum, 1, 1e-5) << after[i];
  }
  const Json json = Json::parse(predict({people_, table_, "--keep=name", "--json"}).out);
  EXPECT_EQ(json["columns"][0], "name");
  EXPECT_EQ(json["predictions"][0][0], "P, 0");
  EXPECT_EQ(json["rows"], 30);
  std::string twice = "y,y.predicted," + header_;
  for (const std::string& row : rows_) twice += "\"a, \"\"b\"\"\",c," + row + "\n";
  const std::string named = file("named.csv", twice);
  const std::vector<std::string> distinct = lines(predict({people_, named, "--keep", "y,y.predicted"}).out);
  EXPECT_EQ(distinct[0].substr(0, 33), "y,y.predicted,y.predicted.2,logit");
  EXPECT_EQ(distinct[1].substr(0, 16), "\"a, \"\"b\"\"\",c,red");
  const Outcome unknown = predict({people_, table_, "--keep", "nmae"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'name'?"), std::string::npos);
  const Outcome none = graphrun({"predict", model_, table_, "--weights", weights_, "--labels"});
  EXPECT_EQ(none.code, 2);
}

// The numbers of the axes are columns of the result, which is that of a file with them.
TEST_F(Pipes, AGridOfNumbersStandsForAFile) {
  const std::string plane = file("plane.json", R"js({"format": 1,
    "data": {"train": {"grid": {"u": [-3, 3, 9], "v a": [0, 1, 3]}, "x": ["u", "v a"], "y": "u + 1"}},
    "inputs": {"x": ["batch", 2], "y": ["batch", 1]}, "graph": ["p = dense(x, units=1)", "loss = mse(p, y)"],
    "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 2}})js");
  const std::string weights = (folder_ / "plane.safetensors").string();
  ASSERT_EQ(graphrun({plane, "--quiet", "--save-weights", weights}).code, 0);
  const Outcome grid = graphrun({"predict", weights, "--grid", "u=-3:3:3,v a=0.1:1:2"});
  ASSERT_EQ(grid.code, 0) << grid.err;
  const std::string rows = file("rows.csv", "u,v a\n-3,0.1\n-3,1\n0,0.1\n0,1\n3,0.1\n3,1\n");
  EXPECT_EQ(grid.out, graphrun({"predict", weights, rows, "--keep", "u,v a"}).out);
  for (const char* axes : {"", "u", "u=1:2", "u=1:x:3", "u=1:2:0", "u=1:2:1.5", "u=nan:2:3", "u=1:2:9000000000"}) {
    const Outcome wrong = graphrun({"predict", weights, "--grid", axes});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("--grid "), std::string::npos) << axes << ": " << wrong.err;
  }
  const Outcome less = graphrun({"predict", weights, "--grid", "u=0:1:2"});
  EXPECT_EQ(less.code, 2);
  EXPECT_TRUE(less.err.starts_with("--grid: ")) << less.err;
  const Outcome other = graphrun({"predict", weights, "--grid", "v a=0:1:2"});
  EXPECT_TRUE(other.err.starts_with("--grid: no column 'u'; --grid has v a")) << other.err;
  EXPECT_EQ(graphrun({"predict", weights, rows, "--grid", "u=0:1:2"}).code, 2);
}

// A formula over columns of a random table, which new rows do not have: they may have the input itself.
TEST_F(Pipes, ColumnsWithTheNamesOfInputsReplaceFormulas) {
  const std::string points = file("points.json", R"js({"format": 1,
    "data": {"train": {"random": {"rows": 9, "columns": {"k": {"uniform": [0, 1]}, "x0": {"uniform": [-1, 1]}}},
      "x": "where(k < 0.5, 0.5 * x0, x0)", "y": "x0 + 1"}},
    "inputs": {"x": ["batch", 1], "y": ["batch", 1]}, "graph": ["p = dense(x, units=1)", "loss = mse(p, y)"],
    "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 2}})js");
  const std::string weights = (folder_ / "points.safetensors").string();
  ASSERT_EQ(graphrun({points, "--quiet", "--save-weights", weights}).code, 0);
  const Outcome grid = graphrun({"predict", weights, "--grid", "x=-0.5:0.5:2"});
  ASSERT_EQ(grid.code, 0) << grid.err;
  const std::string formula = graphrun({"predict", weights, file("f.csv", "k,x0\n0.1,-1\n0.1,1\n")}).out;
  const std::string both = graphrun({"predict", weights, file("b.csv", "x,k,x0\n7,0.1,-1\n7,0.1,1\n")}).out;
  const std::string input = graphrun({"predict", weights, file("x.csv", "x\n-0.5\n0.5\n")}).out;
  EXPECT_EQ(input, formula);
  EXPECT_EQ(both, formula);
  EXPECT_EQ(grid.out, graphrun({"predict", weights, file("x.csv", "x\n-0.5\n0.5\n"), "--keep", "x"}).out);
  const Outcome other = graphrun({"predict", weights, "--grid", "z=0:1:2"});
  EXPECT_TRUE(other.err.starts_with("--grid: no column 'x'; --grid has z")) << other.err;
  const std::string arrays = (folder_ / "arrays.npz").string();  // weights of a model whose parameter has that name
  const std::string saves = file("saves.json", R"js({"format": 1,
    "data": {"train": {"grid": {"u": [0, 1, 2]}, "u": "u"}}, "inputs": {"u": ["batch", 1]},
    "parameters": {"x": {"shape": [2, 1], "init": [[-0.5], [0.5]]}}, "graph": ["loss = sum(x) + mean(u)"],
    "outputs": ["u"], "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0}}, "epochs": 1}})js");
  ASSERT_EQ(graphrun({saves, "--quiet", "--save-weights", arrays}).code, 0);
  EXPECT_EQ(graphrun({"predict", weights, arrays}).out, formula);
  const Outcome lacks = graphrun({"predict", weights, file("k.csv", "k\n0.5\n")});
  EXPECT_EQ(lacks.code, 2);
  EXPECT_NE(lacks.err.find("no column 'x0'"), std::string::npos) << lacks.err;
}

TEST_F(Pipes, AnOutputFileIsWholeOrNotThere) {
  const std::string out = (folder_ / "p.csv").string();
  ASSERT_EQ(predict({people_, table_, "--output", out}).code, 0);
  EXPECT_EQ(content("p.csv"), predict({people_, table_}).out);
  file("p.csv", "mine");
  const std::string bad = file("bad.csv", header_ + rows_[0] + "\n" + "x,z,1,1950-03-04,red\n");
  EXPECT_EQ(predict({people_, bad, "-o", out}).code, 2);
  EXPECT_EQ(content("p.csv"), "mine");
  EXPECT_EQ(predict({people_, table_, "--output", table_}).code, 2);
  EXPECT_EQ(content("people.csv"), header_ + joined(rows_));
}

TEST_F(Pipes, ErrorsNameTheRowAndLineOfTheStream) {
  const std::string words = "predict " + quoted(people_) + " - --quiet --weights " + quoted(weights_);
  const std::string bad = file("bad.csv", header_ + joined(rows_) + "x,unknown,1,1950-03-04,red\n");
  const Outcome piecewise =
      through("(head -n 12 " + quoted(bad) + "; sleep 0.2; tail -n +13 " + quoted(bad) + ")", words);
  EXPECT_EQ(piecewise.code, 2);
  EXPECT_NE(piecewise.err.find(":32:3: row 30, column 'sex': 'unknown' is not one of the categories m, f"),
            std::string::npos)
      << piecewise.err;
  EXPECT_EQ(lines(piecewise.out).size(), 12u);  // the header, and the rows of the first piece
  const std::pair<const char*, const char*> errors[] = {{"true", "the file has no rows"},
                                                        {"printf 'name,sex\\n'", "the file has no rows"},
                                                        {"printf '1,2\\n3,4\\n'", "should name the columns"},
                                                        {"printf '\\0\\0'", "byte 0 is 0"},
                                                        {"printf 'name,sex\\n\"a,m\\n'", "never closed"},
                                                        {"printf '{\"sex\": \\n'", "stdin"}};
  for (const auto& [command, says] : errors) {
    const Outcome rejected = through(command, words);
    EXPECT_EQ(rejected.code, 2) << command;
    EXPECT_NE(rejected.err.find(says), std::string::npos) << command << "\n" << rejected.err;
  }
  EXPECT_EQ(through("cat " + quoted(people_), "predict - - --weights " + quoted(weights_)).code, 2);
}

TEST_F(Pipes, OtherLabelledRowsAreEvaluated) {
  const Outcome trained = graphrun({"eval", people_, "--quiet", "--json", "--weights", weights_});
  const Outcome other = graphrun({"eval", people_, "--quiet", "--json", "--weights", weights_, "--data", table_});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(Json::parse(other.out)["data"], Json::parse(trained.out)["train"]);
  EXPECT_EQ(Json::parse(other.out)["scores"]["data"], Json::parse(trained.out)["scores"]["train"]);
  EXPECT_FALSE(Json::parse(other.out).contains("train"));
  const Outcome piped = through("cat " + quoted(table_),
                                "eval " + quoted(people_) + " --quiet --json --data - --weights " + quoted(weights_));
  EXPECT_EQ(piped.out, other.out);
  const std::string without = file("c.csv", "sex,age,born\nm,1,1950-03-04\n");
  const Outcome rejected = graphrun({"eval", people_, "--weights", weights_, "--data", without});
  EXPECT_EQ(rejected.code, 2);
  EXPECT_NE(rejected.err.find("group"), std::string::npos) << rejected.err;
}

}  // namespace
}  // namespace graphrun::testing
