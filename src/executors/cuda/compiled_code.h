// compiled_code.h: result of compiling a source: code for one architecture, and the compiler's log, which lists the
// device resources of each kernel.
// Contract: plain values. read_log() parses the output of ptxas -v; to_bytes() and from_bytes() are inverses, and
// from_bytes() returns nothing for other bytes. Not here: compiling (nvrtc.h), caching (kernel_cache.h), the reaction
// of a loader to spills.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cuda {

// Resources of one thread, including functions that the kernel calls. Spilled bytes are registers that did not fit,
// stored to memory; arrays of the source that are in memory count only for the stack.
struct KernelResources {
  std::string name;
  std::uint32_t registers = 0, stack = 0, spill_bytes = 0;

  bool operator==(const KernelResources&) const = default;
};

std::vector<KernelResources> read_log(std::string_view log);

struct CompiledCode {
  std::vector<char> image;  // argument of cudaLibraryLoadData
  std::string log;

  std::vector<KernelResources> kernels() const { return read_log(log); }
};

std::string to_bytes(const CompiledCode& code);
std::optional<CompiledCode> from_bytes(std::string_view bytes);

}  // namespace graphrun::cuda
