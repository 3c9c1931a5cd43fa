// planned.h: a model on its way to an executor: step graph and Program, and what a Runnable holds before the first
// step. Contract: plan_model() needs no device. Several executors may be given: then every step is one that all of them
// support, with the largest workspace that any of them asks for, so that all can run the same Program.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/region_layout.h"
#include "compiler/regions.h"
#include "graph/frontend/step_graph.h"
#include "graphrun/executor.h"
#include "graphrun/model.h"

namespace graphrun {

struct Planned {
  StepGraph step;
  Program program;
  Regions regions;  // the graph that was lowered, and why it has no other regions

  std::unordered_map<std::string, BufferId> by_name;  // the program's buffers

  // Passes keep the names of states, so names lead from the step graph to the Program.
  BufferId buffer(ir::NodeId node) const;
};

struct PlanOptions {
  std::string target;  // empty: the first executor's default
  bool passes = true;
  bool fuse = false;  // make regions; needs passes
  plan::TileChoice tiles = {};
};

// `custom`, or the executor of that name, told of the number of threads unless that is 0.
std::shared_ptr<Executor> choose_executor(std::string_view name, const std::shared_ptr<Executor>& custom, int threads);

Planned plan_model(const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                   const PlanOptions& options);

// Executor::load(). Throws Error where that gives none.
std::unique_ptr<Runnable> load_program(Executor& executor, const Program& program);

// Writes the data set and the parameters' initial values.
void write_start(const Model& model, const Planned& planned, Runnable& runnable);

}  // namespace graphrun
