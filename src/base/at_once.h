// at_once.h: runs jobs in threads, several at a time.
// Contract: jobs do not throw. The calling thread runs the functions that jobs send it and reports the ends of jobs,
// one after the other, while other jobs run. Throws Error (kind run) if no thread can be created.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace graphrun {

// Runs f, which does not throw, in the thread that called run_at_once(), and waits for it. Allocates nothing.
using RunInCaller = std::function<void(const std::function<void()>& f)>;
using Job = std::function<void(std::size_t job, const RunInCaller& run_in_caller)>;
// Jobs that have ended since the last call, in order of completion. It may throw if jobs send no functions;
// run_at_once() then throws after the end of all jobs.
using OnJobsEnd = std::function<void(std::span<const std::size_t> jobs)>;

// Runs jobs 0, ..., count - 1, at most `at_once` (at least 1) concurrently. They begin in this order.
void run_at_once(std::size_t count, std::size_t at_once, const Job& job, const OnJobsEnd& on_end);

}  // namespace graphrun
