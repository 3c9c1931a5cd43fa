// factor_view.h: a product's left factor that is a view, such as windows: element (i, l) is at rows.offset(i) +
// terms.offset(l) of its storage.
// Contract: offsets and indices fit 31 bits. Not here: whether a product reads views (takes_views() of the planner).
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/dims.h"

namespace graphrun::cuda {

// Divides numbers below 2^31 by multiplication.
struct Divisor {
  std::uint32_t divisor = 1, magic = 1, shift = 0;

  Divisor() = default;
  explicit Divisor(std::int64_t by) : divisor(static_cast<std::uint32_t>(by)) {
    while ((std::int64_t{1} << shift) < by) ++shift;
    magic = static_cast<std::uint32_t>((((std::int64_t{1} << shift) - by) << 32) / by + 1);
  }
#if defined(__CUDACC__)
  __device__ __forceinline__ std::uint32_t quotient(std::uint32_t n) const {
    return (__umulhi(n, magic) + n) >> shift;
  }
#endif
};

// Offsets along some axes of a view.
struct ViewAxes {
  static constexpr int kRank = 4;
  struct Axis {
    Divisor extent;
    std::int32_t stride = 0;
  };
  Axis axis[kRank];  // innermost first; absent ones have one element

  // False if there are too many.
  bool set(Dims<1> dims) {
    if (dims.rank > kRank) return false;
    for (int i = 0; dims.rank > 0; ++i) {
      const Dim<1> dim = dims.remove_last();
      axis[i] = {Divisor(dim.extent), static_cast<std::int32_t>(dim.stride[0])};
    }
    return true;
  }
  // Whether four adjacent elements from a multiple of four on are contiguous and as aligned as the storage.
  bool packs() const { return axis[0].stride == 1 && axis[0].extent.divisor % 4 == 0 && aligns(1); }
  bool aligns(int from = 0) const {
    bool all = true;
    for (int i = from; i < kRank; ++i) all = all && axis[i].stride % 4 == 0;
    return all;
  }

#if defined(__CUDACC__)
  __device__ __forceinline__ int offset(int index) const {
    auto left = static_cast<std::uint32_t>(index);
    std::uint32_t at = 0;
#pragma unroll
    for (int i = 0; i + 1 < kRank; ++i) {
      const std::uint32_t rest = axis[i].extent.quotient(left);
      at += (left - rest * axis[i].extent.divisor) * static_cast<std::uint32_t>(axis[i].stride);
      left = rest;
    }
    return static_cast<int>(at + left * static_cast<std::uint32_t>(axis[kRank - 1].stride));
  }
#endif
};

struct FactorView {
  ViewAxes rows, terms;
};

// Splits the axes of a view of a matrix with `first` rows; with `transposed`, these are the terms. Empty if an axis
// spans both sides, or if there are too many axes or elements, or none.
inline std::optional<FactorView> factor_view(const View& view, std::int64_t first, bool transposed) {
  if (view.extents.elements() == 0) return std::nullopt;
  Dims<1> sides[2];
  std::int64_t before = 1;
  for (int axis = 0; axis < view.extents.rank(); ++axis) {
    const Dim<1> dim = axis_of<1>({view}, axis);
    const bool second = before == first;
    if (!second && first % (before * dim.extent) != 0) return std::nullopt;
    sides[second].add(dim);
    if (!second) before *= dim.extent;
  }
  FactorView factor;
  constexpr std::int64_t kMax = std::int64_t{1} << 31;
  const bool fits = before == first && sides[0].count < kMax && sides[1].count < kMax && span_of(view) < kMax;
  if (!fits || !factor.rows.set(sides[transposed]) || !factor.terms.set(sides[!transposed])) return std::nullopt;
  return factor;
}

}  // namespace graphrun::cuda
