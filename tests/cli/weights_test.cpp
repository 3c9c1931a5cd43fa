// Weights saved, evaluated, and used for predictions in original units.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

// price = 1000 rooms - 20 age + 500, standardized on the way.
constexpr const char* kHouses = R"json({
  "format": 1,
  "name": "houses",
  "data": {
    "train": {"csv": "houses.csv", "x": ["age", "rooms"], "y": "price"},
    "transform": {"x": ["standardize"], "y": ["standardize"]}
  },
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean((p - y)^2)"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 400, "seed": 1}
})json";

class Weights : public Cli {
 protected:
  void SetUp() override {
    houses_ = file("houses.json", kHouses);
    std::string rows = "age,rooms,price\n";
    for (int i = 0; i < 40; ++i) {
      const int age = i * 7 % 50, rooms = 1 + i * 3 % 8;
      rows += std::to_string(age) + "," + std::to_string(rooms) + "," + std::to_string(price(age, rooms)) + "\n";
    }
    csv_ = file("houses.csv", rows);
    weights_ = (folder_ / "weights.npz").string();
  }
  static int price(int age, int rooms) { return 1000 * rooms - 20 * age + 500; }
  Json train(std::vector<std::string> more = {}) {
    more.insert(more.end(), {houses_, "--json", "--quiet"});
    const Outcome outcome = graphrun(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  std::string houses_, csv_, weights_;
};

TEST_F(Weights, EvalFindsWhatTrainingReached) {
  const Json trained = train({"--save-weights", weights_});
  for (const char* verb : {"eval", "test"}) {
    const Outcome outcome = graphrun({verb, houses_, "--weights", weights_, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json result = Json::parse(outcome.out);
    EXPECT_EQ(keys(result),
              (std::vector<std::string>{"schema", "model", "executor", "math", "seed", "settings", "train",
                                        "validation", "test", "scores", "arena_bytes", "weights_hash"}));
    EXPECT_EQ(result["train"], trained["train"]);
    EXPECT_EQ(result["scores"], trained["scores"]);
    EXPECT_EQ(result["weights_hash"], trained["weights_hash"]);
  }
  EXPECT_TRUE(has(graphrun({"eval", houses_, "--weights", weights_}).out, "rmse"));
  // Training continues from them: one more epoch changes them, none does not.
  EXPECT_NE(train({"--weights", weights_, "--epochs=1"})["weights_hash"], trained["weights_hash"]);
  EXPECT_LT(train({"--weights", weights_, "--epochs=1"})["train"]["rmse"].get<double>(), 1);
  EXPECT_GT(train({"--epochs=1"})["train"]["rmse"].get<double>(), 100);
}

TEST_F(Weights, PredictAnswersInOriginalUnits) {
  train({"--save-weights", weights_});
  const std::string fresh = file("new.csv", "rooms,age\n3,10\n5,0\n2,33\n");  // another order, and no price
  std::filesystem::remove(csv_);                                              // the weights bring what was fitted to it
  const Outcome outcome = graphrun({"predict", houses_, fresh, "--weights", weights_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const std::vector<std::string> rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], "p");
  EXPECT_NEAR(std::stod(rows[1]), price(10, 3), 1);
  EXPECT_NEAR(std::stod(rows[2]), price(0, 5), 1);
  EXPECT_NEAR(std::stod(rows[3]), price(33, 2), 1);
  const Json json = Json::parse(graphrun({"predict", houses_, fresh, "--weights", weights_, "--json"}).out);
  EXPECT_EQ(keys(json), (std::vector<std::string>{"model", "executor", "math", "rows", "columns", "predictions"}));
  EXPECT_EQ(json["rows"], 3);
  EXPECT_NEAR(json["predictions"][1][0].get<double>(), price(0, 5), 1);
  // Batches do not show.
  EXPECT_EQ(graphrun({"predict", houses_, fresh, "--weights", weights_, "--batch=2"}).out, outcome.out);
}

// One file has all that a prediction needs: model, fitted numbers, parameters.
TEST_F(Weights, SafetensorsAreTheModelToo) {
  const std::string safe = (folder_ / "weights.safetensors").string();
  const Json trained = train({"--save-weights", weights_, "--epochs=300"});
  EXPECT_EQ(train({"--save-weights", safe, "--epochs=300"})["weights_hash"], trained["weights_hash"]);
  const std::string fresh = file("new.csv", "rooms,age\n3,10\n5,0\n2,33\n");
  const std::string expected = graphrun({"predict", houses_, fresh, "--weights", weights_}).out;
  ASSERT_EQ(lines(expected).size(), 4u);
  EXPECT_EQ(graphrun({"predict", houses_, fresh, "--weights", safe}).out, expected);
  const Outcome canonical = graphrun({"show", houses_, "--json", "--epochs=300"});
  std::filesystem::remove(houses_);

  EXPECT_EQ(graphrun({"show", safe, "--json"}).out, canonical.out);
  const Outcome evaluated = graphrun({"eval", safe, "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(Json::parse(evaluated.out)["train"], trained["train"]);
  EXPECT_EQ(Json::parse(evaluated.out)["model"], "houses");
  // Training continues: one epoch from these weights is closer than one from the start.
  const Outcome more = graphrun({"train", safe, "--epochs=1", "--json", "-q"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_LT(Json::parse(more.out)["train"]["rmse"].get<double>(), 1);
  expect_rejected(graphrun({"train", safe, "--save-weights", safe}), {"weights.safetensors' is the model file"});
  for (const char* verb : {"plan", "verify", "check", "show"}) {
    const Outcome outcome = graphrun({verb, safe});
    EXPECT_EQ(outcome.code, 0) << verb << ": " << outcome.err;
  }

  std::filesystem::remove(csv_);
  const Outcome outcome = graphrun({"predict", safe, fresh});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected);
  const Outcome piped =
      run({"/bin/bash", "-c", "cat '" + safe + "' | '" GRAPHRUN_CLI "' predict /dev/stdin '" + fresh + "'"});
  EXPECT_EQ(piped.out, expected) << piped.err;
  const Outcome both =
      run({"/bin/bash", "-c",
           "'" GRAPHRUN_CLI "' predict <(cat '" + safe + "') '" + fresh + "' --weights <(cat '" + safe + "')"});
  EXPECT_EQ(both.out, expected) << both.err;
  expect_rejected(graphrun({"eval", safe}), {"weights.safetensors:", "'houses.csv' not found"});

  // A header of no more than braces: weights of nothing, and no model.
  const std::string bare = file("bare.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  expect_rejected(graphrun({"predict", bare, fresh}), {"has weights and no model inside", "--weights"});
  const std::string text = file("text.safetensors", "{\"format\": 1}");
  expect_rejected(graphrun({"predict", text, fresh}), {"text.safetensors': no safetensors file"});
}

TEST_F(Weights, TheTrainingFileItselfCanBePredicted) {
  train({"--save-weights", weights_});
  const std::vector<std::string> rows = lines(graphrun({"predict", houses_, csv_, "--weights", weights_}).out);
  ASSERT_EQ(rows.size(), 41u);
  EXPECT_NEAR(std::stod(rows[1]), price(0, 1), 1);
  EXPECT_NEAR(std::stod(rows[40]), price(39 * 7 % 50, 1 + 39 * 3 % 8), 1);
}

TEST_F(Weights, AnNpyFileIsTheOneInput) {
  // (4, 1): what --dump-to writes of x.
  const std::string npy = (folder_ / "x.npy").string();
  ASSERT_EQ(graphrun({"verify", model_, "--dump=x", "--dump-to", npy}).code, 0);
  ASSERT_EQ(graphrun({model_, "--epochs=2000", "--save-weights", weights_, "-q"}).code, 0);
  const Outcome outcome = graphrun({"predict", model_, npy, "--weights", weights_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 5u);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(std::stod(rows[static_cast<std::size_t>(i) + 1]), 2 * i + 1, 1e-2);
  expect_rejected(graphrun({"predict", houses_, npy, "--weights", weights_}), {"x.npy: input 'x'", "(batch, 2)"});
  Json wide = Json::parse(kLine);  // 4 numbers in a row
  wide["data"] = {{"train", {{"inline", {{"x", {{1, 2, 3, 4}}}, {"y", {1}}}}}}};
  wide["inputs"]["x"] = {"batch", 4};
  const std::string image = file("image.json", wide.dump()), weights = (folder_ / "image.npz").string();
  ASSERT_EQ(graphrun({image, "-q", "--epochs=1", "--save-weights", weights}).code, 0);
  expect_rejected(graphrun({"predict", image, npy, "--weights", weights}), {"the first axis counts the rows"});
}

TEST_F(Weights, SeveralOutputsAreColumns) {
  Json model = Json::parse(kLine);
  model["graph"].push_back("both = concat(p, -p, axis=1)");
  model["outputs"] = Json::parse(R"({"p": "y", "both": null})");
  std::string path = file("two.json", model.dump());
  if (graphrun({"check", path}).code != 0) {  // an output that answers no target
    model["outputs"] = Json::parse(R"(["p", "both"])");
    path = file("two.json", model.dump());
  }
  const Outcome trained = graphrun({path, "-q", "--save-weights", weights_});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome = graphrun({"predict", path, file("x.csv", "x\n1\n2\n"), "--weights", weights_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], "p,both.0,both.1");
  double p = 0, plus = 0, minus = 0;
  ASSERT_EQ(std::sscanf(rows[1].c_str(), "%lf,%lf,%lf", &p, &plus, &minus), 3);
  EXPECT_EQ(p, plus);
  EXPECT_EQ(p, -minus);
}

// line.json has inline rows: one column, x, without a header row.
TEST_F(Weights, AModelWithoutATableReadsColumnsByName) {
  ASSERT_EQ(graphrun({model_, "--epochs=2000", "--save-weights", weights_, "-q"}).code, 0);
  const auto predict = [&](const std::string& content) {
    return graphrun({"predict", model_, file("p.csv", content), "--weights", weights_});
  };
  // More rows than the training had.
  const Outcome outcome = predict("id,x\n7,0\n7,1\n7,2\n7,3\n7,4\n7,5\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 7u);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(std::stod(rows[static_cast<std::size_t>(i) + 1]), 2 * i + 1, 1e-1);
  expect_rejected(predict("1\n2\n"),
                  {"p.csv:1:1: the first line should name the columns", "hint: put a line of names"});
  expect_rejected(predict("foo\n2\n"), {"p.csv: no column 'x'", "foo"});
}

// The units of the target in double: f32 has 128 seconds between two times of today.
TEST_F(Weights, TimesArePredictedApart) {
  Json model = Json::parse(kHouses);
  model["train"]["epochs"] = 50;
  std::string rows = "age,rooms,price\n";
  for (int i = 0; i < 500; ++i)
    rows += std::to_string(i) + "," + std::to_string(i % 7) + "," + std::to_string(1700000000 + 3 * i) + "\n";
  const std::string path = file("times.json", model.dump()), csv = file("houses.csv", rows);
  ASSERT_EQ(graphrun({path, "-q", "--save-weights", weights_}).code, 0);
  std::vector<std::string> times = lines(graphrun({"predict", path, csv, "--weights", weights_}).out);
  ASSERT_EQ(times.size(), 501u);
  EXPECT_NEAR(std::stod(times[1]), 1700000000, 60);
  std::sort(times.begin(), times.end());
  EXPECT_EQ(std::unique(times.begin(), times.end()) - times.begin(), 501);
}

TEST_F(Weights, EvalSplitsAsTheTrainingDid) {
  Json model = Json::parse(kHouses);
  model["data"]["source"] = model["data"]["train"];
  model["data"].erase("train");
  model["data"]["split"] = {0.5, 0.25, 0.25};
  const std::string path = file("split.json", model.dump());
  const Outcome trained = graphrun({path, "--seed=5", "--json", "-q", "--save-weights", weights_});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome = graphrun({"eval", path, "--weights", weights_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* split : {"train", "validation", "test"})
    EXPECT_EQ(Json::parse(outcome.out)[split], Json::parse(trained.out)[split]) << split;
  expect_rejected(graphrun({"eval", path, "--weights", weights_, "--set", "data.split=[0.25, 0.25, 0.5]"}),
                  {"trained with the split [0.5, 0.25, 0.25]", "'test' may contain training rows"});
  file("houses.csv", "age,rooms,price\n1,2,3\n3,4,5\n5,6,7\n6,1,2\n");
  expect_rejected(graphrun({"eval", path, "--weights", weights_}), {"the source had 40 rows", "now it has 4"});
  const Outcome again = graphrun({path, "--weights", weights_, "--epochs=1", "--json"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(again.err, "warning: the source had 40 rows")) << again.err;
}

TEST_F(Weights, APredictionThatIsNoneIsRejected) {
  Json model = Json::parse(kLine);
  model["graph"] = {{{"name", "h"}, {"op", "dense"}, {"inputs", {"x"}}, {"units", 1}},
                    "p = random_normal(y)",
                    "loss = mean((h - y)^2)"};
  const std::string path = file("noise.json", model.dump());
  ASSERT_EQ(graphrun({path, "-q", "--save-weights", weights_}).code, 0);
  expect_rejected(graphrun({"predict", path, file("p.csv", "x\n1\n"), "--weights", weights_}),
                  {"no output depends on an input"});
}

TEST_F(Weights, ErrorsAreAnsweredWithWhatToDo) {
  train({"--save-weights", weights_});
  const auto predict = [&](const std::string& name, const std::string& content) {
    return graphrun({"predict", houses_, file(name, content), "--weights", weights_});
  };
  expect_rejected(graphrun({"eval", houses_}), {"eval needs the weights", "--save-weights"});
  expect_rejected(graphrun({"predict", houses_, csv_}), {"predict needs the weights", "--save-weights"});
  expect_rejected(graphrun({"predict", houses_, "--weights", weights_}), {"predict needs a data file"});
  expect_rejected(graphrun({"predict", houses_, "none.csv", "--weights", weights_}), {"no such file: 'none.csv'"});
  expect_rejected(predict("rows.txt", ""), {"rows.txt", "the file has no rows"});
  expect_rejected(predict("agge.csv", "rooms,agge\n1,2\n"), {"agge.csv: no column 'age'", "did you mean 'agge'?"});
  expect_rejected(predict("ten.csv", "rooms,age\n1,ten\n"),
                  {"ten.csv:2:3", "expected a number, got 'ten'", "correct the value"});
  expect_rejected(predict("gap.csv", "rooms,age\n1,\n"),
                  {"the model was trained without imputation of 'age'", "next to the file name and train again"});
  expect_rejected(predict("bare.csv", "1,2\n"), {"put a line of names above it; the model takes age, rooms"});
  expect_rejected(predict("semicolon.csv", "rooms;age\n1;2\n"),
                  {"has ';' between columns, and the model expects ','", "--set 'data.source.delimiter=;'"});
  expect_rejected(predict("broken.npy", "not numpy"), {"broken.npy"});
  expect_rejected(predict("rows.csv", "rooms,age\n"), {"no rows"});
  expect_rejected(graphrun({"eval", houses_, "--weights", csv_}), {"not an NPZ file"});
  expect_rejected(graphrun({"eval", houses_, "--weights", (folder_ / "none.npz").string()}), {"none.npz"});
  expect_rejected(graphrun({"eval", model_, "--weights", weights_}), {"weights.npz", "p.W"});
  expect_rejected(graphrun({houses_, "--save-weights", (folder_ / "none" / "w.npz").string()}), {"cannot write"});
  expect_rejected(graphrun({houses_, "--save-weights", folder_.string()}), {"it is a folder"});
}

// predict reads the weights before it loads the model with them.
TEST_F(Weights, MayComeFromAPipe) {
  train({"--save-weights", weights_});
  const std::string pipe = (folder_ / "pipe").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"predict", houses_, csv_, "--weights"}, {"eval", houses_, "--weights"}}) {
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] {
      std::ofstream(pipe, std::ios::binary) << std::ifstream(weights_, std::ios::binary).rdbuf();
      std::ofstream nothing_more(pipe);  // when it is opened again
    });
    std::vector<std::string> from_file = words, from_pipe = words;
    from_file.push_back(weights_);
    from_pipe.push_back(pipe);
    const Outcome piped = graphrun(from_pipe);
    const int end = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);  // lets the writer go
    writer.join();
    ::close(end);
    ::unlink(pipe.c_str());
    EXPECT_EQ(piped.code, 0) << piped.err;
    EXPECT_EQ(piped.out, graphrun(from_file).out);
  }
}

TEST_F(Weights, AnInterruptedTrainingSavesWhatItHas) {
  bool sent = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (sent || !has(err, "epoch ")) return;
    sent = true;
    kill(process, SIGINT);
  };
  const Outcome outcome = graphrun(
      {houses_, "--json", "--epochs=2000000000", "--set", "train.log_every=1000", "--save-weights", weights_}, options);
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  const Outcome eval = graphrun({"eval", houses_, "--weights", weights_, "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(Json::parse(eval.out)["weights_hash"], Json::parse(outcome.out)["weights_hash"]);
}

}  // namespace
}  // namespace graphrun::testing
