#include "executors/cuda/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun::cuda {
namespace {

bool wants_split() {
  const char* value = std::getenv("GRAPHRUN_DEBUG_ARENA");
  if (value == nullptr || *value == '\0') return false;
  if (std::string_view(value) == "split") return true;
  throw Error(ErrorKind::input, "cuda.debug_arena",
              fmt::format("GRAPHRUN_DEBUG_ARENA can be 'split', got '{}'", value));
}

}  // namespace

Arena::Arena(Api& api, const Program& program)
    : api_(api), program_(program), polled_(poll_block(program)), split_(wants_split()) {
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

std::byte* Arena::allocate(std::uint64_t bytes) {
  if (bytes == 0) return nullptr;
  memory_.push_back(Memory(static_cast<std::byte*>(api_.allocate(bytes)), Free{&api_}));
  return memory_.back().get();
}

// What lives within a step is not cleared: initcheck sees a step that reads too early.
void Arena::clear_states(cudaStream_t stream) const {
  std::uint64_t first = program_.arena_bytes, end = 0;
  for (BufferId id = 0; id < address_.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (!is_state(buffer.kind) || buffer.bytes == 0) continue;
    if (split_ && buffer.storage == id) api_.clear(at(id), buffer.bytes, stream);
    first = std::min(first, buffer.offset);
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  if (!split_ && first < end) api_.clear(memory_.front().get() + first, end - first, stream);
}

void Arena::copy_polled(std::byte* mirror, cudaStream_t stream) const {
  if (polled_.bytes == 0) return;
  if (!split_) return api_.copy_to_host(mirror, memory_.front().get() + polled_.offset, polled_.bytes, stream);
  for (BufferId id = 0; id < address_.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (!buffer.poll || buffer.type.bytes() == 0) continue;
    api_.copy_to_host(mirror + (buffer.offset - polled_.offset), at(id), buffer.type.bytes(), stream);
  }
}

}  // namespace graphrun::cuda
