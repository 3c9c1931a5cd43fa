// not_finite.h: where a training step stopped being finite: the step run again, op by op, from the states before it.
// Contract: trace_not_finite() compiles the model without regions and loads it beside what runs, so it takes memory for
// a second plan while it looks. It follows the number that is not finite, of the loss or of a parameter's next value,
// back to the op whose operands all are finite; values that are infinite on purpose and reach neither are passed over.
// Where nothing of the kind happens without regions, find_in_regions() says which part of the fused step it is.
// Leaves to others: which step, and from which states (train.cpp).
#pragma once

#include <memory>
#include <optional>

#include "graphrun/error.h"
#include "session/compiling/compiled_model.h"
#include "session/state_copy.h"

namespace graphrun {

// `states` are those of `compiled` (trained_states) before the step. Nothing: every number of it was finite.
// message: "it began with ...", with the place of the formula where there is one.
std::optional<Diagnostic> trace_not_finite(const Model& model, const CompiledModel& compiled, const StateCopy& states,
                                           const std::shared_ptr<Executor>& executor, PlanOptions options);

// Runs the step of the loaded program part by part: "the region of 12 steps from 'h' to 'loss'". Changes its states.
std::optional<Diagnostic> find_in_regions(const CompiledModel& compiled, const StateCopy& states, Runnable& runnable);

}  // namespace graphrun
