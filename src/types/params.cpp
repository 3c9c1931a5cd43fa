#include "graphrun/params.h"

#include <fmt/format.h>

#include <type_traits>

namespace graphrun {

std::string to_string(const Params& params) {
  std::string text;
  const auto print = [&text](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::span<const std::int32_t>>) {
      text += fmt::format(" {}=[{}]", name, fmt::join(value, ", "));
    } else {
      text += fmt::format(" {}={}", name, value);  // the shortest digits that read back as the same double
    }
  };
  std::visit([&print](const auto& fields) { fields.describe(print); }, params);
  return text;
}

}  // namespace graphrun
