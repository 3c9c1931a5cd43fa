#include "diagnostics.h"

#include <cstdio>

#include "terminal.h"

namespace graphrun::cli {

ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::run:
      return kRunFailed;
    case ErrorKind::input:
      return kBadInput;
    case ErrorKind::check:
      return kCheckFailed;
    case ErrorKind::device:
      return kNoDevice;
  }
  return kRunFailed;
}

void Diagnostics::warn(std::string_view message) {
  if (quiet_) return;
  if (format_ == Format::text) {
    line(paint(stderr, Style::yellow, "warning:") + " " + printable(message));
  } else {
    Diagnostic diagnostic;
    diagnostic.code = "warning";
    diagnostic.message = message;
    add("warning", diagnostic);
  }
}

void Diagnostics::note(std::string_view message) {
  if (chatty()) line(printable(message));
}

void Diagnostics::line(std::string_view text) {
  fmt::print(stderr, "{}\n", text);
}

void Diagnostics::error(const Error& error) {
  if (format_ == Format::text) {
    const std::string_view text = error.what();
    fmt::print(stderr, "{}{}", text, text.ends_with('\n') ? "" : "\n");
  } else {
    for (const Diagnostic& diagnostic : error.diagnostics()) add("error", diagnostic);
    if (error.more() == 0) return;
    Diagnostic others;
    others.code = "more";
    others.message = fmt::format("and {} more", error.more());
    add("error", others);
  }
}

void Diagnostics::add(std::string_view severity, const Diagnostic& diagnostic) {
  if (!any_) json_.begin_array();
  any_ = true;
  json_.begin_object();
  json_.member("severity", severity).member("code", diagnostic.code).member("message", diagnostic.message);
  json_.member("hint", diagnostic.hint).member("file", diagnostic.file);
  json_.member("line", diagnostic.line).member("column", diagnostic.column);
  json_.member("pointer", diagnostic.pointer).member("source_line", diagnostic.source_line);
  json_.end_object();
}

void Diagnostics::finish() {
  if (any_) fmt::print(stderr, "{}\n", json_.end_array().text());
  any_ = false;
}

}  // namespace graphrun::cli
