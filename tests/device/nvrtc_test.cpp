// scalar_ops.h under NVRTC: one kernel for each row of its tables. Needs no device.
#include <gtest/gtest.h>
#include <nvrtc.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/scalar_ops.h"
#include "support/source_folder.h"

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
  std::ifstream file(source_folder() + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Nvrtc, CompilesEveryScalarOp) {
  const std::string list = text_of("/include/graphrun/scalar_op_list.h"),
                    functors = text_of("/src/kernels/scalar_ops.h"),
                    functions = text_of("/src/kernels/scalar_functions.h"),
                    type = text_of("/src/kernels/scalar_type.h");
  ASSERT_FALSE(list.empty() || functors.empty() || functions.empty() || type.empty());
  const char* texts[] = {list.c_str(), functors.c_str(), functions.c_str(), type.c_str()};
  const char* names[] = {"graphrun/scalar_op_list.h", "kernels/scalar_ops.h", "kernels/scalar_functions.h",
                         "kernels/scalar_type.h"};
  nvrtcProgram program = nullptr;
  ASSERT_EQ(nvrtcCreateProgram(&program, kSource, "scalar_ops.cu", 4, texts, names), NVRTC_SUCCESS);
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
