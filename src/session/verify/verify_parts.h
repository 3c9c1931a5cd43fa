// verify_parts.h: shared by the parts of verify(): executors, the plain Program, the report, and descriptions of
// differences. Contract: that of verify.h; a part stops at the first difference.
//   verify_steps  each step alone, from equal inputs: finds the incorrect step
//   verify_runs   Session-style runs: the fused Program, whole phases, many steps at once, and predictions
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "graphrun/verify.h"
#include "session/compiling/compiled_model.h"
#include "session/verify/compare.h"

namespace graphrun {

using Bytes = std::vector<std::byte>;

// Fill pattern that no step may leave in place: reads as NaN, as -1, and as an invalid boolean.
inline constexpr std::byte kPoison{0xff};

struct Verification {
  const Model& model;
  const VerifyOptions& options;
  std::vector<std::shared_ptr<Executor>> executors;  // candidate, reference
  CompiledModel compiled;                            // without regions, for both executors
  CompiledModel whole;                               // Program that a Session of the candidate runs
  VerifyReport report;

  const Program& program() const { return compiled.program; }
};

void verify_steps(Verification& verification);
void verify_runs(Verification& verification);
void verify_trajectory(Verification& verification);

// ---- shared helpers

Bytes read_bytes(Runnable& runnable, const Program& program, BufferId id);
// Reads into existing storage: clearing new memory takes longer than the copy.
void read_bytes(Runnable& runnable, const Program& program, BufferId id, Bytes& into);

// Data and constants: no step changes them.
inline bool is_fixed(BufferKind kind) {
  return kind == BufferKind::data || kind == BufferKind::constant;
}
inline bool changes(const Buffer& buffer) {
  return is_state(buffer.kind) && !is_fixed(buffer.kind);
}

// Clears the sign of every float.
void make_absolute(DType dtype, std::span<std::byte> bytes);

// Describes element i of `buffer` as a difference of the phase at counter value `at`, and of `step` if known.
Difference describe(const Verification& verification, Difference::Kind kind, const Phase& phase, std::uint64_t at,
                    const Buffer& buffer, const Sides& sides, std::size_t i, std::optional<std::uint32_t> step = {});
// Same, for the first element whose bytes differ.
Difference describe_change(const Verification& verification, Difference::Kind kind, const Phase& phase,
                           std::uint64_t at, const Buffer& buffer, const Bytes& got, const Bytes& expected,
                           std::optional<std::uint32_t> step = {});

// One run of a phase: training steps, evaluation batches, or a prediction.
struct PhaseRun {
  std::uint64_t at = 0;     // step counter of the first
  std::uint64_t count = 1;  // number of steps or batches; 1 for a prediction
  bool jumps = false;       // the counter must be set, because earlier steps are skipped
  std::int64_t rows = 0;    // rows of a prediction
};
// First `steps` steps, plus the last one if `always_last` or if its batch is partial. For predictions, a full batch and
// half a batch; empty if no split has the inputs.
std::vector<PhaseRun> phase_runs(const Verification& verification, std::size_t phase, std::uint64_t steps,
                                 bool always_last);
void set_counter(Runnable& runnable, const CompiledModel& compiled, std::size_t phase, std::uint64_t at);

// Inputs of a prediction of `count` rows and its row count, from the first split that has them (its rows repeat if
// there are too few). Empty if no split has them.
using InputBytes = std::vector<std::pair<BufferId, Bytes>>;
InputBytes prediction_inputs(const Verification& verification, const CompiledModel& compiled, std::size_t phase,
                             std::int64_t count);

}  // namespace graphrun
