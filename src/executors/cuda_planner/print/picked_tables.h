// picked_tables.h: tables of picked rows (kernels/cuda/tile/picks.h) in a kernel, one for each order of shuffling.
// Contract: a table holds the rows of the next steps, so the step number must count steps. Not here: code that reads
// rows (scalar_text.h: TextCall::picked), placement of the statements (step_kernel.cpp, block_values.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executors/cuda_planner/print/scalar_text.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Rows of a block: `chunk` of every `chunk` times `blocks`.
struct PickedShape {
  std::uint32_t threads = 0, blocks = 1;
  std::int64_t chunk = 0;
  std::int64_t max_rows = 2048;  // per block: a larger table does not fit
};

// Whether each step of the phase increments the state once and nothing else writes it, so the next value is one more.
bool counts_steps(const Program& program, const Phase& phase, BufferId number);

class PickedTables {
 public:
  PickedTables(const Program& program, const Phase& phase, PickedShape shape)
      : program_(program), phase_(phase), shape_(shape) {}

  // Name of the table with the rows of a minibatch step; "" if each row is computed by itself.
  std::string table_of(const TextCall& call, const Step& step);
  // Statements added since the last call. All threads run them before any of those rows is read.
  std::string statements();
  const std::string& members() const { return members_; }  // members of shared memory

 private:
  const Program& program_;
  const Phase& phase_;
  const PickedShape shape_;
  std::map<std::string, std::string> names_;
  std::string statements_, members_;
};

}  // namespace graphrun::cuda
