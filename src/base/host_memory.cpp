#include "base/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace graphrun {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// Reads the number after a word of a file, or at its start; "max" is not a number.
std::optional<std::uint64_t> number_in(const std::string& path, const std::string& after = "") {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (after.empty()) return file >> number ? std::optional(number) : std::nullopt;
  for (std::string word; file >> word;) {
    if (word == after) return file >> number ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

// Remaining memory of a control group. Its file cache counts as free, because the kernel evicts it first.
std::uint64_t left_of(const std::string& limit, const std::string& used, const std::string& statistics,
                      const std::string& files) {
  const auto most = number_in(limit), now = number_in(used);
  if (!most || !now) return kUnknown;
  const std::uint64_t held = *now - std::min(*now, number_in(statistics, files).value_or(0));
  return *most > held ? *most - held : 0;
}

// Remainder of the process's address space limit (ulimit -v).
std::uint64_t left_of_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const std::uint64_t used = number_in("/proc/self/status", "VmSize:").value_or(0) * 1024;
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace

std::uint64_t available_host_memory(const std::string& root) {
  const auto kibibytes = number_in(root + "/proc/meminfo", "MemAvailable:");
  const std::string v2 = root + "/sys/fs/cgroup/", v1 = v2 + "memory/";
  return std::min(
      {root.empty() ? left_of_addresses() : kUnknown, kibibytes ? *kibibytes * 1024 : kUnknown,
       left_of(v2 + "memory.max", v2 + "memory.current", v2 + "memory.stat", "inactive_file"),
       left_of(v1 + "memory.limit_in_bytes", v1 + "memory.usage_in_bytes", v1 + "memory.stat", "total_inactive_file")});
}

}  // namespace graphrun
