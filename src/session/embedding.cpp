// embedding.cpp: API for programs with their own training loop: steps until a deadline, rows in use, training state in
// the program's memory. Contract: that of session.h: nothing here allocates unless it fails.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "base/philox.h"
#include "graphrun/error.h"
#include "session/session_impl.h"

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

}  // namespace

void Session::Impl::reject_in_train(std::string_view call) const {
  if (!in_train.load(std::memory_order_relaxed)) return;
  throw Error(ErrorKind::input, "session.busy", fmt::format("{}: train() is under way", call),
              "call it when train() has returned, not from its callbacks");
}

double Session::Impl::last_loss() {
  const std::optional<std::size_t> index = phase_index("train");
  return index ? last_record(*index) : std::numeric_limits<double>::quiet_NaN();
}

bool Session::Impl::losses_finite(std::uint64_t steps) {
  const std::size_t index = training();
  const StepPhase& phase = compiled.step.phases[index];
  const auto ring = static_cast<std::uint64_t>(phase.ring);
  for (std::uint64_t left = std::min(steps, ring); left > 0;) {  // two pieces if they wrap around its end
    const std::uint64_t first = (done[index] - left) % ring, count = std::min(left, ring - first);
    const std::span<std::byte> piece_of_ring = std::as_writable_bytes(std::span(ring_values).first(count));
    runnable->read_range(buffer(phase.recorded[0].ring), first * sizeof(float), piece_of_ring);
    if (!all_finite(piece_of_ring)) return false;
    left -= count;
  }
  return true;
}

bool Session::advance(std::uint64_t steps) {
  Impl& session = not_moved(impl_);
  session.reject_in_train("advance");
  session.run(session.training(), steps);
  return session.losses_finite(steps);
}

bool Session::losses_finite(std::uint64_t steps) {
  Impl& session = not_moved(impl_);
  return session.losses_finite(std::min(steps, session.done[session.training()]));
}

std::uint64_t Session::run_until(std::chrono::steady_clock::time_point deadline, std::uint64_t max_steps) {
  Impl& session = not_moved(impl_);
  session.reject_in_train("run_until");
  if (session.communicator != nullptr)
    throw Error(ErrorKind::input, "ranks.clock", "ranks have no common clock for run_until()",
                "advance() runs a number of steps");
  const std::size_t index = session.training();
  std::uint64_t ran = 0;
  while (ran < max_steps) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) break;
    const double left = std::chrono::duration<double>(deadline - now).count();
    const double fastest = session.paces[index].fastest;
    std::uint64_t steps = 1;
    if (fastest > 0) {
      const double fitting = left / fastest;
      if (fitting < 1) break;
      // Use half of them: other steps may take longer than the fastest.
      steps = static_cast<std::uint64_t>(std::clamp(fitting / 2, 1.0, 1e15));
      steps = std::min(steps, session.steps_per_poll(index, steps));
    }
    steps = std::min(steps, max_steps - ran);
    session.run(index, steps);
    ran += steps;
  }
  return ran;
}

void Session::set_rows(std::string_view split, std::int64_t rows) {
  Impl& session = not_moved(impl_);
  session.reject_in_train("set_rows");
  const auto& varying = session.compiled.step.rows;
  const auto found = std::find_if(varying.begin(), varying.end(), [&](const auto& one) { return one.first == split; });
  if (found == varying.end()) {
    throw Error(ErrorKind::input, "rows.fixed",
                fmt::format("set_rows: no split '{}' has a number of rows that varies", split),
                "Split::rows_vary says so before the session is made");
  }
  const std::int64_t room = session.model.data.find(split)->samples();
  std::int64_t least = 1;
  for (const StepPhase& phase : session.compiled.step.phases) {
    if (phase.split == split && phase.batches.drop_last) least = phase.batches.capacity;
  }
  if (rows < least || rows > room) {
    throw Error(ErrorKind::input, "rows.range",
                fmt::format("set_rows: {} rows of '{}': there can be from {} to {}", rows, split, least, room));
  }
  const auto in_use = static_cast<std::uint64_t>(rows);
  session.runnable->write(session.buffer(found->second), std::as_bytes(std::span(&in_use, 1)));
  for (std::size_t i = 0; i < session.compiled.step.phases.size(); ++i) {
    StepPhase& phase = session.compiled.step.phases[i];
    if (phase.split != split) continue;
    phase.batches.total = rows;
    if (phase.name == "train") continue;
    session.done[i] = 0;  // an evaluation starts at the first batch
    session.runnable->write(session.buffer(phase.counter), std::as_bytes(std::span(&session.done[i], 1)));
  }
}

void Session::Impl::prepare_state() {
  const std::vector<Buffer>& buffers = program().buffers;
  saved_layout = fnv1a({});
  saved_bytes = sizeof(StateHeader);
  const auto add = [&](const Buffer& one, std::string_view role) {
    const std::string text = fmt::format("{}{}:{};", role, one.name, to_string(one.type));
    saved_layout = fnv1a(std::as_bytes(std::span(text)), saved_layout);
    saved_bytes += one.type.bytes();
  };
  for (const BufferKind kind : {BufferKind::parameter, BufferKind::slot, BufferKind::counter}) {
    for (BufferId id = 0; id < buffers.size(); ++id) {
      if (buffers[id].kind != kind || buffers[id].storage != id) continue;
      saved.push_back(id);
      add(buffers[id], "");
    }
  }
  for (const BufferId id : best.buffers()) add(buffers[id], "best ");
  saved_bytes += std::as_bytes(std::span(objectives)).size();
}

void Session::Impl::save_state(std::span<std::byte> to) {
  StateHeader header;
  header.layout = saved_layout;
  header.progress = progress;
  header.resumes = resumes ? 1 : 0;
  header.loss = last_loss();
  const auto take = [&](std::size_t bytes) {
    const std::span<std::byte> part = to.first(bytes);
    to = to.subspan(bytes);
    return part;
  };
  std::memcpy(take(sizeof header).data(), &header, sizeof header);
  const std::span<const std::byte> means = std::as_bytes(std::span(objectives));
  std::copy(means.begin(), means.end(), take(means.size()).begin());
  for (const BufferId id : saved) runnable->read(id, take(program().buffers[id].type.bytes()));
  for (std::size_t i = 0; i < best.buffers().size(); ++i) {
    const std::span<const std::byte> bytes = std::as_const(best).bytes(i);
    std::copy(bytes.begin(), bytes.end(), take(bytes.size()).begin());
  }
}

void Session::Impl::load_state(std::span<const std::byte> from) {
  StateHeader header;
  std::memcpy(&header, from.data(), sizeof header);
  if (header.magic != StateHeader().magic) reject_state("these bytes were not written by save_state()");
  if (header.layout != saved_layout) reject_state("this is the state of another model: its parameters or slots differ");
  from = from.subspan(sizeof header);
  const auto take = [&](std::size_t bytes) {
    const std::span<const std::byte> part = from.first(bytes);
    from = from.subspan(bytes);
    return part;
  };
  const std::span<std::byte> means = std::as_writable_bytes(std::span(objectives));
  const std::span<const std::byte> saved_means = take(means.size());
  std::copy(saved_means.begin(), saved_means.end(), means.begin());
  for (const BufferId id : saved) {
    const std::span<const std::byte> bytes = take(program().buffers[id].type.bytes());
    runnable->write(id, bytes);
    for (std::size_t i = 0; i < done.size(); ++i) {
      const ir::NodeId counter = compiled.step.phases[i].counter;
      if (counter != ir::kNoNode && buffer(counter) == id) std::memcpy(&done[i], bytes.data(), sizeof done[i]);
    }
  }
  for (std::size_t i = 0; i < best.buffers().size(); ++i) {
    const std::span<std::byte> to = best.bytes(i);
    const std::span<const std::byte> bytes = take(to.size());
    std::copy(bytes.begin(), bytes.end(), to.begin());
  }
  progress = header.progress;
  resumes = header.resumes != 0;
  const std::optional<std::size_t> index = phase_index("train");
  if (!index) return;
  steps_before.store(done[*index], std::memory_order_relaxed);
  if (done[*index] == 0) return;
  const StepPhase& phase = compiled.step.phases[*index];
  const auto at = static_cast<std::int64_t>((done[*index] - 1) % static_cast<std::uint64_t>(phase.ring));
  const auto loss = static_cast<float>(header.loss);
  runnable->write_rows(buffer(phase.recorded[0].ring), at, std::as_bytes(std::span(&loss, 1)));
}

std::size_t Session::state_bytes() const {
  return not_moved(impl_).saved_bytes;
}

namespace {
void check_state_size(std::string_view call, std::size_t given, std::size_t wanted) {
  if (given == wanted) return;
  throw Error(ErrorKind::input, "state.size", fmt::format("{}: a buffer of {} bytes, not {}", call, given, wanted),
              "state_bytes() returns the size");
}
}  // namespace

void Session::save_state(std::span<std::byte> to) {
  Impl& session = not_moved(impl_);
  session.reject_in_train("save_state");
  check_state_size("save_state", to.size(), session.saved_bytes);
  session.save_state(to);
}

void Session::load_state(std::span<const std::byte> from) {
  Impl& session = not_moved(impl_);
  session.reject_in_train("load_state");
  check_state_size("load_state", from.size(), session.saved_bytes);
  session.load_state(from);
}

}  // namespace graphrun
