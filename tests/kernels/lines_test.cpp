// Softmax and its kin, sums along axes and transpositions: the definitions of isa.h literally, over the ways that lines
// lie, instruction sets, threads, and beside tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/calls.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/cpu/tiles/tile_steps.h"
#include "kernels/ref.h"
#include "kernels/scalar_functions.h"

namespace graphrun {
namespace {

using test::Call;
using test::same_bits;
using test::type_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float exponential(float x) {
  return scalar::exp(x);
}
float logarithm(float x) {
  return scalar::log(x);
}

// isa.h: up to kShortLine terms one after another, more in 16 accumulators, a chunk of 1024 at a time.
float sum_of(const std::vector<float>& terms) {
  float total = 0;
  if (terms.size() <= cpu::kShortLine) {
    for (const float x : terms) total += x;
    return total;
  }
  for (std::size_t begin = 0; begin < terms.size(); begin += cpu::kSumChunk) {
    float sum[16] = {};
    for (std::size_t j = begin; j < std::min<std::size_t>(begin + cpu::kSumChunk, terms.size()); ++j)
      sum[(j - begin) % 16] += terms[j];
    for (int apart = 8; apart > 0; apart /= 2)
      for (int i = 0; i < apart; ++i) sum[i] += sum[i + apart];
    total += sum[0];
  }
  return total;
}

struct Softmax {
  float top = -kInfinity, sum = 0, log_sum = 0;
  std::vector<float> exponentials;
  explicit Softmax(const std::vector<float>& line) {
    for (const float x : line) top = std::max(top, x);
    for (const float x : line) exponentials.push_back(exponential(x - top));
    sum = sum_of(exponentials);
    log_sum = logarithm(sum);
  }
};

// What an op makes of one line; logsumexp and the loss make one number.
std::vector<float> defined(std::string_view op, const std::vector<float>& line, const std::vector<float>& targets) {
  const Softmax s(line);
  std::vector<float> out;
  if (op == "logsumexp") return {s.top + s.log_sum};
  for (std::size_t j = 0; j < line.size(); ++j) {
    if (op == "softmax") out.push_back(s.exponentials[j] / s.sum);
    if (op == "log_softmax") out.push_back((line[j] - s.top) - s.log_sum);
    if (op == "softmax_cross_entropy")
      out.push_back(targets[j] != 0 ? targets[j] * (s.log_sum - (line[j] - s.top)) : 0.0f);
  }
  return op == "softmax_cross_entropy" ? std::vector<float>{sum_of(out)} : out;
}

// Of a shape (outer, n, inner) lines run along the middle.
struct Lay {
  std::int64_t outer, n, inner;
};
const Lay kLays[] = {{5, 10, 1},   {3, 16, 2},   {7, 17, 1},    {2, 100, 1},  {3, 300, 5},   {1, 1040, 1},
                     {2, 2100, 1}, {1, 40, 64},  {2, 33, 100},  {1, 2500, 3}, {1, 4000, 1},  {4, 1024, 16},
                     {1, 999, 15}, {64, 10, 64}, {1, 70000, 1}, {1, 9000, 4}, {300, 128, 1}, {1, 20, 7}};

void expect_as_defined(const std::string& op) {
  std::mt19937 random(3);
  cpu::Pool three(3);
  for (const Lay& lay : kLays) {
    const bool loss = op == "softmax_cross_entropy", one = loss || op == "logsumexp";
    if (loss && lay.inner > 1) continue;
    SCOPED_TRACE(op + " " + to_string(Shape{lay.outer, lay.n, lay.inner}));
    const Shape shape = loss ? Shape{lay.outer, lay.n} : Shape{lay.outer, lay.n, lay.inner};
    Call call;
    const HostTensor x = call.operand(type_of(shape), random, -4, 4);
    HostTensor targets(DType::f32, shape);
    if (loss) {
      HostTensor& t = call.operand(type_of(shape), random, -1, 1);
      for (float& v : t.elements<float>()) v = v < 0 ? 0.0f : v;
      targets = t;
    }
    if (op == "logsumexp")
      call.params = ReduceParams{2, false};
    else if (!loss)
      call.params = AxisParams{1};
    call.out_type = type_of(loss ? Shape{lay.outer} : one ? Shape{lay.outer, lay.inner} : shape);
    HostTensor want(DType::f32, call.out_type.shape);
    for (std::int64_t o = 0; o < lay.outer; ++o) {
      for (std::int64_t i = 0; i < lay.inner; ++i) {
        const auto at = [&](std::int64_t j) { return static_cast<std::size_t>((o * lay.n + j) * lay.inner + i); };
        std::vector<float> line, target;
        for (std::int64_t j = 0; j < lay.n; ++j) {
          line.push_back(x.elements<float>()[at(j)]);
          target.push_back(targets.elements<float>()[at(j)]);
        }
        const std::vector<float> out = defined(op, line, target);
        for (std::int64_t j = 0; j < (one ? 1 : lay.n); ++j)
          want.elements<float>()[one ? static_cast<std::size_t>(o * lay.inner + i) : at(j)] =
              out[static_cast<std::size_t>(j)];
      }
    }
    for (const Isa isa : available_isas()) {
      for (cpu::Pool* const pool : {static_cast<cpu::Pool*>(nullptr), &three}) {
        call.pool = pool;
        call.workspace = 0;
        EXPECT_TRUE(same_bits(call.run(cpu_kernel(find_op(op).value(), isa)), want)) << name_of(isa);
        if (!one) {
          EXPECT_TRUE(same_bits(call.run(cpu_kernel(find_op(op).value(), isa), true), want))
              << name_of(isa) << " in place";
        }
        call.workspace = cpu_workspace(find_op(op).value(), call.params, call.types, call.out_type);
        if (call.workspace == 0) continue;
        EXPECT_TRUE(same_bits(call.run(cpu_kernel(find_op(op).value(), isa)), want)) << name_of(isa) << " in chunks";
      }
    }
  }
}

TEST(CpuLines, SoftmaxIsAsDefined) {
  expect_as_defined("softmax");
}
TEST(CpuLines, LogSoftmaxIsAsDefined) {
  expect_as_defined("log_softmax");
}
TEST(CpuLines, LogSumExpIsAsDefined) {
  expect_as_defined("logsumexp");
}
TEST(CpuLines, CrossEntropyIsAsDefined) {
  expect_as_defined("softmax_cross_entropy");
}

// Few lines of many elements are cut into chunks, or a second thread would have nothing to do.
TEST(CpuLines, LongLinesAreCut) {
  for (const Shape& shape : {Shape{4096, 64}, Shape{100000, 4}, Shape{1000000}}) {
    const TensorType in = type_of(shape);
    EXPECT_GT(cpu_workspace(Op::logsumexp, ReduceParams{1, false}, {&in, 1}, type_of(shape)), 0u) << to_string(shape);
  }
}

// Axes with kept ones between them.
TEST(CpuLines, LogSumExpOverSeveralAxes) {
  std::mt19937 random(4);
  for (const Shape& shape : {Shape{30, 4, 50}, Shape{3, 4, 5}, Shape{70, 2, 31}}) {
    Call call;
    const HostTensor x = call.operand(type_of(shape), random, -4, 4);
    call.params = ReduceParams{5, false};
    call.out_type = type_of({shape[1]});
    for (const Isa isa : available_isas()) {
      const HostTensor got = call.run(cpu_kernel(Op::logsumexp, isa));
      for (std::int64_t k = 0; k < shape[1]; ++k) {
        std::vector<float> line;
        for (std::int64_t i = 0; i < shape[0]; ++i)
          for (std::int64_t j = 0; j < shape[2]; ++j)
            line.push_back(x.elements<float>()[static_cast<std::size_t>((i * shape[1] + k) * shape[2] + j)]);
        EXPECT_EQ(got.elements<float>()[static_cast<std::size_t>(k)], defined("logsumexp", line, {})[0]);
      }
    }
  }
}

// A NaN or an infinity anywhere in a long line, before and after whole vectors.
TEST(CpuLines, WhatIsNotFinite) {
  const float nan = std::nanf("");
  for (const Shape& shape : {Shape{1, 100}, Shape{100, 1}, Shape{100, 3}, Shape{100, 20}}) {
    const int axis = shape[0] == 1 ? 1 : 0;
    const std::int64_t lines = shape.elements() / 100;
    for (const std::int64_t where : {0, 5, 63, 96, 99}) {
      for (const float value : {nan, kInfinity, -kInfinity}) {
        std::mt19937 random(5);
        Call call;
        HostTensor& x = call.operand(type_of(shape), random);
        x.elements<float>()[static_cast<std::size_t>(axis == 1 ? where : where * lines)] = value;  // of the first line
        call.params = ReduceParams{1u << axis, false};
        call.out_type = type_of({lines});
        for (const Isa isa : available_isas()) {
          const HostTensor sum = call.run(cpu_kernel(Op::logsumexp, isa));
          const float got = sum.elements<float>()[0];
          EXPECT_EQ(std::isnan(got), std::isnan(value)) << name_of(isa);
          EXPECT_EQ(got == kInfinity, value == kInfinity) << name_of(isa);
          EXPECT_EQ(std::isfinite(got), value == -kInfinity) << name_of(isa);
          for (std::int64_t l = 1; l < lines; ++l)
            EXPECT_TRUE(std::isfinite(sum.elements<float>()[static_cast<std::size_t>(l)])) << name_of(isa);
        }
      }
    }
  }
}

// In a tile the lanes are samples; the bits are those of the kernel over the batch.
TEST(CpuLines, TilesHaveTheSameBits) {
  constexpr std::int64_t kRows = 48;
  for (const std::int64_t n : {1, 10, 16, 17, 31, 100, 1500}) {
    std::mt19937 random(6);
    for (const std::string op : {"softmax", "log_softmax", "logsumexp", "softmax_cross_entropy"}) {
      const bool loss = op == "softmax_cross_entropy", one = loss || op == "logsumexp";
      const TensorType rows = type_of({kRows, n}, DType::f32, 1);
      Call call;
      call.capacity = kRows;
      call.samples = kRows;
      call.operand(rows, random, -4, 4);
      if (loss) call.operand(rows, random, 0.1f, 1);
      call.params = loss ? Params{NoParams{}} : one ? Params{ReduceParams{2, false}} : Params{AxisParams{1}};
      call.out_type = one ? type_of({kRows}, DType::f32, 1) : rows;
      const HostTensor want = call.run(cpu_kernel(find_op(op).value(), Isa::plain));

      const std::size_t floats = static_cast<std::size_t>(n * kRows);
      cpu::TileCall tile;
      tile.op = find_op(op).value();
      tile.params = &call.params;
      std::vector<float> memory(3 * floats);
      for (std::size_t k = 0; k < call.operands.size(); ++k) {
        tile.inputs.push_back({rows, k * floats * sizeof(float)});
        for (std::int64_t r = 0; r < kRows; ++r)
          for (std::int64_t f = 0; f < n; ++f)
            memory[k * floats + static_cast<std::size_t>(f * kRows + r)] =
                call.operands[k].elements<float>()[static_cast<std::size_t>(r * n + f)];
      }
      tile.output = {call.out_type, 2 * floats * sizeof(float)};
      for (const Isa isa : available_isas()) {
        std::string reason;
        const cpu::TileStep step = cpu::make_tile_step(tile, isa, reason);
        ASSERT_NE(step, nullptr) << reason;
        cpu::TileContext context;
        context.tile = reinterpret_cast<std::byte*>(memory.data());
        context.rows = context.stride = kRows;
        step(context);
        for (std::int64_t r = 0; r < kRows; ++r)
          for (std::int64_t f = 0; f < (one ? 1 : n); ++f)
            ASSERT_EQ(memory[2 * floats + static_cast<std::size_t>(f * kRows + r)],
                      want.elements<float>()[static_cast<std::size_t>(one ? r : r * n + f)])
                << op << " of " << n << " on " << name_of(isa);
      }
    }
  }
}

// Sums of columns that fill no vector, and of rows shorter than one.
TEST(CpuLines, NarrowSumsAreAsDefined) {
  std::mt19937 random(7);
  for (const Lay& lay : kLays) {
    if (lay.n <= cpu::kShortLine) continue;
    Call call;
    const HostTensor x = call.operand(type_of({lay.outer, lay.n, lay.inner}), random, -4, 4);
    call.params = ReduceParams{2, false};
    call.out_type = type_of({lay.outer, lay.inner});
    for (const Isa isa : available_isas()) {
      const HostTensor got = call.run(cpu_kernel(Op::sum, isa));
      for (std::int64_t o = 0; o < lay.outer; ++o) {
        for (std::int64_t i = 0; i < lay.inner; ++i) {
          std::vector<float> line;
          for (std::int64_t j = 0; j < lay.n; ++j)
            line.push_back(x.elements<float>()[static_cast<std::size_t>((o * lay.n + j) * lay.inner + i)]);
          ASSERT_EQ(got.elements<float>()[static_cast<std::size_t>(o * lay.inner + i)], sum_of(line))
              << to_string(Shape{lay.outer, lay.n, lay.inner}) << " on " << name_of(isa);
        }
      }
    }
  }
}

TEST(CpuLines, TransposesLikeTheReference) {
  std::mt19937 random(8);
  cpu::Pool three(3);
  const Shape shapes[] = {{1, 1},    {3, 5},    {16, 16},    {17, 33},    {100, 70},      {500, 37},
                          {37, 500}, {2, 3, 4}, {1, 40, 20}, {5, 64, 33}, {33, 2, 64, 1}, {4, 1, 20, 18}};
  for (const DType dtype : {DType::f32, DType::boolean, DType::u64}) {
    for (const Shape& shape : shapes) {
      std::vector<int> order;
      for (int d = 0; d < shape.rank(); ++d) order.push_back(d);
      do {
        for (const bool batch : {false, true}) {
          if (batch && (order[0] != 0 || shape[0] < 2)) continue;
          Call call;
          call.capacity = shape[0];
          call.samples = static_cast<std::int32_t>(batch ? shape[0] - 1 : shape[0]);
          call.operand(type_of(shape, dtype, batch ? 1 : 0), random);
          PermuteParams params{};
          Shape out;
          for (int d = 0; d < shape.rank(); ++d) {
            params.axes[d] = order[static_cast<std::size_t>(d)];
            out.push_back(shape[order[static_cast<std::size_t>(d)]]);
          }
          call.params = params;
          call.out_type = type_of(out, dtype, batch ? 1 : 0);
          const HostTensor want = call.run(ref_kernel(Op::transpose));
          for (const Isa isa : available_isas()) {
            for (cpu::Pool* const pool : {static_cast<cpu::Pool*>(nullptr), &three}) {
              call.pool = pool;
              ASSERT_TRUE(same_bits(call.run(cpu_kernel(Op::transpose, isa)), want))
                  << to_string(shape) << " to " << to_string(out) << " on " << name_of(isa);
            }
          }
        }
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }
}

}  // namespace
}  // namespace graphrun
