// verify_parts.h: what the parts of verify() share: the two executors, the plain Program, the report, and how a
// difference is told. Contract: verify.h's; a part stops at the first difference it finds.
//   verify_steps  every step alone, from equal inputs: which step is wrong
//   verify_runs   what a Session runs: the fused Program, whole phases, many steps at once, and predictions
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/verify.h"
#include "session/compiling/compiled_model.h"
#include "session/verify/compare.h"

namespace graphrun {

using Bytes = std::vector<std::byte>;

// What no step may leave behind by doing nothing: reads as NaN, as -1, and as neither true nor false.
inline constexpr std::byte kPoison{0xff};

struct Verification {
  const Model& model;
  const VerifyOptions& options;
  std::vector<std::shared_ptr<Executor>> executors;  // candidate, reference
  CompiledModel compiled;                            // without regions, for both
  CompiledModel whole;                               // what a Session of the candidate runs
  VerifyReport report;

  const Program& program() const { return compiled.program; }
};

void verify_steps(Verification& verification);
void verify_runs(Verification& verification);
void verify_trajectory(Verification& verification);

// ---- shared by them

Bytes read_bytes(Runnable& runnable, const Program& program, BufferId id);
// Into bytes that are there already: clearing new memory takes longer than the copy.
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

// Element i of `buffer` as a difference of the phase at a value of its counter; of that step, where it is known.
Difference describe(const Verification& verification, Difference::Kind kind, const Phase& phase, std::uint64_t at,
                    const Buffer& buffer, const Sides& sides, std::size_t i, std::optional<std::uint32_t> step = {});
// The same of the first element whose bytes are not equal.
Difference describe_change(const Verification& verification, Difference::Kind kind, const Phase& phase,
                           std::uint64_t at, const Buffer& buffer, const Bytes& got, const Bytes& expected,
                           std::optional<std::uint32_t> step = {});

// What is run of a phase: training steps or batches of an evaluation, or a prediction.
struct PhaseRun {
  std::uint64_t at = 0;     // the step counter, of the first
  std::uint64_t count = 1;  // how many steps or batches; one prediction
  bool jumps = false;       // the counter has to be set, for steps before this one are left out
  std::int64_t rows = 0;    // of a prediction
};
// So many first steps and, where they do not reach it, the last: always, or when its batch is not full. Of predictions
// a full batch and half of one; none where no split has the inputs.
std::vector<PhaseRun> phase_runs(const Verification& verification, std::size_t phase, std::uint64_t steps,
                                 bool always_last);
void set_counter(Runnable& runnable, const CompiledModel& compiled, std::size_t phase, std::uint64_t at);

// The inputs of a prediction of `count` rows, for the phase's input buffers and its row count, from the first split
// that has them (its rows over and over where it has too few). Empty where no split has them.
using InputBytes = std::vector<std::pair<BufferId, Bytes>>;
InputBytes prediction_inputs(const Verification& verification, const CompiledModel& compiled, std::size_t phase,
                             std::int64_t count);

}  // namespace graphrun
