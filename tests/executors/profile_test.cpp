// A profile on the host executors: which rows there are, what they count, and that nothing else changes.
#include "graphrun/profile.h"

#include <gtest/gtest.h>

#include "graphrun/session.h"

namespace graphrun {
namespace {

Model line_model() {
  GraphBuilder graph(4);
  const Value x = graph.input("x", {kBatch, 3});
  const Value y = graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", graph.dense("h", x, 5, "tanh"), 1);
  const Value loss = graph.op("mse", {p, y});
  Model model(std::move(graph));
  model.train.minimize = loss;
  model.train.epochs = 20;
  HostTensor rows(DType::f32, {10, 3}), answers(DType::f32, {10, 1});
  for (std::size_t i = 0; i < 30; ++i) rows.elements<float>()[i] = static_cast<float>(i % 7) * 0.1f;
  for (std::size_t i = 0; i < 10; ++i) answers.elements<float>()[i] = static_cast<float>(i % 3);
  model.data.splits.push_back({"train", {{"x", rows}, {"y", answers}}});
  return model;
}

Session session_on(const std::string& executor, Profiling profiling) {
  SessionOptions options;
  options.executor = executor;
  options.profiling = profiling;
  return Session(line_model(), options);
}

TEST(Profiler, RowsCountAndAreOrdered) {
  Profiler profiler;
  const std::uint32_t small = profiler.row("b", "small"), large = profiler.row("b", "large");
  const std::uint32_t other = profiler.row("a", "other");
  profiler.row("c", "never called");
  EXPECT_EQ(profiler.row("b", "small"), small);
  profiler.add(small, profiler.begin() + 1, 0.25);
  profiler.add(large, profiler.begin() + 2, 3);
  profiler.add(large, profiler.begin() + 5, 1);
  profiler.add(other, profiler.begin() + 6, 9);
  const Profile profile = profiler.take("a test");
  EXPECT_EQ(profile.source, "a test");
  ASSERT_EQ(profile.rows.size(), 3u);
  EXPECT_EQ(profile.rows[0].name, "large");
  EXPECT_EQ(profile.rows[0].calls, 2u);
  EXPECT_EQ(profile.rows[0].total, 4);
  EXPECT_EQ(profile.rows[0].min, 1);
  EXPECT_EQ(profile.rows[0].max, 3);
  EXPECT_EQ(profile.rows[1].name, "small");
  EXPECT_EQ(profile.rows[2].name, "other");
  ASSERT_EQ(profile.events.size(), 4u);
  EXPECT_EQ(profile.events[0].row, 1u);
  EXPECT_NEAR(profile.events[0].start, 1, 1e-6);
  EXPECT_EQ(profile.events[3].row, 2u);
  const Profile other_way = profiler.take("a test", "b");
  EXPECT_EQ(other_way.rows[0].name, "other");
  EXPECT_EQ(other_way.rows[1].name, "large");
  EXPECT_EQ(other_way.events[3].row, 0u);
  EXPECT_EQ(profile.events_left_out, 0u);
}

TEST(Profiler, EventsAreBoundedAndRowsAreNot) {
  Profiler profiler;
  const std::uint32_t row = profiler.row("g", "n");
  for (int i = 0; i < 100003; ++i) profiler.add(row, 0, 1);
  const Profile profile = profiler.take("");
  EXPECT_EQ(profile.rows[0].calls, 100003u);
  EXPECT_EQ(profile.events.size(), 100000u);
  EXPECT_EQ(profile.events_left_out, 3u);
}

TEST(Profile, OfAHostExecutorNamesTheOpsOfATrainingStep) {
  for (const std::string executor : {"cpu", "ref"}) {
    SCOPED_TRACE(executor);
    Session session = session_on(executor, Profiling::on);
    EXPECT_TRUE(session.profile().rows.empty()) << "nothing ran yet";
    session.train();
    const Profile profile = session.profile();
    EXPECT_EQ(profile.source, "the host's clock");
    ASSERT_EQ(profile.notes.size(), 1u);
    EXPECT_EQ(profile.notes[0], "train: 4 of 60 steps were timed");
    bool tanh = false;  // or what it is part of
    for (const ProfileRow& row : profile.rows) {
      EXPECT_EQ(row.group, "steps of train");
      EXPECT_EQ(row.calls % 4, 0u) << row.name;
      EXPECT_GT(row.total, 0) << row.name;
      EXPECT_LE(row.min, row.max) << row.name;
      EXPECT_LE(row.max, row.total) << row.name;
      tanh = tanh || (row.name == (executor == "cpu" ? "region" : "tanh") && row.calls == 4);
    }
    EXPECT_TRUE(tanh);
    std::uint64_t calls = 0;
    for (const ProfileRow& row : profile.rows) calls += row.calls;
    EXPECT_EQ(profile.events.size(), calls);
  }
}

TEST(Profile, ChangesNoResultAndIsEmptyWhenOff) {
  for (const std::string executor : {"cpu", "ref"}) {
    SCOPED_TRACE(executor);
    Session with = session_on(executor, Profiling::on), without = session_on(executor, Profiling::off);
    with.train();
    without.train();
    EXPECT_EQ(with.weights_hash(), without.weights_hash());
    EXPECT_TRUE(without.profile().rows.empty());
    EXPECT_TRUE(without.profile().source.empty());
  }
}

}  // namespace
}  // namespace graphrun
