#include "graphrun/target.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

// A core of the last ten years (2026-11-21-regions.md). Each tile reads all weights, and a partition has an accumulator
// for each weight, so both must fit in a second-level cache of some hundred KiB. Samples of 16 KiB would make the
// smallest tile 256 KiB. Lanes fit in the first-level cache, a tile in the first or second. A partition should take two
// to three microseconds: a handover costs 0.3 (2026-11-21-cpu-threads.md) and migrates the weights to another core, and
// ending a partition costs one thread as much. Partitions of half this size gained nothing with two threads and cost a
// tenth with one. A reduction over rows takes one operation per vector of rows, and about three per value to finish
// each tile: with fewer than 64 rows, finishing costs more than summing.
constexpr RegionCosts kHostRegions = {
    .max_weights = 256 * kKiB,
    .max_reduced = 256 * kKiB,
    .max_row = 16 * kKiB,
    .tile_bytes = 64 * kKiB,
    .lane_bytes = 32 * kKiB,
    .partition_work = 6144,
    .max_partitions = 64,
    .min_rows = 64,
};

// From 16384 elements on, the buffers of a step exceed the first-level cache of a host. On a GPU a launch costs more
// than most steps. The operands of a region are addresses in the 4 KB of its kernel's parameters.
constexpr ElementLimits kHostElements{16384, 1, 64, 200, 0};
constexpr ElementLimits kGpuElements{1, 64, 64, 200, 12};

// Enough for all independent steps of the models in bench/ to run concurrently, except in two models with values of
// many MiB. It shortens the critical path of a training step from 17 launches to 13.
constexpr std::uint64_t kApart = 4 * kMiB;

// Sources: CUDA programming guide (table of technical specifications) and NVIDIA's data sheets. Shared memory is the
// opt-in maximum per block. h100 is the SXM board; h200 has the same chip with different memory.
constexpr Target kTargets[] = {
    // name, executor, capability, SMs, threads/SM, shared bytes, registers/SM, cluster, library workspace, apart,
    // regions, elements; all GPUs share the default GpuCosts
    {"host", "cpu", 0, 0, 0, 0, 0, 0, 0, 0, kHostRegions, kHostElements},
    {"h200", "cuda", 90, 132, 2048, 232448, 65536, 8, 32 * kMiB, kApart, {}, kGpuElements},
    {"h100", "cuda", 90, 132, 2048, 232448, 65536, 8, 32 * kMiB, kApart, {}, kGpuElements},
    {"a100", "cuda", 80, 108, 2048, 166912, 65536, 0, 32 * kMiB, kApart, {}, kGpuElements},
    {"l4", "cuda", 89, 58, 1536, 101376, 65536, 0, 32 * kMiB, kApart, {}, kGpuElements},
};

// Cost factors of all GPUs. bench/calibrate sets them, in order, to count the work of a tiling.
GpuCosts gpu_costs() {
  auto numbers = std::bit_cast<std::array<std::int64_t, sizeof(GpuCosts) / sizeof(std::int64_t)>>(GpuCosts{});
  const char* const text = std::getenv("GRAPHRUN_GPU_COSTS");
  if (text == nullptr || *text == '\0') return {};
  std::istringstream stream(text);
  for (std::int64_t& number : numbers) {
    if (!(stream >> number) || number <= 0)
      throw Error(ErrorKind::input, "target.gpu_costs",
                  fmt::format("GRAPHRUN_GPU_COSTS: expected {} positive integers", numbers.size()));
  }
  return std::bit_cast<GpuCosts>(numbers);
}

// Spans and rows that were handed out stay valid: add_target() appends a longer copy and keeps the old tables.
struct TargetTables {
  std::mutex mutex;
  std::deque<std::vector<Target>> tables = {std::vector<Target>(std::begin(kTargets), std::end(kTargets))};
  std::deque<std::string> texts;

  TargetTables() {
    for (Target& target : tables.back()) target.gpu = gpu_costs();
  }
};
TargetTables& target_tables() {
  static TargetTables one;
  return one;
}

}  // namespace

std::span<const Target> targets() {
  TargetTables& all = target_tables();
  const std::lock_guard lock(all.mutex);
  return all.tables.back();
}

void add_target(std::string_view name, std::string_view executor) {
  TargetTables& all = target_tables();
  const std::lock_guard lock(all.mutex);
  for (const Target& row : all.tables.back()) {
    if (row.name != name) continue;
    if (row.executor == executor) return;
    throw Error(
        ErrorKind::input, "target.taken",
        fmt::format("the executor {} brings a target '{}', which is a machine of {}", executor, name, row.executor));
  }
  std::vector<Target> longer = all.tables.back();
  Target& added = longer.emplace_back();
  added.name = all.texts.emplace_back(name);
  added.executor = all.texts.emplace_back(executor);
  all.tables.push_back(std::move(longer));
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
