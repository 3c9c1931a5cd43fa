// jobs.h: runs this program several times concurrently, with different arguments.
// Contract: discards each job's stdout and keeps its stderr. Jobs end when this process does. Ctrl-C also reaches the
// jobs; no job starts after it. Throws Error (kind run) if a process cannot be created.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace graphrun::cli {

struct JobEnd {
  std::size_t job = 0;
  int code = 0;         // exit code, or 128 + the number of the fatal signal
  std::string message;  // first 4 KiB of stderr
};

// Runs all jobs, at most `at_once` concurrently. Calls ended() in this thread, in order of completion.
void run_jobs(const std::vector<std::vector<std::string>>& jobs, int at_once, const std::function<void(JobEnd)>& ended);

}  // namespace graphrun::cli
