#include "session/state_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graphrun/profile.h"

namespace graphrun {
namespace {
constexpr std::uint64_t kRoom = std::uint64_t{1} << 18;
}

StateCopy::StateCopy(const Program& program, std::vector<BufferId> buffers) : buffers_(std::move(buffers)) {
  std::size_t end = 0;
  for (const BufferId id : buffers_) {
    offsets_.push_back(end);
    sizes_.push_back(static_cast<std::size_t>(program.buffers[id].type.bytes()));
    end += sizes_.back();
  }
  bytes_.resize(end);
}

void StateCopy::take(Runnable& from) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) from.read(buffers_[i], bytes(i));
}

void StateCopy::put(Runnable& to) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) to.write(buffers_[i], bytes(i));
}

std::vector<BufferId> parameters_of(const Program& program) {
  std::vector<BufferId> ids;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].kind == BufferKind::parameter) ids.push_back(id);
  }
  return ids;
}

std::vector<BufferId> trained_states(const Program& program, BufferId counter) {
  std::vector<BufferId> ids = parameters_of(program);
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].kind == BufferKind::slot) ids.push_back(id);
  }
  ids.push_back(counter);
  return ids;
}

namespace {
template <class Bits>
bool all_below(std::span<const std::byte> elements, Bits infinity) {
  Bits largest = 0;
  for (std::size_t i = 0; i + sizeof(Bits) <= elements.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, elements.data() + i, sizeof bits);
    largest = std::max(largest, bits << 1 >> 1);
  }
  return largest < infinity;
}
}  // namespace

bool all_finite(std::span<const std::byte> elements, DType dtype) {
  return dtype == DType::f64 ? all_below<std::uint64_t>(elements, std::uint64_t{0x7FF} << 52)
                             : all_below<std::uint32_t>(elements, 0x7F800000);
}

bool parameters_finite(const Program& program, Runnable& runnable, std::span<std::byte> room) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.kind != BufferKind::parameter) continue;
    const std::uint64_t bytes = buffer.type.bytes();
    for (std::uint64_t first = 0; first < bytes; first += room.size()) {
      const std::span<std::byte> piece = room.first(std::min<std::uint64_t>(room.size(), bytes - first));
      runnable.read_range(id, first, piece);
      if (!all_finite(piece, buffer.type.dtype)) return false;
    }
  }
  return true;
}

GoodStates::GoodStates(const Program& program, BufferId counter, Runnable& runnable, std::uint64_t step)
    : program_(program),
      states_(program, trained_states(program, counter)),
      room_(std::min(kRoom, program.arena_bytes)),
      step_(step) {
  look(runnable, step);
}

bool GoodStates::due() const {
  constexpr double kShare = 0.005;  // half of the guaranteed share, because the duration of a check varies
  return Profiler::now() - ended_ >= cost_ / kShare;
}

bool GoodStates::look(Runnable& runnable, std::uint64_t step) {
  const double begun = Profiler::now();
  const bool finite = parameters_finite(program_, runnable, room_);
  if (finite || step == step_) {
    states_.take(runnable);
    step_ = step;
  }
  ended_ = Profiler::now();
  cost_ = ended_ - begun;
  return finite;
}

}  // namespace graphrun
