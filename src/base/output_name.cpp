#include "base/output_name.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace graphrun {

std::string random_digits() {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<::ssize_t>(sizeof bits)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    bits = static_cast<std::uint64_t>(now) * 0x9e3779b97f4a7c15u;
  }
  return fmt::format("{:016x}", bits + counter.fetch_add(1));
}

}  // namespace graphrun
