// The plain numbers that the CUDA kernels go by, checked on the host against their definitions.
#include "kernels/cuda/layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/reduce_plan.h"

namespace graphrun::cuda {
namespace {

// Where element `index` of the result reads its operand: as the kernels compute it.
std::uint64_t position(const Operand& operand, std::uint64_t index) {
  switch (operand.access) {
    case Access::same:
      return index;
    case Access::scalar:
      return 0;
    case Access::period:
      return index % operand.extent;
    case Access::repeat:
      return index / operand.extent;
    case Access::strided:
      break;
  }
  return static_cast<std::uint64_t>(operand.dims.offset(static_cast<std::int64_t>(index)));
}

// The same by NumPy's rule, one axis at a time.
std::uint64_t broadcast(const Shape& in, const Shape& out, std::uint64_t index) {
  std::uint64_t result = 0, step = 1;
  for (int axis = out.rank() - 1, from = in.rank() - 1; from >= 0; --axis, --from) {
    const auto at = index % static_cast<std::uint64_t>(out[axis]);
    index /= static_cast<std::uint64_t>(out[axis]);
    if (in[from] != 1) result += at * step;
    step *= static_cast<std::uint64_t>(in[from]);
  }
  return result;
}

TEST(Layout, FollowsTheBroadcastRule) {
  struct Case {
    Shape in, out;
    Access access;
  };
  const Case cases[] = {{{5, 7}, {5, 7}, Access::same},         {{5, 7}, {1, 5, 7}, Access::same},
                        {{}, {5, 7}, Access::scalar},           {{1, 1}, {5, 7}, Access::scalar},
                        {{7}, {5, 7}, Access::period},          {{1, 7}, {5, 7}, Access::period},
                        {{5, 7}, {3, 5, 7}, Access::period},    {{5, 1}, {5, 7}, Access::repeat},
                        {{3, 5, 1}, {3, 5, 7}, Access::repeat}, {{3, 1, 1}, {3, 5, 7}, Access::repeat},
                        {{5, 1}, {3, 5, 7}, Access::strided},   {{3, 1, 7}, {3, 5, 7}, Access::strided},
                        {{1, 5, 1}, {3, 5, 7}, Access::strided}};
  for (const Case& c : cases) {
    const Operand operand = operand_of(dense(c.in), c.out, nullptr);
    EXPECT_EQ(operand.access, c.access) << to_string(c.in) << " to " << to_string(c.out);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(c.out.elements()); ++i) {
      ASSERT_EQ(position(operand, i), broadcast(c.in, c.out, i))
          << to_string(c.in) << " to " << to_string(c.out) << ", element " << i;
    }
  }
}

// Of storage (5, 7): columns, rows, a column for each row, the transpose.
TEST(Layout, FollowsTheStridesOfAView) {
  const View all = dense({5, 7}), row = sliced(all, 0, 1, 1);
  const std::pair<View, Access> cases[] = {{sliced(all, 1, 2, 3), Access::strided},
                                           {sliced(all, 0, 2, 3), Access::same},
                                           {sliced(row, 1, 2, 3), Access::same},
                                           {sliced(all, 1, 2, 1), Access::strided},
                                           {transposed(all), Access::strided}};
  for (const auto& [view, access] : cases) {
    const Operand operand = operand_of(view, view.extents, nullptr);
    EXPECT_EQ(operand.access, access) << to_string(view.extents);
    for (std::int64_t i = 0; i < view.extents.elements(); ++i) {
      const std::int64_t columns = view.extents[1];
      EXPECT_EQ(position(operand, static_cast<std::uint64_t>(i)),
                static_cast<std::uint64_t>(i / columns * view.strides[0] + i % columns * view.strides[1]));
    }
  }
  const Operand repeated = operand_of(sliced(row, 1, 2, 3), {4, 3}, nullptr);
  EXPECT_EQ(repeated.access, Access::period);
  EXPECT_EQ(repeated.extent, 3u);
}

TEST(ReducePlan, VisitsEveryElementOnce) {
  const Machine machine{132, 0};
  for (const Shape& shape : {Shape{7}, Shape{300, 6}, Shape{3, 4, 5, 6}, Shape{40, 1, 70}, Shape{100, 50, 2}}) {
    const std::uint32_t all = (1u << shape.rank()) - 1;
    for (std::uint32_t axes = 0; axes <= all; ++axes) {
      const ReducePlan plan = plan_reduce(axes, shape, machine);
      ASSERT_EQ(plan.kept.count * plan.reduced.count, shape.elements());
      const auto terms = static_cast<std::uint64_t>(plan.reduced.count);
      ASSERT_GE(plan.splits * plan.split, terms);
      ASSERT_LT((plan.splits - 1) * plan.split, terms);
      std::vector<int> visits(static_cast<std::size_t>(shape.elements()));
      for (std::int64_t i = 0; i < plan.kept.count; ++i) {
        for (std::int64_t j = 0; j < plan.reduced.count; ++j) {
          ++visits.at(static_cast<std::size_t>(plan.kept.offset(i) + plan.reduced.offset(j)));
        }
      }
      for (const int count : visits) ASSERT_EQ(count, 1) << to_string(shape) << " axes " << axes;
    }
  }
}

TEST(MatmulPlan, SplitsCoverTheSum) {
  const Machine machine{132, 1 << 20};
  for (const std::int64_t m : {1, 6, 40, 1000}) {
    for (const std::int64_t n : {1, 10, 33}) {
      for (const std::int64_t k : {1, 32, 33, 2049, 100000}) {
        const TensorType a{DType::f32, {m, k}, 0}, b{DType::f32, {k, n}, 0};
        const MatmulPlan plan = plan_matmul({}, a, b, machine);
        if (plan.route != MatmulPlan::Route::blocks) continue;
        ASSERT_GE(plan.splits * plan.split, k);
        ASSERT_LT((plan.splits - 1) * plan.split, k);
        ASSERT_EQ(plan.threads % 32, 0u);
        ASSERT_LE(plan.threads, 256u);
        const std::int64_t places = plan.splits > 1 ? plan.splits * m * n : 0;
        ASSERT_EQ(plan.workspace, static_cast<std::uint64_t>(places) * sizeof(float));
      }
    }
  }
}

TEST(MatmulPlan, WideProductsFillTheMachine) {
  const Machine machine{132, 1 << 20, true};
  const auto plan = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return plan_matmul({}, {DType::f32, {m, k}, 0}, {DType::f32, {k, n}, 0}, machine);
  };
  for (const std::int64_t m : {33, 64, 1000, 20000}) {
    for (const std::int64_t n : {8, 65, 300}) {
      for (const std::int64_t k : {33, 700, 65536}) {
        const MatmulPlan of = plan(m, n, k);
        if (of.route != MatmulPlan::Route::wide) continue;
        ASSERT_GE(of.splits * of.split, k);
        ASSERT_LT((of.splits - 1) * of.split, k);
        ASSERT_EQ(of.split % MatmulPlan::kWideTerms * (of.splits - 1), 0);
        ASSERT_LE((of.splits - 1) * of.tiles_m() * of.tiles_n(), 2 * machine.multiprocessors);
        ASSERT_EQ(of.workspace, of.splits > 1 ? static_cast<std::uint64_t>(of.splits * m * n) * sizeof(float) : 0u);
      }
    }
  }
  EXPECT_EQ(plan(8192, 4096, 4096).tile_m, 128);
  EXPECT_EQ(plan(1024, 512, 512).tile_m, 64);
  EXPECT_EQ(plan(65536, 64, 16).route, MatmulPlan::Route::wide) << "short sums";
  EXPECT_EQ(plan(16384, 10, 256).route, MatmulPlan::Route::wide) << "flat";
  EXPECT_EQ(plan(16384, 4, 2000).route, MatmulPlan::Route::blocks) << "a tile would be nearly empty";
  EXPECT_EQ(plan(100, 10, 256).route, MatmulPlan::Route::blocks) << "few multiplications";
}

TEST(MatmulPlan, ProductsBoundByMemory) {
  using Route = MatmulPlan::Route;
  const Machine machine{132, 1 << 20, true};
  const auto plan = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false) {
    const Shape a = transpose_a ? Shape{k, m} : Shape{m, k};
    return plan_matmul({transpose_a, false}, {DType::f32, a, 0}, {DType::f32, {k, n}, 0}, machine);
  };
  EXPECT_EQ(plan(65536, 64, 8).route, Route::few_terms);
  EXPECT_TRUE(plan(65536, 64, 8).takes_epilogue({}));
  EXPECT_EQ(plan(65536, 64, 8, true).route, Route::wide) << "a short sum of a transposed factor";
  EXPECT_EQ(plan(8, 160, 11825, true).route, Route::tall);
  EXPECT_EQ(plan(160, 1, 11825, true).route, Route::tall);
  EXPECT_EQ(plan(9, 160, 11825, true).route, Route::wide);
  EXPECT_EQ(plan(11825, 1, 160).route, Route::dots);
  EXPECT_EQ(plan(11825, 1, 1025).route, Route::blocks);
  EXPECT_EQ(plan(4095, 1, 160).route, Route::blocks) << "few rows";
  EXPECT_EQ(plan(160, 1, 4095, true).route, Route::blocks) << "few rows";
  for (const std::int64_t n : {32, 33, 64, 160, 257, 520, 5000}) {
    for (const std::int64_t rows : {4096, 11825, 300000}) {
      const MatmulPlan few = plan(rows, n, 8), tall = plan(8, n, rows, true), turned = plan(n, 3, rows, true);
      ASSERT_EQ(few.route, Route::few_terms);
      ASSERT_EQ(few.tile_n % 4, 0);
      ASSERT_LE(few.tile_n, 256) << "a block of 256 threads has four columns per thread, and further rows";
      ASSERT_LT((few.tiles_n() - 1) * few.tile_n, n);
      ASSERT_LE(few.tiles_m() * few.tiles_n(), 4 * machine.multiprocessors);
      for (const MatmulPlan& sums : {tall, turned}) {
        ASSERT_EQ(sums.route, Route::tall);
        ASSERT_GE(sums.splits * sums.split, rows);
        ASSERT_LT((sums.splits - 1) * sums.split, rows);
        ASSERT_EQ(sums.workspace, sums.splits > 1 ? static_cast<std::uint64_t>(sums.splits * sums.m * sums.n) * 4 : 0u);
        ASSERT_LE(sums.splits * sums.tiles_m() * sums.tiles_n(), 2 * machine.multiprocessors);
      }
    }
  }
}

// The leading dimensions of a product against NumPy's rule, one axis at a time.
TEST(MatmulPlan, LeadingDimensionsBroadcast) {
  struct Case {
    Shape a, b, out;
    int rank;  // after merging
  };
  const Case cases[] = {{{4, 5}, {5, 6}, {}, 0},
                        {{3, 4, 5}, {3, 5, 6}, {3}, 1},
                        {{2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3}, 1},
                        {{2, 3, 4, 5}, {5, 6}, {2, 3}, 1},
                        {{4, 5}, {2, 3, 5, 6}, {2, 3}, 1},
                        {{2, 3, 4, 5}, {3, 5, 6}, {2, 3}, 2},
                        {{2, 1, 4, 5}, {1, 3, 5, 6}, {2, 3}, 2},
                        {{1, 4, 5}, {1, 5, 6}, {1}, 0},
                        {{7, 2, 3, 4, 5}, {7, 1, 3, 5, 6}, {7, 2, 3}, 3}};
  for (const Case& c : cases) {
    const Dims<2> leading = matrices_of(dense(c.a), dense(c.b));
    EXPECT_EQ(leading.rank, c.rank) << to_string(c.a) << " by " << to_string(c.b);
    ASSERT_EQ(leading.count, c.out.elements());
    const Shape lead_a(c.a.dims().first(static_cast<std::size_t>(c.a.rank() - 2)));
    const Shape lead_b(c.b.dims().first(static_cast<std::size_t>(c.b.rank() - 2)));
    for (std::int64_t i = 0; i < leading.count; ++i) {
      const Offsets<2> at = leading.offsets(i);
      const auto matrix = [](const Shape& s) { return s[s.rank() - 2] * s[s.rank() - 1]; };
      const auto index = static_cast<std::uint64_t>(i);
      ASSERT_EQ(static_cast<std::uint64_t>(at[0] / matrix(c.a)), broadcast(lead_a, c.out, index))
          << to_string(c.a) << ", matrix " << i;
      ASSERT_EQ(static_cast<std::uint64_t>(at[1] / matrix(c.b)), broadcast(lead_b, c.out, index))
          << to_string(c.b) << ", matrix " << i;
    }
  }
}

// A dense layer over rows of any rank is one tall product; several products go one by one or to the library together.
TEST(MatmulPlan, RoutesOfManyMatrices) {
  const Machine machine{132, 1 << 20};
  const auto route = [&](Shape a, Shape b, bool transpose_a = false, std::int64_t rows = 0) {
    return plan_matmul({transpose_a, false}, {DType::f32, a, rows}, {DType::f32, b, 0}, machine);
  };
  const MatmulPlan tall = route({8, 50, 64}, {64, 40});
  EXPECT_EQ(tall.route, MatmulPlan::Route::library);
  EXPECT_EQ(tall.m, 400);
  EXPECT_EQ(tall.leading.count, 1);
  const MatmulPlan together = route({8, 50, 64}, {8, 64, 40});
  EXPECT_EQ(together.route, MatmulPlan::Route::library);
  EXPECT_EQ(together.leading.count, 8);
  EXPECT_EQ(together.workspace, machine.library_workspace);
  EXPECT_EQ(route({2, 8, 50, 64}, {8, 64, 40}).route, MatmulPlan::Route::many_tiles);
  EXPECT_EQ(route({8, 20, 64}, {8, 64, 40}).route, MatmulPlan::Route::many_tiles);
  EXPECT_EQ(route({8, 20, 6}, {8, 6, 40}).route, MatmulPlan::Route::many_elements);
  EXPECT_EQ(route({8, 64, 50}, {64, 40}, true).leading.count, 8);
  // One matrix, which a short batch may lack.
  EXPECT_EQ(route({1, 64, 20}, {64, 40}, true, 1).route, MatmulPlan::Route::many_tiles);
}

}  // namespace
}  // namespace graphrun::cuda
