// arena.h: layouts of a graph that is to be lowered; contents of the arena except states (values, workspaces of steps,
// accumulators of regions), their live ranges and their offsets. Contract: pure; times are those of storage.h.
// Executors are asked about each step once, by plan_arena(). Not here: sharing of bytes between values (storage.h),
// buffers (lower.h), plans within a budget (budget/fit_memory.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/data_layout.h"
#include "compiler/graph_analysis.h"
#include "compiler/region_layout.h"
#include "compiler/rewrite.h"
#include "compiler/storage.h"
#include "compiler/views.h"
#include "graph/ir/graph.h"
#include "graphrun/budget.h"
#include "packing/pack.h"

namespace graphrun::plan {

// Facts about a graph that is to be lowered, found once: which nodes share bytes, and how tiles are laid out.
struct Layouts {
  GraphAnalysis analysis;
  Views views;
  Storage storage;
  DataLayout data;
  std::vector<RegionLayout> regions;  // per region of the graph
  std::vector<bool> in_tile_only;     // per node: no bytes in the arena
  std::vector<std::string> in_f32;    // Compiled::in_f32
};

// A region that has a plan keeps it, so a graph with reordered or repeated steps runs its regions unchanged. `lend`:
// states lend their bytes (storage.h).
Layouts lay_out(const ir::Graph& graph, const CompileOptions& options, bool lend = false);

// A single step, as executors are asked about it and as the Program stores it.
StepSignature step_signature(const ir::Graph& graph, ir::NodeId id, const CompileOptions& options);

// Returns whether the node is a step of a phase and does not run tile by tile.
bool is_plain_step(const ir::Graph& graph, const Layouts& layouts, ir::NodeId id);

// Bytes of a region's partial results for all partitions, or of its scratch.
std::uint64_t accumulator_bytes(const Tiling& tiling);
Interval accumulator_interval(const ir::Region& region, const Tiling& tiling, std::uint64_t bytes,
                              const Storage& storage);
std::string accumulators_name(std::size_t region, const Tiling& tiling);  // buffer's name, also in BudgetSummary

// Bytes that steps and regions get in addition to their operands.
struct GivenBytes {
  std::vector<std::uint64_t> steps;    // per node
  std::vector<std::uint64_t> regions;  // per region of the graph
};

struct LiveRange {
  enum class Kind : std::uint8_t { value, workspace, accumulators };
  Kind kind = Kind::value;
  std::uint32_t id = 0;  // node, node of the step, or region
  Interval interval = {};
};

std::vector<LiveRange> find_live_ranges(const ir::Graph& graph, const Layouts& layouts, const GivenBytes& given);

struct Arena {
  GivenBytes given;
  std::vector<LiveRange> ranges;
  Packing packing;  // offsets of the live ranges, above the states
};

// The live ranges of each phase's smallest items, up to `apart` bytes in sum, extend to the whole phase
// (Target::apart).
Arena pack_arena(const ir::Graph& graph, const Layouts& layouts, GivenBytes given, std::uint64_t apart);

// Bytes of a node with its own storage.
std::uint64_t bytes_of(const ir::Graph& graph, const DataLayout& data, ir::NodeId id);

struct Plan {
  ir::Graph graph;
  IdMap ids;  // from the given graph
  Layouts layouts;
  std::vector<std::optional<Support>> supports;  // per node of the given graph: of a plain step
  std::uint64_t state_bytes = 0;                 // with padding
  std::uint64_t apart = 0;                       // Target::apart
  Arena arena;
  BudgetSummary budget;
};

// Steps and regions get all the bytes that they want. Throws Error (kind input, code "step.unsupported") that lists
// every step that `supports` rejects.
Plan plan_arena(ir::Graph graph, const CompileOptions& options);

}  // namespace graphrun::plan
