// trainer_state.cpp: training state in the memory of the caller. Nothing here allocates unless it fails.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/philox.h"
#include "graphrun/error.h"
#include "session/trainer.h"

namespace graphrun {
namespace {

// Header of a saved state; the states and the parameters that early_stopping would restore follow.
struct StateHeader {
  std::uint64_t magic = 0x3145544154535247;  // "GRSTATE1"
  std::uint64_t layout = 0;
  TrainingProgress progress;
  std::uint64_t resumes = 0;  // the next train() resumes
  double loss = 0;
};
static_assert(std::is_trivially_copyable_v<StateHeader>);

[[noreturn]] void reject_state(std::string_view why) {
  throw Error(ErrorKind::input, "state.other", fmt::format("load_state: {}", why));
}

void check_size(std::string_view call, std::size_t given, std::size_t wanted) {
  if (given == wanted) return;
  throw Error(ErrorKind::input, "state.size", fmt::format("{}: a buffer of {} bytes, not {}", call, given, wanted),
              "state_bytes() returns the size");
}

}  // namespace

void Trainer::prepare_state() {
  const std::vector<Buffer>& buffers = loaded_.program().buffers;
  saved_layout_ = fnv1a({});
  saved_bytes_ = sizeof(StateHeader);
  const auto add = [&](const Buffer& one, std::string_view role) {
    const std::string text = fmt::format("{}{}:{};", role, one.name, to_string(one.type));
    saved_layout_ = fnv1a(std::as_bytes(std::span(text)), saved_layout_);
    saved_bytes_ += one.type.bytes();
  };
  for (const BufferKind kind : {BufferKind::parameter, BufferKind::slot, BufferKind::counter}) {
    for (BufferId id = 0; id < buffers.size(); ++id) {
      if (buffers[id].kind != kind || buffers[id].storage != id) continue;
      saved_.push_back(id);
      add(buffers[id], "");
    }
  }
  for (const BufferId id : state_.best.buffers()) add(buffers[id], "best ");
  saved_bytes_ += std::as_bytes(std::span(state_.objectives)).size();
}

void Trainer::save_state(std::span<std::byte> to) {
  check_size("save_state", to.size(), saved_bytes_);
  StateHeader header;
  header.layout = saved_layout_;
  header.progress = state_.progress;
  header.resumes = state_.resumes ? 1 : 0;
  const std::optional<std::size_t> training = loaded_.phase_index("train");
  header.loss = training ? loaded_.last_record(*training) : std::numeric_limits<double>::quiet_NaN();
  const auto take = [&](std::size_t bytes) {
    const std::span<std::byte> part = to.first(bytes);
    to = to.subspan(bytes);
    return part;
  };
  std::memcpy(take(sizeof header).data(), &header, sizeof header);
  const std::span<const std::byte> means = std::as_bytes(std::span(state_.objectives));
  std::copy(means.begin(), means.end(), take(means.size()).begin());
  for (const BufferId id : saved_) loaded_.runnable->read(id, take(loaded_.program().buffers[id].type.bytes()));
  for (std::size_t i = 0; i < state_.best.buffers().size(); ++i) {
    const std::span<const std::byte> bytes = std::as_const(state_.best).bytes(i);
    std::copy(bytes.begin(), bytes.end(), take(bytes.size()).begin());
  }
}

void Trainer::load_state(std::span<const std::byte> from) {
  check_size("load_state", from.size(), saved_bytes_);
  StateHeader header;
  std::memcpy(&header, from.data(), sizeof header);
  if (header.magic != StateHeader().magic) reject_state("these bytes were not written by save_state()");
  if (header.layout != saved_layout_)
    reject_state("this is the state of another model: its parameters or slots differ");
  from = from.subspan(sizeof header);
  const auto take = [&](std::size_t bytes) {
    const std::span<const std::byte> part = from.first(bytes);
    from = from.subspan(bytes);
    return part;
  };
  const std::span<std::byte> means = std::as_writable_bytes(std::span(state_.objectives));
  const std::span<const std::byte> saved_means = take(means.size());
  std::copy(saved_means.begin(), saved_means.end(), means.begin());
  for (const BufferId id : saved_) {
    const std::span<const std::byte> bytes = take(loaded_.program().buffers[id].type.bytes());
    loaded_.runnable->write(id, bytes);
    for (std::size_t i = 0; i < loaded_.done.size(); ++i) {
      const ir::NodeId counter = loaded_.phases()[i].counter;
      if (counter == ir::kNoNode || loaded_.buffer(counter) != id) continue;
      std::uint64_t steps = 0;
      std::memcpy(&steps, bytes.data(), sizeof steps);
      loaded_.set_done(i, steps);
    }
  }
  for (std::size_t i = 0; i < state_.best.buffers().size(); ++i) {
    const std::span<std::byte> to = state_.best.bytes(i);
    const std::span<const std::byte> bytes = take(to.size());
    std::copy(bytes.begin(), bytes.end(), to.begin());
  }
  state_.progress = header.progress;
  state_.resumes = header.resumes != 0;
  const std::optional<std::size_t> index = loaded_.phase_index("train");
  if (!index || loaded_.done[*index] == 0) return;
  const StepPhase& phase = loaded_.phases()[*index];
  const auto at = static_cast<std::int64_t>((loaded_.done[*index] - 1) % static_cast<std::uint64_t>(phase.ring));
  const auto loss = static_cast<float>(header.loss);
  loaded_.runnable->write_rows(loaded_.buffer(phase.recorded[0].ring), at, std::as_bytes(std::span(&loss, 1)));
}

}  // namespace graphrun
