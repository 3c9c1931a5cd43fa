// lives.h: what lies in the arena beside states, and from when to when: values, workspaces of steps, accumulators of
// regions. Contract: pure; times are those of storage.h. Executors are asked about each step once, by
// ask_workspaces(). Leaves to others: which values share bytes (storage.h), offsets (offsets.h), buffers (lower.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/layouts.h"
#include "compiler/offsets.h"

namespace graphrun::plan {

// By node: what a step gets beside its operands.
struct Workspaces {
  std::vector<bool> asked;            // it is a step that the executor takes
  std::vector<std::uint64_t> wanted;  // bytes
  std::vector<std::uint64_t> least;   // with as few the bits are the same (Support::spare_workspace_bytes)
};

// Throws Error (kind input, code "step.unsupported") that lists every step that `supports` declines.
Workspaces ask_workspaces(const ir::Graph& graph, const Layouts& layouts, const CompileOptions& options);

// A step by itself, as executors are asked about it and as it is in the Program.
NodeSignature step_signature(const ir::Graph& graph, ir::NodeId id, const CompileOptions& options);

// Whether the node is a step of a phase that is run by itself, not tile by tile.
bool is_plain_step(const ir::Graph& graph, const Layouts& layouts, ir::NodeId id);

// Of a region: for the partial results of all partitions, or scratch; and what it can do with (partial_results.h).
std::uint64_t accumulator_bytes(const Tiling& tiling);
std::uint64_t least_accumulator_bytes(const Tiling& tiling);

Interval life_of_accumulators(const ir::Region& region, const Tiling& tiling, std::uint64_t bytes,
                              const Storage& storage);
std::string accumulators_name(std::size_t region, const Tiling& tiling);  // of the buffer, and where a budget is told

// What steps and regions get beside their operands.
struct GivenBytes {
  std::vector<std::uint64_t> steps;    // by node
  std::vector<std::uint64_t> regions;  // those of the graph
};

struct Life {
  enum class Of : std::uint8_t { value, workspace, accumulators };
  Of of = Of::value;
  std::uint32_t id = 0;  // a node, a step's node, or a region
  Interval interval = {};
};

std::vector<Life> lives_of(const ir::Graph& graph, const Layouts& layouts, const GivenBytes& given);

// The smallest of each phase live as long as it lasts: `bytes` of them (Target::apart).
void keep_apart(std::vector<Life>& lives, const Storage& storage, std::uint64_t bytes);

// Of a node that has bytes of its own; those of states, together, with padding.
std::uint64_t bytes_of(const ir::Graph& graph, const DataLayout& data, ir::NodeId id);
std::uint64_t state_bytes(const ir::Graph& graph, const DataLayout& data);

}  // namespace graphrun::plan
