#include "cli/terminal/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <limits>
#include <stdexcept>
#include <thread>

#include "cli/command_line/diagnostics.h"

namespace graphrun::cli {
namespace {

// Session and checkpoint folder of an Interrupt.
struct Registered {
  std::atomic<bool> taken{false};
  std::atomic<Session*> session{nullptr};
  std::atomic<CheckpointFolder*> checkpoints{nullptr};
};
std::array<Registered, kMaxInterrupts> registered;
std::atomic<int> handling{0};    // handlers that may use an entry
std::atomic<int> looked_for{0};  // number of Interruptibles
std::atomic<bool> asked{false};
std::atomic<std::int64_t> asked_at{0};  // in nanoseconds; 0: never
int woken = -1;                         // eventfd that the handler signals, which ends a wait in any thread
static_assert(std::atomic<Session*>::is_always_lock_free && std::atomic<CheckpointFolder*>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);  // async-signal-safe
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// Only these force an exit when repeated. The others repeat by themselves: a closing terminal sends SIGHUP twice, and
// the kernel sends SIGXCPU every second.
bool is_meant_twice(int signal) {
  return signal == SIGINT || signal == SIGTERM;
}

// Calls f(*pointer) for the members that are set; returns whether any is.
template <class T, class F>
bool for_each(std::atomic<T*> Registered::*member, F f) {
  bool any = false;
  for (Registered& entry : registered) {
    T* const set = (entry.*member).load();
    if (set == nullptr) continue;
    f(*set);
    any = true;
  }
  return any;
}

void handle(int signal) {
  if (signal == SIGHUP && for_each(&Registered::checkpoints, [](CheckpointFolder& folder) { folder.request(); }))
    return;
  if (!for_each(&Registered::session, [](Session&) {}) && !looked_for) _exit(kInterrupted);
  std::int64_t never = 0;
  asked_at.compare_exchange_strong(never, now());
  if (asked.exchange(true)) {
    if (is_meant_twice(signal)) _exit(kInterrupted);
    return;
  }
  for_each(&Registered::session, [](Session& session) { session.cancel(); });
  const int saved = errno;
  const std::uint64_t once = 1;
  if (write(woken, &once, sizeof once) < 0) errno = saved;  // without a descriptor nothing waits
}

extern "C" void on_interrupt(int signal) {
  ++handling;
  handle(signal);
  --handling;
}

}  // namespace

void install_signal_handlers() {
  if (woken < 0) woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // restart interrupted reads and writes
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    struct sigaction before {};
    // A signal that the caller ignores stays ignored: SIGHUP under nohup, SIGINT of a shell's background job.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // Makes a closed pipe or the file size limit a failed write instead of a fatal signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool interrupted() {
  return asked.load();
}

int interrupt_event() {
  return woken;
}

double seconds_since_interrupt() {
  if (!interrupted()) return -std::numeric_limits<double>::infinity();
  return static_cast<double>(now() - asked_at) * 1e-9;
}

void wait_or_interrupt(double seconds) {
  const double end = Profiler::now() + seconds;
  while (!interrupted()) {
    const double left = end - Profiler::now();
    if (left <= 0) return;
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(std::floor(left));
    timeout.tv_nsec = static_cast<long>((left - std::floor(left)) * 1e9);
    pollfd event{woken, POLLIN, 0};
    ppoll(&event, 1, &timeout, nullptr);
  }
}

Interrupt::Interrupt(Session& session, CheckpointFolder* checkpoints) {
  while (registered[entry_].taken.exchange(true))
    if (++entry_ == registered.size()) throw std::length_error("too many trainings at once");
  registered[entry_].checkpoints = checkpoints;
  registered[entry_].session = &session;
}

// A handler in another thread may still use the session.
Interrupt::~Interrupt() {
  Registered& entry = registered[entry_];
  entry.checkpoints = nullptr;
  entry.session = nullptr;
  while (handling > 0) std::this_thread::yield();
  entry.taken = false;
}

Interruptible::Interruptible() {
  ++looked_for;
}

Interruptible::~Interruptible() {
  --looked_for;
}

}  // namespace graphrun::cli
