// Schedules: values at many steps against the formulas in double; wrong specs are errors with codes.
#include "graph/frontend/library/schedules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "graph/builder.h"
#include "graphrun/error.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;
using Reals = std::vector<double>;

// The schedule's value at each of the steps, on an executor.
Reals values_of(const ScheduleSpec& spec, std::int64_t batches, const std::vector<std::uint64_t>& steps,
                const char* executor) {
  ir::Graph graph;
  graph.phases.push_back({"test", 1, ir::kNoNode});
  ir::Builder builder(graph);
  builder.enter(0);
  const NodeId step = builder.add("input", {}, {{"dtype", std::string("u64")}, {"shape", List{}}});
  const auto epoch_steps = [&] { return builder.scalar(static_cast<double>(batches), DType::f32); };
  const NodeId value = builder.add("reshape", {schedule_value(builder, spec, step, epoch_steps)}, {{"shape", List{1}}});
  graph[value].keep = true;
  EXPECT_EQ(graph[value].type.dtype, DType::f32);
  test::GraphRun run(graph, test::executor(executor));
  Reals values;
  HostTensor counter(DType::u64, {});
  for (const std::uint64_t at : steps) {
    counter.elements<std::uint64_t>()[0] = at;
    run.write(step, counter);
    run.run();
    values.push_back(test::to_doubles(run.read(value))[0]);
  }
  return values;
}

// Every step of the beginning, then both sides of boundaries far out.
std::vector<std::uint64_t> many_steps() {
  std::vector<std::uint64_t> steps;
  for (std::uint64_t step = 0; step < 400; ++step) steps.push_back(step);
  for (std::uint64_t step = 1000; step <= 200000; step += 1000) {
    for (const std::uint64_t at : {step - 1, step, step + 1, step + 500}) steps.push_back(at);
  }
  return steps;
}

void expect_schedule(const ScheduleSpec& spec, std::int64_t batches, const std::function<double(double)>& formula) {
  const std::vector<std::uint64_t> steps = many_steps();
  for (const char* executor : {"ref", "cpu"}) {
    const Reals values = values_of(spec, batches, steps, executor);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double expected = formula(static_cast<double>(steps[i]));
      ASSERT_NEAR(values[i], expected, 1e-6 + 2e-5 * std::fabs(expected))
          << spec.name << " at step " << steps[i] << " on " << executor << ", " << batches << " batches";
      const double on_host = schedule_formula(spec)(static_cast<double>(steps[i]), static_cast<double>(batches));
      ASSERT_NEAR(on_host, expected, 1e-12) << spec.name << " at step " << steps[i] << " on the host";
    }
  }
}

TEST(Schedules, Constant) {
  expect_schedule({"constant", {{"value", 0.3}}}, 7, [](double) { return 0.3; });
}

TEST(Schedules, Linear) {
  expect_schedule({"linear", {{"from", 1.0}, {"to", 0.25}, {"steps", std::int64_t{300}}}}, 7,
                  [](double t) { return 1 + (0.25 - 1) * std::fmin(t / 300, 1); });
  expect_schedule({"linear", {{"from", 0.0}, {"to", 2.0}, {"epochs", 12.5}}}, 16,
                  [](double t) { return 2 * std::fmin(t / 16 / 12.5, 1); });
}

TEST(Schedules, Cosine) {
  const auto cosine = [](double from, double to, double part) {
    return from + (to - from) * (1 - std::cos(std::numbers::pi * std::fmin(part, 1))) / 2;
  };
  expect_schedule({"cosine", {{"from", 0.08}, {"to", 0.0}, {"steps", std::int64_t{150000}}}}, 1,
                  [&](double t) { return cosine(0.08, 0, t / 150000); });
  expect_schedule({"cosine", {{"from", 0.5}, {"to", 0.1}, {"epochs", std::int64_t{20}}}}, 13,
                  [&](double t) { return cosine(0.5, 0.1, t / 13 / 20); });
}

// The step at which the number changes is exact, also far out and where 1 / length is no float.
TEST(Schedules, Step) {
  for (const std::int64_t length : {1, 3, 7, 10, 49, 100, 125, 1000}) {
    expect_schedule({"step", {{"from", 1.0}, {"factor", 0.9999}, {"steps", length}}}, 1,
                    [&](double t) { return std::pow(0.9999, std::floor(t / static_cast<double>(length))); });
  }
  expect_schedule({"step", {{"from", 0.1}, {"factor", 0.5}, {"steps", std::int64_t{50000}}}}, 1,
                  [](double t) { return 0.1 * std::pow(0.5, std::floor(t / 50000)); });
  // 10 batches an epoch: boundaries at multiples of 100 steps.
  expect_schedule({"step", {{"from", 2.0}, {"factor", 0.99}, {"epochs", std::int64_t{10}}}}, 10,
                  [](double t) { return 2 * std::pow(0.99, std::floor(t / 100)); });
  // Half an epoch of 6 batches: boundaries at multiples of 3.
  expect_schedule({"step", {{"from", 2.0}, {"factor", 0.99}, {"epochs", 0.5}}}, 6,
                  [](double t) { return 2 * std::pow(0.99, std::floor(t / 3)); });
}

// One step early or late would be seen: the factor is coarse.
TEST(Schedules, StepChangesAtTheVeryStep) {
  for (const std::int64_t length : {3, 10, 100, 1000, 10000}) {
    std::vector<std::uint64_t> steps;
    Reals expected;
    for (std::uint64_t k = 1; k <= 100; ++k) {
      const std::uint64_t boundary = k * static_cast<std::uint64_t>(length);
      for (const std::uint64_t at : {boundary - 1, boundary}) {
        steps.push_back(at);
        expected.push_back(static_cast<double>(at / static_cast<std::uint64_t>(length)));
      }
    }
    // factor 2^(1/8): the logarithm of the value counts the boundaries.
    const ScheduleSpec spec{"step", {{"from", 1.0}, {"factor", std::exp2(0.125)}, {"steps", length}}};
    for (const char* executor : {"ref", "cpu"}) {
      const Reals values = values_of(spec, 1, steps, executor);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        ASSERT_NEAR(8 * std::log2(values[i]), expected[i], 0.01)
            << "step " << steps[i] << " of length " << length << " on " << executor;
      }
    }
  }
}

TEST(Schedules, Exponential) {
  expect_schedule({"exponential", {{"from", 0.2}, {"factor", 0.1}, {"steps", std::int64_t{60000}}}}, 1,
                  [](double t) { return 0.2 * std::pow(0.1, t / 60000); });
  expect_schedule({"exponential", {{"from", 1.0}, {"factor", 0.95}, {"epochs", std::int64_t{1}}}}, 1250,
                  [](double t) { return std::pow(0.95, t / 1250); });
}

TEST(Schedules, Piecewise) {
  const auto piecewise = [](double t) { return t < 3 ? 1.0 : t < 350 ? 0.5 : t < 100000 ? 0.25 : 0.125; };
  const Reals values = {1, 0.5, 0.25, 0.125};
  expect_schedule({"piecewise", {{"values", values}, {"steps", Reals{3, 350, 100000}}}}, 9, piecewise);
  expect_schedule({"piecewise", {{"values", values}, {"steps", List{3, 350, 100000}}}}, 9, piecewise);
  // 7 batches an epoch: from step 14 and from step 700 on.
  expect_schedule({"piecewise", {{"values", Reals{3, 2, 1}}, {"epochs", List{2, 100}}}}, 7, [](double t) {
    return t < 14 ? 3.0 : t < 700 ? 2.0 : 1.0;
  });
  // Boundaries within an epoch of 10 batches: from steps 3 and 7 on.
  expect_schedule({"piecewise", {{"values", Reals{3, 2, 1}}, {"epochs", Reals{0.3, 0.7}}}}, 10, [](double t) {
    return t < 3 ? 3.0 : t < 7 ? 2.0 : 1.0;
  });
}

TEST(Schedules, WarmUpRaisesTheNumberFromZeroBeforeAnythingElse) {
  expect_schedule({"constant", {{"value", 0.3}, {"steps", std::int64_t{1}}, {"warmup", std::int64_t{50}}}}, 7,
                  [](double t) { return 0.3 * std::fmin(t / 50, 1); });
  expect_schedule({"linear", {{"from", 1.0}, {"to", 0.0}, {"epochs", std::int64_t{20}}, {"warmup", 2.5}}}, 10,
                  [](double t) { return t < 25 ? t / 25 : std::fmax(1 - (t - 25) / 200, 0); });
  expect_schedule(
      {"step", {{"from", 1.0}, {"factor", 0.5}, {"steps", std::int64_t{100}}, {"warmup", std::int64_t{20}}}}, 1,
      [](double t) { return t < 20 ? t / 20 : std::pow(0.5, std::floor((t - 20) / 100)); });
}

TEST(Schedules, EveryScheduleOfTheTableIsKnownByName) {
  const std::vector<std::string> tested = {"constant", "linear", "cosine", "step", "exponential", "piecewise"};
  ASSERT_EQ(schedules().size(), tested.size()) << "a schedule without a test here";
  for (const std::string& name : tested) EXPECT_NE(find_row(schedules(), name), nullptr) << name;
  EXPECT_EQ(find_row(schedules(), "cosin"), nullptr);
}

// ---- wrong specs

struct Wrong {
  ScheduleSpec spec;
  std::string code, words;  // the code, and what the text says
};

TEST(Schedules, WrongSpecsAreErrorsWithCodes) {
  const auto ends = [](AttrList more) {
    AttrList attrs = {{"from", 1.0}, {"to", 0.0}};
    attrs.insert(attrs.end(), more.begin(), more.end());
    return attrs;
  };
  const std::int64_t ten = 10;
  const std::vector<Wrong> list = {
      {{"cosin", ends({{"steps", ten}})}, "schedule.unknown", "did you mean 'cosine'?"},
      {{"quadratic", {}}, "schedule.unknown", "piecewise"},
      {{"cosine", ends({})}, "schedule.unit", "'steps' or 'epochs'"},
      {{"cosine", ends({{"steps", ten}, {"epochs", ten}})}, "schedule.unit", "not both"},
      {{"constant", {{"value", 1.0}, {"warmup", ten}}}, "schedule.unit", "warmup"},
      {{"cosine", ends({{"steps", std::int64_t{0}}})}, "attribute.range", "'steps' must be > 0, got 0"},
      {{"linear", ends({{"epochs", -2.0}})}, "attribute.range", "'epochs' must be > 0, got -2"},
      {{"linear", ends({{"epochs", std::nan("")}})}, "attribute.range", "epochs must be finite, got nan"},
      {{"linear", ends({{"steps", ten}, {"warmup", -1.0}})}, "attribute.value", "warmup must be a number >= 0, got -1"},
      {{"cosine", ends({{"steps", std::string("ten")}})}, "attribute.value", "steps must be a number, got \"ten\""},
      {{"cosine", ends({{"steps", ten}, {"warmup", std::string("x")}})}, "attribute.value", "warmup must be a number"},
      {{"step", {{"from", 1.0}, {"steps", ten}}}, "attribute.missing", "factor"},
      {{"step", {{"from", 1.0}, {"factor", 0.0}, {"steps", ten}}},
       "attribute.value",
       "factor must be a number > 0, got 0"},
      {{"cosine", ends({{"steps", ten}, {"form", 1.0}})}, "attribute.unknown", "from"},
      {{"piecewise", {{"values", Reals{1, 2}}, {"steps", Reals{1, 2}}}}, "schedule.piecewise", "one entry more"},
      {{"piecewise", {{"values", Reals{1, 2, 3}}, {"epochs", Reals{2, 2}}}}, "schedule.piecewise", "increase"},
  };
  for (const Wrong& wrong : list) {
    try {
      check_schedule(wrong.spec);
      ADD_FAILURE() << wrong.spec.name << " passes: expected " << wrong.code << ", " << wrong.words;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_EQ(error.diagnostics().front().code, wrong.code) << error.what();
      EXPECT_NE(std::string(error.what()).find(wrong.words), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace graphrun
