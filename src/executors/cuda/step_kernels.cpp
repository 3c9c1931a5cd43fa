#include "executors/cuda/step_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <tuple>
#include <utility>

#include "executors/cuda/failure.h"
#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/error.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

[[noreturn]] void decline(const std::string& why) {
  throw Error(ErrorKind::device, "cuda.kernels", "fused training-step kernels cannot run here: " + why,
              "--jit=off runs step by step");
}

// Checks that all blocks that wait for each other are resident at the same time.
void check_residency(Api& api, const BoundSteps& steps) {
  if (steps.tiling.blocks() == 1) return;
  int device = 0, processors = 0, together = 0;
  api.check(cudaGetDevice(&device), "cudaGetDevice");
  if (steps.tiling.cluster == 1) {
    api.check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    together = processors;  // one block of this size per multiprocessor
  } else {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {steps.tiling.cluster, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(steps.tiling.blocks(), 1, 1);
    config.blockDim = dim3(steps.tiling.threads, 1, 1);
    config.dynamicSmemBytes = steps.shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    api.check(cudaOccupancyMaxActiveClusters(&together, steps.kernel, &config), "cudaOccupancyMaxActiveClusters");
    together *= static_cast<int>(steps.tiling.cluster);
  }
  if (together < static_cast<int>(steps.tiling.blocks()))
    decline(fmt::format("{} needs {} blocks at the same time, this device runs {}", steps.label, steps.tiling.blocks(),
                        together));
}

StepCodes start_compiling(std::shared_ptr<const Program> program, int device, bool in_slots) {
  return std::async(std::launch::async, [program = std::move(program), device, in_slots] {
    const std::string architecture = architecture_of_device(device);
    std::vector<std::future<StepCode>> each;
    for (StepKernel& made : step_sources(*program, in_slots)) {
      each.push_back(std::async(std::launch::async, [kernel = StepCode{std::move(made)}, &architecture]() mutable {
        const CompiledCode& code = compiled_code(kernel, architecture, kernel.in_slots ? nullptr : &kernel.compiled);
        kernel.spills = std::ranges::any_of(code.kernels(), [](const auto& one) { return one.spill_bytes > 0; });
        return std::move(kernel);
      }));
    }
    std::vector<StepCode> kernels;
    for (std::future<StepCode>& one : each) kernels.push_back(one.get());  // may throw; the others run to their end
    return kernels;
  });
}

bool has_step_kernels(const Program& program) {
  const auto is_step = [](const Region& region) { return std::holds_alternative<StepTiling>(region.tiling); };
  return std::ranges::any_of(program.phases,
                             [&](const Phase& phase) { return std::ranges::any_of(phase.regions, is_step); });
}

}  // namespace

StepCodes compile_steps(const Program& program, int device) {
  if (!has_step_kernels(program)) return {};
  return start_compiling({std::shared_ptr<void>(), &program}, device, false);
}

// A later Program compiles again: the cause may have been a lack of memory.
bool SharedStepCodes::One::failed() const {
  if (codes.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  try {
    codes.get();
  } catch (...) {
    return true;
  }
  return false;
}

StepCodes SharedStepCodes::find(const Program& program, int device) {
  constexpr std::size_t kLast = 8;
  if (!has_step_kernels(program)) return {};
  const std::lock_guard lock(mutex_);
  std::erase_if(last_, [](const One& one) { return one.failed(); });
  for (const One& one : last_)
    if (one.device == device && *one.program == program) return one.codes;
  if (last_.size() == kLast) last_.erase(last_.begin());
  const auto kept = std::make_shared<const Program>(program);
  last_.push_back({kept, device, start_compiling(kept, device, true)});
  return last_.back().codes;
}

StepKernels::StepKernels(Api& api, std::vector<StepCode> kernels, cudaStream_t stream) : api_(api), stream_(stream) {
  for (StepCode& kernel : kernels) {
    Kernel& made = kernels_[kernel.name];
    if (!kernel.in_slots) made.code = std::make_unique<CompiledKernels>(kernel);
    if (!kernel.in_slots && fault_ == nullptr)
      fault_ = made.code->find_variable("graphrun_fault");  // all kernels share it
    made.kernel = std::move(kernel);
  }
  if (fault_ == nullptr) return;
  pinned_ = api_.allocate_pinned(sizeof(*seen_));
  seen_ = reinterpret_cast<std::uint32_t*>(pinned_.get());
  *seen_ = 0;
}

BoundSteps StepKernels::bind(const Program& program, const Phase& phase, const Region& region, const Arena& arena,
                             std::byte* mirror) const {
  BoundSteps steps;
  steps.name = step_kernel_name(program, phase, region);
  const std::uint32_t first = region.first();
  steps.label = fmt::format("phase '{}', steps {} to {} ({} {}, ...)", phase.name, first + 1, region.last,
                            name_of(phase.steps[first].op), phase.steps[first].name);
  const Kernel& made = kernels_.at(steps.name);
  steps.compiled = made.kernel.compiled;
  steps.tiling = std::get<StepTiling>(region.tiling);
  std::vector<void*> words;
  for (const BufferId operand : made.kernel.pointers) words.push_back(arena.at(operand));
  if (made.kernel.in_slots) {
    const auto in_one_block = kernels_.find(steps.name + kInOneBlock);
    const bool fits = in_one_block != kernels_.end() && !in_one_block->second.kernel.spills;
    const StepKernel* const second = fits ? &in_one_block->second.kernel : nullptr;
    steps.slot =
        std::make_unique<SlotKernel::Member>(SlotKernel::find(api_, made.kernel, second, steps.tiling, stream_), words,
                                             arena.polled(), mirror, made.kernel.keys);
    return steps;
  }
  steps.kernel = made.code->find(steps.name);
  steps.shared_bytes = api_.read_word(made.code->find_variable(steps.name + "_shared_bytes"), seen_, stream_);
  if (steps.shared_bytes > 48 * 1024 && cudaFuncSetAttribute(steps.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                             static_cast<int>(steps.shared_bytes)) != cudaSuccess) {
    cudaGetLastError();
    decline(fmt::format("{} needs {} bytes of shared memory", steps.label, steps.shared_bytes));
  }
  if (region.accumulators != kNoBuffer) steps.scratch = arena.at(region.accumulators);
  if (words.empty()) words.push_back(nullptr);
  words.insert(words.end(), {fault_, nullptr});  // null: placeholder for the repeat count
  steps.arguments.resize(words.size() * sizeof(void*));
  std::memcpy(steps.arguments.data(), words.data(), steps.arguments.size());
  check_residency(api_, steps);
  return steps;
}

void StepKernels::launch(BoundSteps& steps, std::uint64_t times, bool capturing) {
  const auto count = static_cast<std::uint32_t>(times);
  std::memcpy(steps.arguments.data() + steps.arguments.size() - sizeof(void*), &count, sizeof(count));
  if (steps.tiling.scratch_bytes > 0) api_.clear(steps.scratch, steps.tiling.scratch_bytes, stream_);
  void* arguments[] = {steps.arguments.data()};
  api_.launch_together(steps.kernel, steps.name.c_str(), steps.tiling.blocks(), steps.tiling.cluster,
                       steps.tiling.threads, steps.shared_bytes, arguments, stream_, capturing);
}

void StepKernels::copy_fault() {
  if (fault_ == nullptr) return;
  api_.copy(seen_, fault_, sizeof(*seen_), cudaMemcpyDeviceToHost, stream_);
}

void StepKernels::check() const {
  if (seen_ != nullptr && *seen_ != 0) fail_wait();
}

}  // namespace graphrun::cuda
