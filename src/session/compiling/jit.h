// jit.h: step kernels (fused training-step kernels), which a GPU executor compiles on load (SessionOptions::jit):
// requirements on the plan, and the fallback if they do not load.
// Contract: a step kernel is a region over rows of a Program for a GPU. load() reports kernels that cannot load by
// Error "cuda.kernels" only; the model is then recompiled, once. Not here: choice of regions (Executor::region_choices;
// compiled_model.cpp requests none with Jit::off).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "graphrun/error.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {

// For Jit::require. Throws Error with the planner's reason if no step of the first phase (training, if there is one) is
// in a region over rows.
void require_step_kernels(const Compiled& compiled, const Target& target, std::string_view executor);

// Recovers from `error` of load(): the model without regions over rows, with the reason in `fallbacks`. Returns nothing
// if that would not help, or with Jit::require.
std::optional<CompiledModel> without_step_kernels(const Error& error, const CompiledModel& compiled, const Model& model,
                                                  const std::shared_ptr<Executor>& executor,
                                                  const PlanOptions& options);

bool has_step_kernels(const Phase& phase);
// Whether loading compiles step kernels, which takes a while.
bool has_step_kernels(const Compiled& compiled);

// load_members() with fallback: if step kernels fail to load, recompiles without them and replaces `compiled`.
std::unique_ptr<Runnable> load_compiled(CompiledModel& compiled, const Model& model,
                                        const std::shared_ptr<Executor>& executor, const PlanOptions& options,
                                        const std::shared_ptr<Communicator>& communicator = nullptr);

}  // namespace graphrun
