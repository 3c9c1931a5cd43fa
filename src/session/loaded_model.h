// loaded_model.h: a model with its plan, the program that an executor loaded, and the finished steps of each phase.
// Contract: that of session.h. The constructor plans, loads and writes the data; the rest allocates nothing.
// Not here: what steps are run for (trainer.h, evaluator.h, predictor.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graphrun/elements.h"
#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {

class LoadedModel {
 public:
  LoadedModel(Model model, const SessionOptions& options);

  const Program& program() const { return compiled.program; }
  BufferId buffer(ir::NodeId node) const { return compiled.buffer(node); }
  const std::vector<StepPhase>& phases() const { return compiled.step.phases; }
  std::optional<std::size_t> phase_index(std::string_view name) const;
  std::size_t training() const;          // phase index; throws Error if there is nothing to train
  std::uint64_t steps_of_epoch() const;  // same
  const Standardization* fitted_of(std::string_view input) const {  // null: not standardized
    const auto found = fitted_by_input_.find(input);
    return found == fitted_by_input_.end() ? nullptr : found->second;
  }

  // Runs n <= ring size steps of a phase; afterwards observe() sees their records.
  void run(std::size_t phase, std::uint64_t n);
  // Number of steps (up to `max_steps`) for one run(), so that the host polls about every 25 ms; estimated from earlier
  // runs. The number of run() calls does not affect results.
  std::uint64_t steps_per_poll(std::size_t phase, std::uint64_t max_steps) const;
  double fastest_step(std::size_t phase) const { return paces_[phase].fastest; }  // seconds; 0: not run yet

  // Calls see(step, value) for the records of the last n steps in a ring, oldest first.
  template <class See>
  void observe(std::size_t index, ir::NodeId ring_node, std::uint64_t n, See see) {
    const std::uint64_t ring = static_cast<std::uint64_t>(phases()[index].ring);
    const std::span<float> values(ring_values_.data(), ring);
    runnable->read(buffer(ring_node), std::as_writable_bytes(values));
    std::uint64_t at = (done[index] - n) % ring;
    for (std::uint64_t step = done[index] - n; step < done[index]; ++step, at = at + 1 == ring ? 0 : at + 1)
      see(step, unsigned_nan(values[at]));
  }
  double last_record(std::size_t phase);    // loss of its last step; NaN before the first
  bool losses_finite(std::uint64_t steps);  // checks the last training steps
  double read_scalar(ir::NodeId state) const;
  void set_done(std::size_t phase, std::uint64_t steps);       // finished steps, here and in the program
  void set_rows(std::string_view split, std::int64_t rows);    // Session::set_rows()
  std::optional<std::uint64_t> hash_parameters(double until);  // nothing if time is up
  bool parameters_finite();

  // Current or last training step, from 1. Safe from any thread or signal handler.
  std::uint64_t step() const;
  bool is_cancelled() const {
    return communicator != nullptr ? ranks_cancelled : cancelled.load(std::memory_order_relaxed);
  }
  bool is_training() const { return in_train.load(std::memory_order_relaxed); }
  void reject_in_train(std::string_view call) const;  // throws Error if called back from train()

  Model model;
  std::vector<ExecutorTiming> timings;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Communicator> communicator;  // null: no other ranks
  PlanOptions planned;
  SetupTimes times;
  CompiledModel compiled;
  std::unique_ptr<Runnable> runnable;
  std::vector<std::uint64_t> done;    // per phase: finished steps, as in its counter
  std::atomic<bool> in_train{false};  // train() is running, so cancel() applies to it
  std::atomic<bool> cancelled{false};
  bool ranks_cancelled = false;  // the same on all ranks

 private:
  std::unique_ptr<Runnable> load(PlanOptions options);

  struct Pace {
    std::uint64_t steps = 0;  // steps of the last run(); 0: not run yet
    double seconds = 0;       // duration of that run()
    double fastest = 0;       // seconds per step of the fastest run(); 0: not run yet
  };
  std::vector<Pace> paces_;  // one per phase
  std::vector<float> ring_values_;
  std::vector<std::byte> piece_;  // scratch for reading states piecewise
  std::map<std::string_view, const Standardization*> fitted_by_input_;
  // For step(): training steps before the current run(), and whether one is in progress.
  std::atomic<std::uint64_t> steps_before_{0};
  std::atomic<bool> stepping_{false};
};

}  // namespace graphrun
