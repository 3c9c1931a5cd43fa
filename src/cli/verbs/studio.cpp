// studio.cpp: the verb `studio`: local web page to build, train and inspect a model.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cli/command_line/verbs.h"
#include "cli/studio/routes.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"

extern char** environ;

namespace graphrun::cli {
namespace {

// Opens a browser if there is a desktop; other users follow the printed address.
void open_browser(const std::string& url) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  const char* const words[] = {"xdg-open", url.c_str(), nullptr};
  posix_spawn_file_actions_t silent;
  posix_spawn_file_actions_init(&silent);
  posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  posix_spawnp(&process, words[0], &silent, nullptr, const_cast<char* const*>(words), environ);
  posix_spawn_file_actions_destroy(&silent);
}

int run_studio(const Arguments& arguments, Diagnostics& diagnostics) {
  const Interruptible interruptible;
  Studio studio(arguments);
  const std::string url = studio.server.access().url();
  write_results(url + "\n");
  if (arguments.studio.browser) open_browser(url);
  diagnostics.note("Ctrl-C ends the studio; only the browser that has this address may use it");
  studio.server.run(interrupt_event(), [&](const studio::Request& request, studio::Ticket ticket) {
    return studio.answer(request, ticket);
  });
  return kInterrupted;
}

}  // namespace

const Verb studio_verb = {
    "studio",
    "",
    Positionals::model_or_none,
    "build, train and inspect a model in the browser",
    R"(Starts a local web server, prints its address and opens the page in the browser. On the page, drop a table
(CSV or TSV) or select one, edit the model with controls or as JSON, and train it while you watch curves and
plots. You can also inspect the graph, the values and the memory plan, and compare stored runs.

The studio stores runs next to the model, like train --run-dir. The page shows the command that trains the
same weights. The server listens on 127.0.0.1 only and requires the token in the address. Ctrl-C stops it.)",
    R"(graphrun studio
graphrun studio model.json
graphrun studio model.json --port 8000 --no-browser)",
    run_studio};

}  // namespace graphrun::cli
