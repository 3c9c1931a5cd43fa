// text.h: splits lines, trims and parses numbers and sizes.
// Contract: pure. A view is valid as long as its source text.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
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

// Bytes, or powers of 1024 with K, M, G, T, optionally followed by iB: "4096", "512M", "4GiB". More than 64 bits give
// the largest 64-bit number. Returns nothing for an invalid size, or 0.
inline std::optional<std::uint64_t> parse_byte_size(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::uint64_t> count = parse_number<std::uint64_t>(text.substr(0, digits));
  std::string_view unit = text.substr(digits);
  if (!count || *count == 0) return std::nullopt;
  if (unit.empty()) return count;
  const std::size_t power = std::string_view("KMGT").find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "iB")) return std::nullopt;
  std::uint64_t bytes = 0;
  const bool too_large = __builtin_mul_overflow(*count, std::uint64_t{1} << (10 * (power + 1)), &bytes);
  return too_large ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

}  // namespace graphrun
