// product_epilogue.cuh: the steps with which a product ends (ProductEpilogue), on four adjacent columns of a row.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cuda {

// Loads four columns, zeros past `columns`. packs: there are four, aligned.
__device__ __forceinline__ void load_columns(const float* from, int columns, bool packs, float (&to)[4]) {
  if (packs) return load4(from, to);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = i < columns ? from[i] : 0.0f;
}

__device__ __forceinline__ void store_columns(const float (&x)[4], int columns, bool packs, float* to) {
  if (packs) return store4(to, x);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < columns) to[i] = x[i];
  }
}

// The last step. kBinary: its other operand is y.
template <bool kBinary>
__device__ __forceinline__ void apply_step(const ProductEpilogue& e, float (&x)[4], const float (&y)[4]) {
  const auto each = [&](auto f) {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = e.with_first ? f(y[i], x[i]) : f(x[i], y[i]);
  };
#define GRAPHRUN_EPILOGUE(name, F) \
  if (!kBinary && e.op == scalar_op::name) each([](float z, float) { return scalar::F::apply(z, 0.0f, 0.0f); });
  GRAPHRUN_UNARY_EPILOGUES(GRAPHRUN_EPILOGUE)
#undef GRAPHRUN_EPILOGUE
#define GRAPHRUN_EPILOGUE(name, F) \
  if (kBinary && e.op == scalar_op::name) each([](float z, float w) { return scalar::F::apply(z, w); });
  GRAPHRUN_BINARY_EPILOGUES(GRAPHRUN_EPILOGUE)
#undef GRAPHRUN_EPILOGUE
}

// Adds the bias, if any, and applies the last step. Columns of a row that is not live become zeros.
template <bool kBinary>
__device__ __forceinline__ void finish_columns(const ProductEpilogue& e, const float (&bias)[4], const float (&with)[4],
                                               bool live, float (&x)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) x[k] = e.bias != nullptr ? scalar::Add::apply(x[k], bias[k]) : x[k];
  apply_step<kBinary>(e, x, with);
#pragma unroll
  for (int k = 0; k < 4; ++k) x[k] = live ? x[k] : 0.0f;
}

}  // namespace graphrun::cuda
