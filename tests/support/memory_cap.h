// memory_cap.h: limits further memory of the process during the object's lifetime, so that a decompression bomb or
// similar fails a test. Contract: limits the address space (RLIMIT_AS). Under a sanitizer, which reserves terabytes of
// it, checks the resident memory in the destructor.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "support/sanitized.h"

namespace graphrun::test {

class MemoryCap {
 public:
  explicit MemoryCap(std::uint64_t bytes) : bytes_(bytes) {
    ::getrlimit(RLIMIT_AS, &before_);
    if (kSanitized) {
      resident_ = peak();
      return;
    }
    rlimit limit = before_;
    limit.rlim_cur = std::min<rlim_t>(before_.rlim_max, status("VmSize:") + bytes);
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryCap() {
    if (kSanitized)
      EXPECT_LT(peak(), resident_ + bytes_);
    else
      ::setrlimit(RLIMIT_AS, &before_);
  }
  MemoryCap(const MemoryCap&) = delete;
  MemoryCap& operator=(const MemoryCap&) = delete;

 private:
  static std::uint64_t status(const std::string& key) {
    std::ifstream file("/proc/self/status");
    std::uint64_t kibibytes = 0;
    for (std::string word; file >> word;) {
      if (word == key && file >> kibibytes) break;
    }
    return kibibytes * 1024;
  }
  static std::uint64_t peak() { return status("VmHWM:"); }

  std::uint64_t bytes_, resident_ = 0;
  rlimit before_{};
};

}  // namespace graphrun::test
