// fit_batch.h: what to tell a user whose plan does not fit: the largest values, and the largest batch that would fit.
// Contract: found by compiling the same step graph with smaller batches; pure, needs no device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {

struct FittingBatch {
  std::int64_t batch = 0;  // where none fits, the one of the smallest plan
  std::uint64_t arena_bytes = 0;
  bool fits = false;
};

// The largest batch below the model's own whose arena has at most `bytes`.
FittingBatch fit_batch(const StepGraph& step, const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                       const PlanOptions& options, std::uint64_t bytes);

// What a plan of more than `bytes` is refused with: need, limit, the largest values, the largest batch that fits.
Error over_budget(std::uint64_t bytes, const CompiledModel& compiled, const Model& model,
                  std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

OutOfMemory explained(const OutOfMemory& error, const CompiledModel& compiled, const Model& model,
                      std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

}  // namespace graphrun
