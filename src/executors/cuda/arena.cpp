#include "executors/cuda/arena.h"

#include <algorithm>

#include "executors/cuda/failure.h"

namespace graphrun::cuda {

Arena::Arena(Api& api, const Program& program, PollBlock polled)
    : api_(api), program_(program), polled_(polled), split_(is_split()) {
  const auto root = [&](BufferId id) { return storage_root(program, id); };
  address_.resize(program.buffers.size(), nullptr);
  std::byte* whole = split_ ? nullptr : allocate(program.arena_bytes);
  for (BufferId id = 0; id < address_.size() && split_; ++id) {
    if (root(id) == id) address_[id] = allocate(program.buffers[id].bytes);
  }
  for (BufferId id = 0; id < address_.size(); ++id) {
    const std::uint64_t offset = program.buffers[id].offset;
    address_[id] = split_ ? address_[root(id)] + (offset - program.buffers[root(id)].offset) : whole + offset;
  }
}

bool Arena::is_split() {
  return debug_option("GRAPHRUN_DEBUG_ARENA", "split", "cuda.debug_arena");
}

std::byte* Arena::allocate(std::uint64_t bytes) {
  if (bytes == 0) return nullptr;
  return memory_.emplace_back(api_.allocate(bytes)).get();
}

std::span<std::byte> Arena::states() const {
  std::uint64_t end = 0;
  for (const Buffer& buffer : program_.buffers)
    if (is_state(buffer.kind)) end = std::max(end, buffer.offset + buffer.bytes);
  return {memory_.empty() ? nullptr : memory_.front().get(), end};
}

// Values within a step stay uninitialized, so that initcheck finds a step that reads too early.
void Arena::clear_states(cudaStream_t stream) const {
  if (!split_ && !states().empty()) api_.clear(states().data(), states().size(), stream);
  for (BufferId id = 0; id < address_.size() && split_; ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (is_state(buffer.kind) && buffer.bytes > 0 && buffer.storage == id) api_.clear(at(id), buffer.bytes, stream);
  }
}

void Arena::copy_polled(std::byte* mirror, cudaStream_t stream) const {
  if (polled_.bytes == 0) return;
  const auto copy_to = [&](std::byte* to, const std::byte* from, std::uint64_t bytes) {
    api_.copy(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  };
  if (!split_) return copy_to(mirror, memory_.front().get() + polled_.offset, polled_.bytes);
  for (BufferId id = 0; id < address_.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (!buffer.poll || buffer.type.bytes() == 0) continue;
    copy_to(mirror + (buffer.offset - polled_.offset), at(id), buffer.type.bytes());
  }
}

}  // namespace graphrun::cuda
