// not_finite.h: finds the cause of a non-finite training step by re-running it op by op from the states before it.
// Contract: trace_not_finite() compiles the model without regions and loads it next to the running program, so it needs
// memory for a second plan. It follows a non-finite loss or parameter update back to the op with only finite operands;
// intentional infinities that reach neither are ignored. If the plan without regions stays finite, find_in_regions()
// finds the part of the fused step. Not here: choice of step and states (trainer.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graphrun/error.h"
#include "session/compiling/compiled_model.h"
#include "session/state_copy.h"

namespace graphrun {

// `states`: those of `compiled` (trained_states) before the step. Returns nothing if all its numbers were finite. The
// message is "it began with ...", with the position of the formula if there is one.
std::optional<Diagnostic> trace_not_finite(const Model& model, const CompiledModel& compiled, const StateCopy& states,
                                           const std::shared_ptr<Executor>& executor, PlanOptions options);

// "lower the learning rate, ..." for a loss that is too large, with settings of the model's optimizer.
std::string hint_for_large(const Model& model);

// Runs the loaded program's step in parts: "the region of 12 steps from 'h' to 'loss'". Changes its states.
std::optional<Diagnostic> find_in_regions(const CompiledModel& compiled, const StateCopy& states, Runnable& runnable);

}  // namespace graphrun
