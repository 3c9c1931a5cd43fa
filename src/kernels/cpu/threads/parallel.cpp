#include "kernels/cpu/threads/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>

namespace graphrun::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Spin time of an idle thread: longer than the gaps between the loops of a step and between steps.
constexpr auto kAwake = std::chrono::microseconds(100);
// Time after which a spinning thread yields between polls: the thread that would give it work may need the core. With
// more threads than cores it yields from the first poll on.
constexpr auto kAlone = std::chrono::microseconds(40);
constexpr int kLooks = 32;  // polls of about ten nanoseconds each between reads of the clock

// Polls before a thread without parts left steals from other shares.
constexpr int kPatience = 48;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls until `there` is true or for kAwake; returns whether it became true.
template <class Condition>
bool spin(std::chrono::nanoseconds alone, Condition&& there) {
  for (const auto start = Clock::now();;) {
    for (int i = 0; i < kLooks; ++i) {
      if (there()) return true;
      pause();
    }
    const auto waited = Clock::now() - start;
    if (waited > kAwake) return false;
    if (waited >= alone) sched_yield();
  }
}

// Words of a job: its number, then a count of parts.
constexpr std::uint64_t kByte = 0xff;
constexpr std::uint64_t number_of(std::uint64_t word) {
  return word >> 8;
}
constexpr int count_of(std::uint64_t word) {
  return static_cast<int>(word & kByte);
}
constexpr std::uint64_t word_of(std::uint64_t number, int count) {
  return number << 8 | static_cast<std::uint64_t>(count);
}

thread_local int current_thread = 0;

}  // namespace

Pool::Pool(int threads)
    : alone_(threads <= available_cores() ? kAlone : std::chrono::nanoseconds(0)),
      shares_(static_cast<std::size_t>(threads)) {
  // Workers block all signals that a thread does not raise itself: those are for the program's own threads.
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
  // Allocations at thread start (such as a sanitizer's bookkeeping) must happen in load(), not in the first run.
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
  stopping_.store(true);
  job_.fetch_add(word_of(1, 0) - static_cast<std::uint64_t>(count_of(job_.load())));  // a job without parts
  alarm_.fetch_add(1);
  alarm_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Returns false if the owner's share has no parts left, or the job is over. A word of an earlier job means that nobody
// has begun a part of this share. Words only grow, so the compare-and-swap cannot succeed for a job that is over: all
// of its parts were begun, hence this share's word, if it has parts, has changed.
bool Pool::begin_part(int owner, std::uint64_t job, int& part) noexcept {
  const int parts = count_of(job);
  const int owners = std::min(parts, threads());
  if (owner >= owners) return false;
  const int first = parts * owner / owners;
  const int last = parts * (owner + 1) / owners;
  std::atomic<std::uint64_t>& next = shares_[static_cast<std::size_t>(owner)].next;
  for (std::uint64_t word = next.load(std::memory_order_relaxed);;) {
    if (number_of(word) > number_of(job)) return false;
    part = number_of(word) == number_of(job) ? count_of(word) : first;
    if (part == last) return false;
    if (next.compare_exchange_weak(word, word_of(number_of(job), part + 1), std::memory_order_relaxed)) return true;
  }
}

int Pool::run_share(int owner, std::uint64_t job) noexcept {
  int done = 0;
  for (int part = 0; begin_part(owner, job, part); ++done) part_(context_, part);
  return done;
}

// Reports a worker's finished parts to the caller, which may be asleep.
void Pool::tell(std::uint64_t job, int index, int done) noexcept {
  shares_[static_cast<std::size_t>(index)].done.store(word_of(number_of(job), done));
  if (caller_sleeps_.load() == 0) return;
  caller_sleeps_.store(0);
  caller_sleeps_.notify_one();
}

void Pool::work_on(std::uint64_t job, int index, int done) noexcept {
  Share& own = shares_[static_cast<std::size_t>(index)];
  done += run_share(index, job);
  if (done > 0) tell(job, index, done);
  // Stealing takes a cache line from its owner, who normally needs it soon, so wait first. If the last job needed
  // stealing (a worker had no core), this one probably does too.
  for (int i = own.helped ? kPatience : 0; i < kPatience; ++i) {
    if (index == 0 ? finished(job) : job_.load(std::memory_order_relaxed) != job) return;
    pause();
  }
  own.helped = false;
  for (int k = 1; k < threads(); ++k) {
    const int more = run_share((index + k) % threads(), job);
    if (more == 0) continue;
    done += more;
    tell(job, index, done);
    own.helped = true;
  }
}

bool Pool::finished(std::uint64_t job) const noexcept {
  int done = 0;
  for (const Share& share : shares_) {
    const std::uint64_t word = share.done.load();
    if (number_of(word) == number_of(job)) done += count_of(word);
  }
  return done == count_of(job);
}

void Pool::work(int index) noexcept {
  current_thread = index;
  started_.fetch_add(1);
  started_.notify_all();
  for (std::uint64_t job = 0;;) {
    wait_for_job(job);
    job = job_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    work_on(job, index, 0);
  }
}

// Returns when the current job differs from `last`.
void Pool::wait_for_job(std::uint64_t last) noexcept {
  if (spin(alone_, [&] { return job_.load(std::memory_order_relaxed) != last; })) return;
  sleepers_.fetch_add(1);
  for (;;) {
    const std::uint32_t alarm = alarm_.load();
    if (job_.load() != last) break;
    alarm_.wait(alarm);
  }
  sleepers_.fetch_sub(1);
}

// Waits for parts that workers are still running.
void Pool::wait_for_parts(std::uint64_t job) noexcept {
  if (spin(alone_, [&] { return finished(job); })) return;
  while (!finished(job)) {
    caller_sleeps_.store(1);
    if (!finished(job)) caller_sleeps_.wait(1);
  }
  caller_sleeps_.store(0);
}

// Begins the first part before publishing the job, with plain stores: an atomic read-modify-write would stall until all
// earlier stores, such as those of the last steps, have reached the cache.
void Pool::run(int parts, Part part, void* context) noexcept {
  const std::uint64_t job = word_of(number_of(job_.load(std::memory_order_relaxed)) + 1, parts);
  part_ = part;
  context_ = context;
  shares_[0].next.store(word_of(number_of(job), 1), std::memory_order_relaxed);
  job_.store(job, std::memory_order_release);
  // This may miss a worker that is just falling asleep; it then skips this job, which does not need it.
  if (sleepers_.load(std::memory_order_relaxed) > 0) {
    alarm_.fetch_add(1);
    for (int helpers = std::min(parts, threads()) - 1; helpers > 0; --helpers) alarm_.notify_one();
  }
  part(context, 0);
  work_on(job, 0, 1);
  if (!finished(job)) wait_for_parts(job);
}

std::uint64_t Pool::jobs() const {
  return number_of(job_.load(std::memory_order_relaxed));
}

}  // namespace graphrun::cpu
