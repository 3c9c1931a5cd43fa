// The headers that kernels compiled at load may include, and scalar_ops.h under NVRTC: one kernel for each row of its
// tables. Needs no device.
#include <gtest/gtest.h>
#include <nvrtc.h>

#include <filesystem>
#include <fstream>
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

constexpr const char* kSource = R"(
#include "kernels/scalar_ops.h"
using namespace graphrun;
#define UNARY(op, F, ...) extern "C" __global__ void op_##op(float* x) { x[0] = scalar::F::apply(x[0], x[1], x[2]); }
#define BINARY(op, F, ...) extern "C" __global__ void op_##op(float* x) { x[0] = scalar::F::apply(x[0], x[1]); }
#define COMPARE(op, F, ...) extern "C" __global__ void op_##op(float* x, bool* y) { y[0] = scalar::F::apply(x[0], x[1]); }
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

TEST(Nvrtc, CompilesEveryScalarOp) {
  std::vector<const char*> texts, names;
  for (const cuda::DeviceSource& header : cuda::kDeviceSources) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  nvrtcProgram program = nullptr;
  ASSERT_EQ(nvrtcCreateProgram(&program, kSource, "scalar_ops.cu", static_cast<int>(names.size()), texts.data(),
                               names.data()),
            NVRTC_SUCCESS);
  const char* options[] = {"--gpu-architecture=compute_90", "--std=c++17", "--fmad=false"};
  const nvrtcResult status = nvrtcCompileProgram(program, 3, options);
  std::size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtcGetProgramLog(program, log.data());
  ASSERT_EQ(status, NVRTC_SUCCESS) << log;

  ASSERT_EQ(nvrtcGetPTXSize(program, &size), NVRTC_SUCCESS);
  std::string ptx(size, '\0');
  ASSERT_EQ(nvrtcGetPTX(program, ptx.data()), NVRTC_SUCCESS);
  nvrtcDestroyProgram(&program);
  for (const std::string& kernel : kKernels) {
    EXPECT_NE(ptx.find(".entry " + kernel + "("), std::string::npos) << kernel << " is missing";
  }
  EXPECT_EQ(ptx.find(".extern .func"), std::string::npos) << "a scalar op calls what is not in the header";
}

}  // namespace
}  // namespace graphrun
