// process.h: run a program and keep what it said.
// Contract: run() returns when the program has ended; a program that takes longer than a minute is killed, which shows
// as a signal. The environment is that of the test, less what the command line reads, plus `environment`.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace graphrun::testing {

struct Outcome {
  int code = -1;   // exit code; -1 when a signal ended it
  int signal = 0;  // 0 when it exited
  std::string out, err;
};

struct ProcessOptions {
  std::vector<std::string> environment = {};  // "NAME=value"
  bool terminal = false;                      // stderr is a terminal
  unsigned short columns = 40;                // width of the terminal
  std::string stdout_path = {};               // instead of a pipe
  // Called with all of stderr so far whenever there is more.
  std::function<void(pid_t process, std::string_view err)> on_stderr = {};
};

// Why there is no terminal to be had here, as in a chroot without devpts; empty when there is one. Tests that need one
// are skipped with it.
std::string no_terminal();

Outcome run(const std::vector<std::string>& command, const ProcessOptions& options = {});

}  // namespace graphrun::testing
