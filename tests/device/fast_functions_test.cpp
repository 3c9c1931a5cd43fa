// The functions of `--math=fast` on the device at hand: every float, and no error above its bound.
#include "fast_functions_kernel.h"

#include <cstdio>

#include "device.h"

namespace graphrun::testing {
namespace {

TEST_F(Device, FastFunctionsKeepTheirBoundsForEveryFloat) {
  const std::vector<FastFunctionError> errors = fast_function_errors();
  ASSERT_EQ(errors.size(), 16u);
  for (const auto& [name, bound, error, x, y] : errors) {
    std::printf("%-18s %8.4f ulp of %3.1f, at %a, %a\n", name, error, bound, static_cast<double>(x),
                static_cast<double>(y));
    EXPECT_LE(error, bound + 1e-5) << name << "(" << x << ", " << y << ")";
  }
}

}  // namespace
}  // namespace graphrun::testing
