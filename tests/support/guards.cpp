#include "support/guards.h"

#include <fmt/format.h>

namespace graphrun::test {
namespace {

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

Buffer plain_bytes(std::string name, std::uint64_t offset, std::uint64_t bytes) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.type = {DType::boolean, {static_cast<std::int64_t>(bytes)}, 0};
  buffer.kind = BufferKind::data;
  buffer.offset = offset;
  buffer.bytes = bytes;
  return buffer;
}

}  // namespace

Guarded with_guards(const Program& program) {
  Guarded result{program, {}};
  Program& laid = result.program;
  const auto count = static_cast<BufferId>(program.buffers.size());
  const BufferId arena = count;  // the guards are views of this buffer
  std::vector<Buffer> guards;
  std::uint64_t end = 0;  // end of the storages and guards placed so far
  const auto add_guard = [&] {
    const std::uint64_t next = aligned(end + kGuardBytes);
    guards.push_back(plain_bytes(fmt::format("guard_{}", guards.size()), end, next - end));
    guards.back().storage = arena;
    end = next;
  };
  add_guard();
  for (BufferId id = 0; id < count; ++id) {
    if (program.buffers[id].storage != id) continue;
    laid.buffers[id].offset = end;
    end += program.buffers[id].bytes;
    add_guard();
  }
  for (BufferId id = 0; id < count; ++id) {
    const BufferId root = storage_root(program, id);
    laid.buffers[id].offset = laid.buffers[root].offset + (program.buffers[id].offset - program.buffers[root].offset);
  }
  laid.buffers.push_back(plain_bytes("guarded_arena", 0, end));
  laid.buffers.back().storage = arena;
  for (Buffer& guard : guards) {
    result.guards.push_back(static_cast<BufferId>(laid.buffers.size()));
    laid.buffers.push_back(std::move(guard));
  }
  laid.arena_bytes = end;
  check(laid);
  return result;
}

std::vector<std::byte> guard_pattern(std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t at = offset + i;
    const std::uint64_t word = at / 4;
    // Every 32-bit word is 0xffff____ with a number that differs between words.
    bytes[i] = static_cast<std::byte>(at % 4 >= 2 ? 0xff : word >> (8 * (at % 4)));
  }
  return bytes;
}

}  // namespace graphrun::test
