#include "executors/cpu/host.h"

#include <fstream>
#include <sstream>
#include <string>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/cores.h"

namespace graphrun {
namespace {

// Text after the colon of the first line of a /proc file that begins with `key`.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::uint64_t memory(std::string_view key) {
  std::istringstream text(proc_value("/proc/meminfo", key));  // "16303428 kB"
  std::uint64_t kibibytes = 0;
  return text >> kibibytes ? kibibytes * 1024 : 0;
}

}  // namespace

Device describe_host() {
  Device host;
  host.id = "cpu";
  host.name = proc_value("/proc/cpuinfo", "model name");
  if (host.name.empty()) host.name = "the host";
  host.capability = name_of(default_isa());
  host.units = cpu::available_cores();
  host.memory_free = memory("MemAvailable");
  host.memory_total = memory("MemTotal");
  return host;
}

}  // namespace graphrun
