#include "cli/terminal/slow_operation.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>

namespace graphrun::cli {

void PeriodicTimer::start(double first, std::function<double()> tick) {
  tick_ = std::move(tick);
  try {
    thread_ = std::thread([this, first] { run(first); });
  } catch (const std::system_error&) {  // thread limit reached: the work continues without messages
    return;
  }
  // Allocations made while the thread starts (by a sanitizer, for example) must not be counted as a step's.
  started_.wait(false);
}

void PeriodicTimer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PeriodicTimer::run(double wait) {
  started_.store(true);
  started_.notify_one();
  std::unique_lock lock(mutex_);
  while (wait >= 0) {
    if (wake_.wait_for(lock, std::chrono::duration<double>(wait), [this] { return stopped_; })) return;
    lock.unlock();
    wait = tick_();
    lock.lock();
  }
}

SlowOperationNotice::SlowOperationNotice(Diagnostics& diagnostics, std::string what)
    : diagnostics_(diagnostics), what_(std::move(what)) {
  if (diagnostics.chatty()) timer_.start(waited_, [this] { return tick(); });
}

void SlowOperationNotice::report(std::string_view what, double done) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  done_ = done;
}

double SlowOperationNotice::tick() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = done_ < 0 ? what_ + " ..." : fmt::format("{}: {:.0f} %", what_, 100 * done_);
  }
  diagnostics_.note(text);
  const double wait = until_next_line(waited_);
  waited_ += wait;
  return wait;
}

}  // namespace graphrun::cli
