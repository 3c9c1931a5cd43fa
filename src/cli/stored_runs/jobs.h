// jobs.h: several trainings concurrently, as processes of this program or as threads of this one.
// Contract: discards each job's results on stdout and keeps its stderr. Ctrl-C also reaches the jobs; no job starts
// after it. Calls ended() in the calling thread, in order of completion. Throws Error (kind run) if a process or thread
// cannot be created.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

// Cores that the CPU executor uses: those of the affinity mask, within the limit of a container.
std::size_t cores();

struct JobEnd {
  std::size_t job = 0;
  int code = 0;         // exit code, or 128 + the number of the fatal signal
  std::string message;  // first 4 KiB of stderr
  int rank = 0;         // process that trained it (rank_jobs.h)
};
using OnJobEnd = std::function<void(const JobEnd&)>;

// Starts a process of this program, without stdin, stdout and stderr, that ends when this one does.
pid_t start_process(const std::vector<std::string>& command_line);

// Runs command lines as processes, at most `at_once` concurrently. They end when this process does.
void run_in_processes(const std::vector<std::vector<std::string>>& command_lines, std::size_t at_once,
                      const OnJobEnd& ended);
// Trains in threads of this process, at most `at_once` concurrently (training_run.h). Each thread asks `take` for the
// index of its next training, and ends without one. Each training runs on the executor with the fewest; without
// executors, each finds its own. ended() is called once the run's files are on the disk.
using TakeJob = std::function<std::optional<std::size_t>()>;
using Executors = std::vector<std::shared_ptr<Executor>>;
void run_in_threads(const std::vector<Arguments>& trainings, const Executors& executors, std::size_t at_once,
                    const TakeJob& take, const OnJobEnd& ended);

}  // namespace graphrun::cli
