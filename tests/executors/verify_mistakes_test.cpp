// The verifier finds each planted mistake and names the step.
#include "graphrun/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "executors/verify_models.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/session.h"
#include "support/graph_run.h"
#include "support/memory_cap.h"
#include "support/mutant_executor.h"

namespace graphrun {
namespace {

using Floats = std::vector<float>;
using test::after;
using test::classifier;
using test::first;
using test::Hands;
using test::kNan;
using test::MutantExecutor;
using test::Mutation;
using test::named;
using test::verified_model;
using test::writes;

void transpose(std::vector<float>& m) {
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < i; ++j) std::swap(m[i * 4 + j], m[j * 4 + i]);
  }
}

// What the step had as input `i` when it ran before.
Mutation stale_input(std::function<bool(const Program&, const Step&)> pick, std::size_t i) {
  struct Memory {
    std::vector<std::byte> now, last;
  };
  const auto memory = std::make_shared<Memory>();
  return {std::move(pick),
          {},
          [=](const Hands& hands) {
            memory->now = hands.bytes(hands.step.inputs[i]);
            if (hands.runs > 0) hands.write(hands.step.inputs[i], memory->last);
            memory->last = memory->now;
          },
          [=](const Hands& hands) { hands.write(hands.step.inputs[i], memory->now); }};
}

// Changes the first element of the nearest storage that begins behind the output's.
void touch_next(const Hands& hands) {
  const Buffer& out = hands.program.buffers[hands.step.output];
  BufferId next = kNoBuffer;
  for (BufferId id = 0; id < hands.program.buffers.size(); ++id) {
    const Buffer& buffer = hands.program.buffers[id];
    const bool behind = buffer.storage == id && buffer.bytes > 0 && buffer.offset >= out.offset + out.bytes;
    if (behind && (next == kNoBuffer || buffer.offset < hands.program.buffers[next].offset)) next = id;
  }
  std::vector<std::byte> bytes = hands.bytes(next);
  bytes[0] ^= std::byte{1};
  hands.write(next, bytes);
}

void touch_state(const Hands& hands, std::string_view state) {
  const BufferId id = find_buffer(hands.program, state);
  std::vector<std::byte> bytes = hands.bytes(id);
  bytes[bytes.size() / 2] ^= std::byte{1};
  hands.write(id, bytes);
}

float bfloat16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0xffff0000u;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

struct Planted {
  std::string name;
  Mutation mutation;
  Difference::Kind kind = Difference::Kind::value;
  Model (*model)() = [] { return verified_model(); };
};

std::vector<Planted> planted() {
  const auto outside = Difference::Kind::outside, value = Difference::Kind::value;
  const auto flip = [](Step& step) {
    auto& params = step.params.as<MatmulParams>();
    params.transpose_b = !params.transpose_b;
  };
  const auto swap_operands = [](Step& step) { std::swap(step.inputs[0], step.inputs[1]); };
  const auto old = std::make_shared<std::vector<std::byte>>();
  return {
      {"operand_transposed", {named("train/z"), flip}},
      {"result_transposed", after(named("train/V:gradient"), transpose)},
      {"one_row_off", after(named("train/z"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 4, m.end()); })},
      {"one_column_off", after(named("train/p"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 1, m.end()); })},
      {"last_element_missing",
       {named("train/a"),
        {},
        [=](const Hands& h) { *old = h.bytes(h.step.output); },
        [=](const Hands& h) {
          std::vector<std::byte> now = h.bytes(h.step.output);
          std::copy(old->end() - 4, old->end(), now.end() - 4);
          h.write(h.step.output, now);
        }}},
      {"never_launched",
       {named("train/d"),
        {},
        [=](const Hands& h) { *old = h.bytes(h.step.output); },
        [=](const Hands& h) { h.write(h.step.output, *old); }}},
      {"adds_to_what_was_there",
       {named("train/W:gradient"),
        {},
        [=](const Hands& h) { *old = h.bytes(h.step.output); },
        [=](const Hands& h) {
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) {
              float before;
              std::memcpy(&before, old->data() + i * sizeof(float), sizeof(float));
              m[i] += before;
            }
          });
        }}},
      {"wrong_sign", after(named("train/h"),
                           [](Floats& m) {
                             for (float& x : m) x = -x;
                           })},
      {"last_term_of_k_missing",
       {named("train/p"),
        {},
        {},
        [](const Hands& h) {
          const Floats a = h.read<float>(h.step.inputs[0]), b = h.read<float>(h.step.inputs[1]);
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) m[i] -= a[i / 4 * 4 + 3] * b[3 * 4 + i % 4];
          });
        }}},
      {"sub_operands_exchanged", {named("train/d"), swap_operands}},
      {"div_operands_exchanged", {named("train/q"), swap_operands}},
      {"where_operands_exchanged",
       {named("train/mixed"), [](Step& step) { std::swap(step.inputs[1], step.inputs[2]); }}},
      {"matmul_operand_stale", stale_input(named("train/p"), 1)},
      {"batch_operand_stale", stale_input(named("train/d"), 1)},
      {"row_count_ignored", {named("train/a"), [](Step& step) { step.row_count = kNoBuffer; }}},
      {"rows_behind_the_batch_not_zero",
       {named("train/h"),
        {},
        {},
        [](const Hands& h) {
          if (h.rows() < 3) h.change_output([](Floats& m) { m.back() = 1; });
        }}},
      {"attribute_ignored",
       {named("train/leaky"),
        [](Step& step) {
          step.params = ScalarParams{0.01, 0};
        }}},
      {"bound_ignored", {named("train/clipped"), [](Step& step) { step.params.as<ScalarParams>().b = 1e9; }}},
      {"wrong_axis", {named("train/columns"), [](Step& step) { step.params.as<ReduceParams>().axes = 2; }}},
      {"another_function", {named("train/h"), [](Step& step) { step.op = *find_op("sigmoid"); }}},
      {"comparison_not_strict", {named("train/above"), [](Step& step) { step.op = *find_op("greater_equal"); }}},
      {"one_element_off", after(named("train/W:gradient"), [](Floats& m) { m[6] *= 1.001f; })},
      {"crude_approximation", after(named("train/h"),
                                    [](Floats& m) {
                                      for (float& x : m) x *= 1.00003f;
                                    })},
      {"short_floats",
       {named("train/z"),
        {},
        {},
        [](const Hands& h) {
          const Floats a = h.read<float>(h.step.inputs[0]), b = h.read<float>(h.step.inputs[1]);
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) {
              m[i] = 0;
              for (std::size_t k = 0; k < 4; ++k) m[i] += bfloat16(a[i / 4 * 4 + k]) * bfloat16(b[k * 4 + i % 4]);
            }
          });
        }}},
      {"a_nan", after(named("train/leaky"), [](Floats& m) { m[1] = kNan; })},
      {"an_infinity", after(named("train/q"), [](Floats& m) { m[2] = std::numeric_limits<float>::infinity(); })},
      {"writes_behind_its_output", {named("train/bent"), {}, {}, touch_next}, outside},
      {"writes_a_far_parameter", {named("train/h"), {}, {}, [](const Hands& h) { touch_state(h, "wide"); }}, outside},
      {"writes_the_data_set",
       {named("train/q"), {}, {}, [](const Hands& h) { touch_state(h, "data/test/y"); }},
       outside},
      {"writes_a_parameter_too_early",
       {named("train/d"), {}, {}, [](const Hands& h) { touch_state(h, "V"); }},
       outside},
      {"batch_one_row_late",
       after(named("train/x"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 4, m.end()); })},
      {"row_count_one_short",
       {first(Op::row_count),
        {},
        {},
        [](const Hands& h) { h.change_output<std::int32_t>([](std::vector<std::int32_t>& n) { n[0] -= 1; }); }}},
      {"counter_advanced_twice",
       {first(Op::increment),
        {},
        {},
        [](const Hands& h) { h.change_output<std::uint64_t>([](std::vector<std::uint64_t>& n) { n[0] += 1; }); }}},
      {"record_at_the_wrong_place",
       {first(Op::record),
        {},
        {},
        [](const Hands& h) {
          const std::uint64_t at = h.read<std::uint64_t>(h.step.inputs[2])[0];
          h.change_output([&](Floats& ring) { std::swap(ring[at], ring[at + 1]); });
        }}},
      {"update_done_twice",
       {writes("W"),
        {},
        {},
        [](const Hands& h) {
          const Floats change = h.read<float>(h.step.inputs[1]);
          h.change_output([&](Floats& m) {
            for (std::size_t i = 0; i < m.size(); ++i) m[i] -= change[i];
          });
        }}},
      {"velocity_forgotten",
       {writes("W:velocity"),
        {},
        {},
        [](const Hands& h) { h.change_output([](Floats& m) { std::fill(m.begin(), m.end(), 0.0f); }); }}},
      {"wrong_from_the_second_step_on",
       {named("train/loss"),
        {},
        {},
        [](const Hands& h) {
          if (h.runs > 0) h.change_output([](Floats& m) { m[0] += 0.01f; });
        }}},
      {"only_the_evaluation", after(named("evaluate.test/p"), [](Floats& m) { m[0] += 0.01f; })},
      {"other_random_bits",
       {named("train/kept"), [](Step& step) { step.params.as<RandomParams>().key += 1; }},
       value,
       classifier},
      {"rows_not_shuffled",
       {named("train/x"), [](Step& step) { step.params.as<MinibatchParams>().shuffle = false; }},
       value,
       classifier},
      {"rows_drawn_by_another_key",
       {named("train/label"), [](Step& step) { step.params.as<MinibatchParams>().key += 1; }},
       value,
       classifier},
      {"logarithm_of_softmax",
       {named("train/probability"), [](Step& step) { step.op = *find_op("log_softmax"); }},
       value,
       classifier},
      {"smallest_for_largest", {named("train/largest"), [](Step& step) { step.op = Op::min; }}, value, classifier},
      {"sum_for_product", {named("train/product"), [](Step& step) { step.op = Op::sum; }}, value, classifier},
      {"argmin_for_argmax", {named("train/guess"), [](Step& step) { step.op = Op::argmin; }}, value, classifier},
      {"slice_one_off",
       {named("train/part"), [](Step& step) { step.params.as<SliceParams>().start -= 1; }},
       value,
       classifier},
      {"concat_operands_exchanged",
       after(named("train/joined"), [](Floats& m) { std::rotate(m.begin(), m.begin() + 4, m.begin() + 6); }), value,
       classifier},
      {"loss_of_the_next_class",
       {named("train/surprise"),
        {},
        [=](const Hands& h) {
          *old = h.bytes(h.step.inputs[1]);
          std::vector<std::int32_t> labels = h.read<std::int32_t>(h.step.inputs[1]);
          for (std::int32_t& label : labels) label = (label + 1) % 6;
          h.write(h.step.inputs[1], labels);
        },
        [=](const Hands& h) { h.write(h.step.inputs[1], *old); }},
       value,
       classifier},
  };
}

class PlantedErrors : public ::testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(PlantedErrors, AreFoundAndTheStepIsNamed) {
  const auto& [inner, which] = GetParam();
  Planted plant = planted()[which];
  const auto mutant = std::make_shared<MutantExecutor>(test::executor(inner), plant.mutation);
  VerifyOptions options;
  options.custom_executor = mutant;
  const VerifyReport report = verify(plant.model(), options);
  ASSERT_FALSE(report.passed());
  const Difference& found = *report.difference;
  EXPECT_EQ(found.node, mutant->victim().name) << to_string(found);
  EXPECT_EQ(found.op, name_of(mutant->victim().op)) << to_string(found);
  EXPECT_EQ(found.kind, plant.kind) << to_string(found);
  EXPECT_NE(found.got, found.expected);
  EXPECT_NE(to_string(found).find(found.node), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Verify, PlantedErrors,
                         ::testing::Combine(::testing::Values("ref", "cpu"),
                                            ::testing::Range<std::size_t>(0, planted().size())),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param),
                                              planted()[std::get<1>(test.param)].name);
                         });

TEST(Verify, AMutantWithoutAMistakePasses) {
  VerifyOptions options;
  options.custom_executor =
      std::make_shared<MutantExecutor>(test::executor("cpu"), Mutation{named("train/z"), {}, {}, {}});
  const VerifyReport report = verify(verified_model(), options);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
}

// Keeps what the host wrote last out of the arena: constants of the Program are never written.
class ForgetsConstants final : public Executor {
 public:
  std::string_view name() const override { return "forgets"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature&, const Target&) const override { return Support::with_workspace(0); }
  std::unique_ptr<Runnable> load(const Program& program) override {
    Program without = program;
    without.initial.clear();
    return test::executor("ref")->load(without);
  }
};

TEST(Verify, StatesThatStartDifferentlyAreFound) {
  VerifyOptions options;
  options.custom_executor = std::make_shared<ForgetsConstants>();
  const VerifyReport report = verify(verified_model(), options);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->kind, Difference::Kind::start);
}

TEST(Verify, StepsThatAreAskedForTakeNoMemory) {
  VerifyOptions options;
  options.steps = 10'000'000'000;
  options.custom_executor = std::make_shared<MutantExecutor>(
      test::executor("ref"), after(named("train/W:gradient"), [](Floats& m) { m[0] += 1; }));
  const test::MemoryCap cap(std::uint64_t{512} << 20);
  EXPECT_FALSE(verify(verified_model(), options).passed());
}

TEST(Verify, TheDifferenceShowsWhereItIs) {
  VerifyOptions options;
  options.custom_executor =
      std::make_shared<MutantExecutor>(test::executor("ref"), after(named("train/W:gradient"), [](Floats& m) {
                                         for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<float>(i);
                                       }));
  const VerifyReport report = verify(verified_model(), options);
  ASSERT_FALSE(report.passed());
  const Difference& found = *report.difference;
  EXPECT_EQ(found.phase, "train");
  EXPECT_EQ(found.phase_step, 0u);
  EXPECT_EQ(found.index, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(found.got, "0");
  EXPECT_GT(found.tolerance, 0);
  const std::string text = to_string(found);
  EXPECT_NE(text.find("train, step 0: train/W:gradient (matmul, "), std::string::npos) << text;
  EXPECT_NE(text.find("[0]"), std::string::npos) << text;
  EXPECT_NE(text.find("10*"), std::string::npos) << text;
  EXPECT_EQ(text.find(" \n"), std::string::npos) << text;
}

}  // namespace
}  // namespace graphrun
