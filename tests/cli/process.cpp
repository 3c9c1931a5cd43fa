#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace graphrun::testing {
namespace {

struct Channel {
  int ours = -1, theirs = -1;
};

Channel make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  return {ends[0], ends[1]};
}

Channel make_terminal(unsigned short columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  Channel channel;
  if (openpty(&channel.ours, &channel.theirs, nullptr, nullptr, &size) != 0)
    throw std::runtime_error(std::string("no pseudo-terminal: openpty: ") + std::strerror(errno));
  fcntl(channel.ours, F_SETFD, FD_CLOEXEC);
  fcntl(channel.theirs, F_SETFD, FD_CLOEXEC);
  return channel;
}

std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name != "NO_COLOR" && name != "TERM" && !name.starts_with("GRAPHRUN_")) result.emplace_back(text);
  }
  result.emplace_back("TERM=xterm");
  for (const std::string& entry : extra) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(result, [&](const std::string& old) { return old.starts_with(name); });
    result.push_back(entry);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

// False at the end of the stream. A terminal whose other side has closed reports an error instead of an end.
bool drain(int descriptor, std::string& text) {
  std::array<char, 4096> bytes;
  const ssize_t got = read(descriptor, bytes.data(), bytes.size());
  if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

std::string no_terminal() {
  try {
    const Channel channel = make_terminal(40);
    close(channel.ours);
    close(channel.theirs);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Outcome run(const std::vector<std::string>& command, const ProcessOptions& options) {
  Channel out = make_pipe();
  Channel err = options.terminal ? make_terminal(options.columns) : make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (options.stdout_path.empty()) {
    posix_spawn_file_actions_adddup2(&actions, out.theirs, 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 1, options.stdout_path.c_str(), O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, err.theirs, 2);

  // A test that runs in the background of a script ignores SIGINT, and would hand that on.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = command, variables = environment_with(options.environment);
  pid_t process = 0;
  const int failed = posix_spawn(&process, words[0].c_str(), &actions, &attributes, pointers(words).data(),
                                 pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(out.theirs);
  close(err.theirs);
  if (failed != 0) throw std::runtime_error("cannot run " + words[0]);

  Outcome outcome;
  std::array<pollfd, 2> streams = {{{out.ours, POLLIN, 0}, {err.ours, POLLIN, 0}}};
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    poll(streams.data(), streams.size(), 1000);
    if (std::chrono::steady_clock::now() > limit) kill(process, SIGKILL);
    if (streams[0].revents != 0 && !drain(out.ours, outcome.out)) streams[0].fd = -1;
    if (streams[1].revents != 0) {
      if (!drain(err.ours, outcome.err)) streams[1].fd = -1;
      if (options.on_stderr) options.on_stderr(process, outcome.err);
    }
    for (pollfd& stream : streams) stream.revents = 0;
  }
  close(out.ours);
  close(err.ours);
  int status = 0;
  waitpid(process, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

}  // namespace graphrun::testing
