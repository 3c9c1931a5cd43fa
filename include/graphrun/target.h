// target.h: the numbers of a machine that decisions may depend on, as a table: no device is needed to plan for one.
// Contract: grid, tile, partition and region choices are pure functions of (graph, target).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

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
  std::uint64_t tile_bytes = 0;         // of scratch that a tile of a region may take: near the core, not all of it
};

GRAPHRUN_API std::span<const Target> targets();
GRAPHRUN_API const Target& find_target(std::string_view name);  // throws Error with the known names

}  // namespace graphrun
