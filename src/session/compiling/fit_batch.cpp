#include "session/compiling/fit_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace graphrun {
namespace {

constexpr std::size_t kNamed = 5;

// Formats "h1 f32(60000, 784) of 188,160,000 bytes, ...".
std::string largest_values(const Program& program) {
  std::vector<const Buffer*> owners;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].storage == id) owners.push_back(&program.buffers[id]);
  }
  std::stable_sort(owners.begin(), owners.end(), [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  owners.resize(std::min(owners.size(), kNamed));
  std::vector<std::string> texts;
  for (const Buffer* buffer : owners) {
    texts.push_back(fmt::format("{} {} ({} bytes)", buffer->name, stored_type(*buffer), buffer->bytes));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

FittingBatch fit_batch(const StepGraph& step, const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                       const PlanOptions& options, std::uint64_t bytes) {
  const auto tried = [&](std::int64_t batch) -> FittingBatch {
    const std::uint64_t needed = compile_step(step, batch, model, executors, options).program.arena_bytes;
    return {batch, needed, needed <= bytes};
  };
  std::int64_t least = 1;
  for (const StepPhase& phase : step.phases) {
    if (!phase.needs_one_batch.empty()) least = std::max(least, phase.batches.total);
  }
  // Rows of a batch take memory, but so do the losses of many small batches: the smallest plan is in between, and the
  // largest batch that fits is above it. Bisects downward until a batch fits or the plan grows again.
  std::int64_t above = std::max(least, model.graph.batch());
  FittingBatch best = tried(std::max(least, above / 2));
  std::int64_t below = best.batch;
  while (!best.fits && below > least) {
    below = std::max(least, below / 2);
    const FittingBatch next = tried(below);
    if (next.arena_bytes > best.arena_bytes) break;
    above = best.batch;
    best = next;
  }
  // The smallest plan may be between two tested batches.
  while (!best.fits && above - below > 2) {
    const std::int64_t third = (above - below) / 3;
    const FittingBatch left = tried(below + third), right = tried(above - third);
    (left.arena_bytes < right.arena_bytes ? above : below) =
        left.arena_bytes < right.arena_bytes ? right.batch : left.batch;
    const FittingBatch& smaller = left.arena_bytes < right.arena_bytes ? left : right;
    if (smaller.arena_bytes < best.arena_bytes) best = smaller;
  }
  for (std::int64_t too_large = above; best.fits && too_large - best.batch > 1;) {
    const FittingBatch middle = tried(best.batch + (too_large - best.batch) / 2);
    if (middle.fits)
      best = middle;
    else
      too_large = middle.batch;
  }
  return best;
}

namespace {

std::string batch_hint(std::uint64_t bytes, const CompiledModel& compiled, const Model& model,
                       std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options) {
  const FittingBatch fitting = fit_batch(compiled.step, model, executors, options, bytes);
  if (fitting.fits) return fmt::format("--batch={} fits, its plan needs {} bytes", fitting.batch, fitting.arena_bytes);
  return fmt::format("no batch fits: with a batch of {} the plan still needs {} bytes", fitting.batch,
                     fitting.arena_bytes);
}

}  // namespace

Error over_budget(std::uint64_t bytes, const CompiledModel& compiled, const Model& model,
                  std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options) {
  const BudgetSummary& budget = compiled.budget;
  std::string told = fmt::format("the plan needs {} bytes, {} {}", budget.bytes_before,
                                 model.train.max_memory > 0 ? "max_memory allows" : "the host has", bytes);
  if (budget.is_changed())
    told += fmt::format("; {} with {} values computed again and as little workspace as steps can do with",
                        compiled.program.arena_bytes, budget.recomputed.size());
  return Error(ErrorKind::check, "memory.budget",
               fmt::format("{}; the largest values: {}", told, largest_values(compiled.program)),
               batch_hint(bytes, compiled, model, executors, options));
}

OutOfMemory explained(const OutOfMemory& error, const CompiledModel& compiled, const Model& model,
                      std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options) {
  const std::string hint = batch_hint(error.usable(), compiled, model, executors, options);
  const Diagnostic& told = error.diagnostics().front();
  return {told.code, fmt::format("{}; the largest values: {}", told.message, largest_values(compiled.program)),
          error.needed(), error.usable(), hint};
}

}  // namespace graphrun
