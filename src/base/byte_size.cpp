#include "base/byte_size.h"

#include <charconv>
#include <limits>

namespace graphrun {

std::optional<std::uint64_t> parse_byte_size(std::string_view text) {
  std::uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || count == 0) return std::nullopt;
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.empty()) return count;
  const std::size_t at = std::string_view("KMGT").find(unit[0]);
  unit.remove_prefix(1);
  if (at == std::string_view::npos || (!unit.empty() && unit != "iB")) return std::nullopt;
  std::uint64_t bytes = 0;
  const bool too_large = __builtin_mul_overflow(count, std::uint64_t{1} << (10 * (at + 1)), &bytes);
  return too_large ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

}  // namespace graphrun
