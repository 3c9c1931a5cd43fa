// compiled_model.h: a model compiled for an executor: step graph, Program, and the initial contents of a Runnable.
// Contract: compile_model() needs no device; compile_step() compiles the same step graph for another batch. With
// several executors, all of them support every step, and its workspace is the largest that any requires, so that all
// can run the same Program.
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
  StepGraph step;                      // compiled graph; its ids map to buffers
  std::vector<std::string> fallbacks;  // as in FusionSummary

  // A float state of one element. Does not allocate.
  void write_number(Runnable& runnable, ir::NodeId state, double number) const;
  double read_number(Runnable& runnable, ir::NodeId state) const;
};

struct PlanOptions {
  std::string target;  // empty: the first executor's default
  bool passes = true;
  bool fuse = false;  // fuse steps to regions; needs passes
  Jit jit = Jit::prefer;
  std::string tiling = {};             // as in SessionOptions
  std::vector<std::string> keep = {};  // values kept to the end of a training step: SessionOptions::watch
  std::uint64_t max_memory = 0;        // arena limit, if achievable (compiler/budget/fit_memory.h); 0: no limit
  bool views = true;                   // false: a view is always a step, even if its readers could read the source
  // The executor may be that of several sessions: those with equal steps, such as the runs of a sweep with several
  // seeds, share one compilation.
  bool shared = false;

  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};
PlanOptions plan_options(const SessionOptions& options);
PlanOptions plain_steps(const SessionOptions& options);  // no regions: every value is in the arena

// Returns `custom`, or the named executor, with the number of threads set unless it is 0.
std::shared_ptr<Executor> choose_executor(std::string_view name, const std::shared_ptr<Executor>& custom, int threads);

// Compiles the model's step graph for any batch. Throws Error if a metric depends on the batch.
CompiledModel compile_step(StepGraph built, std::int64_t batch, const Model& model,
                           std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

// Same, for the model's own batch or the largest that fits (TrainSpec::largest_batch). Throws Error (kind check, code
// "memory.budget") if the plan is larger than TrainSpec::max_memory.
CompiledModel compile_model(const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                            const PlanOptions& options);

// Summary of the regions, for display.
FusionSummary fusion_of(const CompiledModel& compiled);

// Calls Executor::load(). Throws Error if it returns null. With shards (members.h), the Runnable has the first one.
std::unique_ptr<Runnable> load_program(Executor& executor, const Program& program);

// Writes the data set and the initial parameter values to each runnable.
void write_start(const Model& model, const CompiledModel& compiled, std::initializer_list<Runnable*> runnables);

}  // namespace graphrun
