// embedding_test.cpp: a session within a program's own loop: steps until a moment, rows in use, numbers set at run
// time, the state in memory; that none of it allocates; and objects that are used up.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "graphrun/checkpoint.h"
#include "graphrun/error.h"
#include "graphrun/inspection.h"
#include "graphrun/output_file.h"
#include "graphrun/session.h"
#include "graphrun/weights.h"
#include "support/allocations.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRoom = 64, kFew = 23;

HostTensor wave_rows(std::int64_t rows, std::int64_t columns, double phase) {
  HostTensor tensor(DType::f32, {rows, columns});
  const auto values = tensor.elements<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + phase));
  return tensor;
}

struct Waves {
  std::int64_t rows = kRoom, batch = 8;
  bool vary = false, shuffle = false, drop_last = false;
};

// x (3) to y (1) by one layer of tanh.
Model wave_model(const Waves& shape = {}, const std::function<void(Model&)>& change = {}) {
  GraphBuilder graph(shape.batch);
  const Value x = graph.input("x", {kBatch, 3});
  graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", graph.dense("h", x, 5, "tanh"), 1);
  Model model(std::move(graph));
  model.outputs = {{p, "p", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(p - y))");
  model.train.optimizer = {"adam", {{"lr", 0.05}}, {}};
  model.train.shuffle = shape.shuffle;
  model.train.drop_last = shape.drop_last;
  model.data.splits = {{"train", {{"x", wave_rows(kRoom, 3, 0)}, {"y", wave_rows(kRoom, 1, 1)}}}};
  model.data.splits[0].rows_vary = shape.vary;
  if (shape.rows != kRoom) {
    for (auto& [name, tensor] : model.data.splits[0].columns) {
      HostTensor fewer(DType::f32, {shape.rows, tensor.shape()[1]});
      std::copy_n(tensor.bytes().begin(), fewer.bytes().size(), fewer.bytes().begin());
      tensor = std::move(fewer);
    }
  }
  if (change) change(model);
  return model;
}

Session opened_on(std::string_view executor, Model model) {
  SessionOptions options;
  options.executor = std::string(executor);
  return Session(std::move(model), options);
}

std::string rejected_as(const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.diagnostics().front().code;
  }
  return "accepted";
}

template <class T>
std::span<const std::byte> raw_bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// ---- rows in use

class OnEachExecutor : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const auto& [name, executor] : test::executors().present) {
      if (name == GetParam()) return;
    }
    GTEST_SKIP() << "no device for " << GetParam();
  }
};
const auto kExecutors = testing::Values("ref", "cpu", "cuda");
std::string name_of_case(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

class RowsInUse : public OnEachExecutor {};

TEST_P(RowsInUse, TrainAsIfThereWereNoOthers) {
  for (const bool shuffle : {false, true}) {
    for (const bool drop_last : {false, true}) {
      for (const std::int64_t batch : {8, 64}) {
        if (drop_last && batch > kFew) continue;
        SCOPED_TRACE(std::to_string(shuffle) + std::to_string(drop_last) + " batch " + std::to_string(batch));
        Session room = opened_on(
            GetParam(), wave_model({.batch = batch, .vary = true, .shuffle = shuffle, .drop_last = drop_last}));
        room.set_rows("train", kFew);
        Session few = opened_on(GetParam(),
                                wave_model({.rows = kFew, .batch = batch, .shuffle = shuffle, .drop_last = drop_last}));
        for (int i = 0; i < 9; ++i) {
          EXPECT_TRUE(room.advance(1));
          EXPECT_TRUE(few.advance(1));
          // A batch of another capacity may add its rows in another order.
          EXPECT_NEAR(room.loss(), few.loss(), 1e-5 * few.loss());
        }
        EXPECT_NEAR(room.evaluate("train").loss, few.evaluate("train").loss, 1e-4 * few.evaluate("train").loss);
      }
    }
  }
}

TEST_P(RowsInUse, GrowAndShrinkBetweenSteps) {
  Session session = opened_on(GetParam(), wave_model({.vary = true}));
  Session other = opened_on(GetParam(), wave_model({}));
  // All rows at the beginning, as without a number.
  session.advance(3);
  other.advance(3);
  EXPECT_EQ(session.loss(), other.loss());
  const double all = session.evaluate("train").loss;
  EXPECT_EQ(all, other.evaluate("train").loss);
  session.set_rows("train", 1);
  const std::vector<float> answer = [&] {
    const HostTensor x = wave_rows(kRoom, 3, 0), p = session.predict({{"x", x}});
    return std::vector<float>(p.elements<float>().begin(), p.elements<float>().end());
  }();
  const double first = std::pow(static_cast<double>(answer[0]) - std::sin(1.0), 2);
  EXPECT_NEAR(session.evaluate("train").loss, first, 1e-5);
  session.set_rows("train", kRoom);
  EXPECT_EQ(session.evaluate("train").loss, all);
}

TEST_P(RowsInUse, RowsBeyondThemAreNotSeen) {
  Session one = opened_on(GetParam(), wave_model({.vary = true})),
          other = opened_on(GetParam(), wave_model({.vary = true}));
  const std::vector<float> nan(3 * static_cast<std::size_t>(kRoom - kFew), std::nanf(""));
  other.write_rows(other.find("data/train/x"), kFew, std::as_bytes(std::span(nan)));
  for (Session* const session : {&one, &other}) {
    session->set_rows("train", kFew);
    EXPECT_TRUE(session->advance(20));
  }
  EXPECT_EQ(one.weights_hash(), other.weights_hash());
}

INSTANTIATE_TEST_SUITE_P(Executors, RowsInUse, kExecutors, name_of_case);

TEST(Embedding, ANumberOfRowsThatCannotBeIsRejected) {
  Session fixed(wave_model());
  EXPECT_EQ(rejected_as([&] { fixed.set_rows("train", 5); }), "rows.fixed");
  Session session(wave_model({.vary = true}));
  EXPECT_EQ(rejected_as([&] { session.set_rows("tarin", 5); }), "rows.fixed");
  for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{-1}, kRoom + 1})
    EXPECT_EQ(rejected_as([&] { session.set_rows("train", rows); }), "rows.range") << rows;
  const std::uint64_t none = 0;
  EXPECT_EQ(rejected_as([&] { session.write(session.find("data/train:rows"), raw_bytes(none)); }), "state.rows_vary");
  Session dropping(wave_model({.vary = true, .drop_last = true}));
  EXPECT_EQ(rejected_as([&] { dropping.set_rows("train", 7); }), "rows.range");
  dropping.set_rows("train", 8);
  EXPECT_EQ(rejected_as([&] {
              Session in_epochs(wave_model({.vary = true}, [](Model& m) {
                m.train.optimizer.lr = ScheduleSpec{"cosine", {{"from", 0.1}, {"to", 0.0}, {"epochs", 5.0}}};
              }));
            }),
            "schedule.rows");
  std::vector<std::string> busy;
  session.train([&](const Report&) {
    const auto later = Clock::now() + std::chrono::hours(1);
    busy = {rejected_as([&] { session.set_rows("train", 5); }), rejected_as([&] { session.train(); }),
            rejected_as([&] { session.advance(1); }), rejected_as([&] { session.run_until(later, 1); }),
            rejected_as([&] { load_checkpoint(session, "none"); })};
  });
  EXPECT_EQ(busy, std::vector<std::string>(5, "session.busy"));
}

TEST(Embedding, ColumnsOfDifferentLengthsAreRejected) {
  EXPECT_NE(
      rejected_as([] {
        Session session(wave_model({}, [](Model& m) { m.data.splits[0].columns[1].second = wave_rows(5, 1, 0); }));
      }),
      "accepted");
}

// ---- numbers set at run time

Model loud(const std::string& constants, const std::string& optimizer) {
  LoadOptions options;
  options.text = std::make_shared<std::optional<std::string>>(
      R"J({"format": 1, "data": {"train": {"grid": {"t": [-1, 1, 64]}, "x": "t", "y": "sin(3 * t)"}}, "constants": )J" +
      constants +
      R"J(, "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
         "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 6, "activation": "tanh"},
                   {"name": "p", "op": "dense", "inputs": ["h"], "units": 1},
                   "loss = mean(square(p * gain - y))"],
         "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": )J" +
      optimizer + R"J(, "batch": 16, "epochs": 3, "seed": 3}})J");
  return load_model("<text>", options);
}

class RuntimeNumbers : public OnEachExecutor {};

TEST_P(RuntimeNumbers, HaveTheBitsOfConstants) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {R"({"sgd": {"lr": 0.1}})", R"({"sgd": {"lr": {"runtime": 0.1}}})"},
      {R"({"momentum": {"lr": 0.1, "momentum": 0.8}})",
       R"({"momentum": {"lr": {"runtime": 0.1}, "momentum": {"runtime": 0.8}}})"},
      {R"({"nesterov": {"lr": 0.1, "l2": 0.01}})", R"({"nesterov": {"lr": 0.1, "l2": {"runtime": 0.01}}})"},
      {R"({"rmsprop": {"lr": 0.01, "eps": 1e-6}})", R"({"rmsprop": {"lr": 0.01, "eps": {"runtime": 1e-6}}})"},
      {R"({"adamw": {"lr": 0.01, "weight_decay": 0.1}})",
       R"({"adamw": {"lr": {"runtime": 0.01}, "weight_decay": {"runtime": 0.1}}})"}};
  for (const auto& [constant, runtime] : pairs) {
    Session one = opened_on(GetParam(), loud(R"({"gain": 1.5})", constant));
    Session other = opened_on(GetParam(), loud(R"({"gain": {"runtime": 1.5}})", runtime));
    one.advance(40);
    other.advance(40);
    EXPECT_EQ(one.weights_hash(), other.weights_hash()) << runtime;
  }
}

TEST_P(RuntimeNumbers, ChangeBetweenSteps) {
  Session session = opened_on(GetParam(), loud(R"({"gain": {"runtime": 1}})", R"({"sgd": {"lr": {"runtime": 0.1}}})"));
  const ValueId lr = session.find("train:lr"), gain = session.find("gain");
  const float zero = 0, two = 2;
  session.advance(5);
  const std::string before = session.weights_hash();
  const double loss = session.evaluate("train").loss;
  session.write(lr, raw_bytes(zero));
  session.advance(5);
  EXPECT_EQ(session.weights_hash(), before);
  session.write(gain, raw_bytes(two));
  EXPECT_NE(session.evaluate("train").loss, loss);
  Session doubled = opened_on(GetParam(), loud(R"({"gain": 2})", R"({"sgd": {"lr": 0.1}})"));
  doubled.write("h.W", session.read("h.W"));
  doubled.write("h.b", session.read("h.b"));
  doubled.write("p.W", session.read("p.W"));
  doubled.write("p.b", session.read("p.b"));
  EXPECT_EQ(session.evaluate("train").loss, doubled.evaluate("train").loss);
}

TEST_P(RuntimeNumbers, OfMomentsComeNear) {
  // 1 - beta is rounded from f32 there and from double of a constant.
  Session one = opened_on(GetParam(), loud(R"({"gain": 1})", R"({"adam": {"lr": 0.01, "beta1": 0.8, "beta2": 0.99}})"));
  Session other = opened_on(
      GetParam(),
      loud(R"({"gain": 1})", R"({"adam": {"lr": 0.01, "beta1": {"runtime": 0.8}, "beta2": {"runtime": 0.99}}})"));
  one.advance(40);
  other.advance(40);
  EXPECT_NEAR(one.evaluate("train").loss, other.evaluate("train").loss, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Executors, RuntimeNumbers, kExecutors, name_of_case);

TEST(Embedding, NumbersSetAtRunTimeRunInRegions) {
  Session session(loud(R"({"gain": {"runtime": 1.5}})", R"({"adam": {"lr": {"runtime": 0.01}}})"));
  EXPECT_FALSE(session.fusion().regions.empty());
}

TEST(Embedding, NumbersSetAtRunTimeInCpp) {
  Session session(wave_model({}, [](Model& m) {
    const Value gain = m.graph.runtime_scalar("gain", 0.5);
    EXPECT_EQ(to_string(m.graph.type(gain)), "f32()");
    m.train.minimize = m.graph.expression("scaled = loss * gain");
    m.train.optimizer.runtime = {"lr"};
  }));
  EXPECT_EQ(session.read("gain").elements<float>()[0], 0.5F);
  EXPECT_EQ(session.read("train:lr").elements<float>()[0], 0.05F);
  EXPECT_TRUE(session.advance(2));
  const float zero = 0;
  EXPECT_EQ(rejected_as([&] { session.write_rows(session.find("gain"), 0, raw_bytes(zero)); }), "state.rows");
  EXPECT_EQ(rejected_as([] { Session(wave_model({}, [](Model& m) { m.train.optimizer.runtime = {"rate"}; })); }),
            "attribute.unknown");
  EXPECT_NE(rejected_as([] { wave_model({}, [](Model& m) { m.graph.runtime_scalar("p", 1); }); }), "accepted");
  EXPECT_EQ(rejected_as([] { wave_model({}, [](Model& m) { m.graph.runtime_scalar("g", 1e99); }); }), "runtime.value");
}

TEST(Embedding, NumbersSetAtRunTimeOfSeveralObjectives) {
  LoadOptions options;
  options.overrides = {{"train.objectives.generator.optimizer.adam.lr", R"({"runtime": 0.002})"}};
  Session session(load_model(source_folder() + "/models/gan.json", options));
  const float zero = 0;
  session.advance(2);
  const ValueId lr = session.find("train:generator.lr");
  float start = 0;
  session.read(lr, std::as_writable_bytes(std::span(&start, 1)));
  EXPECT_EQ(start, 0.002F);
  session.write(lr, raw_bytes(zero));
  const std::string before = session.weights_hash();
  std::vector<std::byte> state(session.state_bytes());
  session.save_state(state);
  session.advance(2);
  const std::string after = session.weights_hash();
  EXPECT_NE(after, before) << "the discriminator goes on";
  session.load_state(state);
  session.advance(2);
  EXPECT_EQ(session.weights_hash(), after);
}

TEST(Embedding, NumbersSetAtRunTimeAreReadStrictly) {
  const auto code = [](const std::string& constants, const std::string& optimizer) {
    return rejected_as([&] { loud(constants, optimizer); });
  };
  const std::string sgd = R"({"sgd": {"lr": 0.1}})";
  EXPECT_EQ(code(R"({"gain": {"runtime": "1"}})", sgd), "model.type");
  EXPECT_EQ(code(R"({"gain": {"runtime": 1e99}})", sgd), "model.range");
  EXPECT_EQ(code(R"({"gain": {"runtime": 1, "more": 2}})", sgd), "model.unknown_key");
  EXPECT_NE(code(R"({"gain": 1})", R"({"sgd": {"lr": {"runtime": -1}}})"), "accepted");
  EXPECT_NE(code(R"({"gain": 1, "h": {"runtime": 1}})", sgd), "accepted") << "a layer has that name";
}

// ---- the state

TEST(Embedding, AStateGoesOnWithTheSameBits) {
  const auto model = [] {
    return wave_model({.batch = 8, .shuffle = true}, [](Model& m) {
      m.train.epochs = 6;
      m.train.lr_plateau.emplace().patience = 1;
      m.train.early_stopping.emplace().patience = 3;
      m.data.splits.push_back({"validation", {{"x", wave_rows(9, 3, 2)}, {"y", wave_rows(9, 1, 3)}}});
      m.train.optimizer.runtime = {"lr"};
    });
  };
  Session session(model());
  session.train();
  session.advance(3);
  std::vector<std::byte> state(session.state_bytes());
  session.save_state(state);
  const double loss = session.loss();
  const std::uint64_t step = session.step();
  session.advance(11);
  const std::string then = session.weights_hash();
  const double later = session.loss();
  const float other_lr = 0.5;
  session.write(session.find("train:lr"), raw_bytes(other_lr));
  session.advance(2);
  Session another(model());
  for (Session* const goes_on : {&session, &another}) {
    goes_on->load_state(state);
    EXPECT_EQ(goes_on->loss(), loss);
    EXPECT_EQ(goes_on->step(), step);
    std::vector<std::byte> again(goes_on->state_bytes());
    goes_on->save_state(again);
    EXPECT_EQ(state, again);
    goes_on->advance(11);
    EXPECT_EQ(goes_on->weights_hash(), then);
    EXPECT_EQ(goes_on->loss(), later);
  }
}

TEST(Embedding, AStateOfAnotherModelIsRejected) {
  Session session(wave_model());
  Session sgd(wave_model({}, [](Model& m) { m.train.optimizer = {"momentum", {{"lr", 0.1}}, {}}; }));
  std::vector<std::byte> state(session.state_bytes()), other(sgd.state_bytes());
  session.save_state(state);
  sgd.save_state(other);
  const std::string before = session.weights_hash();
  EXPECT_EQ(rejected_as([&] { session.load_state(other); }), "state.size");
  EXPECT_EQ(rejected_as([&] { session.save_state(std::span(state).first(7)); }), "state.size");
  EXPECT_EQ(rejected_as([&] { session.load_state({}); }), "state.size");
  std::vector<std::byte> zeros(state.size());
  EXPECT_EQ(rejected_as([&] { session.load_state(zeros); }), "state.other");
  Session renamed(wave_model({}, [](Model& m) { m.train.optimizer.name = "adamw"; }));
  renamed.load_state(state);  // the same states
  std::vector<std::byte> changed = state;
  changed[9] ^= std::byte{1};  // of the hash
  EXPECT_EQ(rejected_as([&] { session.load_state(changed); }), "state.other");
  EXPECT_EQ(session.weights_hash(), before);
}

// ---- steps

TEST(Embedding, AdvanceTellsOfALossThatIsNotFinite) {
  Session session(wave_model({}, [](Model& m) { m.train.optimizer.runtime = {"lr"}; }));
  EXPECT_TRUE(session.advance(0));
  EXPECT_TRUE(session.advance(5000));  // around the end of the ring
  EXPECT_TRUE(session.losses_finite(1'000'000));
  HostTensor bias = session.read("p.b");
  const HostTensor good = bias;
  bias.elements<float>()[0] = std::nanf("");
  session.write("p.b", bias);
  EXPECT_FALSE(session.advance(3));
  session.write("p.b", good);
  EXPECT_FALSE(session.losses_finite(1));
}

TEST(Embedding, StepsUntilAMomentEndInTime) {
  Session session(wave_model());
  EXPECT_EQ(session.run_until(Clock::now() - std::chrono::seconds(1)), 0U);
  EXPECT_EQ(session.run_until(Clock::time_point::min()), 0U);
  EXPECT_EQ(session.run_until(Clock::time_point::max(), 7), 7U);
  EXPECT_EQ(session.step(), 7U);
}

// Steps of two milliseconds or more: no more are run than fit, however busy the machine is.
TEST(Embedding, StepsUntilAMomentAreAsManyAsFit) {
  test::Mutation slow;
  slow.pick = [](const Program&, const Step& step) { return step.name.starts_with("train/h"); };
  slow.after = [](const test::Hands&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  SessionOptions options;
  options.custom_executor = std::make_shared<test::MutantExecutor>(test::executor("cpu"), slow);
  Session session(wave_model(), options);
  session.advance(5);  // which are timed
  const std::uint64_t steps = session.run_until(Clock::now() + std::chrono::milliseconds(200));
  EXPECT_GT(steps, 0U);
  EXPECT_LE(steps, 100U);
  EXPECT_EQ(session.step(), 5 + steps);
}

// ---- the loop of a frame: issue's figures are those of examples/frame_loop.cpp

TEST(Embedding, AFrameAllocatesNothing) {
  constexpr std::int64_t kRing = 1024, kFresh = 32;
  GraphBuilder graph(64);
  const Value x = graph.input("x", {kBatch, 4});
  graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", graph.dense("h", x, 16, "tanh"), 1);
  Model model(std::move(graph));
  model.outputs = {{p, "p", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(p - y))");
  model.train.optimizer = {"adam", {{"lr", 0.01}}, {}, {"lr"}};
  model.train.shuffle = true;
  model.data.splits = {{"train", {{"x", wave_rows(kRing, 4, 0)}, {"y", wave_rows(kRing, 1, 1)}}}};
  model.data.splits[0].rows_vary = true;
  Session session(std::move(model));
  const ValueId to_x = session.find("data/train/x"), to_y = session.find("data/train/y"), lr = session.find("train:lr");
  const HostTensor fresh_x = wave_rows(kFresh, 4, 2), fresh_y = wave_rows(kFresh, 1, 3);
  const std::vector<float> asked = {1, 2, 3, 4};
  float answer = 0;
  const std::span<const std::byte> in[] = {std::as_bytes(std::span(asked))};
  const std::span<std::byte> out[] = {std::as_writable_bytes(std::span(&answer, 1))};
  std::vector<std::byte> state(session.state_bytes());
  session.advance(1);
  const std::uint64_t before = test::allocations();
  double sum = 0;
  for (std::int64_t frame = 0; frame < 100; ++frame) {
    session.write_rows(to_x, frame * kFresh % kRing, fresh_x.bytes());
    session.write_rows(to_y, frame * kFresh % kRing, fresh_y.bytes());
    session.set_rows("train", std::min(kRing, (frame + 1) * kFresh));
    const float rate = 0.01F / static_cast<float>(1 + frame);
    session.write(lr, raw_bytes(rate));
    if (!session.advance(4)) session.load_state(state);
    session.save_state(state);
    (void)session.run_until(Clock::now() + std::chrono::microseconds(50), 4);
    session.predict(in, out);
    sum += session.loss();
  }
  EXPECT_EQ(test::allocations() - before, 0U);
  EXPECT_TRUE(std::isfinite(sum));
  EXPECT_TRUE(std::isfinite(answer));
}

// ---- objects that are used up

TEST(Embedding, ASessionThatWasMovedAwayFromThrows) {
  Session session(wave_model());
  Session taken = std::move(session);
  taken.advance(1);
  const ValueId id = taken.find("p.b");
  std::vector<std::byte> room(64);
  const std::vector<std::function<void()>> calls = {
      [&] { session.train(); },
      [&] { session.advance(1); },
      [&] { session.run_until(Clock::now()); },
      [&] { session.losses_finite(1); },
      [&] { session.set_rows("train", 1); },
      [&] { session.state_bytes(); },
      [&] { session.save_state(room); },
      [&] { session.load_state(room); },
      [&] { session.evaluate("train"); },
      [&] { session.scores("train"); },
      [&] { session.has_split("train"); },
      [&] { session.metric_names(); },
      [&] { session.watched(); },
      [&] {
        session.predict({{"x", wave_rows(1, 3, 0)}});
      },
      [&] {
        session.predict_all({{"x", wave_rows(1, 3, 0)}});
      },
      [&] { session.predict(std::span<const std::span<const std::byte>>(), {}); },
      [&] { session.prediction_inputs(); },
      [&] { session.prediction_outputs(); },
      [&] { session.read("p.b"); },
      [&] { session.write("p.b", HostTensor({1}, std::vector<float>{1})); },
      [&] { session.find("p.b"); },
      [&] { session.type(id); },
      [&] { session.read(id, room); },
      [&] { session.write(id, std::span<const std::byte>(room)); },
      [&] { session.write_rows(id, 0, room); },
      [&] { session.loss(); },
      [&] { session.weights_hash(); },
      [&] { session.counters(); },
      [&] { session.setup_times(); },
      [&] { session.timings(); },
      [&] { session.profile(); },
      [&] { session.program(); },
      [&] { session.fusion(); },
      [&] { session.model(); },
      [&] { session.executor(); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(rejected_as(calls[i]), "session.moved") << "call " << i;
  session.cancel();
  EXPECT_EQ(session.step(), 0U);
  session = std::move(taken);
  EXPECT_TRUE(session.advance(1));
  static_assert(!std::is_copy_constructible_v<Session> && !std::is_default_constructible_v<Session>);
  static_assert(!std::is_copy_constructible_v<GraphBuilder> && !std::is_default_constructible_v<Model>);
}

TEST(Embedding, ABuilderThatWasMovedAwayFromThrows) {
  Model model = wave_model();
  GraphBuilder taken = std::move(model.graph);
  GraphBuilder& builder = model.graph;
  const Value value = taken.find("x");
  const std::vector<double> numbers = {1};
  const std::vector<std::function<void()>> calls = {
      [&] { builder.batch(); },
      [&] {
        builder.input("z", {kBatch, 1});
      },
      [&] { builder.parameter("W", {1}); },
      [&] { builder.constant(1); },
      [&] { builder.constant(numbers, {1}); },
      [&] { builder.runtime_scalar("g", 1); },
      [&] { builder.op("tanh", {value}); },
      [&] { builder.expression("tanh(x)"); },
      [&] { builder.dense("d", value, 1); },
      [&] { builder.name(value, "n"); },
      [&] { builder.find("x"); },
      [&] { builder.type(value); },
      [&] { builder.print(); },
      [&] { Session session(std::move(model)); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(rejected_as(calls[i]), "builder.moved") << "call " << i;
}

TEST(Embedding, OtherObjectsThatWereMovedAwayFromThrow) {
  const test::TemporaryFolder folder;
  Session session(wave_model());
  const std::string weights = folder.file("w.npz");
  save_weights(session, weights);
  WeightsFile file(weights);
  const WeightsFile other_file = std::move(file);
  Inspection inspection(wave_model());
  const Inspection other_inspection = std::move(inspection);
  std::ofstream(folder.file("rows.csv")) << "x0,x1\n1,2\n";
  InputReader reader(source_folder() + "/models/xor.json", folder.file("rows.csv"));
  const InputReader other_reader = std::move(reader);
  OutputFile output(folder.file("out"));
  const OutputFile other_output = std::move(output);
  CheckpointFolder checkpoints(folder.file("checkpoints"));
  CheckpointFolder other_checkpoints = std::move(checkpoints);
  TrainOptions options;
  const std::vector<std::function<void()>> calls = {
      [&] { file.entries(); },
      [&] { file.read("p.b"); },
      [&] { file.provenance(); },
      [&] { inspection.entries(); },
      [&] { inspection.read("x"); },
      [&] { inspection.split(); },
      [&] { inspection.rows(); },
      [&] { inspection.of(); },
      [&] { reader.next(); },
      [&] { reader.streams(); },
      [&] { output.connect(); },
      [&] { output.write("a"); },
      [&] { output.publish(); },
      [&] { output.commit(); },
      [&] { output.path(); },
      [&] { output.is_direct(); },
      [&] { output.is(std::string("out")); },
      [&] { output.is(other_output); },
      [&] { other_output.is(output); },
      [&] { checkpoints.begin(session); },
      [&] { checkpoints.resume(session); },
      [&] { checkpoints.connect(options); },
      [&] { checkpoints.save(); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_TRUE(rejected_as(calls[i]).ends_with(".moved")) << "call " << i;
  checkpoints.request();
  EXPECT_THROW(other_checkpoints.save(), std::logic_error) << "before begin()";
  HostTensor tensor({1}, std::vector<float>{1});
  const HostTensor other_tensor = std::move(tensor);
  EXPECT_TRUE(tensor.elements<float>().empty());
}

}  // namespace
}  // namespace graphrun
