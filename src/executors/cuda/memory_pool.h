// memory_pool.h: device and pinned memory of Runnables that are gone, for later ones, and streams that Runnables share.
// Contract: take() returns memory of exactly this size, or null. Thread-safe. Owns what it holds. Not here: allocation
// (api.h). A sweep needs it: each call that allocates or frees waits for all work on the device, and threads that
// create streams wait for each other, about a millisecond for each stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace graphrun::cuda {

class MemoryPool {
 public:
  enum class Kind { device, pinned };
  using Stream = std::shared_ptr<std::remove_pointer_t<cudaStream_t>>;

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
  // A stream of `make`, for Runnables that capture nothing.
  template <class Make>
  Stream stream(Make make) {
    const std::lock_guard lock(mutex_);
    Stream& stream = streams_[next_++ % streams_.size()];
    if (!stream) stream = make();
    return stream;
  }
  static void release(Kind kind, void* memory) { kind == Kind::device ? cudaFree(memory) : cudaFreeHost(memory); }

 private:
  std::mutex mutex_;
  std::multimap<std::pair<Kind, std::uint64_t>, void*> unused_;
  std::array<Stream, 16> streams_;
  std::size_t next_ = 0;
};

}  // namespace graphrun::cuda
