// The headers that kernels compiled at load may include, and scalar_ops.h under NVRTC: one kernel for each row of its
// tables. Needs no device.
#include <gtest/gtest.h>
#include <nvrtc.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "executors/cuda/device_sources.h"
#include "kernels/scalar_ops.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

constexpr const char* kExact = R"(
#include "kernels/scalar_ops.h"
using T = float;
)";
constexpr const char* kFast = R"(
#include "kernels/cuda/tile/functions.h"
using T = graphrun::cuda::tile::fast::Float;
)";
constexpr const char* kSource = R"(
using namespace graphrun;
#define UNARY(op, F, ...) extern "C" __global__ void op_##op(T* x) { x[0] = scalar::F::apply(x[0], x[1], x[2]); }
#define BINARY(op, F, ...) extern "C" __global__ void op_##op(T* x) { x[0] = scalar::F::apply(x[0], x[1]); }
#define COMPARE(op, F, ...) extern "C" __global__ void op_##op(T* x, bool* y) { y[0] = scalar::F::apply(x[0], x[1]); }
#define LOGICAL(op, F, ...) extern "C" __global__ void op_##op(bool* x) { x[0] = scalar::F::apply(x[0], x[1]); }
GRAPHRUN_UNARY_OPS(UNARY)
GRAPHRUN_BINARY_OPS(BINARY)
GRAPHRUN_COMPARE_OPS(COMPARE)
GRAPHRUN_LOGICAL_OPS(LOGICAL)
)";

#define GRAPHRUN_NAME(op, ...) "op_" #op,
const std::vector<std::string> kKernels = {GRAPHRUN_SCALAR_OPS(GRAPHRUN_NAME)};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The table holds the files as they are, and all that they include.
TEST(DeviceSources, AreTheHeadersAndWhatTheyInclude) {
  const std::string root = source_folder();
  std::set<std::string> names;
  for (const cuda::DeviceSource& header : cuda::kDeviceSources) {
    EXPECT_TRUE(names.insert(header.name).second) << header.name << " stands twice";
    const std::string folder = std::filesystem::exists(root + "/include/" + header.name) ? "/include/" : "/src/";
    EXPECT_EQ(header.text, text_of(root + folder + header.name)) << header.name;
  }
  for (const cuda::DeviceSource& header : cuda::kDeviceSources) {
    const std::string text = header.text;
    const std::regex include(R"(#\s*include\s*[<"]([^>"]*)[>"])");
    for (std::sregex_iterator found(text.begin(), text.end(), include), end; found != end; ++found)
      EXPECT_TRUE(names.contains((*found)[1])) << header.name << " includes " << (*found)[1];
  }
  EXPECT_TRUE(names.contains("kernels/scalar_ops.h"));
  const std::filesystem::path tile = root + "/src/kernels/cuda/tile";
  if (!std::filesystem::exists(tile)) return;
  for (const auto& file : std::filesystem::directory_iterator(tile)) {
    const std::string name = "kernels/cuda/tile/" + file.path().filename().string();
    EXPECT_TRUE(!name.ends_with(".h") || names.contains(name)) << name;
  }
}

// The program's log is a failure. `architecture` is a virtual one for PTX, or a real one.
void compile(const char* source, const std::string& architecture, const std::function<void(nvrtcProgram)>& use) {
  std::vector<const char*> texts, names;
  for (const cuda::DeviceSource& header : cuda::kDeviceSources) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  nvrtcProgram program = nullptr;
  ASSERT_EQ(nvrtcCreateProgram(&program, source, "test.cu", static_cast<int>(names.size()), texts.data(), names.data()),
            NVRTC_SUCCESS);
  const std::string target = "--gpu-architecture=" + architecture;
  const char* options[] = {target.c_str(), "--std=c++17", "--fmad=false"};
  const nvrtcResult status = nvrtcCompileProgram(program, 3, options);
  std::size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtcGetProgramLog(program, log.data());
  ASSERT_EQ(status, NVRTC_SUCCESS) << architecture << ": " << log;
  use(program);
  nvrtcDestroyProgram(&program);
}

class ScalarOps : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Math, ScalarOps, ::testing::Values(kExact, kFast),
                         [](const auto& test) { return test.index == 0 ? "exact" : "fast"; });

TEST_P(ScalarOps, CompileAndCallNothingElse) {
  const std::string source = std::string(GetParam()) + kSource;
  std::string ptx;
  compile(source.c_str(), "compute_90", [&ptx](nvrtcProgram program) {
    std::size_t size = 0;
    ASSERT_EQ(nvrtcGetPTXSize(program, &size), NVRTC_SUCCESS);
    ptx.resize(size);
    ASSERT_EQ(nvrtcGetPTX(program, ptx.data()), NVRTC_SUCCESS);
  });
  for (const std::string& kernel : kKernels) {
    EXPECT_NE(ptx.find(".entry " + kernel + "("), std::string::npos) << kernel << " is missing";
  }
  EXPECT_EQ(ptx.find(".extern .func"), std::string::npos) << "a scalar op calls what is not in the header";
}

constexpr const char* kAllReduces = R"(
#include "kernels/cuda/tile/exchange.h"
using namespace graphrun::cuda::tile;
struct Sum {
  GRAPHRUN_TILE_FN static float apply(int, float a, float b) { return a + b; }
};
#define ALL_REDUCE(kernel, values, threads, cluster, clusters)                         \
  GRAPHRUN_TILE_KERNEL(threads) kernel(float* x, void* scratch, unsigned* fault) {     \
    using Reduce = AllReduce<values, threads, cluster, clusters, Sum>;                 \
    auto& shared = *static_cast<Reduce::Shared*>(dynamic_shared());                    \
    Reduce reduce(shared, scratch, fault);                                             \
    float part[values];                                                                \
    GRAPHRUN_TILE_UNROLL                                                               \
    for (int v = 0; v < values; ++v) part[v] = x[v * threads + thread_index()];        \
    reduce.run(part, 1);                                                               \
    if (thread_index() < values) x[thread_index()] = shared.total[thread_index()];     \
    reduce.end();                                                                      \
  }
ALL_REDUCE(in_block, 25, 128, 1, 1)
ALL_REDUCE(in_grid, 100, 64, 1, 108)
#if __CUDA_ARCH__ >= 900
ALL_REDUCE(in_cluster, 25, 96, 4, 1)
ALL_REDUCE(in_grid_of_clusters, 181, 224, 8, 15)
#endif
)";

TEST(Nvrtc, CompilesAllReducesForEveryArchitecture) {
  for (const char* architecture : {"sm_80", "sm_90a", "sm_100"}) {
    compile(kAllReduces, architecture, [architecture](nvrtcProgram program) {
      std::size_t size = 0;
      ASSERT_EQ(nvrtcGetCUBINSize(program, &size), NVRTC_SUCCESS);
      std::string cubin(size, '\0');
      ASSERT_EQ(nvrtcGetCUBIN(program, cubin.data()), NVRTC_SUCCESS);
      EXPECT_NE(cubin.find("in_grid"), std::string::npos) << architecture;
      EXPECT_EQ(cubin.find("in_grid_of_clusters") != std::string::npos, std::string(architecture) != "sm_80")
          << architecture;
    });
  }
}

}  // namespace
}  // namespace graphrun
