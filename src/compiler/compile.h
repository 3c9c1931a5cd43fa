// compile.h: from a graph to a Program: the list of passes. Contract: needs no device; the same graph and options give
// the same Program. The batch is a symbol in the graph and gets its numbers here: another batch is another compilation
// of the same graph. A value is known by its id from the graph that was given to its buffer: names lead to buffers only
// where a user gave them (find()). Throws Error (kind input, code "step.unsupported") that lists every step that
// `supports` declines, with its reason. Leaves to others: what is compiled (frontend/step/step_graph.h), who runs it
// (executor.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/regions.h"
#include "compiler/rewrite.h"
#include "compiler/tile_choice.h"
#include "graph/ir/graph.h"
#include "graphrun/budget.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun {

struct CompileOptions {
  std::string name;
  std::vector<std::int64_t> capacities = {};  // of each phase: what the batch is; empty: the graph has no symbol
  std::string target;
  std::function<Support(const StepSignature&)> supports;
  std::function<bool(const StepSignature&)> takes_views = {};  // empty: what could be shown is computed
  PlanRegion plan_region = {};                                 // empty for graphs without regions
  bool fuse = false;                                           // make regions
  bool simplify = false;                                       // and remove what is dead
  plan::TileChoice tiles = {};
  Precision precision = Precision::fp32;  // of all products
  MathMode math = MathMode::fast;         // where the target is a device
  std::uint64_t max_memory = 0;           // bytes that the arena may take, if that can be (fit_memory.h); 0: any
};

struct Compiled {
  Program program;
  IdMap values;                     // from the given graph to the values that passes left of it
  std::vector<BufferId> buffer_of;  // by value; the state's for an assign
  Regions regions;                  // the graph that was lowered, what its ids were, why it has no other regions
  std::vector<std::vector<RegionChoice>> choices;  // of each region over rows, in the order of phases and steps
  std::unordered_map<std::string, BufferId> by_name;
  BudgetSummary budget;  // what was done for CompileOptions::max_memory

  // Of a node of the given graph that passes keep: a state, or one that is kept, polled or counts rows.
  BufferId buffer(ir::NodeId node) const;
  // Of a name that a user gave; kNoBuffer when there is none.
  BufferId find(std::string_view name) const;
};

Compiled compile(const ir::Graph& graph, const CompileOptions& options);

// How often compile() was called in this process: for tests.
std::uint64_t compilations();

}  // namespace graphrun
