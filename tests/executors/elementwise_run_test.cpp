// Elementwise steps that run together, block by block: which do, and that their bits are those of one after the other.
#include "executors/cpu/elementwise_run.h"

#include <gtest/gtest.h>

#include <random>

#include "graphrun/op.h"
#include "kernels/cpu/threads/parallel.h"

namespace graphrun {
namespace {

constexpr std::int64_t kElements = 40000;  // no multiple of a block

// Steps over one piece of memory, in which operands and results are places (in floats).
struct Steps {
  std::vector<float> memory;
  std::vector<BoundStep> steps;
  std::int32_t samples = 0;

  Steps() : memory(std::size_t{8} * kElements) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(0.5f, 2);
    for (float& x : memory) x = uniform(random);
  }
  // An operand before 0 is the number at its distance from the end of the memory.
  BoundStep& add(std::string_view op, std::vector<std::int64_t> inputs, std::int64_t out, std::int64_t rows = 0) {
    BoundStep& step = steps.emplace_back();
    step.kernel = cpu_kernel(find_op(op).value(), default_isa());
    const TensorType type{DType::f32, {200, kElements / 200}, rows};
    for (const std::int64_t input : inputs) {
      const bool number = input < 0;
      step.args.in[step.args.inputs] =
          memory.data() + (number ? static_cast<std::int64_t>(memory.size()) + input : input);
      step.args.in_type[step.args.inputs++] = number ? TensorType{DType::f32, {}, 0} : type;
    }
    step.args.out = memory.data() + out;
    step.args.out_type = type;
    step.args.capacity = 200;
    if (rows > 0) step.args.row_count = &samples;
    step.find_loop(find_op(op).value(), default_isa());
    return step;
  }
};

constexpr std::int64_t at(std::int64_t place) {
  return place * kElements;
}

// The shape of an optimizer: sums in place, numbers, one operand twice.
void add_optimizer(Steps& s) {
  s.add("mul", {at(0), -1}, at(2));
  s.add("mul", {at(1), -2}, at(3));
  s.add("add", {at(2), at(3)}, at(0));
  s.add("square", {at(1)}, at(2));
  s.add("sqrt", {at(2)}, at(2));
  s.add("div", {at(0), at(2)}, at(3));
  s.add("sub", {at(4), at(3)}, at(4));
}

TEST(ElementwiseRun, HasTheBitsOfItsSteps) {
  Steps alone, together;
  add_optimizer(alone);
  add_optimizer(together);
  const auto count = static_cast<std::uint32_t>(together.steps.size());
  ASSERT_EQ(end_of_run(together.steps, 0, count), count);
  for (const BoundStep& step : alone.steps) step.run();
  run_together(together.steps, 0, count);
  EXPECT_EQ(alone.memory, together.memory);

  Steps shared;
  add_optimizer(shared);
  cpu::Pool three(3);
  for (BoundStep& step : shared.steps) step.args.pool = &three;
  run_together(shared.steps, 0, count);
  EXPECT_EQ(alone.memory, shared.memory);
}

TEST(ElementwiseRun, LeavesRowsThatAreNotThereZero) {
  Steps alone, together;
  for (Steps* s : {&alone, &together}) {
    s->add("exp", {at(0)}, at(1), 1);
    s->add("add", {at(1), -1}, at(2), 1);
    s->samples = 77;
    std::fill(s->memory.begin() + 77 * (kElements / 200), s->memory.begin() + kElements, 0.0f);
  }
  ASSERT_EQ(end_of_run(together.steps, 0, 2), 2u);
  for (const BoundStep& step : alone.steps) step.run();
  run_together(together.steps, 0, 2);
  EXPECT_EQ(alone.memory, together.memory);
  EXPECT_EQ(together.memory[static_cast<std::size_t>(at(3) - 1)], 0);
}

// What is written in blocks must lie where the others mean it, or elsewhere.
TEST(ElementwiseRun, EndsWhereBuffersOverlap) {
  {
    Steps s;  // the second writes over what the first has yet to read
    s.add("exp", {at(1)}, at(3));
    s.add("neg", {at(0)}, at(1) - 64);
    EXPECT_EQ(end_of_run(s.steps, 0, 2), 1u);
  }
  {
    Steps s;  // the second's result lies across the first's
    s.add("exp", {at(1)}, at(3));
    s.add("neg", {at(0)}, at(3) + 16);
    EXPECT_EQ(end_of_run(s.steps, 0, 2), 1u);
  }
  {
    Steps s;  // a number of the second is what the first writes
    s.add("exp", {at(1)}, at(7));
    s.add("mul", {at(0), -1}, at(3));
    EXPECT_EQ(end_of_run(s.steps, 0, 2), 1u);
  }
  {
    Steps s;  // in place of an operand
    s.add("exp", {at(1)}, at(3));
    s.add("neg", {at(3)}, at(3));
    EXPECT_EQ(end_of_run(s.steps, 0, 2), 2u);
    EXPECT_EQ(end_of_run(s.steps, 0, 1), 1u);
  }
}

TEST(ElementwiseRun, EndsAtOtherSteps) {
  Steps s;
  s.add("exp", {at(1)}, at(2));
  s.add("matmul", {at(2), at(2)}, at(3));
  s.add("exp", {at(3)}, at(4));
  s.add("neg", {at(4)}, at(5), 1);  // rows of a batch beside what has none
  EXPECT_EQ(end_of_run(s.steps, 0, 4), 1u);
  EXPECT_EQ(end_of_run(s.steps, 1, 4), 2u);
  EXPECT_EQ(end_of_run(s.steps, 2, 4), 3u);
}

}  // namespace
}  // namespace graphrun
