// compiled_code.h: what a compiler makes of a source: code for one architecture, and what each kernel takes of a
// device. Contract: plain values. read_log() knows the words of ptxas -v; to_bytes() and from_bytes() are each other's
// inverse, and bytes that are nobody's give nothing. Leaves to others: compiling (nvrtc.h), keeping (kernel_cache.h),
// what a loader makes of spills.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cuda {

// Of one thread. Spilled bytes are registers that did not fit, stored to memory; arrays of the source that lie in
// memory count for the stack only. Functions that a kernel calls count with it.
struct KernelResources {
  std::string name;
  std::uint32_t registers = 0, stack = 0, spill_bytes = 0;

  bool operator==(const KernelResources&) const = default;
};

struct CompiledCode {
  std::vector<char> image;  // what cudaLibraryLoadData takes
  std::vector<KernelResources> kernels;

  const KernelResources* find(std::string_view kernel) const;  // null: the compiler did not tell of it
  bool operator==(const CompiledCode&) const = default;
};

std::vector<KernelResources> read_log(std::string_view log);

std::string to_bytes(const CompiledCode& code);
std::optional<CompiledCode> from_bytes(std::string_view bytes);

}  // namespace graphrun::cuda
