// dims.h: iterates over the elements of several views of equal extents in few dimensions: adjacent axes are merged
// where every view allows it.
// Contract: offsets are in elements, one for each view; extents and counts are never negative. Compiles for hosts and
// devices. Leaves to others: work on the elements; the innermost run is the caller's loop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/view.h"

#if defined(__CUDACC__)
#define GRAPHRUN_HOST_DEVICE __host__ __device__
#else
#define GRAPHRUN_HOST_DEVICE
#endif
#if defined(__CUDA_ARCH__)
#define GRAPHRUN_ROLLED _Pragma("unroll 1")
#else
#define GRAPHRUN_ROLLED
#endif

namespace graphrun {

template <int N>
struct Offsets {
  std::int64_t at[N] = {};
  GRAPHRUN_HOST_DEVICE std::int64_t operator[](int view) const { return at[view]; }
  GRAPHRUN_HOST_DEVICE void move(const std::int64_t (&stride)[N], std::int64_t steps) {
    for (int i = 0; i < N; ++i) at[i] += steps * stride[i];
  }
};

template <int N>
struct Dim {
  std::int64_t extent = 1;
  std::int64_t stride[N] = {};  // for each view
};

template <int N>
struct Dims {
  int rank = 0;
  std::int64_t count = 1;  // product of the extents
  Dim<N> dim[kMaxRank];    // outermost first

  // Adds the next inner dimension; merges it into the previous one if every view is contiguous across both.
  void add(const Dim<N>& next) {
    count *= next.extent;
    if (next.extent == 1) return;
    bool merges = rank > 0;
    for (int i = 0; merges && i < N; ++i) merges = dim[rank - 1].stride[i] == next.extent * next.stride[i];
    const std::int64_t extent = merges ? dim[--rank].extent * next.extent : next.extent;
    dim[rank] = next;
    dim[rank++].extent = extent;
  }
  Dim<N> remove(int d) {
    const Dim<N> removed = dim[d];
    std::copy(dim + d + 1, dim + rank--, dim + d);
    count = 1;
    for (int i = 0; i < rank; ++i) count *= dim[i].extent;
    return removed;
  }
  // Removes and returns the innermost dimension, or one of extent 1 if there is none.
  Dim<N> remove_last() { return rank > 0 ? remove(rank - 1) : Dim<N>{}; }

  // Offsets of element `index` in row-major order; index < count.
  GRAPHRUN_HOST_DEVICE Offsets<N> offsets(std::int64_t index) const {
    Offsets<N> result;
    if (rank == 1) {
      result.move(dim[0].stride, index);
      return result;
    }
    // Not unrolled: a division is long code, and most kernels contain this loop several times.
    GRAPHRUN_ROLLED
    for (int d = rank - 1; d >= 0; --d) {
      const std::int64_t rest = divide(index, dim[d].extent);
      result.move(dim[d].stride, index - rest * dim[d].extent);
      index = rest;
    }
    return result;
  }
  GRAPHRUN_HOST_DEVICE std::int64_t offset(std::int64_t index) const { return offsets(index)[0]; }

 private:
  // Fast path for 32-bit operands, which is nearly always taken.
  GRAPHRUN_HOST_DEVICE static std::int64_t divide(std::int64_t a, std::int64_t b) {
    if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
    return a / b;
  }
};

template <int N>
Dim<N> axis_of(const View (&views)[N], int axis) {
  Dim<N> dim{views[0].extents[axis]};
  for (int i = 0; i < N; ++i) dim.stride[i] = views[i].strides[axis];
  return dim;
}

// Merges views of equal extents; their own offsets are left to the caller.
template <int N>
Dims<N> merged(const View (&views)[N]) {
  Dims<N> dims;
  for (int axis = 0; axis < views[0].extents.rank(); ++axis) dims.add(axis_of(views, axis));
  return dims;
}

// Separates the axes of the mask (bit i: axis i) from the others.
template <int N>
struct AxisGroups {
  Dims<N> kept, reduced;
  AxisGroups(const View (&views)[N], std::uint32_t mask) {
    for (int axis = 0; axis < views[0].extents.rank(); ++axis)
      ((mask >> axis & 1u) != 0 ? reduced : kept).add(axis_of(views, axis));
  }
};

// The matrices of a product.
inline Dims<2> matrices_of(const View& a, const View& b) {
  const auto [x, y] = product_matrices(a, b);
  return merged<2>({x, y});
}

// Calls f(index of the first, its offsets, length) for elements [first, last), as runs along the innermost dimension.
template <int N, class F>
void for_runs(const Dims<N>& dims, std::int64_t first, std::int64_t last, F&& f) {
  const int inner = dims.rank - 1;
  const Dim<N> run = inner >= 0 ? dims.dim[inner] : Dim<N>{};
  std::int64_t index[kMaxRank] = {};
  Offsets<N> outer;
  std::int64_t rest = first < last ? first / run.extent : 0;
  std::int64_t skip = first - rest * run.extent;
  for (int d = inner - 1; d >= 0 && first < last; --d) {
    index[d] = rest % dims.dim[d].extent;
    rest /= dims.dim[d].extent;
    outer.move(dims.dim[d].stride, index[d]);
  }
  while (first < last) {
    const std::int64_t count = std::min(run.extent - skip, last - first);
    Offsets<N> at = outer;
    at.move(run.stride, skip);
    f(first, at, count);
    first += count;
    skip = 0;
    for (int d = inner - 1; d >= 0; --d) {
      outer.move(dims.dim[d].stride, 1);
      if (++index[d] < dims.dim[d].extent) break;
      outer.move(dims.dim[d].stride, -dims.dim[d].extent);
      index[d] = 0;
    }
  }
}

// Calls f(index, offsets) for every element.
template <int N, class F>
void for_elements(const Dims<N>& dims, F&& f) {
  const Dim<N> run = dims.rank > 0 ? dims.dim[dims.rank - 1] : Dim<N>{};
  for_runs(dims, 0, dims.count, [&](std::int64_t i, Offsets<N> at, std::int64_t n) {
    for (; n > 0; --n, at.move(run.stride, 1)) f(i++, at);
  });
}

}  // namespace graphrun
