#include "kernels/cpu/threads/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <csignal>

#include "kernels/cpu/threads/cores.h"

namespace graphrun::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread without work stays awake: longer than what lies between the loops of a step, or between steps.
constexpr auto kAwake = std::chrono::microseconds(100);
// From when on it offers its core to others between looks: one of them may be who would give it work. With more threads
// than cores that is from the first look on.
constexpr auto kAlone = std::chrono::microseconds(40);
constexpr int kLooks = 32;  // of about ten nanoseconds each, from one look at the clock to the next

// Looks before a thread that has nothing left begins parts of others.
constexpr int kPatience = 48;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Looks until `there` is true or for kAwake; says whether it became true.
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

// The words of a job: its number, then a count of parts.
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
  stopping_.store(true);
  job_.fetch_add(word_of(1, 0) - static_cast<std::uint64_t>(count_of(job_.load())));  // one without parts
  alarm_.fetch_add(1);
  alarm_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// False when no part of that owner's share is left, or the job is over. A word of an earlier job says that nobody has
// begun a part of this share yet. Words only grow, so that an exchange cannot succeed for a job that is over: then all
// of its parts were begun, and this share's word, if it has parts, has changed.
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

// Workers tell the caller, who may have gone to sleep, what they have done.
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
  // A look at another's share takes a cache line from its owner, who is about to need it if all goes well. When it went
  // wrong last time (a worker without a core), this time probably will not be better.
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

// Returns when there is another job than `last`.
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

// Its last parts are with workers.
void Pool::wait_for_parts(std::uint64_t job) noexcept {
  if (spin(alone_, [&] { return finished(job); })) return;
  while (!finished(job)) {
    caller_sleeps_.store(1);
    if (!finished(job)) caller_sleeps_.wait(1);
  }
  caller_sleeps_.store(0);
}

// The first part is begun before the job is known, by plain stores: an exchange would wait here until every store
// before it has reached the caches, those of the steps that ran last among them.
void Pool::run(int parts, Part part, void* context) noexcept {
  const std::uint64_t job = word_of(number_of(job_.load(std::memory_order_relaxed)) + 1, parts);
  part_ = part;
  context_ = context;
  shares_[0].next.store(word_of(number_of(job), 1), std::memory_order_relaxed);
  job_.store(job, std::memory_order_release);
  // A worker that falls asleep this very moment may be overlooked; then it misses this job, which needs none.
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
