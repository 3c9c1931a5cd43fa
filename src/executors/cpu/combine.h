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

inline constexpr std::int64_t kCombineBlock = 256;  // floats

// Results of all partitions, in floats; those of partition s begin at first + s * apart.
struct PartitionResults {
  const float* first;
  std::size_t apart;
  int partitions;
};

float identity(CombineOp op);  // initial value of a partition's results

// Combines the first n <= kCombineBlock floats. Returns `block`, or the floats of the only partition.
const float* combined(const cpu::IsaTable& table, CombineOp op, const PartitionResults& results, std::int64_t n,
                      float* block);

// Combines x and y, in this order, into `to`, which may be x or y.
const float* combine_two(const cpu::IsaTable& table, CombineOp op, const float* x, const float* y, std::int64_t n,
                         float* to);

}  // namespace graphrun
