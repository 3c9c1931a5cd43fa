// Random numbers in vectors, over whole batches and in tiles of any width, against the definition element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/calls.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/tiles/tile.h"

namespace graphrun::test {
namespace {

constexpr std::uint64_t kKey = 0x9e3779b97f4a7c15u, kStep = (std::uint64_t{5} << 32) + 77;

struct Draw {
  Op op;
  double a, b;

  float element(std::int64_t i, float x) const {
    const bits::u32 word = bits::word(kKey, kStep, static_cast<std::uint64_t>(i));
    if (op == family_op::random_normal) return bits::normal(word, a, b);
    if (op == family_op::random_uniform) return bits::uniform(word, a, b);
    return bits::unit(word) < a ? 0.0f : x / static_cast<float>(1 - a);
  }
};
constexpr Draw kDraws[] = {{family_op::random_normal, 1, 2},
                           {family_op::random_uniform, 0, 1},
                           {family_op::random_uniform, -3, 5},
                           {Op::dropout, 0, 0},
                           {Op::dropout, 1e-9, 0},
                           {Op::dropout, 0.3, 0},
                           {Op::dropout, 0.5, 0},
                           {Op::dropout, 0.999999, 0}};

bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(RandomKernels, HaveTheBitsOfTheDefinition) {
  for (const Isa isa : available_isas()) {
    for (const Draw& draw : kDraws) {
      for (const std::int64_t n : {0, 1, 3, 7, 16, 31, 32, 63, 64, 65, 1037}) {
        std::mt19937 random(1);
        Call call;
        if (draw.op == Op::dropout) call.operand(type_of({n}), random);
        call.operand(type_of({}, DType::u64), random).elements<std::uint64_t>()[0] = kStep;
        call.out_type = type_of({n});
        call.params = RandomParams{kKey, draw.a, draw.b};
        for (const bool in_place : {false, true}) {
          if (in_place && draw.op != Op::dropout) continue;
          const HostTensor out = call.run(cpu_kernel(draw.op, isa), in_place);
          for (std::int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const float x = draw.op == Op::dropout ? call.operands[0].elements<float>()[at] : 0;
            ASSERT_TRUE(same(out.elements<float>()[at], draw.element(i, x)))
                << name_of(draw.op) << " on " << name_of(isa) << ", element " << i << " of " << n;
          }
        }
      }
    }
  }
}

// Zeros, subnormal numbers, infinities and all others are divided as floats are.
TEST(RandomKernels, DropoutDividesAnyNumber) {
  constexpr std::int64_t kCount = 50000;
  for (const Isa isa : available_isas()) {
    for (const double rate : {1e-7, 0.1, 0.2, 0.3, 0.5, 0.7, 0.97}) {
      std::mt19937 random(1);
      Call call;
      const std::span<float> x = call.operand(type_of({kCount}), random).elements<float>();
      for (float& one : x) one = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      std::ranges::replace_if(
          x, [](float one) { return std::isnan(one); }, -0.0f);
      call.operand(type_of({}, DType::u64), random).elements<std::uint64_t>()[0] = kStep;
      call.out_type = type_of({kCount});
      call.params = RandomParams{kKey, rate, 0};
      const HostTensor out = call.run(cpu_kernel(Op::dropout, isa), false);
      for (std::int64_t i = 0; i < kCount; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float given = call.operands[0].elements<float>()[at];
        ASSERT_TRUE(same(out.elements<float>()[at], Draw{Op::dropout, rate, 0}.element(i, given)))
            << given << " on " << name_of(isa) << " with a rate of " << rate;
      }
    }
  }
}

TEST(RandomTiles, HaveTheBitsOfTheDefinition) {
  constexpr std::int64_t kRows = 37, kStride = 48;
  for (const Isa isa : available_isas()) {
    for (const Draw& draw : kDraws) {
      for (const std::int64_t width : {1, 2, 3, 4, 5, 6, 7, 8, 13, 64}) {
        for (const std::int64_t first : {std::int64_t{0}, std::int64_t{48}, std::int64_t{1} << 34}) {
          const auto size = static_cast<std::size_t>(width * kStride);
          std::vector<float> tile(2 * size + 1, 77.0f);  // x, and the result
          for (std::size_t i = 0; i < size; ++i) tile[i] = static_cast<float>(i) - 5;
          const TensorType type{DType::f32, {kRows, width}, 1};
          const Params params = RandomParams{kKey, draw.a, draw.b};
          cpu::TileCall call{.op = draw.op, .params = &params, .inputs = {}, .output = {type, size * sizeof(float)}};
          if (draw.op == Op::dropout) call.inputs.push_back({type, 0});
          call.inputs.push_back({{DType::u64, {}, 0}, 0, reinterpret_cast<const std::byte*>(&kStep)});
          std::string reason;
          const cpu::TileStep step = cpu::make_tile_step(call, isa, reason);
          ASSERT_NE(step, nullptr) << reason;
          cpu::TileContext context;
          context.tile = reinterpret_cast<std::byte*>(tile.data());
          context.first = first;
          context.rows = kRows;
          context.stride = kStride;
          step(context);
          for (std::int64_t i = 0; i < kRows * width; ++i) {
            const auto at = static_cast<std::size_t>(i % width * kStride + i / width);
            ASSERT_TRUE(same(tile[size + at], draw.element(first * width + i, tile[at])))
                << name_of(draw.op) << " on " << name_of(isa) << ", row " << i / width << ", feature " << i % width
                << " of " << width;
          }
          EXPECT_EQ(tile.back(), 77.0f);
        }
      }
    }
  }
}

// The mask that a dropout left serves the next one in the tile, whose numbers are divided without a division where none
// is extreme: numbers of any bits, and numbers between 2^-100 and 2^100 with zeros among them.
TEST(RandomTiles, AMaskServesTheNextDropout) {
  constexpr std::int64_t kWidth = 640, kRows = 29, kStride = 32;
  constexpr std::size_t kSize = kWidth * kStride;
  constexpr std::uint64_t kMask = 2 * kSize * sizeof(float);
  for (const Isa isa : available_isas()) {
    for (const double rate : {1e-7, 0.1, 0.2, 0.3, 1.0 / 3, 0.5, 0.7, 0.97, 0.999999}) {
      for (const bool extreme : {false, true}) {
        std::vector<float> scratch(3 * kSize);  // a tile of x, one of the result, the mask
        const TensorType type{DType::f32, {kRows, kWidth}, 1};
        const Params params = RandomParams{kKey, rate, 0};
        cpu::TileCall call{.op = Op::dropout, .params = &params, .inputs = {}, .output = {type, kSize * sizeof(float)}};
        call.inputs.push_back({type, 0});
        call.inputs.push_back({{DType::u64, {}, 0}, 0, reinterpret_cast<const std::byte*>(&kStep)});
        call.mask_at = kMask;
        std::mt19937 random(1);
        for (const bool known : {false, true}) {
          for (std::size_t i = 0; i < kSize; ++i) {
            auto word = static_cast<std::uint32_t>(random());
            if (!extreme) word = (word & 0x807fffffu) | (27 + word / 8 % 200) << 23;
            scratch[i] =
                random() % 16 == 0 ? std::copysign(0.0f, std::bit_cast<float>(word)) : std::bit_cast<float>(word);
            if (std::isnan(scratch[i])) scratch[i] = INFINITY;
          }
          call.mask_known = known;
          std::string reason;
          const cpu::TileStep step = cpu::make_tile_step(call, isa, reason);
          ASSERT_NE(step, nullptr) << reason;
          cpu::TileContext context;
          context.tile = reinterpret_cast<std::byte*>(scratch.data());
          context.first = 64;
          context.rows = kRows;
          context.stride = kStride;
          step(context);
          for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
            const auto at = static_cast<std::size_t>(i % kWidth * kStride + i / kWidth);
            const float want = Draw{Op::dropout, rate, 0}.element(context.first * kWidth + i, scratch[at]);
            ASSERT_TRUE(same(scratch[kSize + at], want))
                << scratch[at] << " on " << name_of(isa) << " with a rate of " << rate << ", known " << known;
          }
        }
      }
    }
  }
}

// Every epoch has each row once, in the order of the definition.
TEST(RandomKernels, PermuteRowsAsDefined) {
  for (const Isa isa : available_isas()) {
    for (const std::uint64_t total : {1u, 2u, 3u, 16u, 17u, 64u, 65u, 255u, 257u, 1000u, 20000u, 70000u, 0xfffffff0u}) {
      for (const auto& [first, rows] : {std::pair{0, 1}, {1, 15}, {0, 1000}, {13, 129}, {0, 64}}) {
        if (static_cast<std::uint64_t>(first) >= total) continue;
        const auto n = std::min(static_cast<std::uint64_t>(rows), total - static_cast<std::uint64_t>(first));
        std::vector<std::int64_t> numbers(n + 1, -1);
        cpu::isa_table(isa).permute(
            {kKey, kStep, total, bits::half_bits(total), first, static_cast<std::int64_t>(n), numbers.data()});
        for (std::uint64_t i = 0; i < n; ++i)
          ASSERT_EQ(static_cast<std::uint64_t>(numbers[i]),
                    bits::permuted(static_cast<std::uint64_t>(first) + i, total, kKey, kStep))
              << i << " of " << total << " on " << name_of(isa);
        EXPECT_EQ(numbers[n], -1) << "wrote past the end";
      }
    }
  }
}

}  // namespace
}  // namespace graphrun::test
