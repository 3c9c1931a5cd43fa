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

void put(std::string& bytes, std::uint32_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

bool take(std::string_view& bytes, std::uint32_t& number) {
  if (bytes.size() < sizeof number) return false;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return true;
}

}  // namespace

const KernelResources* CompiledCode::find(std::string_view kernel) const {
  const auto found = std::ranges::find(kernels, kernel, &KernelResources::name);
  return found != kernels.end() ? &*found : nullptr;
}

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

std::string to_bytes(const CompiledCode& code) {
  std::string bytes;
  put(bytes, static_cast<std::uint32_t>(code.kernels.size()));
  for (const KernelResources& kernel : code.kernels) {
    put(bytes, static_cast<std::uint32_t>(kernel.name.size()));
    bytes += kernel.name;
    for (const std::uint32_t number : {kernel.registers, kernel.stack, kernel.spill_bytes}) put(bytes, number);
  }
  return bytes.append(code.image.begin(), code.image.end());
}

std::optional<CompiledCode> from_bytes(std::string_view bytes) {
  CompiledCode code;
  std::uint32_t count = 0, length = 0;
  if (!take(bytes, count)) return std::nullopt;
  for (; count > 0; --count) {
    if (!take(bytes, length) || bytes.size() < length) return std::nullopt;
    KernelResources& kernel = code.kernels.emplace_back();
    kernel.name = bytes.substr(0, length);
    bytes.remove_prefix(length);
    for (std::uint32_t* number : {&kernel.registers, &kernel.stack, &kernel.spill_bytes})
      if (!take(bytes, *number)) return std::nullopt;
  }
  if (bytes.empty()) return std::nullopt;
  code.image.assign(bytes.begin(), bytes.end());
  return code;
}

}  // namespace graphrun::cuda
