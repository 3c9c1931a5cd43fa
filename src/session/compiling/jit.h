// jit.h: whether whole steps run as kernels that a GPU's executor compiles when it loads (SessionOptions::jit): what a
// plan must have of them, and what is done where they do not load.
// Contract: such a kernel is a region over rows of a Program for a GPU. load() says that it cannot load them by Error
// "cuda.kernels", and by no other; then the model is compiled a second time, not a third.
// Leaves to others: which steps are a region (Executor::plan_region; compiled_model.cpp does not ask where Jit::off).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "graphrun/error.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {

// Of Jit::require. Throws Error where no step of the first phase, which is training if there is one, is in a region
// over rows, with the planner's reason.
void require_step_kernels(const Compiled& compiled, const Target& target, std::string_view executor);

// After load() of `compiled` ended in `error`: the model without regions over rows, its `fallbacks` saying why. Nothing
// where that would not help or is not wanted: Jit::require.
std::optional<CompiledModel> without_step_kernels(const Error& error, const CompiledModel& compiled, const Model& model,
                                                  const std::shared_ptr<Executor>& executor,
                                                  const PlanOptions& options);

bool has_step_kernels(const Phase& phase);
// Whether loading it compiles such kernels, which takes a while.
bool has_step_kernels(const Compiled& compiled);

// load_program(), and where it fails that way, of the model without them, which `compiled` then is.
std::unique_ptr<Runnable> load_compiled(CompiledModel& compiled, const Model& model,
                                        const std::shared_ptr<Executor>& executor, const PlanOptions& options);

}  // namespace graphrun
