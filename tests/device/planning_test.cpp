// What must work where there is no device: loading the plug-in, asking what it supports, and a clear refusal to load.
#include <gtest/gtest.h>

#include <algorithm>

#include "graphrun/error.h"
#include "graphrun/model.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/session.h"
#include "programs.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

TEST(Planning, NeedsNoDevice) {
  const auto cuda = find_executor("cuda");
  EXPECT_EQ(cuda->name(), "cuda");
  EXPECT_EQ(cuda->default_target(), "h200");
  const Target& h200 = find_target("h200");
  const auto ask = [&](Op op, const Params& params, std::vector<TensorType> inputs, TensorType output) {
    return cuda->supports({op, params, inputs, output, false}, h200);
  };
  const std::vector<TensorType> square{f32({256, 256}), f32({256, 256})};
  const Support wide = ask(Op::matmul, MatmulParams{}, square, f32({256, 256}));
  EXPECT_TRUE(wide.yes);
  EXPECT_EQ(wide.workspace_bytes, 4u * 256u * 256u * sizeof(float)) << "16 tiles, each in 4 parts";
  const Support rounded = ask(Op::matmul, MatmulParams{false, false, Precision::tf32}, square, f32({256, 256}));
  EXPECT_EQ(rounded.workspace_bytes, h200.library_workspace);
  const Target& a100 = find_target("a100");
  EXPECT_EQ(cuda->supports({Op::matmul, MatmulParams{}, square, f32({256, 256}), false}, a100).workspace_bytes,
            a100.library_workspace);
  // 20000 terms for 18 results: cut in parts, each with a place for every result.
  const Support skinny = ask(Op::matmul, MatmulParams{true, false}, {f32({20000, 6}), f32({20000, 3})}, f32({6, 3}));
  EXPECT_TRUE(skinny.yes);
  EXPECT_EQ(skinny.workspace_bytes, 20u * 18u * sizeof(float));
  EXPECT_EQ(ask(*find_op("exp"), ScalarParams{}, {f32({3})}, f32({3})).workspace_bytes, 0u);

  const TensorType f64{DType::f64, {3}, 0};
  const Support declined = ask(*find_op("exp"), ScalarParams{}, {f64}, f64);
  EXPECT_FALSE(declined.yes);
  EXPECT_NE(declined.reason.find("f64"), std::string::npos) << declined.reason;
  EXPECT_FALSE(ask(Op::reshape, NoParams{}, {f32({3})}, f32({3})).yes);
  EXPECT_FALSE(cuda->supports({*find_op("exp"), ScalarParams{}, {}, f32({3}), false}, find_target("host")).yes);
}

// Which steps may be one launch, and its blocks: of each chain as many as it has work for, or the machine room.
TEST(Planning, ARegionOverElementsIsOneLaunch) {
  const auto cuda = find_executor("cuda");
  const Params none;
  const TensorType small = f32({1000});
  const std::vector<TensorType> inputs{small};
  const auto plan = [&](Op op, std::vector<std::int64_t> chains, std::string_view target) {
    const StepSignature step{op, none, inputs, small, false};
    RegionSignature region;
    region.rows.push_back(step);
    region.chains = std::move(chains);
    region.stages = {0};
    region.makers = {{kNoStep}};
    return cuda->region_choices(region, find_target(target));
  };
  const auto blocks = [&](std::vector<std::int64_t> chains, std::string_view target) {
    const auto tiling = std::get<GpuTiling>(plan(*find_op("neg"), std::move(chains), target).tiling);
    EXPECT_EQ(tiling.threads, 256u);
    return tiling.blocks;
  };
  EXPECT_EQ(blocks({1000}, "h200"), 4u);
  EXPECT_EQ(blocks({1000, 1, 1 << 16}, "h200"), 4u + 1u + 64u) << "four elements a thread from 2^16 on";
  EXPECT_EQ(blocks({10'000'000}, "h200"), 16u * 132u);
  EXPECT_EQ(blocks({10'000'000}, "l4"), 16u * 58u);
  EXPECT_NE(plan(Op::reshape, {1000}, "h200").reason, "");
  EXPECT_NE(plan(*find_op("neg"), {}, "h200").reason, "");
  EXPECT_NE(plan(*find_op("neg"), {1000}, "host").reason, "");
}

// A wide product runs a bias and one more step in its kernel, on machines that have the kernel.
TEST(Planning, AProductRunsTheStepsAfterIt) {
  const auto cuda = find_executor("cuda");
  const TensorType x = f32({4096, 128}, 1), w = f32({128, 96}), b = f32({96}), y = f32({4096, 96}, 1);
  const StepSignature product{Op::matmul, MatmulParams{}, {x, w}, y, true}, bias{Op::add, NoParams{}, {y, b}, y, true};
  const auto step = [&](std::string_view op, std::vector<TensorType> inputs) {
    return StepSignature{*find_op(op), NoParams{}, std::move(inputs), y, true};
  };
  const auto plan = [&](std::vector<StepSignature> rows, std::string_view target = "h200") {
    RegionSignature region;
    region.chains = {4096 * 96};
    region.rows = std::move(rows);
    const RegionPlan answer = cuda->region_choices(region, find_target(target));
    EXPECT_EQ(answer.yes, answer.reason.empty());
    EXPECT_EQ(answer.reason, cuda->region_fault(region, find_target(target)));
    return answer;
  };
  for (const auto& rows : {std::vector{product, bias}, std::vector{product, step("relu", {y})},
                           std::vector{product, bias, step("relu", {y})}, std::vector{product, step("mul", {y, y})},
                           std::vector{product, bias, step("tanh_gradient", {y, y})}})
    EXPECT_EQ(std::get<GpuTiling>(plan(rows).tiling), (GpuTiling{128, 64 * 2}));
  EXPECT_EQ(plan({product, step("relu", {y}), bias}).reason, "'add' does not run in the kernel of a product");
  EXPECT_EQ(plan({product, step("exp", {y})}).reason, "'exp' does not run in the kernel of a product");
  EXPECT_FALSE(plan({product, bias, step("relu", {y}), step("relu", {y})}).yes);
  EXPECT_FALSE(plan({product, step("mul", {y, b})}).yes);
  EXPECT_FALSE(plan({product, bias}, "a100").yes) << "the matrix library's";
  StepSignature narrow = product, rounded = product;
  narrow.params = MatmulParams{true, false};
  narrow.inputs[0] = f32({128, 4096});
  EXPECT_FALSE(plan({narrow, bias}).yes) << "a weight gradient";
  rounded.params = MatmulParams{false, false, Precision::tf32};
  EXPECT_FALSE(plan({rounded, bias}).yes) << "the matrix library's";

  // A bias of the type of the result can only come last, and no number is one.
  const TensorType row = f32({1, 40}), one = f32({});
  const StepSignature single{Op::matmul, MatmulParams{}, {f32({1, 4}), f32({4, 40})}, row};
  const auto last = [&](std::string_view op, std::vector<TensorType> inputs) {
    return StepSignature{*find_op(op), NoParams{}, std::move(inputs), row};
  };
  EXPECT_TRUE(plan({single, last("add", {row, row})}).yes);
  EXPECT_FALSE(plan({single, last("add", {row, row}), last("relu", {row})}).yes);
  EXPECT_FALSE(plan({single, last("add", {one, row})}).yes);
  EXPECT_FALSE(plan({single, last("add", {one, row}), last("relu", {row})}).yes);

  // One thread per row, on all machines.
  const TensorType few = f32({20000, 25}, 1), units = f32({25, 6}), z = f32({20000, 6}, 1);
  const StepSignature tall{Op::matmul, MatmulParams{}, {few, units}, z, true};
  for (const char* target : {"h200", "a100"}) {
    const RegionPlan rows = plan(
        {tall, {Op::add, NoParams{}, {z, f32({6})}, z, true}, {*find_op("relu"), NoParams{}, {z}, z, true}}, target);
    EXPECT_EQ(std::get<GpuTiling>(rows.tiling), (GpuTiling{128, 157})) << rows.reason;
  }
}

// A left factor may be a view with its own axes: of rows, then of terms.
TEST(Planning, ProductsReadViewsOfTheirLeftFactor) {
  const auto cuda = find_executor("cuda");
  const auto takes = [&](const View& view, bool transpose, std::int64_t m, std::int64_t k, std::int64_t n) {
    const TensorType b = transpose ? f32({m, n}) : f32({k, n});
    StepSignature step{Op::matmul, MatmulParams{transpose}, {f32({m, k}), b}, transpose ? f32({k, n}) : f32({m, n})};
    step.views = {view, dense(b.shape)};
    return cuda->takes_views(step);
  };
  const WindowParams image{2, {3, 3, 1}};
  const View windows = windowed(dense({10, 8, 8, 4}), image);
  for (const bool transpose : {false, true}) {
    EXPECT_TRUE(takes(windows, transpose, 360, 36, 5));
    EXPECT_TRUE(takes(windows, transpose, 360, 36, 500));
    EXPECT_FALSE(takes(windows, transpose, 36, 360, 5)) << "36 rows end within an axis";
    EXPECT_TRUE(takes(sliced(dense({360, 50}), 1, 3, 36), transpose, 360, 36, 5));
  }
  View five = dense({2, 3, 2, 3, 2, 36});
  for (std::int64_t& stride : five.strides) stride *= 2;
  for (int axis = 0; axis < 5; ++axis) five.strides[axis] += axis + 1;
  EXPECT_FALSE(takes(five, false, 72, 36, 5)) << "five axes of rows";
  StepSignature right{Op::matmul, MatmulParams{}, {f32({5, 360}), f32({360, 36})}, f32({5, 36})};
  right.views = {dense({5, 360}), windows};
  EXPECT_FALSE(cuda->takes_views(right));
}

// The products of a convolution and of its gradients read the windows in the image.
TEST(Planning, AConvolutionHasNoCopyOfItsWindows) {
  for (const char* target : {"h100", "a100"}) {
    SessionOptions options;
    options.executor = "cuda";
    options.target = target;
    options.jit = Jit::off;
    const Program program = plan_program(load_model(source_folder() + "/models/digits_cnn.json"), options);
    for (const Phase& phase : program.phases) {
      for (const Step& step : phase.steps) EXPECT_NE(name_of(step.op), "windows") << phase.name;
    }
    const Phase& train = program.phases[0];
    std::size_t launches = train.steps.size() + train.regions.size();
    for (const Region& region : train.regions) launches -= region.last - region.first();
    EXPECT_LE(launches, 46u) << target;
  }
}

// Blocks that have no rows would only wait for the others.
TEST(Planning, AStepKernelWithTilesOfBlocksComputes) {
  SessionOptions options;
  options.executor = "cuda";
  options.target = "h100";
  const Program program = plan_program(load_model(source_folder() + "/models/digits_cnn.json"), options);
  std::size_t kernels = 0;
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (region.stages.empty()) continue;
      ++kernels;
      EXPECT_TRUE(std::any_of(phase.steps.begin() + region.first(), phase.steps.begin() + region.last,
                              [](const Step& step) { return step.op == Op::matmul || is_elementwise(step.op); }))
          << phase.name;
    }
  }
  EXPECT_GT(kernels, 0u);
}

TEST(Planning, BadDeviceNumbersAreErrors) {
  for (const char* name : {"cuda:x", "cuda:-1", "cuda:1x"}) {
    try {
      find_executor(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
    }
  }
}

// With a device this loads; without, the error is of kind device and one line.
TEST(Planning, LoadSaysWhatIsMissing) {
  const auto cuda = find_executor("cuda");
  Builder build("probe");
  build.state("x", f32({1}), {0.0f});
  try {
    cuda->load(build.finish(*cuda));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    ASSERT_EQ(error.diagnostics().size(), 1u);
    EXPECT_EQ(error.diagnostics()[0].message.rfind("no CUDA device: ", 0), 0u) << error.what();
    EXPECT_EQ(error.diagnostics()[0].message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace graphrun::testing
