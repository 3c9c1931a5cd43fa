// host_kernels.h: texts of step kernels, compiled for this host with the emulator's ptx.h, and loaded.
// Contract: what was compiled once is kept for the process, by its text; what all texts begin with is compiled before
// them, and several become one translation unit. Throws std::runtime_error with the compiler's words. Leaves to others:
// the texts (executors/cuda_planner), running them (emulated_executor.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace graphrun::test {

// The name that a text gives its kernel: another one takes its place, so that many can be in one library.
inline constexpr const char* kKernelName = "the_kernel";

struct StepFunction {
  // A thread's, of StepArguments, or of SlotArguments of one slot, in kernels/cuda/tile/step.h.
  void (*run)(const void* arguments) = nullptr;
  std::uint32_t shared_bytes = 0;
};

// Those that are not there yet, on two cores.
void compile_steps(const std::vector<std::string>& texts);
StepFunction step_function(const std::string& text);

}  // namespace graphrun::test
