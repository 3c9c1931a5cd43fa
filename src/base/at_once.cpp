#include "base/at_once.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "graphrun/error.h"

namespace graphrun {

void run_at_once(std::size_t count, std::size_t at_once, const Job& job, const OnJobsEnd& on_end) {
  struct Call {
    const std::function<void()>& f;
    bool done = false;
    std::condition_variable answered = {};
  };
  at_once = std::min(std::max<std::size_t>(at_once, 1), count);
  std::mutex mutex;  // protects the vectors and the calls
  std::condition_variable changed;
  std::vector<Call*> calls, taken;
  std::vector<std::size_t> ends;
  for (std::vector<Call*>* one : {&calls, &taken}) one->reserve(at_once);  // jobs may count their allocations
  ends.reserve(count);  // the calling thread reads while others append
  const RunInCaller run_in_caller = [&](const std::function<void()>& f) {
    Call call{f};
    std::unique_lock lock(mutex);
    calls.push_back(&call);
    changed.notify_one();
    call.answered.wait(lock, [&] { return call.done; });
  };
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t one = next++; one < count; one = next++) {
      job(one, run_in_caller);
      const std::lock_guard lock(mutex);
      ends.push_back(one);
      changed.notify_one();
    }
  };
  std::vector<std::jthread> threads;
  threads.reserve(at_once);
  while (threads.size() < at_once) {
    try {
      threads.emplace_back(work);
    } catch (const std::system_error& error) {  // thread limit reached: fewer run at a time
      if (!threads.empty()) break;
      throw Error(ErrorKind::run, "threads.start", std::string("cannot start a thread: ") + error.what());
    }
  }
  std::unique_lock lock(mutex);
  for (std::size_t reported = 0; reported < count;) {
    changed.wait(lock, [&] { return reported < ends.size() || !calls.empty(); });
    taken.assign(calls.begin(), calls.end());
    calls.clear();
    const std::span group = std::span<const std::size_t>(ends).subspan(reported);
    lock.unlock();
    for (Call* call : taken) {
      call->f();
      const std::lock_guard answer(mutex);  // the Call ends with the wait for it
      call->done = true;
      call->answered.notify_one();
    }
    if (on_end && !group.empty()) on_end(group);
    reported += group.size();
    lock.lock();
  }
}

}  // namespace graphrun
