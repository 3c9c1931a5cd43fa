#include "graphrun/target.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

// A core of the last ten years (2026-11-21-regions.md). All weights are read for each tile and a partition
// has accumulators for each, so both stay in a second-level cache of some hundred KiB; a sample of 16 KiB would take
// 256 of them in the smallest tile. Lanes stay in the first-level cache, a tile there or in the second. A partition is
// worth two to three microseconds: handing partitions over costs 0.3 (2026-11-21-cpu-threads.md), weights
// then wander between cores, and ending a partition costs one thread as much: shares of half this size gained nothing
// with two threads and cost a tenth with one. A reduction over rows ends with about three operations a value for each
// tile, beside one a vector of rows: with fewer than 64 rows the ends would cost more than the sums.
constexpr RegionCosts kHostRegions = {
    .most_weights = 256 * kKiB,
    .most_reduced = 256 * kKiB,
    .most_row = 16 * kKiB,
    .tile_bytes = 64 * kKiB,
    .lane_bytes = 32 * kKiB,
    .partition_work = 6144,
    .most_partitions = 64,
    .least_rows = 64,
};

// From 16384 elements on the buffers of a step do not stay in the nearest cache of a host. A launch costs a GPU more
// than most steps; each operand of a region is an address among its kernel's parameters, of 4 KB.
constexpr ElementLimits kHostElements{16384, 1, 64, 200, 0};
constexpr ElementLimits kGpuElements{1, 64, 64, 200, 12};

// Of the models of bench/ all steps that are independent run side by side with this much, but for two with values of
// many MiB; a training step of peaks is a row of 13 launches then, and of 17 without.
constexpr std::uint64_t kApart = 4 * kMiB;

// From NVIDIA's CUDA programming guide (table of technical specifications) and the data sheets of the boards. Shared
// memory is what one block may opt in to. h100 is the SXM board; h200 has the same chip and other memory.
constexpr Target kTargets[] = {
    // name, executor, capability, SMs, threads/SM, shared bytes, registers/SM, cluster, library workspace, apart,
    // regions, elements
    {"host", "cpu", 0, 0, 0, 0, 0, 0, 0, 0, kHostRegions, kHostElements},
    {"h200", "cuda", 90, 132, 2048, 232448, 65536, 8, 32 * kMiB, kApart, {}, kGpuElements},
    {"h100", "cuda", 90, 132, 2048, 232448, 65536, 8, 32 * kMiB, kApart, {}, kGpuElements},
    {"a100", "cuda", 80, 108, 2048, 166912, 65536, 0, 32 * kMiB, kApart, {}, kGpuElements},
    {"l4", "cuda", 89, 58, 1536, 101376, 65536, 0, 32 * kMiB, kApart, {}, kGpuElements},
};

// Whoever holds a span or a row keeps it: a longer table takes the place of one that stays.
class TargetTable {
 public:
  TargetTable() : tables_{std::vector<Target>(std::begin(kTargets), std::end(kTargets))} {}

  std::span<const Target> rows() {
    const std::lock_guard lock(mutex_);
    return tables_.back();
  }
  void add(std::string_view name, std::string_view executor) {
    const std::lock_guard lock(mutex_);
    for (const Target& row : tables_.back()) {
      if (row.name != name) continue;
      if (row.executor == executor) return;
      throw Error(
          ErrorKind::input, "target.taken",
          fmt::format("the executor {} brings a target '{}', which is a machine of {}", executor, name, row.executor));
    }
    std::vector<Target> longer = tables_.back();
    Target& added = longer.emplace_back();
    added.name = texts_.emplace_back(name);
    added.executor = texts_.emplace_back(executor);
    tables_.push_back(std::move(longer));
  }

 private:
  std::mutex mutex_;
  std::deque<std::vector<Target>> tables_;
  std::deque<std::string> texts_;
};
TargetTable& target_table() {
  static TargetTable one;
  return one;
}

}  // namespace

std::span<const Target> targets() {
  return target_table().rows();
}

void add_target(std::string_view name, std::string_view executor) {
  target_table().add(name, executor);
}

const Target& find_target(std::string_view name) {
  std::vector<std::string> known;
  for (const Target& target : targets()) {
    if (target.name == name) return target;
    known.emplace_back(target.name);
  }
  throw Error(ErrorKind::input, "target.unknown",
              fmt::format("unknown target '{}'; the targets are {}", name, fmt::join(known, ", ")),
              did_you_mean(name, known));
}

}  // namespace graphrun
