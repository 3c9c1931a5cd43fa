// compile.h: compiles a graph to a Program by a list of passes. Contract: needs no device; the same graph and options
// give the same Program. The batch is symbolic in the graph and gets its size here, so each batch size is a separate
// compilation of the same graph. A value's id in the given graph leads to its buffer; names lead to buffers only if a
// user gave them (find()). Throws Error (kind input, code "step.unsupported") that lists every step that `supports`
// rejects, with the reason. Not here: building the graph (frontend/step/step_graph.h), running the Program
// (executor.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/data_layout.h"
#include "compiler/regions.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"
#include "graphrun/budget.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun {

struct CompileOptions {
  std::string name;
  std::vector<std::int64_t> capacities = {};  // batch size of each phase; empty if the graph has no batch symbol
  std::int64_t shards = 1;                    // per batch of the phase `train`
  std::string target;
  std::function<Support(const StepSignature&)> supports;
  std::function<bool(const StepSignature&)> takes_views = {};  // empty: slices, transposes and broadcasts are computed
  PlanRegion plan_region = {};                                 // may be empty for graphs without regions
  bool fuse = false;                                           // form regions
  bool simplify = false;                                       // also remove dead nodes
  plan::TileChoice tiles = {};
  Precision precision = Precision::fp32;  // in all matrix products
  MathMode math = MathMode::fast;         // used only if the target is a GPU
  // Divisors (decoded() of params.h) of data sets that may be stored in codes, by name.
  std::map<std::string, double, std::less<>> codes = {};
  std::uint64_t max_memory = 0;  // limit on arena bytes, if it can be met (budget/fit_memory.h); 0: no limit
};

struct Compiled {
  Program program;
  IdMap values;                     // from the given graph to the graph before regions are formed
  std::vector<BufferId> buffer_of;  // per node of that graph; an assign has its state's buffer
  Regions regions;                  // lowered graph, ids from the graph before regions, reasons against other regions
  std::vector<std::vector<RegionChoice>> choices;  // per row region, in the order of phases and steps
  std::unordered_map<std::string, BufferId> by_name;
  std::vector<std::string> in_f32;  // data sets of CompileOptions::codes that are not stored in codes, with the reason
  BudgetSummary budget;             // changes made to meet CompileOptions::max_memory

  // Buffer of a node of the given graph that passes keep: a state, a row count, or one that is kept or polled.
  BufferId buffer(ir::NodeId node) const;
  // Returns the buffer with a name that a user gave, or kNoBuffer.
  BufferId find(std::string_view name) const;
};

std::string stored_in_f32(std::string_view data, std::string_view reason);  // a text of Compiled::in_f32

Compiled compile(const ir::Graph& graph, const CompileOptions& options);

// Number of compile() calls in this process, for tests.
std::uint64_t compilations();

}  // namespace graphrun
