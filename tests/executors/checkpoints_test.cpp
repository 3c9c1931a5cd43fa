// Checkpoints: a training that goes on from one is the training that was never interrupted, bit by bit; what is damaged
// or of another training is refused, and changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "base/philox.h"
#include "graph/frontend/library/optimizers.h"
#include "graphrun/checkpoint.h"
#include "graphrun/error.h"
#include "graphrun/weights.h"
#include "support/allocations.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "support/tensors.h"

namespace graphrun::checkpoints {
namespace {

constexpr std::int64_t kRows = 7, kEpochs = 4;
constexpr std::uint64_t kStepsOfEpoch = 3;  // of batches of 3, 3 and 1

// Shuffled rows, a partial batch, dropout, an evaluation after each epoch.
Model small_model(const std::string& optimizer = "adam", std::int64_t epochs = kEpochs) {
  const bool joint = optimizer == "bfgs" || optimizer == "levenberg_marquardt";  // the same loss in every step
  GraphBuilder graph(joint ? kRows : 3);
  graph.input("x", {kBatch, 2});
  graph.input("y", {kBatch, 1});
  const Value h = graph.dense("h", graph.find("x"), 5, "tanh");
  const Value dropped = joint ? h : graph.op("dropout", {h}, {{"rate", 0.25}});
  const Value p = graph.dense("p", dropped, 1);
  Model model(std::move(graph));
  model.outputs = {{p, "p", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(p - y))");
  model.train.optimizer.name = optimizer;
  model.train.optimizer.attributes.clear();
  if (!joint) model.train.optimizer.attributes = {{"lr", 0.05}};
  model.train.epochs = joint ? 20 : epochs;
  model.train.seed = 3;
  model.train.shuffle = !joint;
  model.train.evaluate_every = 1;
  model.train.log_every = 1;
  model.data.splits = {{"train",
                        {{"x", test::random_tensor(DType::f32, {kRows, 2}, -1, 1, "x")},
                         {"y", test::random_tensor(DType::f32, {kRows, 1}, -1, 1, "y")}}},
                       {"validation",
                        {{"x", test::random_tensor(DType::f32, {4, 2}, -1, 1, "vx")},
                         {"y", test::random_tensor(DType::f32, {4, 1}, -1, 1, "vy")}}}};
  return model;
}

SessionOptions on(const std::string& executor) {
  SessionOptions options;
  options.custom_executor = test::executor(executor);
  return options;
}

struct Reported {
  std::int64_t epoch;
  double loss, validation;
  friend bool operator==(const Reported&, const Reported&) = default;
};

// What a training is remembered by.
struct Trained {
  std::vector<Reported> reports;
  std::vector<double> losses;
  std::string hash;
  std::string checkpoint;  // the bytes of one at the end
};

TrainOptions remembering(Trained& trained) {
  TrainOptions options;
  options.on_report = [&](const Report& report) {
    trained.reports.push_back({report.epoch, report.loss, report.validation ? report.validation->loss : -1});
  };
  options.on_losses = [&](std::span<const double> losses) {
    trained.losses.insert(trained.losses.end(), losses.begin(), losses.end());
  };
  return options;
}

void finish(Session& session, const test::TemporaryFolder& folder, Trained& trained) {
  trained.hash = session.weights_hash();
  save_checkpoint(session, folder.file("end.safetensors"));
  trained.checkpoint = test::content_of(folder.file("end.safetensors"));
}

// Trains without an interruption and leaves a checkpoint after every step in the folder.
Trained straight(Model model, const SessionOptions& how, const test::TemporaryFolder& folder) {
  Session session(std::move(model), how);
  CheckpointFolder checkpoints(folder.file("steps"), {.steps = 1}, 1000);
  checkpoints.begin(session);
  Trained trained;
  TrainOptions options = remembering(trained);
  checkpoints.connect(options);
  session.train(options);
  checkpoints.save();
  finish(session, folder, trained);
  return trained;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string step_file(const test::TemporaryFolder& folder, std::uint64_t step) {
  return folder.file(fmt::format("steps/checkpoint-{:012}.safetensors", step));
}

Trained resumed(Model model, const SessionOptions& how, const std::string& from, const test::TemporaryFolder& folder) {
  Session session(std::move(model), how);
  const CheckpointInfo info = load_checkpoint(session, from);
  EXPECT_TRUE(info.same_plan);
  Trained trained;
  const TrainResult result = session.train(remembering(trained));
  EXPECT_EQ(result.first_step, info.step);
  EXPECT_FALSE(result.cancelled);
  finish(session, folder, trained);
  return trained;
}

void expect_the_same_end(const Trained& whole, const Trained& part, std::uint64_t step, std::uint64_t of_epoch) {
  EXPECT_EQ(part.hash, whole.hash);
  EXPECT_TRUE(part.checkpoint == whole.checkpoint) << "the last checkpoints differ";
  ASSERT_LE(step, whole.losses.size());
  EXPECT_EQ(part.losses,
            std::vector<double>(whole.losses.begin() + static_cast<std::ptrdiff_t>(step), whole.losses.end()));
  const auto first = whole.reports.begin() + static_cast<std::ptrdiff_t>(step / of_epoch);
  EXPECT_TRUE(part.reports == std::vector<Reported>(first, whole.reports.end())) << "the reports differ";
}

void expect_bit_exact_from_every_step(const std::function<Model()>& model, const SessionOptions& how,
                                      std::uint64_t of_epoch = kStepsOfEpoch) {
  const test::TemporaryFolder folder;
  const Trained whole = straight(model(), how, folder);
  ASSERT_FALSE(whole.losses.empty());
  for (std::uint64_t step = 1; step <= whole.losses.size(); ++step) {
    SCOPED_TRACE("from step " + std::to_string(step));
    expect_the_same_end(whole, resumed(model(), how, step_file(folder, step), folder), step, of_epoch);
  }
}

TEST(Checkpoints, EveryOptimizerGoesOnFromEveryStepOnEveryExecutor) {
  for (const auto& [name, executor] : test::executors().present) {
    for (const OptimizerDef& optimizer : optimizers()) {
      SCOPED_TRACE(name + ", " + std::string(optimizer.name));
      const std::uint64_t of_epoch = optimizer.update == nullptr ? 1 : kStepsOfEpoch;
      expect_bit_exact_from_every_step([&] { return small_model(std::string(optimizer.name)); }, on(name), of_epoch);
    }
  }
}

TEST(Checkpoints, SchedulesClippingAndDroppedBatchesGoOn) {
  for (const char* schedule : {"linear", "cosine", "exponential"}) {
    for (const bool drop_last : {false, true}) {
      SCOPED_TRACE(schedule);
      const auto model = [&] {
        Model one = small_model("momentum");
        one.train.optimizer.lr = ScheduleSpec{schedule, {{"from", 0.1}, {"epochs", 5.0}, {"warmup", 1.0}}};
        if (std::string(schedule) == "exponential")
          one.train.optimizer.lr->attributes.emplace_back("factor", 0.5);
        else
          one.train.optimizer.lr->attributes.emplace_back("to", 0.01);
        one.train.clip_norm = 0.5;
        one.train.drop_last = drop_last;
        return one;
      };
      expect_bit_exact_from_every_step(model, on("cpu"), drop_last ? 2 : kStepsOfEpoch);
    }
  }
}

// Slots of two optimizers, states, and draws by the step.
TEST(Checkpoints, ObjectivesAndStatesGoOn) {
  const std::string text = R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [[1], [3], [5], [11], [2]]}}},
    "inputs": {"x": ["batch", 1]},
    "states": {"level": {"shape": [1]}, "W.average": {"shape": [2, 1]}},
    "graph": [
      "z = random_normal(x, shape=2)",
      "W = dense(z, units=1)",
      "judge = dense(W, units=1)",
      "of_x = dense(x, share=judge)",
      "one = mean(softplus(judge)) + mean(softplus(-of_x))",
      "two = mean(softplus(-judge)) + 0.01 * mean(square(W - level))",
      "assign(level, 0.5 * level + 0.5 * mean(x, axis=0))",
      "assign(W.average, 0.5 * W.average + 0.5 * W.W, after=true)"
    ],
    "outputs": ["W"],
    "train": {
      "objectives": {"first": {"minimize": "one", "parameters": ["judge"], "optimizer": {"adam": {"lr": 0.1}}},
                     "second": {"minimize": "two", "parameters": ["W.W", "W.b"], "optimizer": {"momentum": {"lr": 0.1}}}},
      "batch": 2, "epochs": 3, "seed": 4, "clip_norm": 2
    }
  })json";
  for (const auto& [name, executor] : test::executors().present) {
    SCOPED_TRACE(name);
    expect_bit_exact_from_every_step([&] { return load_model(test::write_model(text)); }, on(name));
  }
}

// What they have seen, the best weights and the factor of the learning rate are in the checkpoint.
TEST(Checkpoints, EarlyStoppingAndLoweredLearningRatesGoOn) {
  for (const bool restores : {false, true}) {
    const auto model = [restores] {
      Model one = small_model("momentum", 40);
      EarlyStopping& stopping = one.train.early_stopping.emplace();
      stopping.patience = 4;
      stopping.min_delta = 0.01;
      stopping.restore_best = restores;
      LrPlateau& plateau = one.train.lr_plateau.emplace();
      plateau.patience = 1;
      plateau.min_delta = 0.02;
      plateau.factor = 0.5;
      return one;
    };
    Session session(model(), on("cpu"));
    const TrainResult whole = session.train();
    EXPECT_TRUE(whole.stopped_early);
    EXPECT_LT(whole.lr_factor, 1);
    expect_bit_exact_from_every_step(model, on("cpu"));
  }
}

TEST(Checkpoints, WithoutRegionsAndWithoutPassesToo) {
  for (const bool passes : {false, true}) {
    SessionOptions options = on("cpu");
    options.passes = passes;
    options.fuse = false;
    expect_bit_exact_from_every_step([] { return small_model(); }, options);
  }
}

TEST(Checkpoints, AreBitExactInDoublePrecision) {
  const auto model = [] {
    Model wide = small_model();
    wide.train.precision = Precision::fp64;
    return wide;
  };
  for (const char* name : {"ref", "cpu"}) expect_bit_exact_from_every_step(model, on(name));
}

TEST(Checkpoints, MoveFromOneExecutorToAnother) {
  const test::TemporaryFolder folder;
  const Trained whole = straight(small_model(), on("cpu"), folder);
  for (const auto& [name, executor] : test::executors().present) {
    Session session(small_model(), on(name));
    const CheckpointInfo info = load_checkpoint(session, step_file(folder, 5));
    EXPECT_EQ(info.same_plan, name == "cpu") << name;
    EXPECT_EQ(info.executor, "cpu");
    Trained part;
    session.train(remembering(part));
    ASSERT_EQ(part.losses.size(), whole.losses.size() - 5);
    for (std::size_t i = 0; i < part.losses.size(); ++i) EXPECT_NEAR(part.losses[i], whole.losses[i + 5], 1e-4) << name;
  }
}

// --epochs=6 after a training of 3 is a training of 6.
TEST(Checkpoints, MoreEpochsGoOnAsIfTheyHadBeenAskedForAtOnce) {
  const test::TemporaryFolder folder, other;
  const Trained six = straight(small_model("adam", 6), on("cpu"), other);
  straight(small_model("adam", 3), on("cpu"), folder);
  const Trained part = resumed(small_model("adam", 6), on("cpu"), step_file(folder, 9), folder);
  expect_the_same_end(six, part, 9, kStepsOfEpoch);
}

TEST(Checkpoints, ACancelledTrainingGoesOn) {
  const test::TemporaryFolder folder;
  const Trained whole = straight(small_model(), on("cpu"), folder);
  for (std::uint64_t at = 1; at < whole.losses.size(); ++at) {
    Session session(small_model(), on("cpu"));
    Trained first;
    TrainOptions options = remembering(first);
    options.step_end_every = 1;
    options.on_step_end = [&](const StepEnd& end) {
      if (end.step == at) session.cancel();
    };
    EXPECT_TRUE(session.train(options).cancelled);
    save_checkpoint(session, folder.file("cancelled.safetensors"));
    expect_the_same_end(whole, resumed(small_model(), on("cpu"), folder.file("cancelled.safetensors"), folder), at,
                        kStepsOfEpoch);
  }
}

// The epoch has ended and was not told of: it is told of when the training goes on.
TEST(Checkpoints, AnEvaluationThatWasCancelledIsDoneAgain) {
  const test::TemporaryFolder folder;
  SessionOptions plain = on("cpu");
  plain.fuse = false;
  const Trained whole = straight(small_model(), plain, folder);
  Session* running = nullptr;
  int evaluated = 0;
  test::Mutation cancels;
  cancels.pick = [](const Program&, const Step& step) { return step.name == "evaluate.validation/p"; };
  cancels.after = [&](const test::Hands&) {
    if (++evaluated == 3) running->cancel();                     // in the second epoch's, whose split is two batches
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // which are looked at one by one
  };
  SessionOptions options;
  options.fuse = false;
  options.custom_executor = std::make_shared<test::MutantExecutor>(test::executor("cpu"), cancels);
  Session session(small_model(), options);
  running = &session;
  Trained first;
  const TrainResult result = session.train(remembering(first));
  EXPECT_TRUE(result.cancelled);
  ASSERT_EQ(result.steps, 2 * kStepsOfEpoch);
  ASSERT_EQ(first.reports.size(), 1u);
  std::filesystem::create_directory(folder.file("again"));
  save_checkpoint(session, folder.file("again/checkpoint-000000000006.safetensors"));
  Session again(small_model(), plain);
  CheckpointFolder checkpoints(folder.file("again"), {.steps = 1}, 1000);
  ASSERT_TRUE(checkpoints.resume(again));
  Trained part;
  TrainOptions options_again = remembering(part);
  checkpoints.connect(options_again);
  again.train(options_again);
  checkpoints.save();
  EXPECT_EQ(part.reports.size(), whole.reports.size() - 1);
  EXPECT_TRUE(part.reports.front() == whole.reports[1]);
  EXPECT_EQ(again.weights_hash(), whole.hash);
  for (const std::string& name : files_in(folder.file("again")))
    EXPECT_TRUE(test::content_of(folder.file("again/" + name)) == test::content_of(folder.file("steps/" + name)))
        << name;
  EXPECT_TRUE(std::filesystem::exists(folder.file("again/best.safetensors")));
}

TEST(Checkpoints, SaveInAReportHasTheReportDone) {
  const test::TemporaryFolder folder;
  const Trained whole = straight(small_model(), on("cpu"), folder);
  Session session(small_model(), on("cpu"));
  TrainOptions options;
  options.on_report = [&](const Report& report) {
    if (report.epoch == 2) save_checkpoint(session, folder.file("reported.safetensors"));
  };
  session.train(options);
  EXPECT_EQ(session.weights_hash(), whole.hash) << "saving changes nothing";
  expect_the_same_end(whole, resumed(small_model(), on("cpu"), folder.file("reported.safetensors"), folder), 6,
                      kStepsOfEpoch);
}

TEST(Checkpoints, AreWeightsToo) {
  const test::TemporaryFolder folder;
  const Trained whole = straight(small_model(), on("cpu"), folder);
  Session session(small_model(), on("cpu"));
  load_weights(session, step_file(folder, 12));
  EXPECT_EQ(session.weights_hash(), whole.hash);
}

// ---- what is refused

std::vector<std::string> rejection(Session& session, const std::string& path) {
  try {
    load_checkpoint(session, path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    std::vector<std::string> messages;
    for (const Diagnostic& one : error.diagnostics()) messages.push_back(one.code + ": " + one.message);
    return messages;
  }
  return {};
}

bool says(const std::vector<std::string>& messages, std::string_view part) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const std::string& one) { return one.find(part) != std::string::npos; });
}

TEST(Checkpoints, AnotherTrainingIsRejectedWithTheListOfDifferences) {
  const test::TemporaryFolder folder;
  straight(small_model(), on("cpu"), folder);
  const std::string path = step_file(folder, 6);
  const auto expect = [&](const std::function<void(Model&)>& change, const std::vector<std::string>& parts) {
    Model model = small_model();
    change(model);
    Session session(std::move(model), on("cpu"));
    const std::string before = session.weights_hash();
    const std::vector<std::string> found = rejection(session, path);
    EXPECT_EQ(found.size(), parts.size()) << testing::PrintToString(found);
    for (const std::string& part : parts) EXPECT_TRUE(says(found, part)) << part << testing::PrintToString(found);
    EXPECT_EQ(session.weights_hash(), before) << "nothing was changed";
  };
  expect([](Model& m) { m.train.seed = 4; }, {"seed: 3 in the checkpoint, 4 here"});
  expect([](Model& m) { m.train.optimizer.name = "sgd"; }, {"optimizer: adam lr=0.05"});
  expect([](Model& m) { m.train.optimizer.attributes = {{"lr", 0.1}}; }, {"lr=0.1"});
  expect([](Model& m) { m.train.shuffle = false; }, {"shuffle: true in the checkpoint, false here"});
  expect([](Model& m) { m.train.clip_norm = 2; }, {"clip_norm: 0 in the checkpoint, 2 here"});
  expect([](Model& m) { m.train.early_stopping.emplace(); },
         {"early_stopping: none in the checkpoint, loss mode=0 min_delta=0 restore_best=true here"});
  expect([](Model& m) { m.data.splits.pop_back(); }, {"data: train.x, train.y, validation.x, validation.y in"});
  expect(
      [](Model& m) {
        m.train.seed = 5;
        m.train.drop_last = true;
        m.data.splits[0].columns[1].second.elements<float>()[3] = 2;
      },
      {"seed: 3", "drop_last: false", "data.train.y: f32(7, 1) of hash"});
  expect([](Model& m) { m.train.epochs = 1; }, {"is of step 6, in epoch 3: beyond the 1 epochs"});
}

TEST(Checkpoints, AnotherGraphIsReportedNodeByNode) {
  const test::TemporaryFolder folder;
  straight(small_model(), on("cpu"), folder);
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 2});
  graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", graph.dense("h", graph.find("x"), 6, "relu"), 1);
  Model model(std::move(graph));
  Model like = small_model();
  model.outputs = {{p, "p", "y"}};
  model.train = like.train;
  model.train.minimize = model.graph.expression("loss = mean(square(p - y))");
  model.data = like.data;
  Session session(std::move(model), on("cpu"));
  const std::vector<std::string> found = rejection(session, step_file(folder, 6));
  EXPECT_TRUE(says(found,
                   "graph: h.W = parameter() dtype=f32 shape=[2, 5] : f32(2, 5) in the checkpoint, parameter() "
                   "dtype=f32 shape=[2, 6] : f32(2, 6) here"))
      << testing::PrintToString(found);
  EXPECT_TRUE(says(found, "dropout")) << testing::PrintToString(found);
}

TEST(Checkpoints, WeightsAndOtherFilesAreNone) {
  const test::TemporaryFolder folder;
  Session session(small_model(), on("cpu"));
  save_weights(session, folder.file("weights.safetensors"));
  EXPECT_TRUE(says(rejection(session, folder.file("weights.safetensors")), "is not a checkpoint"));
  EXPECT_TRUE(says(rejection(session, folder.write("text", "hello")), "no safetensors file"));
  EXPECT_TRUE(says(rejection(session, folder.write("empty", "")), "no safetensors file"));
  EXPECT_FALSE(rejection(session, folder.file("missing")).empty());
}

std::uint64_t mutants_wanted() {
  const char* given = std::getenv("GRAPHRUN_FUZZ");
  return given == nullptr ? test::cases(300, 1500) : std::strtoull(given, nullptr, 10);
}

std::string mutant(const std::string& whole, std::uint64_t number) {
  const auto words = Stream::named(1, "mutants").block(number, 0);
  std::string bytes = whole;
  const std::size_t at = words[0] % bytes.size(), length = 1 + words[1] % 64;
  switch (words[2] % 4) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << words[1] % 8));
      break;
    case 1:
      bytes.resize(at);
      break;
    case 2:
      bytes.erase(at, length);
      break;
    default:
      bytes.insert(at, std::string(length, static_cast<char>(words[3])));
  }
  return bytes;
}

// Every mutant is refused, for a checksum is over all bytes; and none crashes or changes the session.
TEST(Checkpoints, DamagedFilesAreRejected) {
  const test::TemporaryFolder folder;
  straight(small_model(), on("cpu"), folder);
  const std::string whole = test::content_of(step_file(folder, 6));
  Session session(small_model(), on("cpu"));
  const std::string before = session.weights_hash();
  for (std::uint64_t i = 0; i < mutants_wanted(); ++i) {
    const std::string bytes = mutant(whole, i);
    if (bytes == whole) continue;
    EXPECT_FALSE(rejection(session, folder.write("mutant", bytes)).empty()) << "mutant " << i;
  }
  EXPECT_EQ(session.weights_hash(), before);
  EXPECT_TRUE(rejection(session, folder.write("whole", whole)).empty());
}

// With a checksum that is right whatever stands before it: read or refused, and the session can be used.
TEST(Checkpoints, ForgedFilesDoNoHarm) {
  const test::TemporaryFolder folder;
  straight(small_model(), on("cpu"), folder);
  const std::string whole = test::content_of(step_file(folder, 6));
  Session session(small_model(), on("cpu"));
  std::uint64_t read = 0;
  for (std::uint64_t i = 0; i < mutants_wanted(); ++i) {
    std::string bytes = mutant(whole, i);
    if (bytes.size() < 8) continue;
    const std::uint64_t sum = checksum(std::as_bytes(std::span(bytes)).first(bytes.size() - 8));
    std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
    if (rejection(session, folder.write("mutant", bytes)).empty()) ++read;
  }
  EXPECT_GT(read, 0u) << "some have other numbers only";
  EXPECT_TRUE(rejection(session, folder.write("whole", whole)).empty());
  EXPECT_EQ(session.train().steps, static_cast<std::uint64_t>(kEpochs) * kStepsOfEpoch);
}

// ---- folders

TEST(CheckpointFolders, KeepTheNewestAndTheBest) {
  const test::TemporaryFolder folder;
  Session session(small_model("adam", 6), on("cpu"));
  CheckpointFolder checkpoints(folder.file("ck"), {}, 2);
  checkpoints.begin(session);
  Trained trained;
  TrainOptions options = remembering(trained);
  checkpoints.connect(options);
  session.train(options);
  checkpoints.save();
  EXPECT_EQ(files_in(folder.file("ck")),
            (std::vector<std::string>{"best.safetensors", "checkpoint-000000000015.safetensors",
                                      "checkpoint-000000000018.safetensors"}));
  const auto best = std::min_element(trained.reports.begin(), trained.reports.end(),
                                     [](const Reported& a, const Reported& b) { return a.validation < b.validation; });
  Session other(small_model("adam", 6), on("cpu"));
  const CheckpointInfo info = load_checkpoint(other, folder.file("ck/best.safetensors"));
  EXPECT_EQ(info.epoch, best->epoch);
  EXPECT_EQ(info.best_step, info.step);
  EXPECT_EQ(other.evaluate("validation").loss, best->validation);
}

TEST(CheckpointFolders, KeepTheBestByWhatEarlyStoppingMonitors) {
  const test::TemporaryFolder folder;
  const auto model = [] {
    Model one = small_model("adam", 6);
    one.train.early_stopping.emplace().min_delta = 1e9;  // only the first is ever better
    return one;
  };
  Session session(model(), on("cpu"));
  CheckpointFolder checkpoints(folder.file("ck"), {}, 2);
  checkpoints.begin(session);
  TrainOptions options;
  checkpoints.connect(options);
  const TrainResult result = session.train(options);
  ASSERT_TRUE(result.best);
  Session other(model(), on("cpu"));
  EXPECT_EQ(load_checkpoint(other, folder.file("ck/best.safetensors")).step, result.best->step);
}

TEST(CheckpointFolders, ResumeTakesTheNewestThatIsWhole) {
  const test::TemporaryFolder folder;
  const Trained whole = straight(small_model(), on("cpu"), folder);
  const std::string newest = step_file(folder, 12), second = step_file(folder, 11);
  std::filesystem::resize_file(newest, 1000);
  folder.write("steps/checkpoint-000000000011.safetensors", "");
  Session session(small_model(), on("cpu"));
  CheckpointFolder checkpoints(folder.file("steps"), {.steps = 1}, 1000);
  std::vector<std::string> damaged;
  const auto info =
      checkpoints.resume(session, "", [&](const Error& error) { damaged.push_back(error.diagnostics()[0].message); });
  ASSERT_TRUE(info);
  EXPECT_EQ(info->step, 10u);
  ASSERT_EQ(damaged.size(), 2u);
  EXPECT_TRUE(says(damaged, newest) && says(damaged, second));
  TrainOptions options;
  checkpoints.connect(options);
  session.train(options);
  EXPECT_EQ(session.weights_hash(), whole.hash);
  Session again(small_model(), on("cpu"));
  EXPECT_EQ(load_checkpoint(again, newest).step, 12u) << "it was made again";
}

TEST(CheckpointFolders, OfAnotherTrainingAreRejectedAndNotSkipped) {
  const test::TemporaryFolder folder;
  straight(small_model(), on("cpu"), folder);
  Session session(small_model("sgd"), on("cpu"));
  CheckpointFolder checkpoints(folder.file("steps"));
  EXPECT_THROW(checkpoints.resume(session), Error);
  EXPECT_THROW(checkpoints.begin(session), Error) << "nor is one begun beside it";
}

TEST(CheckpointFolders, AnEmptyOneBegins) {
  const test::TemporaryFolder folder;
  Session session(small_model(), on("cpu"));
  {
    CheckpointFolder checkpoints(folder.file("a/b"));
    EXPECT_FALSE(checkpoints.resume(session));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("a/b"))) << "it was made for nothing";
}

TEST(CheckpointFolders, BelongToOneAtATime) {
  const test::TemporaryFolder folder;
  const CheckpointFolder first(folder.file("ck"));
  EXPECT_THROW(CheckpointFolder(folder.file("ck")), Error);
  EXPECT_THROW(CheckpointFolder(folder.write("file", "")), Error);
}

TEST(CheckpointFolders, AFailedWriteIsReportedOnceAndTheTrainingGoesOn) {
  const test::TemporaryFolder folder;
  Session session(small_model(), on("cpu"));
  CheckpointFolder checkpoints(folder.file("ck"), {.steps = 1}, 3);
  checkpoints.begin(session);
  std::vector<std::string> failures;
  TrainOptions options;
  checkpoints.connect(options, [&](const Error& error) { failures.push_back(error.diagnostics()[0].message); });
  const auto on_step_end = options.on_step_end;
  options.on_step_end = [&](const StepEnd& end) {
    if (end.step == 4) std::filesystem::create_directory(folder.file("ck/checkpoint.tmp"));
    if (end.step == 9) std::filesystem::remove(folder.file("ck/checkpoint.tmp"));
    on_step_end(end);
  };
  EXPECT_FALSE(session.train(options).cancelled);
  ASSERT_EQ(failures.size(), 1u) << testing::PrintToString(failures);
  EXPECT_TRUE(says(failures, "cannot write '" + folder.file("ck/checkpoint-000000000004.safetensors'")));
  const std::vector<std::string> files = files_in(folder.file("ck"));
  EXPECT_EQ(files.size(), 4u) << testing::PrintToString(files);
  EXPECT_EQ(files.back(), "checkpoint-000000000012.safetensors");
}

TEST(CheckpointFolders, AParameterThatIsNotFiniteIsNotWritten) {
  const test::TemporaryFolder folder;
  Session session(small_model(), on("cpu"));
  CheckpointFolder checkpoints(folder.file("ck"));
  checkpoints.begin(session);
  checkpoints.save();
  HostTensor bias(DType::f32, Shape{5});
  bias.elements<float>()[2] = std::numeric_limits<float>::infinity();
  session.write("h.b", bias);
  session.advance(1);
  EXPECT_THROW(checkpoints.save(), Error);
  EXPECT_THROW(save_checkpoint(session, folder.file("one.safetensors")), Error);
  EXPECT_EQ(files_in(folder.file("ck")), std::vector<std::string>{"checkpoint-000000000000.safetensors"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("one.safetensors")));
}

TEST(CheckpointFolders, AllocateNothing) {
  const test::TemporaryFolder folder;
  for (const auto& [name, executor] : test::executors().present) {
    Session session(small_model("adam", 8), on(name));
    CheckpointFolder checkpoints(folder.file("ck" + name), {.steps = 1}, 2);
    checkpoints.begin(session);
    TrainOptions options;
    checkpoints.connect(options);
    std::uint64_t first = 0, last = 0;
    const auto on_step_end = options.on_step_end;
    options.on_step_end = [&](const StepEnd& end) {
      if (end.step == 1) first = test::allocations();
      on_step_end(end);
      last = test::allocations();
    };
    session.train(options);
    EXPECT_EQ(last - first, 0u) << name;
  }
}

}  // namespace
}  // namespace graphrun::checkpoints
