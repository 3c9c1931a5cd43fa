// fast_functions_kernel.h: how far the functions of `--math=fast` are off on this device.
// Contract: unary ones over all floats, binary ones over 2^26 random pairs, against the device's functions in double; a
// wrong NaN, infinity or sign of zero counts 1e30 ulp. Leaves to others: what is too far (fast_functions_test.cpp).
#pragma once

#include <vector>

struct FastFunctionError {
  const char* name;
  double bound, error;  // ulp
  float x, y;           // where it is largest
};
std::vector<FastFunctionError> fast_function_errors();  // empty: CUDA failed
