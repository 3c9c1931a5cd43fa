// parallel.h: a fixed thread pool whose threads share the parts of one kernel, and the rule for splitting work.
// Contract: parts are independent of the number of threads and write disjoint memory; parts whose results are added
// depend on shapes alone. Results are therefore independent of the number of threads. run() serves one caller at a
// time, does not allocate, and returns when every part is done; writes of the parts are then visible to the caller. A
// part must not throw (it is called from noexcept code).
// Waiting: an idle thread spins for 100 microseconds, so that it is awake for the step's next kernel, then sleeps; an
// idle pool costs nothing. From 40 microseconds on, or immediately if there are more threads than cores, it yields
// between polls. Leaves to others: the work of a part (the families), the number of threads (executors/cpu).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace graphrun::cpu {

// A part is worth handing to another thread from about 16384 units on. A unit is the time of one element of a cheap
// loop, about half a nanosecond (memory at 10 GB/s, 16 multiply-adds of a product). A part takes 5 to 10 microseconds;
// dispatching a loop takes 0.3, or 5 to 30 if workers sleep. Less than two parts runs in the caller and wakes nobody.
inline constexpr std::int64_t kPartUnits = 16384;
inline constexpr int kMaxParts = 64;
inline constexpr std::int64_t kGrain = 64;  // elements: ranges are multiples, so that no cache line has two writers

inline int parts_for(std::int64_t units) {
  return static_cast<int>(std::clamp<std::int64_t>(units / kPartUnits, 1, kMaxParts));
}

// Number of threads of this process that can run at the same time, at least 1: the cores of the affinity mask, or fewer
// if a control group (a container's limit) grants the process less CPU time. With more threads than that, all are
// throttled for the rest of every period. The limit is read once per process: the files take 0.1 ms.
int available_cores();
// CPU limit of a control group and its ancestors, rounded up to whole cores; none: no limit. `groups` is the content of
// /proc/self/cgroup, `root` the mount point. Reads cpu.max (version 2) and cpu.cfs_*_us (version 1).
std::optional<int> cores_of_groups(std::string_view groups, const std::string& root);

class Pool {
 public:
  using Part = void (*)(void* context, int part);

  explicit Pool(int threads);  // including the caller of run(). Throws std::system_error if a thread cannot be created.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(int parts, Part part, void* context) noexcept;  // 1 <= parts <= kMaxParts
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Index of the calling thread in its pool: 0 for a caller of run(), then 1 to threads() - 1.
  static int current();
  std::uint64_t jobs() const;  // calls of run() so far

 private:
  // One thread's share of the current job. The thread takes the share's parts in order; a thread without parts left
  // steals from other shares. The upper bits of each word hold the number of the job it belongs to.
  struct Share {
    alignas(64) std::atomic<std::uint64_t> next{0};  // next part to begin
    alignas(64) std::atomic<std::uint64_t> done{0};  // parts that this thread has finished
    bool helped = false;                             // ran parts of other shares in its last job
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

  // A worker learns of a job from one cache line. Part and context are read only by threads that have begun a part, so
  // they cannot change during the read.
  alignas(64) std::atomic<std::uint64_t> job_{0};  // job number and number of parts
  Part part_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> alarm_{0};  // sleeping workers wait on it
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> started_{0};  // workers that have entered their loop
  alignas(64) std::atomic<std::uint32_t> caller_sleeps_{0};
  std::chrono::nanoseconds alone_;  // spin time before a thread starts yielding its core
  std::vector<Share> shares_;       // one per thread
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
