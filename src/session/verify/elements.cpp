#include "session/verify/elements.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace graphrun {

void in_parts(std::size_t elements, const std::function<void(std::size_t first, std::size_t last)>& part) {
  constexpr std::size_t kMaxThreads = 32;  // more threads do not increase memory bandwidth
  const std::size_t parts = (elements + kPartElements - 1) / kPartElements;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < parts; i = next++)
      part(i * kPartElements, std::min(elements, (i + 1) * kPartElements));
  };
  std::vector<std::thread> others;
  try {
    const std::size_t threads = std::min({parts, kMaxThreads, std::size_t{std::thread::hardware_concurrency()}});
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {  // the system's thread limit was reached
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace graphrun
