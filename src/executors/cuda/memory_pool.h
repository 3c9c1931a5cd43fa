// memory_pool.h: device and pinned memory of Runnables that are gone, for later ones.
// Contract: take() returns memory of exactly this size, or null. Thread-safe. Owns what it holds. Not here: allocation
// (api.h). A sweep needs it: each call that allocates or frees waits for all work on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace graphrun::cuda {

class MemoryPool {
 public:
  enum class Kind { device, pinned };

  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool() { clear(); }

  void* take(Kind kind, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = unused_.find({kind, bytes});
    if (found == unused_.end()) return nullptr;
    void* const memory = found->second;
    unused_.erase(found);
    return memory;
  }
  void give(Kind kind, std::uint64_t bytes, void* memory) {
    const std::lock_guard lock(mutex_);
    unused_.emplace(std::pair(kind, bytes), memory);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, memory] : unused_) release(key.first, memory);
    unused_.clear();
  }
  static void release(Kind kind, void* memory) { kind == Kind::device ? cudaFree(memory) : cudaFreeHost(memory); }

 private:
  std::mutex mutex_;
  std::multimap<std::pair<Kind, std::uint64_t>, void*> unused_;
};

}  // namespace graphrun::cuda
