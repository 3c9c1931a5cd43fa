// target.h: table of machine parameters for planning decisions; planning needs no device.
// Contract: grid, tile, partition and region choices are pure functions of (graph, target). Entries are only added,
// never removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

// Limits and costs of row regions (regions.md). Steps beyond the first three limits run alone, over all rows.
struct RegionCosts {
  std::uint64_t max_weights = 0;    // bytes of the matrix that rows are multiplied with
  std::uint64_t max_reduced = 0;    // bytes of one reduced value
  std::uint64_t max_row = 0;        // bytes of one sample's part of a value
  std::uint64_t tile_bytes = 0;     // desired scratch per tile: near the core, not all of it
  std::uint64_t lane_bytes = 0;     // bytes of lanes per partition, in addition to its tile
  std::int64_t partition_work = 0;  // minimum work per partition; a unit is 8 element additions
  std::int64_t max_partitions = 0;
  std::int64_t min_rows = 0;  // minimum for a partition, and for a tile that ends with reductions
};

// Grouping of steps over elements (src/compiler/elements.h). `least` 0: no grouping.
struct ElementLimits {
  std::int64_t least = 0;    // minimum elements of a chain: below, single steps are as fast
  std::size_t chains = 1;    // per region: many if a launch is expensive
  std::size_t steps = 64;    // per chain
  std::size_t operands = 0;  // per region, in memory
  std::size_t numbers = 0;   // recomputed per step; 0: numbers are steps like others
};

struct Target {
  std::string_view name;       // "h200", "a100", "host"
  std::string_view executor;   // executor that plans for it: "cuda"; "cpu" also means ref
  int compute_capability = 0;  // 90 for 9.0; 0 on a host
  int multiprocessors = 0;     // SMs
  int max_threads_per_sm = 0;
  std::uint64_t shared_memory = 0;      // bytes a block may opt in to
  std::uint64_t registers = 0;          // 32-bit registers of an SM
  int cluster_blocks = 0;               // largest portable cluster; 0: none
  std::uint64_t library_workspace = 0;  // bytes kept in the arena for the matrix library
  // Bytes of a phase's smallest values and scratch that no other of the phase uses again. Where launches run side by
  // side, one waits for the other when the plan lays what they write over each other. 0: steps run one by one.
  std::uint64_t apart = 0;
  RegionCosts regions = {};
  ElementLimits elements = {};
};

GRAPHRUN_API std::span<const Target> targets();
GRAPHRUN_API const Target& find_target(std::string_view name);  // throws Error with the known names

// Adds the machine of a plug-in, which runs steps one by one. Idempotent. Throws Error if another executor has taken
// the name.
GRAPHRUN_API void add_target(std::string_view name, std::string_view executor);

}  // namespace graphrun
