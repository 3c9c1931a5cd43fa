// The CPU kernels against the reference, over shapes, partial rows and instruction sets.
#include "kernels/cpu/cpu_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/calls.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/ref.h"

namespace graphrun {
namespace {

using test::Call;
using test::expect_close;
using test::same_bits;
using test::type_of;

// Runs the op on every instruction set: all must give the same bits, close to the reference.
void expect_like_reference(const Call& call, std::string_view op, double relative, double absolute,
                           const std::string& what, bool in_place = false) {
  const KernelFn reference = ref_kernel(find_op(op).value());
  ASSERT_NE(reference, nullptr) << op;
  const HostTensor want = call.run(reference, in_place);
  const HostTensor first = call.run(cpu_kernel(find_op(op).value(), Isa::plain), in_place);
  expect_close(call, first, want, relative, absolute, std::string(op) + " " + what);
  if (::testing::Test::HasFatalFailure()) return;
  for (const Isa isa : available_isas()) {
    const HostTensor got = call.run(cpu_kernel(find_op(op).value(), isa), in_place);
    ASSERT_TRUE(same_bits(got, first)) << op << " " << what << " on " << name_of(isa) << " differs from plain";
  }
}

// The elementwise ops of such dtypes (op_traits.h).
std::vector<std::string> elementwise(std::string_view dtypes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (is_elementwise(op) && traits_of(op).dtypes == dtypes) names.emplace_back(name_of(op));
  }
  return names;
}

const std::vector<std::string> kUnary = elementwise("F>F");
const std::vector<std::string> kBinary = elementwise("FF>F");
const std::vector<std::string> kCompare = elementwise("TT>B");
const std::vector<std::string> kLogical = elementwise("BB>B");

struct Pairing {
  Shape x, y, out;
};
const Pairing kPairings[] = {
    {{7, 33}, {7, 33}, {7, 33}},     // same shape
    {{7, 33}, {}, {7, 33}},          // scalar
    {{}, {64}, {64}},                // scalar first
    {{5, 10}, {10}, {5, 10}},        // trailing vector
    {{5, 40}, {5, 1}, {5, 40}},      // leading column
    {{5, 1}, {1, 19}, {5, 19}},      // outer
    {{2, 3, 4}, {3, 1}, {2, 3, 4}},  // middle
    {{2, 1, 4, 1}, {3, 1, 5}, {2, 3, 4, 5}},
    {{1, 1}, {1, 1}, {1, 1}},
    {{0, 4}, {4}, {0, 4}},  // empty
    {{3, 0}, {3, 1}, {3, 0}},
    {{257, 129}, {257, 129}, {257, 129}},
};

TEST(CpuKernels, EveryTableRowHasKernels) {
  for (const auto* family : {&kUnary, &kBinary, &kCompare, &kLogical}) {
    for (const std::string& op : *family) {
      EXPECT_NE(ref_kernel(find_op(op).value()), nullptr) << op;
      for (const Isa isa : available_isas()) EXPECT_NE(cpu_kernel(find_op(op).value(), isa), nullptr) << op;
    }
  }
  for (const Op none : {Op::parameter, Op::reshape, static_cast<Op>(9999)}) {
    EXPECT_EQ(cpu_kernel(none, Isa::plain), nullptr);
    EXPECT_EQ(ref_kernel(none), nullptr);
  }
}

TEST(CpuKernels, UnaryShapes) {
  std::mt19937 random(1);
  for (const std::string& op : kUnary) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{15}, Shape{16}, Shape{17}, Shape{31, 7}}) {
      Call call;
      call.params = ScalarParams{-0.5, 0.75};
      call.operand(type_of(shape), random, -5, 5);
      call.out_type = type_of(shape);
      expect_like_reference(call, op, 1e-6, 1e-44, to_string(shape));
      expect_like_reference(call, op, 1e-6, 1e-44, to_string(shape) + " in place", true);
    }
  }
}

TEST(CpuKernels, BinaryBroadcasting) {
  std::mt19937 random(3);
  for (const Pairing& p : kPairings) {
    const std::string what = to_string(p.x) + " with " + to_string(p.y);
    Call call;
    call.operand(type_of(p.x), random, 0.1f, 3);
    call.operand(type_of(p.y), random, 0.1f, 3);
    call.out_type = type_of(p.out);
    for (const std::string& op : kBinary) expect_like_reference(call, op, 1e-6, 0, what);
    call.out_type.dtype = DType::boolean;
    for (const std::string& op : kCompare) expect_like_reference(call, op, 0, 0, what);

    Call swapped;
    swapped.operand(type_of(p.y), random, 0.1f, 3);
    swapped.operand(type_of(p.x), random, 0.1f, 3);
    swapped.out_type = type_of(p.out);
    for (const std::string& op : kBinary) expect_like_reference(swapped, op, 1e-6, 0, what + " swapped");

    Call logical;
    logical.operand(type_of(p.x, DType::boolean), random);
    logical.operand(type_of(p.y, DType::boolean), random);
    logical.out_type = type_of(p.out, DType::boolean);
    expect_like_reference(logical, "logical_and", 0, 0, what);
    expect_like_reference(logical, "logical_or", 0, 0, what);

    for (int condition = 0; condition < 3; ++condition) {
      Call select;
      select.operand(type_of(condition == 0 ? p.x : condition == 1 ? p.y : p.out, DType::boolean), random);
      select.operand(type_of(p.y), random);
      select.operand(type_of(p.x), random);
      select.out_type = type_of(p.out);
      expect_like_reference(select, "where", 0, 0, what);
    }
  }
  Call negation;
  negation.operand(type_of({37}, DType::boolean), random);
  negation.out_type = type_of({37}, DType::boolean);
  expect_like_reference(negation, "logical_not", 0, 0, "(37)");
}

TEST(CpuKernels, PartialRowsStayZero) {
  std::mt19937 random(4);
  constexpr std::int64_t kCapacity = 9;
  for (const std::int32_t samples : {0, 1, 5, 9}) {
    for (const std::int64_t multiple : {1, 2}) {
      const TensorType rows = type_of({kCapacity * multiple, 20}, DType::f32, multiple);
      const TensorType column = type_of({kCapacity * multiple, 1}, DType::f32, multiple);
      const std::string what = std::to_string(samples) + " samples";
      Call call;
      call.capacity = kCapacity;
      call.samples = samples;
      Call unary = call;
      unary.operand(rows, random);
      unary.out_type = rows;
      expect_like_reference(unary, "cos", 1e-6, 1e-7, what);  // cos(0) = 1: the tail must be cleared
      expect_like_reference(unary, "exp", 1e-6, 0, what, true);
      for (const TensorType& other : {rows, column, type_of({20}), type_of({}), type_of({1, 20})}) {
        Call binary = call;
        binary.operand(rows, random);
        binary.operand(other, random, 1, 2);
        binary.out_type = rows;
        expect_like_reference(binary, "add", 1e-6, 1e-7, what);
        binary.out_type.dtype = DType::boolean;
        expect_like_reference(binary, "less", 0, 0, what);
      }
      Call spread = call;
      spread.operand(type_of({1, 20}), random);
      spread.out_type = rows;
      expect_like_reference(spread, "broadcast_to", 0, 0, what);
      Call cast = call;
      cast.operand(rows, random);
      cast.out_type = type_of(rows.shape, DType::i32, multiple);
      expect_like_reference(cast, "cast", 0, 0, what);

      for (const std::uint32_t axes : {1u, 2u, 3u}) {
        Call sum = call;
        sum.operand(rows, random);
        sum.params = ReduceParams{axes, false};
        sum.out_type = axes == 1   ? type_of({20})
                       : axes == 2 ? type_of({kCapacity * multiple}, DType::f32, multiple)
                                   : type_of({});
        expect_like_reference(sum, "sum", 1e-5, 1e-5, what);
      }

      Call forward = call;  // (rows, 20) @ (20, 3)
      forward.operand(rows, random);
      forward.operand(type_of({20, 3}), random);
      forward.params = MatmulParams{};
      forward.out_type = type_of({kCapacity * multiple, 3}, DType::f32, multiple);
      expect_like_reference(forward, "matmul", 1e-5, 1e-5, what);
      Call weights = call;  // (rows, 20)^T @ (rows, 1)
      weights.operand(rows, random);
      weights.operand(column, random);
      weights.params = MatmulParams{true, false};
      weights.out_type = type_of({20, 1});
      expect_like_reference(weights, "matmul", 1e-5, 1e-5, what);
    }
  }
}

TEST(CpuKernels, Sums) {
  std::mt19937 random(5);
  const Shape shapes[] = {{1},       {17},         {5000},       {3, 5}, {1500, 3}, {3, 1500}, {40, 17},
                          {2, 3, 4}, {2, 1100, 4}, {3, 4, 5, 6}, {0, 3}, {3, 0},    {1, 1, 1}, {2, 3, 2, 3, 2}};
  for (const Shape& shape : shapes) {
    for (std::uint32_t axes = 0; axes < 1u << shape.rank(); ++axes) {
      for (const bool keepdims : {false, true}) {
        Shape out;
        for (int d = 0; d < shape.rank(); ++d) {
          if ((axes >> d & 1u) == 0)
            out.push_back(shape[d]);
          else if (keepdims)
            out.push_back(1);
        }
        Call call;
        call.operand(type_of(shape), random);
        call.params = ReduceParams{axes, keepdims};
        call.out_type = type_of(out);
        expect_like_reference(call, "sum", 1e-5, 1e-4, to_string(shape) + " over " + std::to_string(axes));
      }
    }
  }
}

// However its axes lie, a sum of the same numbers in the same order has the same bits.
TEST(CpuKernels, SumsDoNotDependOnLayout) {
  std::mt19937 random(6);
  for (const std::int64_t n : {3, 100, 2100}) {
    Call rows, columns, split;
    HostTensor& x = rows.operand(type_of({2, n}), random);
    HostTensor& y = columns.operand(type_of({n, 2}), random);
    HostTensor& z = split.operand(type_of({n, 2, 1, 1}), random);
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j)
      for (std::size_t i = 0; i < 2; ++i)
        z.elements<float>()[j * 2 + i] = y.elements<float>()[j * 2 + i] =
            x.elements<float>()[i * static_cast<std::size_t>(n) + j];
    rows.params = ReduceParams{2, false};
    columns.params = ReduceParams{1, false};
    split.params = ReduceParams{1 | 4, false};
    rows.out_type = columns.out_type = type_of({2});
    split.out_type = type_of({2, 1});
    const HostTensor want = rows.run(cpu_kernel(Op::sum, default_isa()));
    EXPECT_TRUE(same_bits(columns.run(cpu_kernel(Op::sum, default_isa())), want)) << n;
    EXPECT_TRUE(same_bits(split.run(cpu_kernel(Op::sum, default_isa())), want)) << n;
  }
}

TEST(CpuKernels, Matmul) {
  std::mt19937 random(7);
  const std::int64_t sizes[][3] = {{1, 1, 1},   {1, 1, 300},  {3, 5, 7},     {16, 16, 16},  {17, 33, 9},  {64, 10, 784},
                                   {100, 1, 8}, {2, 64, 513}, {33, 40, 256}, {200, 7, 31},  {1, 256, 64}, {256, 48, 20},
                                   {0, 3, 4},   {3, 0, 4},    {3, 4, 0},     {13, 15, 600}, {130, 70, 12}};
  for (const auto& size : sizes) {
    const std::int64_t m = size[0];
    const std::int64_t n = size[1];
    const std::int64_t k = size[2];
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        Call call;
        call.operand(type_of(ta ? Shape{k, m} : Shape{m, k}), random);
        call.operand(type_of(tb ? Shape{n, k} : Shape{k, n}), random);
        call.params = MatmulParams{ta, tb};
        call.out_type = type_of({m, n});
        expect_like_reference(call, "matmul", 1e-5, 2e-6 * static_cast<double>(k) + 1e-6,
                              to_string(Shape{m, n, k}) + (ta ? " ta" : "") + (tb ? " tb" : ""));
      }
    }
  }
}

// The definition of isa.h, literally: blocks of 256 steps of k, each a chain of fma from zero, added in order. Few rows
// and a long k are where several blocks are computed at once.
TEST(CpuKernels, MatmulOfFewRowsIsTheDefinedChain) {
  std::mt19937 random(9);
  const std::int64_t sizes[][3] = {{1, 19, 3530}, {19, 1, 3530}, {2, 20, 1024},  {5, 1, 2048},   {3, 33, 1300},
                                   {7, 5, 1023},  {8, 16, 2600}, {11, 40, 1537}, {12, 16, 1100}, {4, 32, 512}};
  for (const auto& size : sizes) {
    const std::int64_t m = size[0], n = size[1], k = size[2];
    Call call;  // a weight gradient: the left operand by columns
    call.operand(type_of({k, m}), random);
    call.operand(type_of({k, n}), random);
    call.params = MatmulParams{true, false};
    call.out_type = type_of({m, n});
    HostTensor want(DType::f32, {m, n});
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float total = 0;
        for (std::int64_t begin = 0; begin < k; begin += 256) {
          float block = 0;
          for (std::int64_t l = begin; l < std::min(begin + 256, k); ++l)
            block = std::fma(call.operands[0].elements<float>()[static_cast<std::size_t>(l * m + i)],
                             call.operands[1].elements<float>()[static_cast<std::size_t>(l * n + j)], block);
          total = begin == 0 ? block : total + block;
        }
        want.elements<float>()[static_cast<std::size_t>(i * n + j)] = total;
      }
    }
    for (const Isa isa : available_isas())
      EXPECT_TRUE(same_bits(call.run(cpu_kernel(Op::matmul, isa)), want)) << to_string(Shape{m, n, k}) << name_of(isa);
  }
}

// Panels that all parts of a wide product share change no bit, whatever the machine and however many the threads.
TEST(CpuKernels, MatmulBySharedPanels) {
  std::mt19937 random(10);
  cpu::Pool three(3);
  // More columns than a part has; groups of steps of k, of which there are two from 1025 on; rest after whole tiles.
  // With rows a page apart, whose tiles are packed too.
  const std::int64_t sizes[][3] = {{170, 130, 70},  {182, 160, 300}, {169, 1100, 65}, {168, 128, 1030},
                                   {280, 161, 257}, {60, 128, 1024}, {75, 131, 2048}};
  for (const auto& size : sizes) {
    const std::int64_t m = size[0], n = size[1], k = size[2];
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        if (m * n * k > 10'000'000 && ta == tb) continue;
        Call call;
        call.operand(type_of(ta ? Shape{k, m} : Shape{m, k}), random);
        call.operand(type_of(tb ? Shape{n, k} : Shape{k, n}), random);
        call.params = MatmulParams{ta, tb};
        call.out_type = type_of({m, n});
        const HostTensor want = call.run(cpu_kernel(Op::matmul, default_isa()));
        call.workspace = cpu_workspace(Op::matmul, call.params, call.types, call.out_type);
        ASSERT_GT(call.workspace, 0u);
        EXPECT_LE(call.workspace, std::size_t{4} << 20);
        for (const Isa isa : available_isas()) {
          for (cpu::Pool* const pool : {static_cast<cpu::Pool*>(nullptr), &three}) {
            if (isa != default_isa() && pool == nullptr) continue;
            // Slow under sanitizers: each layout of the operands once, then the one that packs both.
            if (isa == Isa::plain && m * n * k > 1'600'000 && !(ta && !tb)) continue;
            call.pool = pool;
            EXPECT_TRUE(same_bits(call.run(cpu_kernel(Op::matmul, isa)), want))
                << to_string(Shape{m, n, k}) << (ta ? " ta" : "") << (tb ? " tb" : "") << " " << name_of(isa);
          }
        }
      }
    }
  }
}

// As few panels at a time as there is room for, or none: a budget changes no bit (Support::spare_workspace_bytes).
TEST(CpuKernels, MatmulWithLessWorkspaceThanItWants) {
  std::mt19937 random(12);
  cpu::Pool two(2);
  const std::int64_t sizes[][3] = {{170, 130, 1030}, {60, 256, 1024}, {182, 160, 300}, {168, 128, 70}};
  for (const auto& size : sizes) {
    for (const bool ta : {false, true}) {
      const std::int64_t m = size[0], n = size[1], k = size[2];
      Call call;
      call.operand(type_of(ta ? Shape{k, m} : Shape{m, k}), random);
      call.operand(type_of({k, n}), random);
      call.params = MatmulParams{ta, false};
      call.out_type = type_of({m, n});
      call.pool = &two;
      const std::size_t wanted = cpu_workspace(Op::matmul, call.params, call.types, call.out_type);
      ASSERT_GT(wanted, 0u);
      EXPECT_TRUE(cpu_spares_workspace(Op::matmul, call.params, call.types, call.out_type));
      call.workspace = wanted;
      const HostTensor want = call.run(cpu_kernel(Op::matmul, default_isa()));
      for (const std::size_t bytes : {wanted - 1, wanted * 3 / 4, wanted / 2, wanted / 3, wanted / 5, std::size_t{0}}) {
        call.workspace = bytes;
        EXPECT_TRUE(same_bits(call.run(cpu_kernel(Op::matmul, default_isa())), want))
            << to_string(Shape{m, n, k}) << (ta ? " ta " : " ") << bytes << " of " << wanted;
      }
    }
  }
  // Partitions are added in their own order: they need all of theirs.
  const TensorType a = type_of({40000, 2}), b = type_of({40000, 20});
  const Params params = MatmulParams{true, false};
  EXPECT_GT(cpu_workspace(Op::matmul, params, std::vector{a, b}, type_of({2, 20})), 0u);
  EXPECT_FALSE(cpu_spares_workspace(Op::matmul, params, std::vector{a, b}, type_of({2, 20})));
}

// A few matrices that are as large share panels one after the other; many are parts of their own.
TEST(CpuKernels, MatmulOfMatricesBySharedPanels) {
  std::mt19937 random(11);
  cpu::Pool three(3);
  for (const std::int64_t count : {3, 20}) {
    for (const bool broadcast : {false, true}) {
      Call call;
      call.operand(type_of({count, 170, 65}), random);
      call.operand(type_of(broadcast ? Shape{1, 140, 65} : Shape{count, 140, 65}), random);
      call.params = MatmulParams{false, true};
      call.out_type = type_of({count, 170, 140});
      const HostTensor want = call.run(cpu_kernel(Op::matmul, Isa::plain));
      call.workspace = cpu_workspace(Op::matmul, call.params, call.types, call.out_type);
      EXPECT_EQ(call.workspace > 0, count == 3);
      for (const Isa isa : available_isas()) {
        for (cpu::Pool* const pool : {static_cast<cpu::Pool*>(nullptr), &three}) {
          call.pool = pool;
          EXPECT_TRUE(same_bits(call.run(cpu_kernel(Op::matmul, isa)), want)) << name_of(isa);
        }
      }
    }
  }
}

// Tiles, lanes and transposes never change an element: any product holds the bits of its own row and column alone.
TEST(CpuKernels, MatmulElementsDoNotDependOnTiles) {
  std::mt19937 random(8);
  const std::int64_t m = 45, n = 51, k = 700;
  Call whole;
  whole.operand(type_of({m, k}), random);
  whole.operand(type_of({k, n}), random);
  whole.params = MatmulParams{};
  whole.out_type = type_of({m, n});
  const KernelFn kernel = cpu_kernel(Op::matmul, default_isa());
  const HostTensor all = whole.run(kernel);
  for (const std::int64_t columns : {1, 7, 20}) {
    Call part;
    part.types = {whole.types[0], type_of({k, columns})};
    part.operands = {whole.operands[0], HostTensor(DType::f32, {k, columns})};
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        part.operands[1].elements<float>()[static_cast<std::size_t>(i * columns + j)] =
            whole.operands[1].elements<float>()[static_cast<std::size_t>(i * n + j)];
    part.params = MatmulParams{};
    part.out_type = type_of({m, columns});
    const HostTensor some = part.run(kernel);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        ASSERT_EQ(some.elements<float>()[static_cast<std::size_t>(i * columns + j)],
                  all.elements<float>()[static_cast<std::size_t>(i * n + j)]);
  }
}

TEST(CpuKernels, BroadcastTo) {
  std::mt19937 random(9);
  for (const DType dtype : {DType::f32, DType::boolean, DType::i32, DType::u64}) {
    for (const Pairing& p : kPairings) {
      for (const Shape& in : {p.x, p.y}) {
        Call call;
        call.operand(type_of(in, dtype), random);
        call.out_type = type_of(p.out, dtype);
        expect_like_reference(call, "broadcast_to", 0, 0, to_string(in) + " to " + to_string(p.out));
      }
    }
  }
}

TEST(CpuKernels, Casts) {
  std::mt19937 random(10);
  const DType all[] = {DType::f32, DType::f64, DType::i32, DType::u64, DType::boolean};
  for (const DType from : all) {
    for (const DType to : all) {
      Call call;
      HostTensor& x = call.operand(type_of({23}, from), random, -300, 300);
      if (from == DType::f32) {
        const float special[] = {0.5f, -0.5f, 1e30f, -1e30f, std::bit_cast<float>(0x7fc00000u), 2147483648.0f, -0.0f};
        std::copy(std::begin(special), std::end(special), x.elements<float>().begin());
      }
      if (from == DType::u64) x.elements<std::uint64_t>()[0] = ~std::uint64_t{0};
      call.out_type = type_of({23}, to);
      expect_like_reference(call, "cast", 0, 0, std::string(name_of(from)) + " to " + std::string(name_of(to)));
    }
  }
}

TEST(CpuKernels, BatchesAndCounters) {
  std::mt19937 random(11);
  for (const std::uint64_t step : {0u, 1u, 2u, 3u, 7u}) {
    Call batch;
    batch.operand(type_of({11, 3}), random);
    batch.operand(type_of({}, DType::u64), random).elements<std::uint64_t>()[0] = step;
    batch.params = MinibatchParams{11, 4};
    batch.out_type = type_of({4, 3});
    expect_like_reference(batch, "minibatch", 0, 0, "step " + std::to_string(step));
    const HostTensor rows = batch.run(cpu_kernel(Op::minibatch, Isa::plain));
    const std::size_t first = step % 3 * 4;
    EXPECT_EQ(rows.elements<float>()[0], batch.operands[0].elements<float>()[first * 3]);
    EXPECT_EQ(rows.elements<float>()[11] == 0, step % 3 == 2);

    Call count;
    count.operand(type_of({}, DType::u64), random).elements<std::uint64_t>()[0] = step;
    count.params = MinibatchParams{11, 4};
    count.out_type = type_of({}, DType::i32);
    expect_like_reference(count, "row_count", 0, 0, "");
    EXPECT_EQ(count.run(cpu_kernel(Op::row_count, Isa::plain)).elements<std::int32_t>()[0], step % 3 == 2 ? 3 : 4);

    Call next;
    next.operand(type_of({}, DType::u64), random).elements<std::uint64_t>()[0] = (std::uint64_t{1} << 60) + step;
    next.out_type = type_of({}, DType::u64);
    for (const KernelFn kernel : {cpu_kernel(Op::increment, Isa::plain), ref_kernel(Op::increment)})
      EXPECT_EQ(next.run(kernel, true).elements<std::uint64_t>()[0], (std::uint64_t{1} << 60) + step + 1);

    Call ring;
    ring.operand(type_of({5}), random);
    ring.operand(type_of({}), random);
    ring.operand(type_of({}, DType::u64), random).elements<std::uint64_t>()[0] = step;
    ring.out_type = type_of({5});
    expect_like_reference(ring, "record", 0, 0, "", true);
    EXPECT_EQ(ring.run(cpu_kernel(Op::record, Isa::plain), true).elements<float>()[step % 5],
              ring.operands[1].elements<float>()[0]);

    Call assign;
    assign.operand(type_of({5, 2}), random);
    assign.operand(type_of({5, 2}), random);
    assign.out_type = type_of({5, 2});
    expect_like_reference(assign, "assign", 0, 0, "", true);
    EXPECT_TRUE(same_bits(assign.run(cpu_kernel(Op::assign, Isa::plain), true), assign.operands[1]));
  }
}

// The reference is checked by hand where a mistake could hide in what both sides share: indices.
TEST(RefKernels, ByHand) {
  Call product;
  product.types = {type_of({2, 3}), type_of({2, 2})};
  product.operands = {HostTensor({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}),
                      HostTensor({2, 2}, std::vector<float>{1, 10, 100, 1000})};
  product.params = MatmulParams{true, false};
  product.out_type = type_of({3, 2});
  const HostTensor c = product.run(ref_kernel(Op::matmul));
  const float want[] = {401, 4010, 502, 5020, 603, 6030};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(c.elements<float>()[i], want[i]);

  Call sum;
  sum.types = {type_of({2, 3, 2})};
  sum.operands = {HostTensor({2, 3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})};
  sum.params = ReduceParams{1 | 4, false};
  sum.out_type = type_of({3});
  const HostTensor s = sum.run(ref_kernel(Op::sum));
  EXPECT_EQ(s.elements<float>()[0], 1 + 2 + 7 + 8);
  EXPECT_EQ(s.elements<float>()[1], 3 + 4 + 9 + 10);
  EXPECT_EQ(s.elements<float>()[2], 5 + 6 + 11 + 12);

  Call difference;
  difference.types = {type_of({2, 1}), type_of({3})};
  difference.operands = {HostTensor({2, 1}, std::vector<float>{10, 20}), HostTensor({3}, std::vector<float>{1, 2, 3})};
  difference.out_type = type_of({2, 3});
  const HostTensor d = difference.run(ref_kernel(Op::sub));
  const float differences[] = {9, 8, 7, 19, 18, 17};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(d.elements<float>()[i], differences[i]);
}

// Every op with f64 operands: gradient checks need more than f32.
TEST(RefKernels, DoubleKeepsItsDigits) {
  std::mt19937 random(12);
  Call call;
  call.operand(type_of({4}, DType::f64), random).elements<double>()[0] = 1.0 + 1e-12;
  call.params = ScalarParams{0.1, 10};
  call.out_type = type_of({4}, DType::f64);
  EXPECT_EQ(call.run(ref_kernel(find_op("exp").value())).elements<double>()[0], std::exp(1.0 + 1e-12));
  call.params = ReduceParams{1, false};
  call.out_type = type_of({}, DType::f64);
  const auto x = call.operands[0].elements<double>();
  EXPECT_EQ(call.run(ref_kernel(Op::sum)).elements<double>()[0], x[0] + x[1] + x[2] + x[3]);
}

}  // namespace
}  // namespace graphrun
