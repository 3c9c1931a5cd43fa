// parallel.h: a fixed pool of threads that share the parts of one kernel, and the rule that cuts work into parts.
// Contract: parts never follow from the number of threads, and write disjoint memory; those that are added up follow
// from shapes alone: so the bits do not depend on threads. run() is for one caller at a time, allocates nothing and
// returns when every part is done; what parts wrote is then visible to the caller. A part must not throw (it is called
// from noexcept code).
// Waiting: a thread without work spins for 100 microseconds, so that the next kernel of a step finds it awake, and then
// sleeps; an idle pool costs nothing. From 40 microseconds on it yields its core between looks, from the start if there
// are more threads than cores.
// Leaves to others: what a part computes (the families), how many threads there are (executors/cpu).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace graphrun::cpu {

// A part is worth handing to another thread from about 16384 units on. A unit is the time of one element of a cheap
// loop, half a nanosecond or so (memory at 10 GB/s, 16 multiply-adds of a product): a part takes 5 to 10 microseconds,
// handing over a loop 0.3, and 5 to 30 if workers sleep. Less than two parts runs in the calling thread, wakes nobody.
inline constexpr std::int64_t kPartUnits = 16384;
inline constexpr int kMaxParts = 64;
inline constexpr std::int64_t kGrain = 64;  // elements: ranges are multiples, so that no cache line has two writers

inline int parts_for(std::int64_t units) {
  return static_cast<int>(std::clamp<std::int64_t>(units / kPartUnits, 1, kMaxParts));
}

class Pool {
 public:
  using Part = void (*)(void* context, int part);

  explicit Pool(int threads);  // the caller of run() is one of them. Throws std::system_error: no more threads.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(int parts, Part part, void* context) noexcept;  // 1 <= parts <= kMaxParts
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Which of its pool's threads runs: 0 for a caller of run(), then 1 to threads() - 1.
  static int current();
  std::uint64_t jobs() const;  // calls of run() so far

 private:
  // What one thread has of the job in hand. The first parts of it that nobody has begun are the thread's own; who has
  // none left takes from another's. Each word begins with the number of the job that it tells of.
  struct Share {
    alignas(64) std::atomic<std::uint64_t> next{0};  // the next part to begin
    alignas(64) std::atomic<std::uint64_t> done{0};  // parts that this thread has finished
    bool helped = false;                             // in its last job it ran parts of others
  };

  void stop();
  void work(int index) noexcept;
  bool begin_part(int owner, std::uint64_t job, int& part) noexcept;
  int run_share(int owner, std::uint64_t job) noexcept;
  void work_on(std::uint64_t job, int index, int done) noexcept;
  void tell(std::uint64_t job, int index, int done) noexcept;
  bool finished(std::uint64_t job) const noexcept;
  void wait_for_job(std::uint64_t last) noexcept;
  void wait_for_parts(std::uint64_t job) noexcept;

  // One cache line tells a worker all of a job. Part and context are read only by whoever has begun a part, so that
  // they cannot change meanwhile.
  alignas(64) std::atomic<std::uint64_t> job_{0};  // its number and how many parts it has
  Part part_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> alarm_{0};  // what sleeping workers wait for
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> started_{0};  // workers that have come to their loop
  alignas(64) std::atomic<std::uint32_t> caller_sleeps_{0};
  std::chrono::nanoseconds alone_;  // that a thread spins before it offers its core to others
  std::vector<Share> shares_;       // of each thread
  std::vector<std::thread> workers_;
};

// Calls f(part) for each part, in the pool's threads if there is one.
template <class F>
void for_parts(Pool* pool, int parts, F&& f) {
  if (pool == nullptr || parts <= 1) {
    for (int i = 0; i < parts; ++i) f(i);
    return;
  }
  const auto part = [](void* context, int i) { (*static_cast<std::remove_reference_t<F>*>(context))(i); };
  pool->run(parts, part, const_cast<void*>(static_cast<const void*>(&f)));
}

// Calls f(first, last) for ranges that cover [0, n) in `parts` parts of about equal size, multiples of `grain` each.
template <class F>
void for_ranges(Pool* pool, int parts, std::int64_t n, std::int64_t grain, F&& f) {
  const std::int64_t grains = (n + grain - 1) / grain;
  const int count = static_cast<int>(std::min<std::int64_t>(parts, grains));
  if (count <= 1) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  for_parts(pool, count, [&](int i) { f(grains * i / count * grain, std::min(grains * (i + 1) / count * grain, n)); });
}

}  // namespace graphrun::cpu
