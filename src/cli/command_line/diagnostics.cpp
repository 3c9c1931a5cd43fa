#include "cli/command_line/diagnostics.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "cli/terminal/terminal.h"

namespace graphrun::cli {

ExitCode exit_code(ErrorKind kind) {
  static constexpr ExitCode kCodes[] = {kRunFailed, kBadInput, kCheckFailed, kNoDevice};  // indexed by ErrorKind
  static_assert(std::size(kCodes) == static_cast<std::size_t>(ErrorKind::device) + 1);
  return kCodes[static_cast<std::size_t>(kind)];
}

// Uses a single write, so that lines of concurrent runs do not mix; two writes if memory runs out.
void Diagnostics::write_line(std::string_view text) noexcept {
  try {
    const std::string line = std::string(text) + "\n";
    errors_ != nullptr ? void(*errors_ += line) : write_error(line);
  } catch (const std::exception&) {
    write_error(text);
    write_error("\n");
  }
}

void Diagnostics::warn(std::string_view message) noexcept try {
  if (quiet_) return;
  if (format_ == Format::text) {
    if (chatty()) write_line(paint(stderr, Style::yellow, "warning:") + " " + printable(message));
  } else {
    add("warning", {.code = "warning", .message = std::string(message)});
  }
} catch (const std::exception&) {
  out_of_memory();
}

void Diagnostics::note(std::string_view message) noexcept try {
  if (chatty()) write_line(printable(message));
} catch (const std::exception&) {
  out_of_memory();
}

void Diagnostics::error(const Error& error) noexcept try {
  if (format_ == Format::text) {
    const std::string_view text = error.what();
    write_line(text.substr(0, text.size() - (text.ends_with('\n') ? 1 : 0)));
  } else {
    for (const Diagnostic& diagnostic : error.diagnostics()) add("error", diagnostic);
    if (error.more() == 0) return;
    add("error", {.code = "more", .message = fmt::format("and {} more", error.more())});
  }
} catch (const std::exception&) {
  out_of_memory();
}

void Diagnostics::out_of_memory() noexcept {
  if (format_ == Format::text) return write_line("out of memory");
  any_ = false;  // discards the JSON array, which may be truncated
  write_error(
      R"([{"severity":"error","code":"device.memory","message":"out of memory","hint":"","file":"","line":0,"column":0,)"
      R"("pointer":"","source_line":""}])"
      "\n");
}

void write_diagnostic(JsonWriter& json, std::string_view severity, const Diagnostic& diagnostic) {
  json.member("severity", severity).member("code", diagnostic.code).member("message", diagnostic.message);
  json.member("hint", diagnostic.hint).member("file", diagnostic.file);
  json.member("line", diagnostic.line).member("column", diagnostic.column);
  json.member("pointer", diagnostic.pointer).member("source_line", diagnostic.source_line);
}

void Diagnostics::add(std::string_view severity, const Diagnostic& diagnostic) {
  if (!any_) json_.begin_array();
  any_ = true;
  json_.begin_object();
  write_diagnostic(json_, severity, diagnostic);
  json_.end_object();
}

void Diagnostics::finish() noexcept try {
  if (any_) write_line(json_.end_array().text());
  any_ = false;
} catch (const std::exception&) {
  out_of_memory();
}

namespace {

int report(Diagnostics& diagnostics, const Error& error) noexcept {
  diagnostics.error(error);
  return exit_code(error.kind());
}

int out_of_memory(Diagnostics& diagnostics) noexcept {
  diagnostics.out_of_memory();
  return kNoDevice;
}

int internal_error(Diagnostics& diagnostics, const std::exception& bug) noexcept {
  try {
    return report(diagnostics, Error(ErrorKind::run, "internal",
                                     fmt::format("internal error: {}; please report it with the model file and the "
                                                 "output of graphrun --version",
                                                 bug.what())));
  } catch (const std::exception&) {
    return out_of_memory(diagnostics);
  }
}

}  // namespace

int report_exception(Diagnostics& diagnostics) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return report(diagnostics, error);
  } catch (const std::bad_alloc&) {
    return out_of_memory(diagnostics);
  } catch (const std::exception& bug) {
    return internal_error(diagnostics, bug);
  }
}

}  // namespace graphrun::cli
