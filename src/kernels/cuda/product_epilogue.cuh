// product_epilogue.cuh: the steps with which a product ends (ProductEpilogue), on adjacent columns of a row.
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
template <bool kBinary, int N>
__device__ __forceinline__ void apply_step(const ProductEpilogue& e, float (&x)[N], const float (&y)[N]) {
  const auto each = [&](auto f) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = e.with_first ? f(y[i], x[i]) : f(x[i], y[i]);
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

// All steps, of the first n of N results that are adjacent in memory from element `at` in column `column` on.
template <int N>
__device__ __forceinline__ void apply_steps(const ProductEpilogue& e, std::int64_t at, std::int64_t column, int n,
                                            float (&x)[N]) {
  constexpr int kPart = N < 4 ? N : 4;
#pragma unroll
  for (int j = 0; j < N; j += kPart) {
    float part[kPart], with[kPart] = {};
#pragma unroll
    for (int i = 0; i < kPart; ++i) {
      part[i] = x[j + i];
      if (e.bias != nullptr && j + i < n) part[i] = scalar::Add::apply(part[i], e.bias[column + j + i]);
      if (e.with != nullptr && j + i < n) with[i] = e.with[at + j + i];
    }
    e.with != nullptr ? apply_step<true>(e, part, with) : apply_step<false>(e, part, with);
#pragma unroll
    for (int i = 0; i < kPart; ++i) x[j + i] = part[i];
  }
}
// Those of element `at` of a result with n columns.
__device__ __forceinline__ float stepped(const ProductEpilogue& e, std::uint64_t at, std::uint64_t n, float sum) {
  if (!e.steps) return sum;
  float x[1] = {sum};
  apply_steps(e, static_cast<std::int64_t>(at), static_cast<std::int64_t>(at - divide(at, n) * n), 1, x);
  return x[0];
}

}  // namespace graphrun::cuda
