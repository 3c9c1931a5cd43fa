// combine.h: how the partial results of a region's partitions become one.
// Contract: element by element, partitions 1, 2, 4, ... apart (Combine of program.h), whatever range is asked for: the
// bits do not depend on ranges. Each partition's results are read once and none is written; nothing is allocated.
// Leaves to others: where results lie and which threads share the ranges (region_runner.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "graphrun/program.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun {

inline constexpr std::int64_t kCombineBlock = 256;  // floats

// Floats of every partition: those of partition s begin at first + s * apart.
struct PartitionResults {
  const float* first;
  std::size_t apart;
  int partitions;
};

float identity(CombineOp op);  // what a partition's results begin with

// The combined first n <= kCombineBlock floats: in `block`, or those of the only partition.
const float* combined(const cpu::IsaTable& table, CombineOp op, const PartitionResults& results, std::int64_t n,
                      float* block);

// x and y, in that order, to `to`, which may be either.
const float* combine_two(const cpu::IsaTable& table, CombineOp op, const float* x, const float* y, std::int64_t n,
                         float* to);

}  // namespace graphrun
