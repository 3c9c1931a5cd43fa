// scatter_add on the device against ref: places counted, sorted digit by digit, and rows that go over many tiles.
#include "device.h"

namespace graphrun::testing {
namespace {

std::vector<std::int32_t> random_rows(std::int64_t count, std::uint32_t seed, std::int32_t low, std::int32_t high) {
  std::mt19937 engine(seed);
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  for (std::int32_t& row : rows)
    row = low + static_cast<std::int32_t>(engine() % static_cast<std::uint32_t>(high - low));
  return rows;
}

TEST_F(Device, ScatterAdd) {
  struct Case {
    std::int64_t places, width;
    std::int32_t rows;
  };
  // Up to 4,096 places are counted; then one digit of 8 bits for 200 rows, two for 1,203, three for 70,001.
  for (const Case& c : {Case{1, 1, 1}, Case{7, 3, 5}, Case{1500, 3, 1}, Case{4096, 2, 300}, Case{4097, 2, 200},
                        Case{9001, 5, 1203}, Case{40000, 2, 70001}, Case{37, 261, 9}}) {
    Builder build("scatter_add " + std::to_string(c.places) + " into " + std::to_string(c.rows));
    // Some indices are no rows: what belongs to them is left out.
    const BufferId indices =
        build.values("indices", {DType::i32, {c.places}, 0}, random_rows(c.places, 3, -1, c.rows + 1));
    const BufferId updates = build.state("updates", f32({c.places, c.width}), random_values(c.places * c.width, 5));
    const BufferId out = build.result("out", f32({c.rows, c.width}));
    build.step("scatter_add", {indices, updates}, out);
    compare(build, out, 1e-5f);
  }
}

TEST_F(Device, ScatterAddOfPartOfABatch) {
  for (const std::int32_t samples : {0, 1, 700, 1000}) {
    Builder build("scatter_add of " + std::to_string(samples), 1000);
    build.rows(samples);
    const BufferId indices = build.values("indices", {DType::i32, {1000, 5}, 1}, random_rows(5000, 3, 0, 50));
    const BufferId updates = build.state("updates", f32({1000, 5, 4}, 1), random_values(20000, 5));
    const BufferId out = build.result("out", f32({50, 4}));
    build.step("scatter_add", {indices, updates}, out);
    compare(build, out, 1e-5f);
  }
}

}  // namespace
}  // namespace graphrun::testing
