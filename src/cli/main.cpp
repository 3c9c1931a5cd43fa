// main.cpp: parse, run the verb, and turn whatever is thrown into a message and an exit code.
#include <fmt/format.h>

#include <exception>
#include <new>

#include "arguments.h"
#include "diagnostics.h"
#include "help.h"
#include "interrupt.h"
#include "terminal.h"
#include "verbs.h"

namespace {

using namespace graphrun;
using namespace graphrun::cli;

int run(int argc, const char* const* argv, Diagnostics& diagnostics) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.help) return run_help(arguments, diagnostics);
  if (arguments.version) {
    write_results(version_text());
    return kDone;
  }
  diagnostics.set_quiet(arguments.quiet);
  return find_verb(arguments.verb)->run(arguments, diagnostics);
}

int report(Diagnostics& diagnostics, const Error& error) {
  diagnostics.error(error);
  return exit_code(error.kind());
}

int guarded(int argc, const char* const* argv, Diagnostics& diagnostics) {
  try {
    return run(argc, argv, diagnostics);
  } catch (const Error& error) {
    return report(diagnostics, error);
  } catch (const std::bad_alloc&) {
    return report(diagnostics, Error(ErrorKind::device, "device.memory", "out of memory"));
  } catch (const std::exception& bug) {
    return report(diagnostics, Error(ErrorKind::run, "internal",
                                     fmt::format("internal error: {}; please report it with the model file and the "
                                                 "output of graphrun --version",
                                                 bug.what())));
  }
}

}  // namespace

int main(int argc, char** argv) {
  install_signal_handlers();
  Diagnostics diagnostics(diagnostics_format(argc, argv), false);
  const int code = guarded(argc, argv, diagnostics);
  diagnostics.finish();
  return code;
}
