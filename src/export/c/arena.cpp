#include "export/c/arena.h"

#include <algorithm>

#include "graphrun/packing.h"

namespace graphrun::c99 {

bool is_in_place(const Deployment& deployment, const DeployedValue& input) {
  if (input.units) return false;
  const std::vector<Step>& steps = deployment.phase().steps;
  return std::none_of(steps.begin(), steps.end(),
                      [&](const Step& step) { return storage_root(deployment.program, step.output) == input.buffer; });
}

Arena plan_arena(const Deployment& deployment) {
  const Program& program = deployment.program;
  const std::vector<Step>& steps = deployment.phase().steps;
  std::map<BufferId, BlockLife> blocks;
  const auto use = [&](BufferId id, std::int64_t at) {
    const BufferId root = storage_root(program, id);
    if (deployment.value_of(root) != nullptr || root == deployment.row_count) return;
    for (const DeployedValue& input : deployment.inputs)
      if (input.buffer == root && is_in_place(deployment, input)) return;
    const Buffer& buffer = program.buffers[id];
    BlockLife& life = blocks.try_emplace(root, BlockLife{at, at + 1, 0, 4}).first->second;
    life.upper = std::max(life.upper, at + 1);
    const std::uint64_t end = buffer.offset - program.buffers[root].offset + buffer.type.bytes();
    life.size = std::max({life.size, end, std::uint64_t{program.buffers[root].type.bytes()}});
    if (size_of(buffer.type.dtype) == 8) life.alignment = 8;
  };
  for (const DeployedValue& input : deployment.inputs) use(input.buffer, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) + 1;
    for (const BufferId id : steps[i].inputs) use(id, at);
    use(steps[i].output, at);
  }
  for (const DeployedValue& output : deployment.outputs)
    use(output.buffer, static_cast<std::int64_t>(steps.size()) + 1);

  std::vector<BlockLife> lives;
  for (const auto& [root, life] : blocks) lives.push_back(life);
  const BlockPacking packing = pack_blocks(lives);
  Arena arena;
  arena.bytes = packing.height;
  std::size_t i = 0;
  for (const auto& [root, life] : blocks) {
    arena.offsets[root] = packing.offsets[i++];
    arena.alignment = std::max(arena.alignment, life.alignment);
  }
  return arena;
}

}  // namespace graphrun::c99
