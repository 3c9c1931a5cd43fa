#include "cli/stored_runs/jobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "base/at_once.h"
#include "cli/command_line/diagnostics.h"
#include "cli/terminal/interrupt.h"
#include "cli/training/training_run.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kKeptMessage = 4096;
constexpr int kLookEveryMs = 2;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void reject_job(const char* what) {
  throw Error(ErrorKind::run, "sweep.process", fmt::format("{}: {}", what, std::strerror(errno)));
}

TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  if (file == nullptr) reject_job("cannot store the output of a training run");
  return file;
}

// `errors`: descriptor for stderr; negative: none.
pid_t begin(const std::vector<std::string>& words, int errors) {
  // Allocates before the fork: the child may only call async-signal-safe functions.
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) reject_job("cannot start a process");
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nobody = ::open("/dev/null", O_RDWR);
  if (::getppid() == parent && nobody >= 0 && ::dup2(nobody, STDIN_FILENO) >= 0 && ::dup2(nobody, STDOUT_FILENO) >= 0 &&
      ::dup2(errors < 0 ? nobody : errors, STDERR_FILENO) >= 0)
    ::execv("/proc/self/exe", arguments.data());
  ::_exit(127);
}

std::string kept_of(std::FILE* file) {
  std::string text(kKeptMessage, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

struct ThreadEnd : JobEnd {
  UnsyncedRun run;
  bool begun = false;

  // An error replaces the exit code of the run.
  template <class F>
  void attempt(F step) {
    if (run.folder.empty()) return;
    Diagnostics diagnostics(message);
    const int failed = guarded(diagnostics, [&] { return step(run), kDone; });
    if (failed != kDone) code = failed, run.folder.clear();
  }
};

}  // namespace

std::size_t cores() {
  static const auto cores = static_cast<std::size_t>(find_executor("cpu")->devices().devices.at(0).units);
  return cores;
}

pid_t start_process(const std::vector<std::string>& words) {
  return begin(words, -1);
}

void run_in_processes(const std::vector<std::vector<std::string>>& jobs, std::size_t at_once, const OnJobEnd& ended) {
  struct Running {
    std::size_t job;
    TemporaryFile errors;
  };
  std::map<pid_t, Running> running;
  const Interruptible interruptible;
  std::size_t next = 0;
  bool signalled = false;  // jobs were sent a signal after an interrupt
  while (true) {
    while (next < jobs.size() && running.size() < at_once && !interrupted()) {
      TemporaryFile errors = temporary_file();
      const pid_t child = begin(jobs[next], ::fileno(errors.get()));
      running.emplace(child, Running{next++, std::move(errors)});
    }
    if (running.empty()) return;
    if (interrupted() && !signalled) {
      for (const auto& [child, one] : running) ::kill(child, SIGTERM);
      signalled = true;
    }
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, WNOHANG);
    if (child < 0 && errno != EINTR) reject_job("cannot wait for a training run");
    if (child <= 0) {
      ::poll(nullptr, 0, kLookEveryMs);
      continue;
    }
    const auto found = running.find(child);
    if (found == running.end()) continue;
    JobEnd end{found->second.job, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
               kept_of(found->second.errors.get())};
    running.erase(found);
    ended(end);
  }
}

void run_in_threads(const std::vector<Arguments>& trainings, const Executors& executors, std::size_t at_once,
                    const TakeJob& take, const OnJobEnd& ended) {
  const Interruptible interruptible;
  std::vector<ThreadEnd> ends(trainings.size());
  std::mutex mutex;  // protects `running`
  std::vector<std::size_t> running(executors.size());
  const auto train = [&](std::size_t slot, const RunInCaller&) {
    const std::optional<std::size_t> job = take();
    if (!job) return;
    ThreadEnd& end = ends[slot];
    end.begun = true;
    end.job = *job;
    Diagnostics diagnostics(end.message);
    Arguments training = trainings[*job];
    std::unique_lock lock(mutex);
    const auto fewest = std::ranges::min_element(running);
    if (fewest != running.end()) {
      ++*fewest;
      training.session.custom_executor = executors[static_cast<std::size_t>(fewest - running.begin())];
    }
    lock.unlock();
    end.code = guarded(diagnostics, [&] { return train_and_store(training, diagnostics, {}, &end.run); });
    lock.lock();
    if (fewest != running.end()) --*fewest;
  };
  run_at_once(trainings.size(), at_once, train, [&](std::span<const std::size_t> slots) {
    // Completes all runs that have ended while the threads train: they never wait for the disk, and one sync serves
    // all of these runs.
    for (const auto step : {&UnsyncedRun::write_result, &UnsyncedRun::name_result}) {
      std::map<::dev_t, bool> synced;
      for (const std::size_t slot : slots) ends[slot].attempt([&](const UnsyncedRun& run) { (run.*step)(); });
      for (const std::size_t slot : slots) ends[slot].attempt([&](const UnsyncedRun& run) { run.sync(synced); });
    }
    for (const std::size_t slot : slots) {
      ThreadEnd end = std::move(ends[slot]);
      if (!end.begun) continue;
      end.message.resize(std::min(end.message.size(), kKeptMessage));
      ended(end);
    }
  });
}

}  // namespace graphrun::cli
