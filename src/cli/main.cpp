// main.cpp: parses the command line, runs the verb, and converts exceptions to a message and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "cli/command_line/help.h"
#include "cli/command_line/verbs.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"

namespace {

using namespace graphrun;
using namespace graphrun::cli;

int run(int argc, const char* const* argv, Diagnostics& diagnostics) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.help) return help_verb.run(arguments, diagnostics);
  if (arguments.version) {
    write_results(version_text());
    return kDone;
  }
  diagnostics.set_quiet(arguments.quiet);
  return find_verb(arguments.verb)->run(arguments, diagnostics);
}

// The next opened file would get a closed stream's descriptor, and results would be written into it. The replacement is
// opened read-only, so that writes still fail and are reported.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    if (open("/dev/null", O_RDONLY) < 0 && open("/", O_RDONLY) < 0) continue;
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  install_signal_handlers();
  Diagnostics diagnostics(diagnostics_format(argc, argv), false);
  const int code = guarded(diagnostics, [&] { return run(argc, argv, diagnostics); });
  diagnostics.finish();
  return code;
}
