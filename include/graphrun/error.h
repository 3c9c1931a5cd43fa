// error.h: user errors as a list of diagnostics: the problem, its location and the expected form.
// Contract: the library reports every user error by throwing Error; it never prints, aborts or exits. Broken internal
// invariants throw std::logic_error: a bug to report, not a message to act on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

// The kind decides the exit code of the command line (architecture.md, "Exit codes").
enum class ErrorKind {
  run,     // 1: the run failed, for instance with a nonfinite loss
  input,   // 2: bad usage, model file, data file or checkpoint
  check,   // 3: a requested check or limit failed
  device,  // 4: a device, its driver or its memory is not available
};

struct Diagnostic {
  std::string code = {};         // stable and short: "json.syntax", "model.unknown_key", "shape.mismatch"
  std::string message = {};      // the problem and the expected form
  std::string hint = {};         // suggested action, or the nearest valid name; may be empty
  std::string file = {};         // empty when no file is involved
  int line = 0;                  // from 1; 0 = unknown
  int column = 0;                // from 1, in bytes
  std::string pointer = {};      // JSON pointer (RFC 6901) into the file; may be empty
  std::string source_line = {};  // the offending line without its newline; may be empty
};

// "models/a.json:12:9: /graph/2/units: must be > 0, got -3\n    <line>\n    ^\n    hint: ..."
// Control characters are escaped as in printable(), except newlines of a message: the next line is indented.
GRAPHRUN_API std::string to_string(const Diagnostic& diagnostic);

// The text on one line and safe for a terminal: control and text-direction characters and invalid UTF-8 become \n, \t,
// \x1b or \u202e.
GRAPHRUN_API std::string printable(std::string_view text);

// The text as a JSON string, quotes included. Always UTF-8: invalid bytes become U+FFFD; control characters, including
// text-direction ones, are escaped.
GRAPHRUN_API std::string json_string(std::string_view text);

inline constexpr std::size_t kMaxDiagnostics = 50;  // kept by an Error; further ones are counted

class GRAPHRUN_API Error : public std::exception {
 public:
  // Keeps the first kMaxDiagnostics and cuts very long texts in the middle. `more`: errors that are only counted.
  Error(ErrorKind kind, std::vector<Diagnostic> diagnostics, std::size_t more = 0);
  Error(ErrorKind kind, std::string code, std::string message, std::string hint = {});

  ErrorKind kind() const { return kind_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  std::size_t more() const { return more_; }
  // All diagnostics, one after another, and the number of further ones.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t more_ = 0;
  std::string text_;
};

// A machine has less memory than a plan needs. The caller that can plan again (session.h) suggests remedies (the
// largest values, a batch that fits): an executor knows only the sizes.
class GRAPHRUN_API OutOfMemory : public Error {
 public:
  // `usable`: size in bytes of the largest plan that would load.
  OutOfMemory(std::string code, std::string message, std::uint64_t needed, std::uint64_t usable, std::string hint = {});
  ~OutOfMemory() override;

  std::uint64_t needed() const { return needed_; }
  std::uint64_t usable() const { return usable_; }

 private:
  std::uint64_t needed_, usable_;
};

// Candidate nearest to `name`; swapped neighbours or a wrong case count as one edit. Empty if none is within a third of
// the name's length (at most 3 edits) or the name exceeds 64 bytes.
GRAPHRUN_API std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);
// Hint "did you mean 'relu'?", or "".
GRAPHRUN_API std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace graphrun
