#include "executors/cpu/zero_copy_batch.h"

#include <utility>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun {

namespace {

// Whether anything except steps on the buffer itself reads it: a view, a value in its storage, a tile.
bool is_shared(const Program& program, const Phase& phase, BufferId id) {
  for (BufferId other = 0; other < program.buffers.size(); ++other)
    if ((program.buffers[other].storage == id) != (other == id)) return true;
  for (const Region& region : phase.regions) {
    for (const Stage& stage : region.stages)
      for (const TileMove& load : stage.loads)
        if (load.arena == id) return true;
  }
  return program.buffers[id].kind != BufferKind::activation;
}

// Operands of `steps` that are this buffer; empty if a step does not read the address again in each run.
std::vector<const void**> readers_of(BufferId id, const Phase& phase, std::vector<BoundStep>& steps) {
  std::vector<const void**> readers;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<BufferId>& inputs = phase.steps[i].inputs;
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (inputs[j] != id) continue;
      BoundStep& step = steps[i];
      if (step.kernel == nullptr || step.elements > 0) return {};
      readers.push_back(&step.args.in[j]);
    }
  }
  return readers;
}

}  // namespace

void ZeroCopyBatch::Window::move(const void* to) {
  now = to;
  for (const void** reader : readers) *reader = to;
}

void ZeroCopyBatch::bind(const Program& program, const Phase& phase, std::vector<BoundStep>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = phase.steps[i];
    const auto* params = step.params.get_if<MinibatchParams>();
    if (step.op != Op::minibatch || params == nullptr || params->shuffle || steps[i].kernel == nullptr) continue;
    if (program.buffers[step.inputs[0]].layout != Layout::rows || is_shared(program, phase, step.output)) continue;
    std::vector<const void**> readers = readers_of(step.output, phase, steps);
    if (readers.empty()) continue;
    KernelArgs& args = steps[i].args;
    windows_.push_back({step.output, steps[i].kernel, args.out, args.out, std::move(readers)});
    args.workspace = &windows_.back();
    steps[i].kernel = select;
  }
}

void ZeroCopyBatch::select(const KernelArgs& args) {
  auto& window = *static_cast<Window*>(args.workspace);
  const auto& params = args.params.as<MinibatchParams>();
  const cpu::Batch batch = cpu::batch_of(params, *args.input<std::uint64_t>(1));
  if (batch.count < params.rows()) {
    window.copy(args);
    return window.move(window.own);
  }
  const std::size_t row = args.out_type.bytes() / static_cast<std::size_t>(params.rows());
  window.move(args.input<std::byte>(0) + static_cast<std::size_t>(batch.first) * row);
}

const std::byte* ZeroCopyBatch::at(BufferId id) const {
  for (const Window& window : windows_)
    if (window.buffer == id) return static_cast<const std::byte*>(window.now);
  return nullptr;
}

void ZeroCopyBatch::close(BufferId id) {
  for (Window& window : windows_)
    if (window.buffer == id) window.move(window.own);
}

}  // namespace graphrun
