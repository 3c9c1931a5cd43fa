// diagnostics.h: errors and warnings on stderr, and the exit codes.
// Contract: text messages are written at once. With JSON, stderr gets exactly one array when finish() is called, and
// nothing if there was no message. Control characters in names and paths never reach the terminal. Nothing throws: a
// message is dropped if stderr or memory fails. Exit codes are part of the interface and never change their meaning.
#pragma once

#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "graphrun/error.h"

namespace graphrun::cli {

enum ExitCode : int {
  kDone = 0,
  kRunFailed = 1,
  kBadInput = 2,
  kCheckFailed = 3,
  kNoDevice = 4,
  kInterrupted = 130,
};

ExitCode exit_code(ErrorKind kind);

// Writes the members of an object.
void write_diagnostic(JsonWriter& json, std::string_view severity, const Diagnostic& diagnostic);

class Diagnostics {
 public:
  enum class Format { text, json };
  Diagnostics(Format format, bool quiet) : format_(format), quiet_(quiet) {}
  // Appends the errors to `errors`, as text, and drops all other messages.
  explicit Diagnostics(std::string& errors) : format_(Format::text), quiet_(true), errors_(&errors) {}
  void set_quiet(bool quiet) { quiet_ = quiet; }

  void warn(std::string_view message) noexcept;  // suppressed if quiet
  void note(std::string_view message) noexcept;  // text only; suppressed if quiet
  void error(const Error& error) noexcept;
  void out_of_memory() noexcept;  // allocates nothing
  void finish() noexcept;

  // Whether progress lines may go to stderr.
  bool chatty() const { return !quiet_ && format_ == Format::text; }

 private:
  void add(std::string_view severity, const Diagnostic& diagnostic);
  void write_line(std::string_view text) noexcept;

  Format format_;
  bool quiet_;
  std::string* errors_ = nullptr;  // receives the errors; null: stderr does
  bool any_ = false;
  JsonWriter json_;
};

// Writes the message of the exception that is being handled; returns its exit code.
int report_exception(Diagnostics& diagnostics) noexcept;
// Calls run(), which returns an exit code. Allocates nothing by itself: that could throw outside.
template <class Run>
int guarded(Diagnostics& diagnostics, Run run) noexcept {
  try {
    return run();
  } catch (...) {
    return report_exception(diagnostics);
  }
}

}  // namespace graphrun::cli
