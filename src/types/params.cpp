#include "graphrun/params.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

namespace graphrun {

std::string to_string(const Params& params) {
  std::string text;
  params.describe([&text](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::span<const std::int32_t>>) {
      text += fmt::format(" {}=[{}]", name, fmt::join(value, ", "));
    } else {
      text += fmt::format(" {}={}", name, value);  // shortest digits that round-trip
    }
  });
  return text;
}

}  // namespace graphrun
