// not_finite.h: finds the cause of a non-finite training step by re-running it op by op from the states before it.
// Contract: trace_not_finite() compiles the model without regions and loads it next to the running program, so it needs
// memory for a second plan. It follows a non-finite loss or parameter update back to the op with only finite operands;
// intentional infinities that reach neither are ignored. If the plan without regions stays finite, find_in_regions()
// finds the part of the fused step. Not here: times of checks (trainer.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "graphrun/error.h"
#include "session/loaded_model.h"
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

// Throws NotFinite for a non-finite loss at `step`, or for a parameter if `loss` is nothing. `good`: null if the step
// is not to be traced.
[[noreturn]] void reject_not_finite(LoadedModel& loaded, GoodStates* good, std::uint64_t step,
                                    std::optional<double> loss);

}  // namespace graphrun
