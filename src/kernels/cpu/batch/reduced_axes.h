// reduced_axes.h: grouping of an operand's elements into reduced lines along axes.
// Contract: valid rows only; pure functions of types. Leaves to others: the computation along a line (sums.cpp,
// axis_ops.cpp, softmax.cpp).
#pragma once

#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {

// NaN propagates; among equals the first wins. Branches only on NaN: which number is larger is unpredictable.
inline float larger(float x, float y) {
  const float most = y > x ? y : x;
  return y != y ? y : most;
}

// The valid part of an operand, with its reduced axes separated from the kept ones.
inline Split<1> split_axes(const KernelArgs& args, const TensorType& type, std::uint32_t mask) {
  return {{args.view_of(type)}, mask};
}

// Elements of one line: usually along one stride, otherwise by index.
struct Line {
  const float* first;
  const Dims<1>* dims;
  std::int64_t size;

  float operator[](std::int64_t j) const { return first[dims->offset(j)]; }
};

// A reduction as runs of axes: adjacent axes that are both kept or both reduced form one run; runs alternate.
struct LineAxes {
  enum Form { rows, columns, other };  // reduced axes: the last ones; next to last, before `last`; any others
  std::int64_t outputs = 1, terms = 1, last = 1;
  Form form = other;

  LineAxes(const TensorType& in, std::uint32_t axes, std::int64_t first_extent) {
    int runs = 0;
    bool reduced = false;  // whether the last run is reduced
    std::int64_t run = 1;
    for (int d = 0; d < in.shape.rank(); ++d) {
      const std::int64_t n = d == 0 ? first_extent : in.shape[d];
      const bool gone = (axes >> d & 1u) != 0;
      (gone ? terms : outputs) *= n;
      if (in.shape[d] == 1) continue;
      if (runs == 0 || gone != reduced) {
        ++runs;
        run = 1;
      }
      run *= n;
      reduced = gone;
    }
    if (runs == 0 || (runs <= 2 && reduced)) {
      form = rows;
    } else if (runs <= 3 && !reduced) {
      form = columns;
      last = run;
    }
  }

  // Chunks of kSumChunk terms become parts if there are fewer outputs than threads could use. They are added in the
  // same order as without chunks, so results are those of isa.h either way.
  std::int64_t chunks() const { return (terms + kSumChunk - 1) / kSumChunk; }
  bool wants_chunks() const {
    const std::int64_t independent = form == rows ? outputs : (outputs + kGrain - 1) / kGrain;
    return form != other && chunks() > 1 && parts_for(outputs * terms) > independent;
  }
};

// Calls f(result, elements, count, group of `last` lines) for each chunk, as a part of its own. Results go to the
// workspace: (groups, chunks, last).
template <class F>
void for_chunks(const KernelArgs& args, const LineAxes& axes, int parts, F&& f) {
  const std::int64_t chunks = axes.chunks(), last = axes.last;
  for_ranges(args.pool, parts, axes.outputs / last * chunks, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t item = first; item < end; ++item) {
      const std::int64_t group = item / chunks, begin = item % chunks * kSumChunk;
      f(static_cast<float*>(args.workspace) + item * last, args.input<float>(0) + (group * axes.terms + begin) * last,
        std::min<std::int64_t>(kSumChunk, axes.terms - begin), group);
    }
  });
}

}  // namespace graphrun::cpu
