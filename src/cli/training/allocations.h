// allocations.h: --assert-no-alloc: records allocations during training: host (any thread), device and pinned memory.
// Contract: between arm() and disarm(), counts every call of malloc and its family (and so operator new), and every
// allocation that an executor reports. The call stack attributes each call: those of GPU drivers are counted
// separately. The first few of graphrun's own are kept with step, API and call site. From count_setup() to arm(),
// counts calls by name only. At most one watch is active at a time. Does not count deallocation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/session.h"

namespace graphrun::cli {

// Calls of one API: "malloc", "cudaMalloc".
struct AllocationCount {
  std::string api;
  std::uint64_t calls = 0, bytes = 0;
};

class AllocationWatch {
 public:
  AllocationWatch() = default;
  ~AllocationWatch() { disarm(); }
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  static void count_setup();
  void arm(const Session& session);
  void disarm();

  std::uint64_t ours() const;
  std::uint64_t drivers() const;
  // Counts by name, in order of the first call: calls before arm(), and graphrun's own after it.
  static std::vector<AllocationCount> of_setup();
  static std::vector<AllocationCount> of_steps();
  // Throws Error (kind check) that lists the first of graphrun's own allocations, if there are any.
  void require_none() const;
};

}  // namespace graphrun::cli
