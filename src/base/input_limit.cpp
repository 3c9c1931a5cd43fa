#include "base/input_limit.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "base/host_memory.h"
#include "base/text.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::uint64_t parsed(std::string_view text) {
  if (const std::optional<std::uint64_t> bytes = parse_byte_size(text)) return *bytes;
  throw Error(ErrorKind::input, "input.limit",
              fmt::format("--max-input and GRAPHRUN_MAX_INPUT take a number of bytes, got '{}'", text.substr(0, 40)),
              "for instance 500M or 4G");
}

std::string human(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

// A memory query takes longer than reading so few bytes, and there may be thousands of files and arrays.
bool is_little(std::uint64_t bytes) {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 20;
  return bytes <= kLittle && std::getenv("GRAPHRUN_MAX_INPUT") == nullptr;
}

}  // namespace

std::uint64_t saturating_product(std::uint64_t count, std::uint64_t size) {
  return size != 0 && count > kMax / size ? kMax : count * size;
}

std::uint64_t input_limit() {
  const char* variable = std::getenv("GRAPHRUN_MAX_INPUT");
  return variable != nullptr && *variable != '\0' ? parsed(variable) : available_host_memory() / 2;
}

void InputLimit::require(std::uint64_t bytes_wanted, std::string_view what) {
  if (!is_little(bytes_wanted)) require_within_input_limit(bytes_wanted, what, bytes());
}

void require_within_input_limit(std::uint64_t bytes, std::string_view what, std::optional<std::uint64_t> known) {
  if (!known && is_little(bytes)) return;
  const std::uint64_t limit = known ? *known : input_limit();
  if (bytes <= limit) return;
  throw Error(ErrorKind::input, "input.limit",
              fmt::format("{} takes {} of memory; the limit is {}", what, human(bytes), human(limit)),
              "--max-input=SIZE or GRAPHRUN_MAX_INPUT allows more");
}

}  // namespace graphrun
