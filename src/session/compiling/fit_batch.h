// fit_batch.h: what to tell a user whose plan does not fit: the largest values, and the largest batch that would fit.
// Contract: found by planning again with smaller batches; pure, needs no device. Leaves the model at another batch:
// for a session that is about to fail.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {

struct FittingBatch {
  std::int64_t batch = 0;         // 0: not even one sample at a time fits
  std::uint64_t arena_bytes = 0;  // of the plan with that batch, or with a batch of 1
};

// The largest batch below the model's own whose arena has at most `bytes`.
FittingBatch fit_batch(Model& model, std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options,
                       std::uint64_t bytes);

OutOfMemory explained(const OutOfMemory& error, const Program& program, Model& model,
                      std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options);

}  // namespace graphrun
