#include "executors/cuda/compiled_code.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace graphrun::cuda {
namespace {

constexpr std::string_view kKernel = "Compiling entry function '";

// Number before `words`, as in "24 bytes stack frame"; nullopt if `words` are not found.
std::optional<std::uint32_t> number_before(std::string_view line, std::string_view words) {
  const std::size_t end = line.find(words);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::uint32_t number = 0;
  if (std::from_chars(line.data() + begin, line.data() + end, number).ptr != line.data() + end || begin == end)
    return std::nullopt;
  return number;
}

}  // namespace

// The line that names a kernel is followed by its resources, then by those of the functions that it calls.
std::vector<KernelResources> read_log(std::string_view log) {
  std::vector<KernelResources> kernels;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (const std::size_t at = line.find(kKernel); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + kKernel.size());
      kernels.push_back({std::string(name.substr(0, name.find('\'')))});
    }
    if (kernels.empty()) continue;
    KernelResources& kernel = kernels.back();
    kernel.registers = std::max(kernel.registers, number_before(line, " registers").value_or(0));
    kernel.stack = std::max({kernel.stack, number_before(line, " bytes stack frame").value_or(0),
                             number_before(line, " bytes cumulative stack size").value_or(0)});
    kernel.spill_bytes += number_before(line, " bytes spill stores").value_or(0);
  }
  return kernels;
}

// Size of the log, the log, the image.
std::string to_bytes(const CompiledCode& code) {
  const std::uint64_t size = code.log.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes.append(code.log).append(code.image.begin(), code.image.end());
}

std::optional<CompiledCode> from_bytes(std::string_view bytes) {
  std::uint64_t size = 0;
  if (bytes.size() <= sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (bytes.size() <= size) return std::nullopt;
  return CompiledCode{{bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end()},
                      std::string(bytes.substr(0, size))};
}

}  // namespace graphrun::cuda
