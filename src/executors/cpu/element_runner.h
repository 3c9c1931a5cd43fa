// element_runner.h: runs a region over elements (ElementChain of program.h): chain after chain, some thousand elements
// at a time, so that memory is passed over once and what stays in the chain lies in the nearest cache.
// Contract: a chain leaves the bits that its steps leave one by one; values in registers never reach the arena. Threads
// change no bits. run() allocates nothing, and reads operands where the steps have them then.
// Leaves to others: the loops (kernels/cpu/simd/isa.h), which steps are in a region (compiler/elements.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executors/cpu/bound_step.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun {

class ElementRunner {
 public:
  static std::string fault(const RegionSignature& region);  // why it cannot be run, or ""

  // Gives the steps of the region their operands in registers.
  ElementRunner(const Region& region, const Phase& phase, const Program& program, std::vector<BoundStep>& steps);

  void run(const std::vector<BoundStep>& steps_of_phase) const;

 private:
  static constexpr std::int64_t kElements = 1024;          // at a time
  static constexpr std::int64_t kFloats = 12 * kElements;  // of registers: more of them, and fewer elements are taken
  static constexpr std::uint32_t kMostSteps = 256;         // of a chain

  static constexpr int kArena = -1;  // a place
  struct Call {
    std::uint32_t step;
    int out = kArena, in[2] = {kArena, kArena};
  };
  struct Chain {
    std::vector<std::uint32_t> once;  // steps that give a number, and all steps of a chain of one element
    std::vector<Call> calls;
    std::int64_t block = 0;
  };

  void bind(const ElementChain& range, const Phase& phase, const Program& program, std::vector<BoundStep>& steps);
  static void run_elements(const Chain& chain, const std::vector<BoundStep>& steps, std::int64_t first,
                           std::int64_t last);

  std::vector<Chain> chains_;
  std::vector<std::unique_ptr<std::uint64_t>> numbers_;  // in registers
};

}  // namespace graphrun
