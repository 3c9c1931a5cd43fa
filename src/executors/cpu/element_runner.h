// element_runner.h: runs a region over elements (ElementChain of program.h), one chain at a time, in blocks of some
// thousand elements: memory is read once, and intermediate values stay in the L1 cache.
// Contract: a chain is bitwise identical to its steps run one by one, with any number of threads; values in registers
// never reach the arena. run() allocates nothing and reads operands at their current addresses.
// Not here: the loops (kernels/cpu/simd/isa.h), choice of the steps of a region (compiler/elements.cpp).
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
  static std::string fault(const RegionSignature& region);  // reason why it cannot run, or ""

  // Sets the operands in registers of the region's steps.
  ElementRunner(const Region& region, const Phase& phase, const Program& program, std::vector<BoundStep>& steps);

  void run(const std::vector<BoundStep>& steps_of_phase) const;

 private:
  static constexpr std::int64_t kElements = 1024;                        // elements per block
  static constexpr std::size_t kBytes = 12 * kElements * sizeof(float);  // more registers mean smaller blocks
  static constexpr std::uint32_t kMaxSteps = 256;                        // steps of a chain

  static constexpr int kArena = -1;  // place of a value in the arena
  struct Call {
    std::uint32_t step;
    std::size_t size;  // bytes of an element
    int out = kArena, in[2] = {kArena, kArena};
  };
  struct Chain {
    std::vector<std::uint32_t> once;  // steps with a scalar result, and all steps of a chain of one element
    std::vector<Call> calls;
    std::size_t size = sizeof(float);  // the largest of its calls
    std::int64_t block = 0;
  };

  void bind(const ElementChain& range, const Phase& phase, const Program& program, std::vector<BoundStep>& steps);
  static void run_elements(const Chain& chain, const std::vector<BoundStep>& steps, std::int64_t first,
                           std::int64_t last);

  std::vector<Chain> chains_;
  std::vector<std::unique_ptr<std::uint64_t>> numbers_;  // scalars in registers
};

}  // namespace graphrun
