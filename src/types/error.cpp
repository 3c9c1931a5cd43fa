#include "graphrun/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <optional>
#include <utility>

namespace graphrun {
namespace {

constexpr std::size_t kWindow = 160;  // source columns shown; the input may be one huge line
constexpr std::size_t kMaxDistance = 3;
constexpr std::size_t kMaxName = 64;  // longer names get no suggestion
// Limits in bytes. kMaxFile is PATH_MAX; a pointer is user input if it comes from --set.
constexpr std::size_t kMaxMessage = 1000, kMaxFile = 4096, kMaxPointer = 1000, kMaxLine = 16384;

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;  // UTF-8 continuation byte
}

// One character: length in bytes, and its code point if it is a control character, which must not reach a terminal.
struct Character {
  std::size_t length = 1;
  std::optional<char32_t> control = {};
};

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// Treats a byte that is not valid UTF-8 as one character whose code point is the byte value.
Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {1, is_control(first) ? std::optional<char32_t>(first) : std::nullopt};
  const std::size_t length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  const bool starts = first >= 0xc2 && first < 0xf5;
  char32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!starts || at + i >= text.size() || !continues_character(text[at + i])) return {1, first};
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  }
  constexpr char32_t kMinCode[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kMinCode[length] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return {1, first};
  return {length, is_control(code) ? std::optional(code) : std::nullopt};
}

// The source line and a caret line. Each control character is shown as one '?' to keep the caret aligned. The caret
// line repeats the tabs before the caret, which aligns it at any tab width.
std::string excerpt(std::string_view line, int column) {
  std::size_t caret = column > 0 ? static_cast<std::size_t>(column - 1) : 0;
  std::string_view before, after;
  if (line.size() > kWindow) {
    std::size_t begin = std::min(caret, line.size()) > kWindow / 2 ? std::min(caret, line.size()) - kWindow / 2 : 0;
    for (int i = 0; i < 3 && begin > 0 && continues_character(line[begin]); ++i) --begin;
    std::size_t end = std::min(line.size(), begin + kWindow);
    for (int i = 0; i < 3 && end < line.size() && continues_character(line[end]); ++i) ++end;
    before = begin > 0 ? "..." : "";
    after = end < line.size() ? "..." : "";
    line = line.substr(begin, end - begin);
    caret -= begin;
  }
  std::string shown(before), pointing(before.size(), ' ');
  std::size_t at = 0;
  while (at < line.size()) {
    const Character c = character_at(line, at);
    const bool tab = line[at] == '\t';
    if (at + c.length <= caret) pointing += tab ? '\t' : ' ';
    shown += c.control && !tab ? "?" : line.substr(at, c.length);
    at += c.length;
  }
  if (column <= 0) return fmt::format("\n    {}{}", shown, after);
  if (caret > at) pointing += std::string(std::min(caret - at, kWindow), ' ');
  return fmt::format("\n    {}{}\n    {}^", shown, after, pointing);
}

// Cuts out the middle: the end of a message says what was expected.
void shorten(std::string& text, std::size_t limit) {
  if (text.size() <= limit) return;
  std::size_t head = limit * 2 / 3, tail = text.size() - (limit - head);
  for (int i = 0; i < 3 && continues_character(text[head]); ++i) --head;
  for (int i = 0; i < 3 && tail < text.size() && continues_character(text[tail]); ++i) ++tail;
  text = text.substr(0, head) + "..." + text.substr(tail);
}

void shorten(Diagnostic& d) {
  shorten(d.message, kMaxMessage);
  shorten(d.hint, kMaxMessage);
  shorten(d.file, kMaxFile);
  shorten(d.pointer, kMaxPointer);
  if (d.source_line.size() <= kMaxLine) return;
  // Drops the line if the cut would remove the column that the caret points at.
  d.source_line.resize(d.column >= 0 && static_cast<std::size_t>(d.column) < kMaxLine ? kMaxLine : 0);
}

// Indents continuation lines, so that a newline in a user's name cannot fake a second message.
std::string printable_lines(std::string_view text) {
  std::string out = printable(text.substr(0, text.find('\n')));
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    out += "\n    " + printable(rest.substr(0, rest.find('\n')));
  }
  return out;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Bit set of the characters in the text, hashed into 64 classes.
std::uint64_t letters_of(std::string_view text) {
  std::uint64_t mask = 0;
  for (const char c : text) mask |= std::uint64_t{1} << (static_cast<unsigned char>(c) & 63u);
  return mask;
}

// Optimal string alignment distance: insertions, deletions, replacements and swaps of adjacent characters.
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
  std::string text = printable(diagnostic.file);
  for (const int number : {diagnostic.line, diagnostic.line > 0 ? diagnostic.column : 0}) {
    if (number > 0) text += fmt::format("{}{}", text.empty() ? "" : ":", number);
  }
  for (const std::string& part : {printable(diagnostic.pointer), printable_lines(diagnostic.message)}) {
    if (!part.empty()) text += (text.empty() ? "" : ": ") + part;
  }
  if (!diagnostic.source_line.empty()) text += excerpt(diagnostic.source_line, diagnostic.column);
  if (!diagnostic.hint.empty()) text += "\n    hint: " + printable_lines(diagnostic.hint);
  return text;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (!c.control) {
      out += text.substr(at, c.length);
    } else if (*c.control == '\n' || *c.control == '\r' || *c.control == '\t') {
      out += *c.control == '\n' ? "\\n" : *c.control == '\r' ? "\\r" : "\\t";
    } else if (c.length == 1) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(*c.control));
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(*c.control));
    }
    at += c.length;
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const std::string_view bytes = text.substr(at, c.length);
    at += c.length;
    if (bytes == "\"" || bytes == "\\") out += '\\';
    if (!c.control)
      out += bytes;
    else if (*c.control >= 0x80 && c.length == 1)
      out += "\xef\xbf\xbd";
    else if (*c.control == '\n' || *c.control == '\r' || *c.control == '\t')
      out += printable(bytes);
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(*c.control));
  }
  return out + '"';
}

Error::Error(ErrorKind kind, std::vector<Diagnostic> diagnostics, std::size_t more)
    : kind_(kind), diagnostics_(std::move(diagnostics)), more_(more) {
  if (diagnostics_.size() > kMaxDiagnostics) {
    more_ += diagnostics_.size() - kMaxDiagnostics;
    diagnostics_.resize(kMaxDiagnostics);
  }
  for (Diagnostic& diagnostic : diagnostics_) {
    shorten(diagnostic);
    if (!text_.empty()) text_ += '\n';
    text_ += to_string(diagnostic);
  }
  if (more_ > 0) text_ += fmt::format("\nand {} more", more_);
}

Error::Error(ErrorKind kind, std::string code, std::string message, std::string hint)
    : Error(kind, {{.code = std::move(code), .message = std::move(message), .hint = std::move(hint)}}) {}

OutOfMemory::OutOfMemory(std::string code, std::string message, std::uint64_t needed, std::uint64_t usable,
                         std::string hint)
    : Error(ErrorKind::device, std::move(code), std::move(message), std::move(hint)),
      needed_(needed),
      usable_(usable) {}

OutOfMemory::~OutOfMemory() = default;

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kMaxName) return {};
  const std::size_t max_distance = std::min(kMaxDistance, (name.size() + 2) / 3);
  const std::string lower = lower_case(name);
  const std::uint64_t letters = letters_of(lower);
  const std::string* best = nullptr;
  std::array<std::size_t, 4> best_distance{};
  for (const std::string& candidate : candidates) {
    const std::size_t lengths[] = {name.size(), candidate.size()};
    const std::size_t longer = std::max(lengths[0], lengths[1]) - std::min(lengths[0], lengths[1]);
    if (longer > max_distance) continue;
    // An edit adds at most one character and removes at most one: this cheap bound rejects most candidates.
    const std::string low = lower_case(candidate);
    const std::uint64_t own = letters_of(low);
    if (std::max(std::popcount(own & ~letters), std::popcount(letters & ~own)) > static_cast<int>(max_distance))
      continue;
    const std::size_t folded = edit_distance(lower, low);
    // Wrong case counts as one edit, however many letters it changes: RELU is at distance 1 from relu.
    const std::size_t exact = folded == 0 && name != candidate ? 1 : edit_distance(name, candidate);
    if (exact > max_distance || (exact >= name.size() && folded != 0)) continue;
    // A permutation of the letters wins a tie: tahn suggests tanh, not tan.
    const bool swapped = longer == 0 && std::is_permutation(low.begin(), low.end(), lower.begin());
    const std::array<std::size_t, 4> distance = {exact, folded, swapped ? 0u : 1u, longer};
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string near = nearest_name(name, candidates);
  return near.empty() ? near : fmt::format("did you mean '{}'?", near);
}

}  // namespace graphrun
