// lives.h: live ranges of everything in the arena except states: values, workspaces of steps, accumulators of regions.
// Contract: pure; times are those of storage.h. Executors are asked about each step once, by ask_workspaces(). Not
// here: sharing of bytes between values (storage.h), offsets (offsets.h), buffers (lower.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/layouts.h"
#include "compiler/offsets.h"

namespace graphrun::plan {

// Workspace of each step, indexed by node.
struct Workspaces {
  std::vector<bool> asked;            // whether the node is a step that the executor supports
  std::vector<std::uint64_t> wanted;  // bytes
  std::vector<std::uint64_t> least;   // minimum for identical results (Support::spare_workspace_bytes)
};

// Throws Error (kind input, code "step.unsupported") that lists every step that `supports` rejects.
Workspaces ask_workspaces(const ir::Graph& graph, const Layouts& layouts, const CompileOptions& options);

// A single step, as executors are asked about it and as the Program stores it.
OwnedSignature step_signature(const ir::Graph& graph, ir::NodeId id, const CompileOptions& options);

// Returns whether the node is a step of a phase and does not run tile by tile.
bool is_plain_step(const ir::Graph& graph, const Layouts& layouts, ir::NodeId id);

// Bytes of a region's partial results for all partitions, or of its scratch; and the minimum (partial_results.h).
std::uint64_t accumulator_bytes(const Tiling& tiling);
std::uint64_t min_accumulator_bytes(const Tiling& tiling);

Interval life_of_accumulators(const ir::Region& region, const Tiling& tiling, std::uint64_t bytes,
                              const Storage& storage);
std::string accumulators_name(std::size_t region, const Tiling& tiling);  // buffer's name, also in BudgetSummary

// Bytes that steps and regions get in addition to their operands.
struct GivenBytes {
  std::vector<std::uint64_t> steps;    // per node
  std::vector<std::uint64_t> regions;  // per region of the graph
};

struct Life {
  enum class Of : std::uint8_t { value, workspace, accumulators };
  Of of = Of::value;
  std::uint32_t id = 0;  // node, node of the step, or region
  Interval interval = {};
};

std::vector<Life> lives_of(const ir::Graph& graph, const Layouts& layouts, const GivenBytes& given);

// Extends the live ranges of each phase's smallest items to the whole phase, up to `bytes` in sum (Target::apart).
void keep_apart(std::vector<Life>& lives, const Storage& storage, std::uint64_t bytes);

// Bytes of a node with its own storage; bytes of all states together, with padding.
std::uint64_t bytes_of(const ir::Graph& graph, const DataLayout& data, ir::NodeId id);
std::uint64_t state_bytes(const ir::Graph& graph, const DataLayout& data);

}  // namespace graphrun::plan
