// target.h: the numbers of a machine that decisions may depend on, as a table: no device is needed to plan for one.
// Contract: grid, tile, partition and region choices are pure functions of (graph, target). Rows are only added, and
// live for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

// What regions over rows go by (regions.md). Beyond the first three a step runs by itself, over all rows.
struct RegionCosts {
  std::uint64_t most_weights = 0;   // bytes of the matrix that rows are multiplied with
  std::uint64_t most_reduced = 0;   // bytes of one reduced value
  std::uint64_t most_row = 0;       // bytes of one sample's part of a value
  std::uint64_t tile_bytes = 0;     // of scratch that a tile should take: near the core, not all of it
  std::uint64_t lane_bytes = 0;     // of lanes that a partition may keep beside its tile
  std::int64_t partition_work = 0;  // that is worth a partition; a unit is 8 additions of elements
  std::int64_t most_partitions = 0;
  std::int64_t least_rows = 0;  // of a tile that ends with reductions, and of a partition
};

// How steps over elements are grouped (src/compiler/elements.h). `least` 0: they are not.
struct ElementLimits {
  std::int64_t least = 0;    // elements of a chain: with fewer, steps by themselves are as fast
  std::size_t chains = 1;    // of a region: many where a launch is dear
  std::size_t steps = 64;    // of a chain
  std::size_t operands = 0;  // of a region, in memory
  std::size_t numbers = 0;   // that a step has computed anew; 0: numbers are steps like others
};

struct Target {
  std::string_view name;       // "h200", "a100", "host"
  std::string_view executor;   // which executor plans for it: "cuda"; "cpu" also stands for ref
  int compute_capability = 0;  // 90 for 9.0; 0 on a host
  int multiprocessors = 0;     // SMs
  int max_threads_per_sm = 0;
  std::uint64_t shared_memory = 0;      // bytes a block may opt in to
  std::uint64_t registers = 0;          // 32-bit registers of an SM
  int cluster_blocks = 0;               // the largest portable cluster, 0 = none
  std::uint64_t library_workspace = 0;  // bytes kept in the arena for the matrix library
  // Bytes of a phase's smallest values and scratch that no other of the phase uses again. Where launches run side by
  // side, one waits for the other when the plan lays what they write over each other. 0: steps run one by one.
  std::uint64_t apart = 0;
  RegionCosts regions = {};
  ElementLimits elements = {};
};

GRAPHRUN_API std::span<const Target> targets();
GRAPHRUN_API const Target& find_target(std::string_view name);  // throws Error with the known names

// A machine of a plug-in: steps run there one by one. Once more is nothing; throws Error where the name is that of
// another executor's machine.
GRAPHRUN_API void add_target(std::string_view name, std::string_view executor);

}  // namespace graphrun
