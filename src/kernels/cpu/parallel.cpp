#include "kernels/cpu/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>

namespace graphrun::cpu {
namespace {

// Rounds of the pause instruction before a thread sleeps: it takes 10 to 140 cycles, so 5 to 50 microseconds in all,
// several kernels of a small step.
constexpr int kSpins = 1000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr std::uint64_t kByte = 0xff;
constexpr int next_of(std::uint64_t ticket) {
  return static_cast<int>(ticket & kByte);
}
constexpr int parts_of(std::uint64_t ticket) {
  return static_cast<int>(ticket >> 8 & kByte);
}
constexpr std::uint64_t job_after(std::uint64_t ticket, int parts) {
  return ((ticket >> 16) + 1) << 16 | static_cast<std::uint64_t>(parts) << 8;
}

thread_local int current_thread = 0;

}  // namespace

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(CPU_COUNT(&cores), 1);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

Pool::Pool(int threads) : spins_(threads <= available_cores() ? kSpins : 0) {
  // Signals are for the program's own threads, but for those that a thread raises itself.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) sigdelset(&blocked, own);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    stop();
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // What the start of a thread allocates (a sanitizer's bookkeeping, say) belongs to load(), not to the first run.
  const auto wanted = static_cast<std::uint32_t>(workers_.size());
  for (std::uint32_t now = started_.load(); now != wanted; now = started_.load()) started_.wait(now);
}

int Pool::current() {
  return current_thread;
}

Pool::~Pool() {
  stop();
}

void Pool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  posted_.fetch_add(1, std::memory_order_release);
  posted_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// False when the job in hand has no part left.
bool Pool::take_one() noexcept {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const int next = next_of(ticket);
    if (next >= parts_of(ticket)) return false;
    // These belong to `ticket` if the exchange succeeds: they change only after the last part of a job is done.
    const Part part = part_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    if (ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      part(context, next);
      const std::uint32_t parts = static_cast<std::uint32_t>(parts_of(ticket));
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) done_.notify_one();
      return true;
    }
  }
}

void Pool::work(int index) noexcept {
  current_thread = index;
  started_.fetch_add(1);
  started_.notify_all();
  for (;;) {
    const std::uint32_t posted = posted_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    while (take_one()) {
    }
    for (int i = 0; i < spins_ && posted_.load(std::memory_order_relaxed) == posted; ++i) pause();
    posted_.wait(posted, std::memory_order_acquire);
  }
}

void Pool::run(int parts, Part part, void* context) noexcept {
  part_.store(part, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(job_after(ticket_.load(std::memory_order_relaxed), parts), std::memory_order_release);
  posted_.fetch_add(1, std::memory_order_release);
  // As many as there is work for; a system call only for those that sleep.
  const int helpers = std::min(parts - 1, static_cast<int>(workers_.size()));
  for (int i = 0; i < helpers; ++i) posted_.notify_one();
  while (take_one()) {
  }
  std::uint32_t done = done_.load(std::memory_order_acquire);
  for (int i = 0; i < spins_ && done != static_cast<std::uint32_t>(parts); ++i) {
    pause();
    done = done_.load(std::memory_order_acquire);
  }
  for (; done != static_cast<std::uint32_t>(parts); done = done_.load(std::memory_order_acquire))
    done_.wait(done, std::memory_order_acquire);
}

std::uint64_t Pool::jobs() const {
  return ticket_.load(std::memory_order_relaxed) >> 16;
}

}  // namespace graphrun::cpu
