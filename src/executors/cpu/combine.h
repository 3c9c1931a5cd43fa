// combine.h: combines the partial results of a region's partitions.
// Contract: element by element, partitions 1, 2, 4, ... apart (Combine of program.h), independent of the requested
// range, so results do not depend on ranges. The results of each partition are read once and never written; nothing is
// allocated. Not here: storage of results, assignment of ranges to threads (region_runner.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "graphrun/program.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun {

inline constexpr std::int64_t kCombineBlock = 256;  // numbers

// Results of all partitions, f32 or f64; those of partition s begin at first + s * apart.
template <class Real>
struct PartitionResults {
  const Real* first;
  std::size_t apart;
  int partitions;
};

float identity(CombineOp op);  // initial value of a partition's results

// Combines the first n <= kCombineBlock numbers. Returns `block`, or the numbers of the only partition.
template <class Real>
const Real* combined(const cpu::IsaTableOf<Real>& table, CombineOp op, const PartitionResults<Real>& results,
                     std::int64_t n, Real* block);

// Combines x and y, in this order, into `to`, which may be x or y.
template <class Real>
const Real* combine_two(const cpu::IsaTableOf<Real>& table, CombineOp op, const Real* x, const Real* y, std::int64_t n,
                        Real* to);

}  // namespace graphrun
