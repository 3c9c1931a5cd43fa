// compiled_model.h: a model on its way to an executor: step graph and Program, and what a Runnable holds before the
// first step. Contract: compile_model() needs no device; compile_step() gives the same step graph another batch.
// Several executors may be given: then every step is one that all of them support, with the largest workspace that any
// of them asks for, so that all can run the same Program.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "graph/frontend/step/step_graph.h"
#include "graphrun/executor.h"
#include "graphrun/model.h"
#include "graphrun/session.h"

namespace graphrun {

struct CompiledModel : Compiled {
  StepGraph step;                      // what was compiled: its ids lead to buffers
  std::vector<std::string> fallbacks;  // FusionSummary's
};

struct PlanOptions {
  std::string target;  // empty: the first executor's default
  bool passes = true;
  bool fuse = false;  // make regions; needs passes
  plan::TileChoice tiles = {};
  Jit jit = Jit::prefer;
  std::string tiling = {};             // SessionOptions'
  std::vector<std::string> keep = {};  // values that stay to the end of a training step: SessionOptions::watch
  std::uint64_t max_memory = 0;        // of the arena, if it can be (compiler/fit_memory.h); 0: any
  bool views = true;                   // false: what shows another value is a step, whoever could read it there
};
PlanOptions plan_options(const SessionOptions& options);
PlanOptions plain_steps(const SessionOptions& options);  // without regions: every value is in the arena

// `custom`, or the executor of that name, told of the number of threads unless that is 0.
std::shared_ptr<Executor> choose_executor(std::string_view name, const std::shared_ptr<Executor>& custom, int threads);

// The model's step graph with any batch. Throws Error where a metric would depend on it.
CompiledModel compile_step(StepGraph built, std::int64_t batch, const Model& model,
                           std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

// With the model's own, or the largest that fits (TrainSpec::largest_batch). Throws Error (kind check, code
// "memory.budget") where the plan is larger than TrainSpec::max_memory.
CompiledModel compile_model(const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                            const PlanOptions& options);

// Its regions, for people.
FusionSummary fusion_of(const CompiledModel& compiled);

// Executor::load(). Throws Error where that gives none.
std::unique_ptr<Runnable> load_program(Executor& executor, const Program& program);

// Writes the data set and the parameters' initial values to each of them.
void write_start(const Model& model, const CompiledModel& compiled, std::initializer_list<Runnable*> runnables);

}  // namespace graphrun
