// picked_tables.h: which tables of picked rows (kernels/cuda/tile/picks.h) a kernel has: one for each way to shuffle.
// Contract: a table knows the rows of the next steps, so the number of the step has to count steps. Leaves to others:
// texts that read rows (scalar_text.h: TextCall::picked), where the statements stand (step_kernel.cpp,
// block_values.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executors/cuda_planner/scalar_text.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Of a block with `chunk` rows of every `chunk` times `blocks`.
struct PickedShape {
  std::uint32_t threads = 0, blocks = 1;
  std::int64_t chunk = 0;
  std::int64_t most_rows = 2048;  // of a block: a larger table has no room
};

// A state that each step of the phase increments once, and nothing else writes: the next step's is one more.
bool counts_steps(const Program& program, const Phase& phase, BufferId number);

class PickedTables {
 public:
  PickedTables(const Program& program, const Phase& phase, PickedShape shape)
      : program_(program), phase_(phase), shape_(shape) {}

  // The name of the table that has the rows of a minibatch step; "": each is found by itself.
  std::string table_of(const TextCall& call, const Step& step);
  // Since the last call: what all threads do before the first of those rows is read.
  std::string statements();
  const std::string& members() const { return members_; }  // of shared memory

 private:
  const Program& program_;
  const Phase& phase_;
  const PickedShape shape_;
  std::map<std::string, std::string> names_;
  std::string statements_, members_;
};

}  // namespace graphrun::cuda
