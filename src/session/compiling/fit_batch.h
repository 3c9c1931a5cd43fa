// fit_batch.h: diagnostics for a plan that exceeds memory: the largest values, and the largest batch that fits.
// Contract: compiles the same step graph with smaller batches; pure, needs no device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {

struct FittingBatch {
  std::int64_t batch = 0;  // if none fits, the batch of the smallest plan
  std::uint64_t arena_bytes = 0;
  bool fits = false;
};

// Finds the largest batch below the model's own with an arena of at most `bytes`.
FittingBatch fit_batch(const StepGraph& step, const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                       const PlanOptions& options, std::uint64_t bytes);

// Error for a plan larger than `bytes`: memory needed, limit, largest values, largest batch that fits.
Error over_budget(std::uint64_t bytes, const CompiledModel& compiled, const Model& model,
                  std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

OutOfMemory explained(const OutOfMemory& error, const CompiledModel& compiled, const Model& model,
                      std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

}  // namespace graphrun
