// sweeps.h: large elementwise steps without rows that follow each other (an optimizer's, over a large table) run
// together, some thousand elements at a time, so that memory is passed over once.
// Contract: a sweep leaves in every state, and in every value that a step outside of it reads, the bits that its steps
// leave one by one; a value that it alone reads never reaches the arena. Threads change no bits. run() allocates
// nothing.
// Leaves to others: the loops (kernels/cpu/simd/isa.h), small steps (bound_step.h), steps with rows (region_runner.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executors/cpu/bound_step.h"
#include "graphrun/program.h"
#include "kernels/cpu/cpu_kernels.h"

namespace graphrun {

class Sweep {
 public:
  // The longest one that begins with step `first` and ends before step `end`, if there is one of several steps.
  static std::optional<Sweep> find(const Program& program, const Phase& phase, const std::vector<BoundStep>& steps,
                                   std::uint32_t first, std::uint32_t end, Isa isa);

  std::uint32_t first() const { return first_; }
  std::uint32_t last() const { return last_; }
  void run(const std::vector<BoundStep>& steps_of_phase) const;

 private:
  friend class SweepFinder;
  static constexpr std::int64_t kElements = 2048;  // at a time: what stays inside lies in the first-level cache
  static constexpr int kMostInside = 6;            // values that are alive at once

  struct Operand {
    float* arena = nullptr;
    int inside = -1;          // the place of a value that is not in the arena
    std::int64_t column = 1;  // 0: one number for all elements
  };
  struct Call {
    cpu::UnaryFn unary = nullptr;
    cpu::BinaryFn<float> binary = nullptr;  // neither: a copy
    Operand out, x, y;
    float a = 0, b = 0;
  };

  void run_elements(std::int64_t first, std::int64_t last) const;

  std::uint32_t first_ = 0, last_ = 0;
  std::int64_t elements_ = 0;
  std::vector<std::uint32_t> numbers_;  // steps among them that compute one number, before all others
  std::vector<Call> calls_;
};

}  // namespace graphrun
