// text.h: splits lines, trims and parses numbers.
// Contract: pure. A view is valid as long as its source text.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace graphrun {

// Lines without their ends, "\n" or "\r\n"; the last end is optional.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const bool has_return = end > 0 && text[end - 1] == '\r';
    lines.push_back(text.substr(0, end - has_return));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Trims spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// Returns nothing unless the whole text is a number that T can hold.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace graphrun
