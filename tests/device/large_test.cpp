// More elements than 32 bits count: every index on the way must be wider.
#include <cmath>

#include "base/random_bits.h"
#include "device.h"
#include "graphrun/params.h"

namespace graphrun::testing {
namespace {

TEST_F(Device, BeyondThirtyTwoBits) {
  constexpr std::int64_t kCount = (std::int64_t{1} << 32) + 9, kTail = 16;
  constexpr std::uint64_t kKey = 77;
  Builder build("large");
  const BufferId counter = build.counter("step");
  const BufferId one = build.state("one", f32({}), {1.0f});
  const BufferId drawn =
      build.step("random_uniform", {counter}, build.buffer("drawn", f32({kCount})), RandomParams{kKey, 0, 1});
  const BufferId total = build.step("sum", {drawn}, build.state("total", f32({}), {0.0f}), ReduceParams{1, false});
  const BufferId negated = build.step("neg", {drawn}, build.buffer("negated", f32({kCount})));
  const BufferId shifted = build.step("add", {negated, one}, build.buffer("shifted", f32({kCount})));
  const BufferId tail = build.step("slice", {shifted}, build.state("tail", f32({kTail}), std::vector<float>(kTail)),
                                   SliceParams{0, kCount - kTail});
  const Program program = build.finish(*cuda);
  std::unique_ptr<Runnable> device;
  try {
    device = cuda->load(program);
  } catch (const OutOfMemory& error) {
    GTEST_SKIP() << error.what();
  }
  for (const bool grouped : {true, false}) {
    SCOPED_TRACE(grouped ? "grouped" : "step by step");
    const std::vector<float> nothing(kTail);
    device->write(tail, std::as_bytes(std::span(nothing)));
    if (grouped) {
      device->run(0, 1);
    } else {
      device->run_steps(0, 0, static_cast<std::uint32_t>(program.phases[0].steps.size()));
    }
    const auto got = read<float>(*device, program, tail);
    for (std::int64_t i = 0; i < kTail; ++i) {
      const auto at = static_cast<std::uint64_t>(kCount - kTail + i);
      EXPECT_EQ(got[static_cast<std::size_t>(i)], -bits::uniform(bits::word(kKey, 0, at), 0, 1) + 1.0f) << at;
    }
    EXPECT_NEAR(read<float>(*device, program, total)[0] / static_cast<float>(kCount), 0.5f, 1e-4f);
  }
}

}  // namespace
}  // namespace graphrun::testing
