#include "executors/cuda/fusing.h"

#include <map>
#include <utility>

#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

// Buffers at one place of one storage are one pointer of the kernel.
class Operands {
 public:
  Operands(const Program& program, std::vector<BufferId>& list) : program_(program), list_(list) {}

  FusedOperand operator()(BufferId id) {
    const Buffer& buffer = program_.buffers[id];
    const BufferId root = storage_root(program_, id);
    const auto [entry, fresh] = numbers_.try_emplace(std::pair{root, buffer.offset}, static_cast<int>(list_.size()));
    if (fresh) list_.push_back(id);
    FusedOperand operand;
    operand.type = buffer.type;
    operand.pointer = entry->second;
    operand.aligned = buffer.offset % 16 == 0;
    return operand;
  }

 private:
  const Program& program_;
  std::vector<BufferId>& list_;
  std::map<std::pair<BufferId, std::uint64_t>, int> numbers_;  // of a storage and an offset
};

}  // namespace

FusedLaunch fuse_launch(const Program& program, const Phase& phase, const Launch& launch, std::string_view name,
                        const Machine& machine) {
  FusedLaunch fused;
  Operands operand(program, fused.operands);
  std::vector<FusedChain> chains;
  for (const Segment& segment : launch.segments) {
    FusedChain chain;
    for (const Member& member : segment.members) {
      const Step& step = phase.steps[member.step];
      FusedStep part;
      part.op = step.op;
      part.scalar = member.scalar;
      part.params = step.params;
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        FusedOperand in;
        in.type = program.buffers[step.inputs[i]].type;
        in.value = member.from[i];
        const bool only_written = i == 0 && (step.op == Op::assign || step.op == Op::record);
        part.in.push_back(in.value >= 0 || only_written ? in : operand(step.inputs[i]));
      }
      part.out.type = program.buffers[step.output].type;
      if (member.stored) part.out = operand(step.output);
      if (step.row_count != kNoBuffer && part.out.type.rows > 0) part.row_count = operand(step.row_count).pointer;
      if (!member.scalar) {
        chain.elements = step.op == Op::record ? 1 : static_cast<std::uint64_t>(part.out.type.shape.elements());
      }
      chain.steps.push_back(std::move(part));
    }
    chains.push_back(std::move(chain));
  }
  fused.kernel = fuse(name, chains, fused.operands.size(), machine);
  return fused;
}

}  // namespace graphrun::cuda
