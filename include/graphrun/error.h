// error.h: what a user's mistake looks like: a list of diagnostics that say what, where, what was expected.
// Contract: the library reports every mistake of its user by throwing Error; it never prints, aborts or exits.
// Leaves to others: broken invariants of ours are std::logic_error (a bug to report, not a message to act on).
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
  run,     // 1: the run failed, for instance a loss that is not finite
  input,   // 2: bad usage, model file, data file or checkpoint
  check,   // 3: a check that was asked for failed
  device,  // 4: a device, its driver or its memory is not available
};

struct Diagnostic {
  std::string code = {};         // stable and short: "json.syntax", "model.unknown_key", "shape.mismatch"
  std::string message = {};      // what is wrong and what was expected
  std::string hint = {};         // what to do, or the nearest right name; may be empty
  std::string file = {};         // empty when no file is involved
  int line = 0;                  // from 1; 0 = unknown
  int column = 0;                // from 1, in bytes
  std::string pointer = {};      // JSON pointer (RFC 6901) into the file; may be empty
  std::string source_line = {};  // the offending line without its newline; may be empty
};

// "models/a.json:12:9: /graph/2/units: must be > 0, got -3\n    <line>\n    ^\n    hint: ..."
// Control characters are written as printable() does, but for the line ends of a message: the next line is indented.
GRAPHRUN_API std::string to_string(const Diagnostic& diagnostic);

// The text on one line and fit for a terminal: control characters, those of text direction and bytes that are no UTF-8
// become \n, \t, \x1b or \u202e.
GRAPHRUN_API std::string printable(std::string_view text);

inline constexpr std::size_t kMaxDiagnostics = 50;  // that an Error keeps; others are counted

class GRAPHRUN_API Error : public std::exception {
 public:
  // Keeps the first kMaxDiagnostics, and of each text what a message needs: a field of megabytes is cut in its middle.
  // `more`: mistakes that are counted only.
  Error(ErrorKind kind, std::vector<Diagnostic> diagnostics, std::size_t more = 0);
  Error(ErrorKind kind, std::string code, std::string message, std::string hint = {});

  ErrorKind kind() const { return kind_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  std::size_t more() const { return more_; }
  // All diagnostics, one after the other, and how many more there are.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t more_ = 0;
  std::string text_;
};

// A machine has less memory than a plan needs. What would help (the largest values, a batch that fits) is told by
// whoever can plan again (session.h): an executor knows the numbers only.
class GRAPHRUN_API OutOfMemory : public Error {
 public:
  // `usable`: bytes of the largest plan that would have been loaded.
  OutOfMemory(std::string code, std::string message, std::uint64_t needed, std::uint64_t usable, std::string hint = {});
  ~OutOfMemory() override;

  std::uint64_t needed() const { return needed_; }
  std::uint64_t usable() const { return usable_; }

 private:
  std::uint64_t needed_, usable_;
};

// The candidate nearest to `name`, where two neighbours that changed places are one edit; "" when none is within a
// third of the name's length (at most 3 edits) or the name is longer than 64 bytes. A wrong case is one edit.
GRAPHRUN_API std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);
// "did you mean 'relu'?", or "": a hint.
GRAPHRUN_API std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace graphrun
