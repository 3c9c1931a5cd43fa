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

// A cost that grows with a count.
struct LinearCost {
  std::int64_t start = 0, each = 0;
  constexpr std::int64_t operator()(std::int64_t count) const { return start + each * count; }
};

// Cost factors of fused training-step kernels, by which executors/cuda_planner compares tilings. Clock cycles unless
// stated otherwise; integers, so that plans are the same everywhere. The defaults were measured on an H200
// (2026-11-23-whole-steps.md) and on no other GPU.
struct GpuCosts {
  // Cross-block reductions.
  std::int64_t no_exchange = 100;            // end of a step without sums over rows
  std::int64_t block_exchange = 375;         // sums of a single block
  LinearCost cluster_exchange = {1120, 15};  // one cluster; by blocks
  LinearCost grid_exchange = {2280, 45};     // clusters, which send messages and poll for them; by clusters
  // Thread and pair tiles.
  LinearCost lane_sum = {34, 77};      // tenths of a cycle per sum of a thread; by warps per scheduler
  std::int64_t row_instruction = 130;  // percent of a cycle, per row and warp of a scheduler
  std::int64_t row_load = 9;           // per element of a row that does not stay in registers: uncoalesced, through L1
  std::int64_t row_wait = 110;         // rows in a loop wait for their own results
  // Warp tiles.
  std::int64_t warp_issue = 180;    // percent of a cycle per instruction, if warps hide each other's waits
  std::int64_t warp_latency = 420;  // percent of a cycle per instruction of a warp that is alone
  std::int64_t warp_start = 840;    // wait for the first tile
  std::int64_t warp_sum = 3;        // per element of all sums
  std::int64_t warp_register = 11;  // per register of a lane that holds sums
  // Block tiles.
  std::int64_t l2_bytes = 25;        // bytes per cycle and multiprocessor, while all others read as well
  std::int64_t grid_barrier = 2500;  // between phases
  std::int64_t job_start = 2500, wide_job_start = 1500;  // each product; with more than 256 threads
  std::int64_t tensor_product = 62;                      // tenths of a cycle per 16x8x8 product of a scheduler
  std::int64_t turned_writes = 125;   // percent of a sum's time if its tile is turned: stores have a large stride
  std::int64_t row_item = 400;        // item of a block's rows
  std::int64_t number_sum = 600;      // start of a sum to a single number
  std::int64_t once_level = 4500;     // level of steps that run once: combining sums of blocks, grid barrier
  std::int64_t once_elements = 300;   // one element per thread of all blocks in such steps
  std::int64_t block_overhead = 120;  // percent of all phases
  // The same row steps as single kernels: by steps that are not elementwise; multiplications of all products per cycle.
  LinearCost single_kernels = {15'000, 4'500};
  std::int64_t single_products = 20'000;
  std::int64_t max_block_turns = 16;        // with more row tiles per block, single kernels read weights less often
  std::int64_t max_number_cycles = 30'000;  // limit on one block's sums to single numbers, while all others wait
  // Split tiles.
  LinearCost split_product = {24, 22};  // instructions of a warp for 8x8 terms; by 16 columns
  // Percent of a cycle per instruction; from 512 threads on.
  std::int64_t split_issue = 160, wide_split_issue = 130;
  LinearCost narrow_sum = {150, 180};   // a sum that blocks do not slice; by rounds of four terms per lane
  std::int64_t split_item = 450;        // item of a block's rows
  LinearCost split_element = {30, 16};  // element per thread of an item; by terms
  std::int64_t split_turn = 2200;       // messages within a cluster, and data requests
  LinearCost split_grid = {2300, 50};   // messages between clusters; by clusters
  std::int64_t split_message = 4;       // per message of a lane
  std::int64_t split_alone = 200;       // instead of both, with one cluster
  LinearCost split_end = {700, 50};     // steps that run once; by sums per thread
};

// Grouping of steps over elements (src/compiler/elements.cpp). `least` 0: no grouping.
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
  GpuCosts gpu = {};
};

GRAPHRUN_API std::span<const Target> targets();
GRAPHRUN_API const Target& find_target(std::string_view name);  // throws Error with the known names

// Adds the machine of a plug-in, which runs steps one by one. Idempotent. Throws Error if another executor has taken
// the name.
GRAPHRUN_API void add_target(std::string_view name, std::string_view executor);

}  // namespace graphrun
