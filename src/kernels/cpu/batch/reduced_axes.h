// reduced_axes.h: which elements of an operand are reduced to one: lines along axes.
// Contract: of the valid rows; pure functions of types. Leaves to others: what is computed along a line (sums.cpp,
// axis_ops.cpp, softmax.cpp).
#pragma once

#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {

// NaN wins; of equal ones the first. One branch that is never taken: which of two numbers is larger is not to be
// guessed.
inline float larger(float x, float y) {
  const float most = y > x ? y : x;
  return y != y ? y : most;
}

struct Dims {
  int count = 0;
  std::int64_t extent[kMaxRank], stride[kMaxRank];

  void add(std::int64_t n, std::int64_t step) {
    if (count > 0 && stride[count - 1] == n * step) {  // continues the one before it
      extent[count - 1] *= n;
      stride[count - 1] = step;
      return;
    }
    extent[count] = n;
    stride[count++] = step;
  }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int d = 0; d < count; ++d) n *= extent[d];
    return n;
  }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t result = 0;
    for (int d = count - 1; d >= 0; --d) {
      result += index % extent[d] * stride[d];
      index /= extent[d];
    }
    return result;
  }
};

// The valid part of an operand, its reduced axes apart from the kept ones.
struct Split {
  Dims kept, reduced;

  Split(const KernelArgs& args, const TensorType& type, std::uint32_t mask) {
    std::int64_t stride = type.shape.elements();
    for (int d = 0; d < type.shape.rank(); ++d) {
      const std::int64_t n = d == 0 ? args.rows_of(type) : type.shape[d];
      stride = type.shape[d] == 0 ? 0 : stride / type.shape[d];
      ((mask >> d & 1u) != 0 ? reduced : kept).add(n, stride);
    }
  }
};

// Elements of one line: along one stride mostly, else by index.
struct Line {
  const float* first;
  const Dims* dims;
  std::int64_t size;

  float operator[](std::int64_t j) const {
    return first[dims->count == 1 ? j * dims->stride[0] : dims->count == 0 ? 0 : dims->offset(j)];
  }
};

struct Dim {
  std::int64_t extent, stride;
};
// Offset of element `index` of the row-major space of `dims`.
inline std::int64_t offset_of(const Dim* dims, int count, std::int64_t index) {
  std::int64_t offset = 0;
  for (int d = count - 1; d >= 0; --d) {
    offset += index % dims[d].extent * dims[d].stride;
    index /= dims[d].extent;
  }
  return offset;
}

// A reduction as runs of axes: neighbouring axes of one fate are one run, kept and reduced ones alternate.
struct LineAxes {
  enum Form { rows, columns, other };  // the reduced axes are the last; next to last, before `last`; anything else
  Dim runs[kMaxRank];
  bool reduced[kMaxRank];
  int count = 0;
  std::int64_t outputs = 1, terms = 1, last = 1;
  Form form = other;

  LineAxes(const TensorType& in, std::uint32_t axes, std::int64_t first_extent) {
    std::int64_t stride = in.shape.elements();
    for (int d = 0; d < in.shape.rank(); ++d) {
      const std::int64_t n = d == 0 ? first_extent : in.shape[d];
      stride = in.shape[d] == 0 ? 0 : stride / in.shape[d];
      const bool gone = (axes >> d & 1u) != 0;
      (gone ? terms : outputs) *= n;
      if (in.shape[d] == 1) continue;
      if (count > 0 && reduced[count - 1] == gone) {
        runs[count - 1] = {runs[count - 1].extent * n, stride};
      } else {
        runs[count] = {n, stride};
        reduced[count++] = gone;
      }
    }
    if (count == 0 || (count <= 2 && reduced[count - 1])) {
      form = rows;
    } else if (count <= 3 && !reduced[count - 1] && (count == 1 || reduced[count - 2])) {
      form = columns;
      last = runs[count - 1].extent;
    }
  }

  // Sums of kSumChunk terms are parts of their own where there are fewer outputs than threads could use; they are added
  // in the order in which they would be without: the bits are those of isa.h either way.
  std::int64_t chunks() const { return (terms + kSumChunk - 1) / kSumChunk; }
  bool wants_chunks() const {
    const std::int64_t independent = form == rows ? outputs : (outputs + kGrain - 1) / kGrain;
    return form != other && chunks() > 1 && parts_for(outputs * terms) > independent;
  }
};

}  // namespace graphrun::cpu
