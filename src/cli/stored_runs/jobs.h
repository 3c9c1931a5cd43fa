// jobs.h: this program again, several times at once, each with its own words.
// Contract: a job's stdout is nobody's, its stderr is kept for who asks. Jobs end with this process. Ctrl-C reaches
// them as it reaches this process: none is begun after it. Throws Error (kind run) when a process cannot be made.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace graphrun::cli {

struct JobEnd {
  std::size_t job = 0;
  int code = 0;         // 128 + the signal's number, if one ended it
  std::string message;  // what it wrote to stderr, the first 4 KiB
};

// Runs all, at most `at_once` at a time; ended() is called in this thread in the order in which they end.
void run_jobs(const std::vector<std::vector<std::string>>& jobs, int at_once, const std::function<void(JobEnd)>& ended);

}  // namespace graphrun::cli
