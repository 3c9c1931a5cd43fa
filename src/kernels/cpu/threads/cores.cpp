// cores.cpp: the number of cores available to the process.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "kernels/cpu/threads/parallel.h"

namespace graphrun::cpu {
namespace {

// Plain strings, because libstdc++ 12 frees unallocated memory if building a path runs out of memory.
std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// "150000 100000" is 1.5 cores; "max 100000" and -1 have no positive number as quota.
std::optional<double> quota(const std::string& text) {
  char* end = nullptr;
  const double used = std::strtod(text.c_str(), &end);
  const double period = std::strtod(end, nullptr);
  if (!(used > 0 && period > 0)) return std::nullopt;
  return used / period;
}

std::optional<double> quota_of(const std::string& group) {
  if (const auto limit = quota(text_of(group + "/cpu.max"))) return limit;
  return quota(text_of(group + "/cpu.cfs_quota_us") + " " + text_of(group + "/cpu.cfs_period_us"));
}

}  // namespace

std::optional<int> cores_of_groups(std::string_view groups, const std::string& root) {
  std::optional<double> least;
  while (!groups.empty()) {  // a line is "number:controllers:/path"; version 2 has no controllers
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers.find("cpu") == controllers.npos) continue;
    const std::string mount = root + "/" + std::string(controllers);
    for (std::string_view group = line.substr(second + 1);; group = group.substr(0, group.rfind('/'))) {
      if (const auto limit = quota_of(mount + std::string(group))) least = std::min(least.value_or(*limit), *limit);
      if (group.find('/') == group.npos) break;
    }
  }
  if (!least) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(std::min(*least, 1e6))));
}

int available_cores() {
  cpu_set_t mask;
  const bool known = sched_getaffinity(0, sizeof mask, &mask) == 0;
  const int cores = std::max(known ? CPU_COUNT(&mask) : static_cast<int>(std::thread::hardware_concurrency()), 1);
  static const std::optional<int> limit = cores_of_groups(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::min(cores, limit.value_or(cores));
}

}  // namespace graphrun::cpu
