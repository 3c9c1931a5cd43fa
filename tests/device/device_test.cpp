// The CUDA executor against ref on hand-written Programs, and what a run may ask of the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "device.h"
#include "graphrun/error.h"
#include "graphrun/params.h"
#include "kernels/dims.h"
#include "kernels/scalar_ops.h"

namespace graphrun::testing {
namespace {

TEST_F(Device, UnaryOps) {
#define GRAPHRUN_NAME(op, ...) #op,
  for (const std::string op : {GRAPHRUN_UNARY_OPS(GRAPHRUN_NAME)}) {
    for (const std::int64_t count : {1, 4, 1003, 70000}) {
      Builder build(op);
      const BufferId x = build.state("x", f32({count}), random_values(count, 7, 0.1f, 0.9f));
      const BufferId out = build.buffer("out", f32({count}));
      const bool has_numbers = op == "leaky_relu" || op == "elu" || op == "clip";
      build.step(op, {x}, out, has_numbers ? Params(ScalarParams{0.25, 0.75}) : Params());
      compare(build, out, 1e-6f);
    }
  }
}

TEST_F(Device, BinaryOpsBroadcast) {
  struct Case {
    Shape a, b, out;
  };
  const Case cases[] = {{{5, 7}, {5, 7}, {5, 7}},          {{64, 12}, {12}, {64, 12}},    {{64, 7}, {7}, {64, 7}},
                        {{33, 9}, {33, 1}, {33, 9}},       {{33, 8}, {}, {33, 8}},        {{}, {33, 8}, {33, 8}},
                        {{1, 5, 1}, {3, 1, 4}, {3, 5, 4}}, {{3, 5, 4}, {5, 1}, {3, 5, 4}}};
  for (const std::string op : {GRAPHRUN_BINARY_OPS(GRAPHRUN_NAME)}) {
    for (const Case& c : cases) {
      Builder build(op + " " + to_string(c.a) + " " + to_string(c.b));
      const BufferId a = build.state("a", f32(c.a), random_values(c.a.elements(), 1, 0.5f, 2.0f));
      const BufferId b = build.state("b", f32(c.b), random_values(c.b.elements(), 2, 0.5f, 2.0f));
      const BufferId out = build.buffer("out", f32(c.out));
      build.step(op, {a, b}, out);
      compare(build, out, 1e-6f);
    }
  }
}

TEST_F(Device, ComparisonsAndWhere) {
  Builder build("where");
  const std::int64_t n = 1001;
  const BufferId a = build.state("a", f32({n}), random_values(n, 1));
  const BufferId b = build.state("b", f32({n}), random_values(n, 2));
  const BufferId less = build.buffer("less", {DType::boolean, {n}, 0});
  const BufferId not_less = build.buffer("not_less", {DType::boolean, {n}, 0});
  const BufferId number = build.buffer("number", f32({n}));
  const BufferId out = build.buffer("out", f32({n}));
  build.step("less", {a, b}, less);
  build.step("logical_not", {less}, not_less);
  build.step("cast", {not_less}, number);
  build.step("where", {less, a, number}, out);
  compare(build, out, 0.0f);
}

// One kernel for a region leaves the bits that the kernels of its steps leave.
TEST_F(Device, ARegionOverElementsGivesTheBitsOfItsSteps) {
  std::vector<Shape> shapes(std::begin(ElementProgram::kSmall), std::end(ElementProgram::kSmall));
  shapes.insert(shapes.end(), std::begin(ElementProgram::kLarge), std::end(ElementProgram::kLarge));
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(to_string(shape));
    const ElementProgram one(shape, true), many(shape, false);
    const auto region = cuda->load(one.program), steps = cuda->load(many.program);
    EXPECT_EQ(counted(*region, "generated_kernels"), 1u);
    EXPECT_EQ(counted(*steps, "generated_kernels"), 0u);
    region->run(0, 7);
    steps->run(0, 7);
    region->run_steps(0, 0, static_cast<std::uint32_t>(one.program.phases[0].steps.size()));
    steps->run(0, 1);
    for (std::size_t i = 0; i < one.stored.size(); ++i) {
      EXPECT_EQ(read<std::uint8_t>(*region, one.program, one.stored[i]),
                read<std::uint8_t>(*steps, many.program, many.stored[i]))
          << one.program.buffers[one.stored[i]].name;
    }
  }
}

// Slices, transposes and repeated axes of x (rows, columns) as operands, of steps and of regions.
struct ShownOperands {
  Builder build{"views"};
  BufferId x, part;
  std::vector<BufferId> stored;
  Program program;

  ShownOperands(std::int64_t rows, std::int64_t columns, bool region, const Executor& cuda, const Executor& ref) {
    const Shape shape{rows, columns};
    x = build.state("x", f32(shape), random_values(rows * columns, 5));
    const BufferId numbers = build.values("n", {DType::i32, shape, 0},
                                          std::vector<std::int32_t>(static_cast<std::size_t>(rows * columns), -3));
    const View all = dense(shape);
    part = build.view("part", x, sliced(all, 1, 3, columns - 5));
    const BufferId column = build.view("column", x, sliced(all, 1, 1, 1));
    const BufferId row = build.view("row", x, sliced(sliced(all, 0, 2, 1), 1, 2, columns - 5));
    const std::int64_t few = std::min<std::int64_t>(rows, 60);  // a large transpose is copied
    const BufferId turned = build.view("turned", x, transposed(sliced(all, 0, rows - few, few)));
    const BufferId ints = build.view("ints", numbers, sliced(all, 1, 3, columns - 5));
    const std::int64_t wide = columns - 5;
    if (region) build.begin_region();
    const auto add = [&](const char* op, std::vector<BufferId> inputs, const TensorType& type) {
      stored.push_back(build.step(op, std::move(inputs), build.result(op + std::to_string(stored.size()), type)));
      if (region) build.end_chain();
    };
    add("neg", {part}, f32({rows, wide}));
    add("add", {part, column}, f32({rows, wide}));
    add("mul", {row, part}, f32({rows, wide}));
    add("neg", {turned}, f32({columns, few}));
    add("cast", {ints}, f32({rows, wide}));
    add("greater", {part, row}, {DType::boolean, {rows, wide}, 0});
    program = build.finish(cuda, region ? nullptr : &ref);
  }
};

TEST_F(Device, OperandsAreReadWhereTheyLie) {
  for (const auto& [rows, columns] : {std::pair{7, 12}, std::pair{70, 300}, std::pair{301, 1000}}) {
    SCOPED_TRACE(rows);
    const ShownOperands one(rows, columns, true, *cuda, *ref), many(rows, columns, false, *cuda, *ref);
    const auto region = cuda->load(one.program), steps = cuda->load(many.program), host = ref->load(many.program);
    for (Runnable* run : {region.get(), steps.get(), host.get()}) run->run(0, 2);
    for (std::size_t i = 0; i < one.stored.size(); ++i) {
      SCOPED_TRACE(one.program.buffers[one.stored[i]].name);
      const auto wanted = read<std::uint8_t>(*host, many.program, many.stored[i]);
      EXPECT_EQ(read<std::uint8_t>(*steps, many.program, many.stored[i]), wanted);
      EXPECT_EQ(read<std::uint8_t>(*region, one.program, one.stored[i]), wanted);
    }
    EXPECT_EQ(read<float>(*steps, many.program, many.part), read<float>(*host, many.program, many.part));
  }
}

TEST_F(Device, Matmul) {
  struct Case {
    std::int64_t m, n, k;
  };
  // Short sums, long sums in one and in several parts, tiles that stick out, wide products with both tiles and in
  // parts; few terms, sums over rows with a narrow factor, few columns.
  const Case cases[] = {{1, 1, 1},       {300, 1, 6},      {6, 1, 300},      {32, 10, 784},   {784, 10, 256},
                        {6, 3, 20000},   {17, 33, 100},    {33, 5, 33},      {64, 64, 64},    {128, 96, 200},
                        {100, 256, 784}, {3000, 1001, 70}, {4096, 640, 256}, {40, 50, 2100},  {20000, 9, 33},
                        {500, 33, 1},    {3000, 300, 7},   {1025, 520, 8},   {8, 160, 11825}, {160, 1, 5000},
                        {7, 37, 4100},   {300, 3, 4500},   {5000, 1, 160},   {4100, 3, 37},   {4500, 4, 1000}};
  for (const Case& c : cases) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const MatmulParams params{(transposes & 1) != 0, (transposes & 2) != 0};
      Builder build("matmul " + std::to_string(c.m) + " " + std::to_string(c.n) + " " + std::to_string(c.k) + " " +
                    std::to_string(transposes));
      const Shape shape_a = params.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k};
      const Shape shape_b = params.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n};
      const BufferId a = build.state("a", f32(shape_a), random_values(c.m * c.k, 1));
      const BufferId b = build.state("b", f32(shape_b), random_values(c.k * c.n, 2));
      const BufferId out = build.buffer("out", f32({c.m, c.n}));
      build.step("matmul", {a, b}, out, params);
      compare(build, out, 2e-5f);
    }
  }
}

// Tiles of both sizes and tiles that stick out, with rows past the count, which are zero; other kernels, and sums in
// parts.
TEST_F(Device, ProductsWithTheStepsAfterThemGiveTheBitsOfSingleSteps) {
  struct Last {
    const char* op;
    int operands;
    bool first = false;  // whether the other operand comes first
  };
  const Last lasts[] = {{"", 0},
                        {"relu", 1},
                        {"tanh", 1},
                        {"sigmoid", 1},
                        {"relu_gradient", 2, true},
                        {"add", 2},
                        {"sub", 2},
                        {"mul", 2},
                        {"tanh_gradient", 2, true},
                        {"sigmoid_gradient", 2},
                        {"sub", 2, true}};
  for (const auto& [m, n, k] : {std::array{2000, 64, 40},
                                {530, 129, 40},
                                {4500, 132, 490},
                                {4500, 129, 490},
                                {20000, 10, 33},
                                {5000, 37, 5},
                                {3000, 256, 1},
                                {20000, 6, 25},
                                {300, 5, 20},
                                {33, 5, 100},
                                {40, 3, 20000},
                                {60, 3, 40000},
                                {128, 96, 2000}}) {
    const auto left = random_values(m * k, 1), right = random_values(n * k, 2), added = random_values(n, 3);
    const auto other = random_values(m * n, 4);
    for (const Last& last : lasts) {
      for (const bool bias : {false, true}) {
        if (!bias && last.operands == 0) continue;
        std::vector<std::vector<float>> results;
        for (const bool region : {false, true}) {
          Builder build("product", m);
          build.rows(m - 3);
          const TensorType type = f32({m, n}, 1);
          const BufferId a = build.state("a", f32({m, k}, 1), left), b = build.state("b", f32({n, k}), right);
          const BufferId c = build.state("c", f32({n}), added), with = build.state("with", type, other);
          const BufferId y = build.result("y", type);
          const auto value = [&](const char* name) {
            return region ? build.inside(name, type) : build.result(name, type);
          };
          if (region) build.begin_region();
          BufferId z = build.step("matmul", {a, b}, value("z"), MatmulParams{false, true});
          if (bias) z = build.step("add", {z, c}, last.operands == 0 ? y : value("sum"));
          if (last.operands == 1) build.step(last.op, {z}, y);
          if (last.operands == 2) build.step(last.op, last.first ? std::vector{with, z} : std::vector{z, with}, y);
          if (region) build.end_chain();
          const Program program = build.finish(*cuda);
          const auto device = cuda->load(program);
          device->run(0, 1);
          results.push_back(read<float>(*device, program, y));
        }
        EXPECT_EQ(results[0], results[1]) << m << " x " << n << " x " << k << " " << last.op << " " << bias;
        EXPECT_EQ(results[1].back(), 0.0f);
      }
    }
  }
}

// Windows in the shape of a matrix as the left factor, in every kernel for a single matrix: tiles that stick out, terms
// that are adjacent in fours and others, axes with steps, sums in parts; the last sample is past the count.
TEST_F(Device, ProductsReadViewsWithTheBitsOfCopies) {
  struct Case {
    Shape x;
    WindowParams windows;
    std::int64_t n;
  };
  const WindowParams image{2, {3, 3, 1}}, steps{2, {3, 2, 1}, {2, 1, 1}, {1, 3, 1}}, large{2, {5, 5, 1}};
  const Case cases[] = {{{4, 9, 7, 1}, image, 5},       {{100, 18, 18, 1}, image, 6},
                        {{60, 24, 24, 1}, large, 6},    {{9, 12, 10, 6}, steps, 3},
                        {{9, 12, 10, 6}, image, 16},    {{40, 14, 14, 6}, large, 16},
                        {{130, 18, 18, 16}, image, 96}, {{70, 17, 40}, {1, {4, 1, 1}, {3, 1, 1}}, 24}};
  for (const Case& c : cases) {
    const View shown = windowed(dense(c.x), c.windows);
    std::int64_t m = 1;
    for (int axis = 0; axis <= c.windows.axes; ++axis) m *= shown.extents[axis];
    const std::int64_t k = shown.extents.elements() / m, samples = c.x[0];
    auto x = random_values(c.x.elements(), 1);
    std::fill(x.end() - c.x.elements() / samples, x.end(), 0.0f);
    std::vector<float> copied;
    for_elements(merged<1>({shown}),
                 [&](std::int64_t, Offsets<1> at) { copied.push_back(x[static_cast<std::size_t>(at[0])]); });
    for (const bool transpose : {false, true}) {
      SCOPED_TRACE(to_string(c.x) + " " + std::to_string(c.n) + " " + std::to_string(transpose));
      Builder build("windows", samples);
      build.rows(static_cast<std::int32_t>(samples) - 1);
      const TensorType matrix = f32({m, k}, m / samples);
      const BufferId view = build.view("view", build.state("x", f32(c.x, 1), x), shown, matrix);
      const BufferId copy = build.state("copy", matrix, copied);
      const BufferId b = build.state("b", transpose ? f32({m, c.n}, m / samples) : f32({k, c.n}),
                                     random_values((transpose ? m : k) * c.n, 2));
      const TensorType type = transpose ? f32({k, c.n}) : f32({m, c.n}, m / samples);
      const BufferId y = build.result("y", type), wanted = build.result("wanted", type);
      build.step("matmul", {view, b}, y, MatmulParams{transpose});
      build.step("matmul", {copy, b}, wanted, MatmulParams{transpose});
      const Program program = build.finish(*cuda);
      const auto device = cuda->load(program);
      device->run(0, 2);
      const auto got = read<float>(*device, program, y);
      EXPECT_EQ(got, read<float>(*device, program, wanted));
      EXPECT_NE(got[0], 0.0f);
    }
  }
}

// Pooling over windows that overlap.
TEST_F(Device, ReductionsReadViews) {
  const Shape shape{30, 11, 9, 5};
  const WindowParams windows{2, {3, 3, 1}, {2, 1, 1}};
  const View shown = windowed(dense(shape), windows);
  for (const std::string op : {"max", "sum"}) {
    for (const std::uint32_t axes : {0b11000u, 0b111111u, 0b11111u}) {
      Shape out;
      for (int axis = 0; axis < shown.extents.rank(); ++axis)
        if ((axes >> axis & 1u) == 0) out.push_back(shown.extents[axis]);
      Builder build(op);
      const BufferId view = build.view("view", build.state("x", f32(shape), random_values(shape.elements(), 3)), shown);
      const BufferId y = build.buffer("y", f32(out));
      build.step(op, {view}, y, ReduceParams{axes, false});
      compare(build, y, 2e-5f);
    }
  }
}

// The norm of the error is compared, because elements near zero lose digits of their terms in f32, too.
TEST_F(Device, WideProductsOfLongSumsHaveTheAccuracyOfF32) {
  for (const bool transpose_a : {false, true}) {
    Builder build("wide");
    const Shape shape_a = transpose_a ? Shape{50000, 70} : Shape{70, 50000};
    const BufferId a = build.state("a", f32(shape_a), random_values(70 * 50000, 1));
    const BufferId b = build.state("b", f32({50000, 130}), random_values(50000 * 130, 2));
    const BufferId out = build.buffer("out", f32({70, 130}));
    build.step("matmul", {a, b}, out, MatmulParams{transpose_a, false});
    const Program program = build.finish(*cuda, ref.get());
    const auto device = cuda->load(program), host = ref->load(program);
    device->run(0, 1);
    host->run(0, 1);
    const auto got = read<float>(*device, program, out), want = read<float>(*host, program, out);
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      error += std::pow(double{got[i]} - want[i], 2);
      norm += std::pow(double{want[i]}, 2);
    }
    EXPECT_LT(std::sqrt(error / norm), 1e-6);
  }
}

TEST_F(Device, Sum) {
  struct Case {
    Shape in, out;
    std::uint32_t axes;
  };
  const Case cases[] = {{{7}, {}, 1},          {{100000}, {}, 1},     {{300, 6}, {6}, 1},
                        {{300, 6}, {300}, 2},  {{1000, 64}, {64}, 1}, {{20000, 40}, {40}, 1},
                        {{50, 3000}, {50}, 2}, {{9, 5, 40}, {40}, 3}, {{9, 50, 40}, {9, 40}, 2},
                        {{40, 5, 9}, {5}, 5},  {{4, 3}, {}, 3}};
  for (const Case& c : cases) {
    Builder build("sum " + to_string(c.in) + " " + std::to_string(c.axes));
    const BufferId in = build.state("in", f32(c.in), random_values(c.in.elements(), 3));
    const BufferId out = build.buffer("out", f32(c.out));
    build.step("sum", {in}, out, ReduceParams{c.axes, false});
    compare(build, out, 2e-5f);
  }
}

TEST_F(Device, TrainsLikeRef) {
  Regression model;
  const Program program = model.build.finish(*cuda);
  const auto device = cuda->load(program);
  const auto host = ref->load(program);
  for (const std::uint64_t n : {1, 2, 40, 7}) {  // single steps, blocks, and blocks with a rest
    device->run(0, n);
    host->run(0, n);
    EXPECT_EQ(read<std::uint64_t>(*device, program, model.counter), read<std::uint64_t>(*host, program, model.counter));
    for (const BufferId id : {model.weights, model.ring}) {
      const auto got = read<float>(*device, program, id);
      const auto want = read<float>(*host, program, id);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5f) << program.buffers[id].name;
    }
  }
}

TEST_F(Device, RowsPastTheCountAreZero) {
  Regression model;
  const Program program = model.build.finish(*cuda);
  const auto device = cuda->load(program);
  device->run(0, 3);  // the third batch has 2 of 4 samples
  const auto values = read<float>(*device, program, model.activated);
  EXPECT_GT(values[1], 0.0f);
  EXPECT_EQ(values[2], 0.0f);
  EXPECT_EQ(values[3], 0.0f);
}

TEST_F(Device, StepsOneByOneGiveTheSameBits) {
  Regression model;
  const Program program = model.build.finish(*cuda);
  const auto whole = cuda->load(program);
  const auto parts = cuda->load(program);
  whole->run(0, 5);
  const auto steps = static_cast<std::uint32_t>(program.phases[0].steps.size());
  for (int i = 0; i < 5; ++i) {
    for (std::uint32_t s = 0; s < steps; ++s) parts->run_steps(0, s, s + 1);
  }
  EXPECT_EQ(read<float>(*whole, program, model.weights), read<float>(*parts, program, model.weights));
  EXPECT_EQ(read<float>(*whole, program, model.ring), read<float>(*parts, program, model.ring));
}

TEST_F(Device, TwoRunsGiveTheSameBits) {
  Regression model(100000, 512);
  const Program program = model.build.finish(*cuda);
  const auto first = cuda->load(program);
  const auto second = cuda->load(program);
  first->run(0, 1000);
  for (int i = 0; i < 10; ++i) second->run(0, 100);  // however the run is cut
  EXPECT_EQ(read<float>(*first, program, model.weights), read<float>(*second, program, model.weights));
  EXPECT_EQ(read<float>(*first, program, model.ring), read<float>(*second, program, model.ring));
}

TEST_F(Device, ARunAllocatesNothingAndCopiesOnlyWhatIsPolled) {
  for (const std::uint64_t n : {1000, 3000}) {
    Regression model;
    const Program program = model.build.finish(*cuda);
    const auto device = cuda->load(program);
    EXPECT_EQ(counted(*device, "allocations"), 1u);
    EXPECT_EQ(counted(*device, "allocated_bytes"), program.arena_bytes);
    EXPECT_EQ(counted(*device, "pinned_allocations"), 1u);
    EXPECT_EQ(counted(*device, "pinned_bytes"), poll_block(program).bytes);
    const auto before = [&](const char* name) { return counted(*device, name); };
    const std::uint64_t up = before("copies_to_device"), down = before("bytes_to_host");
    const std::uint64_t launches = before("launches"), graphs = before("graph_launches");
    const std::uint64_t synchronizations = before("synchronizations"), captured = before("captured_launches");

    device->run(0, n);
    const auto losses = read<float>(*device, program, model.ring);
    EXPECT_TRUE(std::isfinite(losses[0]));

    EXPECT_EQ(counted(*device, "allocations"), 1u);
    EXPECT_EQ(counted(*device, "pinned_allocations"), 1u);
    EXPECT_EQ(counted(*device, "copies_to_device"), up);
    EXPECT_EQ(counted(*device, "bytes_to_host") - down, poll_block(program).bytes);
    EXPECT_EQ(counted(*device, "synchronizations"), synchronizations + 1);
    EXPECT_EQ(counted(*device, "captured_launches"), captured);
    const std::uint64_t first = counted(*device, "graph_launches") - graphs;  // larger ones as their time is known
    EXPECT_LE(first, 14u);
    EXPECT_LE(counted(*device, "launches") - launches, first);  // the counts of the loops
    device->run(0, 500);
    EXPECT_EQ(counted(*device, "graph_launches") - graphs, first + 1) << "500 steps take less than 50 ms";
    EXPECT_LE(counted(*device, "launches") - launches, first + 1);
  }
}

// A long run is made of several launches, so that whoever watches it sees it go on and can end it.
TEST_F(Device, ALongRunIsLaunchedInShortPieces) {
  Builder build("long");
  const std::int64_t count = std::int64_t{1} << 26;
  const BufferId x = build.state("x", f32({count}), std::vector<float>(static_cast<std::size_t>(count), 0.5f));
  const BufferId y = build.step("tanh", {x}, build.buffer("y", f32({count})));
  build.step("assign", {x, y}, x);
  const auto device = cuda->load(build.finish(*cuda));

  const std::uint64_t launches = counted(*device, "launches");
  device->run(0, 4096);
  EXPECT_GE(counted(*device, "launches") - launches, 4u);  // it takes half a second
}

TEST_F(Device, OtherDevicesAndTargets) {
  Builder build("other");
  build.state("x", f32({1}), {1.0f});
  Program program = build.finish(*cuda);
  const auto kind_of = [](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.diagnostics().front().code;
    }
    return std::string("no error");
  };
  EXPECT_EQ(kind_of([&] { find_executor("cuda:99")->load(program); }), "cuda.device");
  program.target = "host";
  EXPECT_EQ(kind_of([&] { cuda->load(program); }), "cuda.target");
}

}  // namespace
}  // namespace graphrun::testing
