// The planner knows no kernel, and a build without CUDA has none: what it says of each op beside those that there are.
// Needs no device.
#include <gtest/gtest.h>

#include "executors/cuda_planner/cuda_planner.h"
#include "graphrun/op.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {
namespace {

TEST(Kernels, ThePlannerKnowsWhichOpsHaveOne) {
  int ops = 0;
  for (std::size_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (traits_of(op).dtypes.empty()) continue;  // a source or a state, which is no step
    EXPECT_EQ(has_kernel(op), find_kernel(op) != nullptr)
        << name_of(op) << ": kWithoutKernel of cuda_planner.cpp names the ops that find_kernel() does not find";
    ++ops;
  }
  EXPECT_GT(ops, 80);
}

}  // namespace
}  // namespace graphrun::cuda
