#include "executors/cuda_planner/print/picked_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {

bool counts_steps(const Program& program, const Phase& phase, BufferId number) {
  const BufferId state = storage_root(program, number);
  std::int64_t increments = 0, writes = 0;
  for (const Step& step : phase.steps) {
    if (storage_root(program, step.output) != state) continue;
    ++writes;
    if (step.op == Op::increment && storage_root(program, step.inputs[0]) == state) ++increments;
  }
  return program.buffers[state].kind == BufferKind::counter && writes == 1 && increments == 1;
}

std::string PickedTables::table_of(const TextCall& call, const Step& step) {
  const auto& p = call.params->as<MinibatchParams>();
  const std::int64_t every = shape_.chunk * shape_.blocks,
                     rows = (phase_.capacity + every - 1) / std::max<std::int64_t>(every, 1) * shape_.chunk;
  if (!p.shuffle || rows > shape_.max_rows || p.total > std::numeric_limits<std::uint32_t>::max() ||
      !counts_steps(program_, phase_, step.inputs[1]))
    return {};
  const std::string batches = batches_text(call), &number = call.inputs[1].name;
  const auto [found, fresh] = names_.try_emplace(batches + number, fmt::format("picked{}", names_.size() + 1));
  if (fresh) {
    members_ += fmt::format("  PickedRows<{}, {}, {}, {}> {};\n", phase_.capacity, shape_.threads, shape_.blocks,
                            shape_.chunk, found->second);
    statements_ += fmt::format("    s.{}.look_ahead({}, {}, epoch, a.steps);\n", found->second, batches, number);
  }
  return "s." + found->second;
}

std::string PickedTables::statements() {
  return std::exchange(statements_, {});
}

}  // namespace graphrun::cuda
