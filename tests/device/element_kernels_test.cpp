// The kernels of regions over elements: their sources compile, and models need few of them. Needs no device.
#include "executors/cuda/element_kernels.h"
#include "executors/cuda/launch_order.h"

#include <gtest/gtest.h>
#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "executors/cuda/nvrtc.h"
#include "executors/cuda_planner/cuda_planner.h"
#include "graphrun/error.h"
#include "graphrun/model.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/session.h"
#include "programs.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

Program planned(const std::string& path) {
  const Model model = load_model(path);
  SessionOptions options;
  options.executor = "cuda";
  options.jit = Jit::off;  // step by step, but for regions over elements
  return plan_program(model, options);
}

// The example models whose data is there.
std::vector<std::string> models() {
  if (std::getenv("GRAPHRUN_TEST_DATA") != nullptr) setenv("GRAPHRUN_DATA", std::getenv("GRAPHRUN_TEST_DATA"), 1);
  const char* folder = std::getenv("GRAPHRUN_TEST_MODELS");
  std::vector<std::string> paths;
  for (const auto& file :
       std::filesystem::directory_iterator(folder != nullptr ? folder : source_folder() + "/models")) {
    if (file.path().extension() != ".json") continue;
    try {
      load_model(file.path());
      paths.push_back(file.path());
    } catch (const Error&) {
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The words of the compiler when the source does not compile.
std::string compile(const std::string& source, const std::string& architecture = cuda::architecture_of(9, 0)) {
  try {
    return cuda::compiled_code({source}, architecture).image.empty() ? "no code" : "";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

std::vector<cuda::ElementKernel> kernels_of(const Program& program) {
  std::vector<cuda::ElementKernel> kernels;
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (phase.steps[region.first()].op == Op::matmul) continue;  // its kernel is not generated
      const std::string name = "elements_" + std::to_string(kernels.size());
      kernels.push_back(cuda::element_kernel(name, program, phase, region, {132, 0}));
    }
  }
  return kernels;
}

std::string source_of(const Program& program) {
  std::string source = cuda::kElementPrelude;
  for (const cuda::ElementKernel& kernel : kernels_of(program)) source += kernel.source;
  return source;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Code for the device at hand may use all that it has: from Hopper on, what only the letter in the name allows.
TEST(Nvrtc, CompilesForAllOfTheDevice) {
  EXPECT_EQ(cuda::architecture_of(8, 0), "sm_80");
  EXPECT_EQ(cuda::architecture_of(8, 9), "sm_89");
  EXPECT_EQ(cuda::architecture_of(9, 0), "sm_90a");
  EXPECT_EQ(compile("extern \"C\" __global__ void fence() { asm volatile(\"wgmma.fence.sync.aligned;\"); }"), "");
  EXPECT_NE(compile("extern \"C\" __global__ void wrong() { no_such_function(); }"), "");
  int count = 0;
  ASSERT_EQ(nvrtcGetNumSupportedArchs(&count), NVRTC_SUCCESS);
  std::vector<int> all(static_cast<std::size_t>(count));
  ASSERT_EQ(nvrtcGetSupportedArchs(all.data()), NVRTC_SUCCESS);
  for (const int architecture : all) {
    const std::string name = cuda::architecture_of(architecture / 10, architecture % 10);
    EXPECT_EQ(compile("extern \"C\" __global__ void nothing() {}", name), "") << name;
  }
}

TEST(Nvrtc, ADeviceThatIsTooNewIsReportedOf) {
  try {
    cuda::compiled_code({"extern \"C\" __global__ void nothing() {}"}, "sm_999a");
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.diagnostics()[0].code, "cuda.architecture");
    EXPECT_NE(error.diagnostics()[0].message.find("cannot do so for this GPU (sm_999a)"), std::string::npos)
        << error.what();
  }
}

// What is loaded and stored is what lies in memory; rows have one limit, which is declared once.
TEST(ElementKernels, TouchWhatLiesInMemory) {
  const Program program = ElementProgram({30, 4}, true).program;
  const std::vector<cuda::ElementKernel> kernels = kernels_of(program);
  ASSERT_EQ(kernels.size(), 1u);
  for (const BufferId id : kernels[0].pointers) EXPECT_NE(program.buffers[id].layout, Layout::registers);
  EXPECT_EQ(count_of(kernels[0].source, "limit = "), 1u) << kernels[0].source;
  EXPECT_EQ(count_of(kernels[0].source, "_Pragma"), 0u);
  EXPECT_EQ(kernels[0].grid.x, 3u);  // of 240, 120 and 1 elements
  EXPECT_EQ(compile(source_of(program)), "");
}

TEST(ElementKernels, LargeChainsLoadFourElementsAtATime) {
  for (const Shape& shape : ElementProgram::kLarge) {
    const std::string source = source_of(ElementProgram(shape, true).program);
    EXPECT_GE(count_of(source, "load4("), 3u) << source;
    EXPECT_GE(count_of(source, "store4("), 1u) << source;
    EXPECT_EQ(compile(source), "");
  }
}

// One step over one element.
Program one_step(Op op) {
  Program program;
  const std::string_view dtypes = traits_of(op).dtypes;  // "FF>F"
  const auto add = [&](char letter) {
    const DType dtype = letter == 'B'   ? DType::boolean
                        : letter == 'U' ? DType::u64
                        : letter == 'I' ? DType::i32
                                        : DType::f32;
    const auto id = static_cast<BufferId>(program.buffers.size());
    program.buffers.push_back({"", {dtype, {1}, 0}, BufferKind::activation, id, id * kAlignment, kAlignment});
    return id;
  };
  Step step{op, "step", {}, kNoBuffer, kNoBuffer, kNoBuffer, {}};
  for (const char letter : dtypes.substr(0, dtypes.find('>'))) step.inputs.push_back(add(letter));
  step.output = add(dtypes.back());
  if (traits_of(op).params == params_kind<MinibatchParams>) step.params = MinibatchParams{1, 1};
  if (traits_of(op).params == params_kind<ScalarParams>) step.params = ScalarParams{1};
  Region region;
  region.chains = {{0, 1}};
  region.last = 1;
  region.tiling = GpuTiling{256, 1};
  program.phases.push_back({"run", 0, {step}, {region}});
  return program;
}

// What the planner takes into a region has a text.
TEST(ElementKernels, EveryElementwiseOpHasASource) {
  std::string sources = cuda::kElementPrelude;
  for (std::size_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_elementwise(op) || !cuda::has_kernel(op)) continue;
    const Program program = one_step(op);
    try {
      sources += cuda::element_kernel(std::string("one_") += name_of(op), program, program.phases[0],
                                      program.phases[0].regions[0], {132, 0})
                     .source;
    } catch (const std::logic_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_EQ(compile(sources), "");
}

// A column of a matrix of 64 GB: few elements, the places of which take more than 32 bits.
TEST(ElementKernels, PlacesInAViewMayNeedMoreBitsThanItsElements) {
  for (const std::int64_t columns : {std::int64_t{1} << 10, std::int64_t{1} << 16}) {
    const auto cuda = find_executor("cuda");
    const Shape shape{1 << 18, columns};
    Builder build("column");
    const BufferId x = build.buffer("x", f32(shape), BufferKind::parameter);
    const BufferId column = build.view("column", x, sliced(dense(shape), 1, 1, 1));
    build.begin_region();
    build.step("neg", {column}, build.buffer("out", f32({shape[0], 1})));
    build.end_chain();
    const std::string source = source_of(build.finish(*cuda));
    EXPECT_EQ(count_of(source, "u64(i) / "), columns == 1 << 16 ? 1u : 0u) << source;
    EXPECT_EQ(compile(source), "");
  }
}

TEST(ElementKernels, SourcesOfTheModelsCompile) {
  for (const std::string& path : models()) {
    SCOPED_TRACE(path);
    const std::string source = source_of(planned(path));
    EXPECT_EQ(source, source_of(planned(path)));
    EXPECT_EQ(compile(source), "");
    if (std::getenv("GRAPHRUN_PRINT") != nullptr) printf("%s\n", source.c_str());
  }
}

// Of a training step: all launches, and the longest row of them of which each waits for the one before, a microsecond
// or two.
TEST(ElementKernels, AStepIsFewLaunches) {
  struct Launches {
    std::size_t all, in_a_row;
  };
  const std::map<std::string, Launches> most = {{"digits", {17, 11}},          {"digits_cnn", {46, 30}},
                                                {"linear_regression", {6, 4}}, {"logistic_regression", {6, 4}},
                                                {"mnist_lenet", {49, 29}},     {"mnist_logreg", {11, 7}},
                                                {"mnist_mlp", {19, 12}},       {"peaks", {15, 9}},
                                                {"realestate_mlp", {10, 6}},   {"realestate_mlp2", {14, 8}},
                                                {"stock", {20, 13}},           {"xor", {10, 6}}};
  for (const std::string& path : models()) {
    const auto known = most.find(std::filesystem::path(path).stem());
    const Program program = planned(path);
    const Phase& train = program.phases.front();
    std::vector<cuda::LaunchAccess> launches;
    auto region = train.regions.begin();
    for (std::uint32_t step = 0; step < train.steps.size();) {
      const std::uint32_t first = step++;
      if (region != train.regions.end() && region->first() == first) step = (region++)->last;
      cuda::LaunchAccess& access = launches.emplace_back();
      for (std::uint32_t i = first; i < step; ++i) access.add(program, train.steps[i]);
    }
    std::vector<std::size_t> row;  // that ends with each launch
    for (const auto& after : cuda::launch_order(launches)) {
      std::size_t longest = 0;
      for (const std::uint32_t before : after) longest = std::max(longest, row[before]);
      row.push_back(longest + 1);
    }
    const std::size_t longest = *std::max_element(row.begin(), row.end());
    printf("%s: %zu launches for %zu steps, %zu in a row\n", path.c_str(), row.size(), train.steps.size(), longest);
    if (known == most.end()) continue;
    EXPECT_LE(row.size(), known->second.all) << path;
    EXPECT_LE(longest, known->second.in_a_row) << path;
  }
}

}  // namespace
}  // namespace graphrun::testing
