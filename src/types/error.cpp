#include "graphrun/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace graphrun {
namespace {

constexpr std::size_t kWindow = 160;  // columns of a source line that are shown; data may stand on one huge line
constexpr std::size_t kMaxDistance = 3;

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;  // second and later bytes of a UTF-8 sequence
}

// Control characters could drive the reader's terminal.
std::string printable(std::string_view line) {
  std::string text(line);
  for (char& c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = '?';
  }
  return text;
}

// The source line and a caret line. Tabs are kept before the caret, so that it stands right at any tab width.
std::string excerpt(std::string_view line, int column) {
  std::size_t caret = column > 0 ? static_cast<std::size_t>(column - 1) : 0;
  std::string_view before, after;
  if (line.size() > kWindow) {
    std::size_t begin = std::min(caret, line.size()) > kWindow / 2 ? std::min(caret, line.size()) - kWindow / 2 : 0;
    while (begin > 0 && continues_character(line[begin])) --begin;
    std::size_t end = std::min(line.size(), begin + kWindow);
    while (end < line.size() && continues_character(line[end])) ++end;
    before = begin > 0 ? "..." : "";
    after = end < line.size() ? "..." : "";
    line = line.substr(begin, end - begin);
    caret -= begin;
  }
  std::string text = fmt::format("\n    {}{}{}", before, printable(line), after);
  if (column <= 0) return text;
  text += "\n    " + std::string(before.size(), ' ');
  for (std::size_t i = 0; i < caret; ++i) {
    if (i < line.size() && continues_character(line[i])) continue;
    text += i < line.size() && line[i] == '\t' ? '\t' : ' ';
  }
  return text + '^';
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Damerau-Levenshtein in its optimal string alignment form: insert, delete, replace, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = diagnostic.file;
  for (const int number : {diagnostic.line, diagnostic.line > 0 ? diagnostic.column : 0}) {
    if (number > 0) text += fmt::format("{}{}", text.empty() ? "" : ":", number);
  }
  for (const std::string& part : {diagnostic.pointer, diagnostic.message}) {
    if (!part.empty()) text += (text.empty() ? "" : ": ") + part;
  }
  if (!diagnostic.source_line.empty()) text += excerpt(diagnostic.source_line, diagnostic.column);
  if (!diagnostic.hint.empty()) text += "\n    hint: " + diagnostic.hint;
  return text;
}

Error::Error(ErrorKind kind, std::vector<Diagnostic> diagnostics) : kind_(kind), diagnostics_(std::move(diagnostics)) {
  for (const Diagnostic& diagnostic : diagnostics_) {
    if (!text_.empty()) text_ += '\n';
    text_ += to_string(diagnostic);
  }
}

Error::Error(ErrorKind kind, std::string code, std::string message, std::string hint)
    : Error(kind, [&] {
        Diagnostic diagnostic;
        diagnostic.code = std::move(code);
        diagnostic.message = std::move(message);
        diagnostic.hint = std::move(hint);
        return std::vector{std::move(diagnostic)};
      }()) {}

OutOfMemory::OutOfMemory(std::string code, std::string message, std::uint64_t needed, std::uint64_t usable,
                         std::string hint)
    : Error(ErrorKind::device, std::move(code), std::move(message), std::move(hint)),
      needed_(needed),
      usable_(usable) {}

OutOfMemory::~OutOfMemory() = default;

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string lower = lower_case(name);
  const std::string* best = nullptr;
  std::pair<std::size_t, std::size_t> best_distance;  // as written, then without regard to case
  for (const std::string& candidate : candidates) {
    const std::size_t lengths[] = {name.size(), candidate.size()};
    if (std::max(lengths[0], lengths[1]) - std::min(lengths[0], lengths[1]) > kMaxDistance) continue;
    const std::size_t folded = edit_distance(lower, lower_case(candidate));
    // A wrong case is one mistake, however many letters it changes: RELU is next to relu.
    const std::size_t exact = folded == 0 && name != candidate ? 1 : edit_distance(name, candidate);
    if (exact > kMaxDistance || (exact >= name.size() && folded != 0)) continue;
    if (best == nullptr || std::pair(exact, folded) < best_distance) {
      best = &candidate;
      best_distance = {exact, folded};
    }
  }
  return best == nullptr ? std::string() : *best;
}

}  // namespace graphrun
