// allocations.h: --assert-no-alloc: who allocates while a model trains, on the host in any thread, on devices, pinned.
// Contract: between arm() and disarm() every call of malloc and its family (and so operator new) and every allocation
// that an executor reports is counted. The stack of each call decides whose it is: a GPU driver's own are counted
// apart. The first few of ours are kept with step, call and call site. From count_setup() to arm() calls are counted by
// name only. At most one watch at a time. Leaves to others: freeing, which is not counted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/session.h"

namespace graphrun::cli {

// The calls of one name: "malloc", "cudaMalloc".
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
  // By name, in order of the first call: before arm(), and ours after it.
  static std::vector<AllocationCount> of_setup();
  static std::vector<AllocationCount> of_steps();
  // Throws Error (kind check) that tells of the first ones, when there were any of ours.
  void require_none() const;
};

}  // namespace graphrun::cli
