#include "graphrun/params.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <type_traits>

#include "graphrun/params/all.h"

namespace graphrun {
namespace {

constexpr bool kinds_differ() {
  for (std::size_t i = 0; i < AllParams::size; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (AllParams::kinds[i] == AllParams::kinds[j]) return false;
    }
  }
  return true;
}
static_assert(kinds_differ(), "two structs of parameters have the same kind: call one by another name");

}  // namespace

void Params::fail() {
  throw std::logic_error("a step has parameters of another op");
}

bool operator==(const Params& a, const Params& b) {
  bool equal = false;
  AllParams::visit(a, [&]<class T>(const T& held) { equal = b.get_if<T>() != nullptr && held == b.as<T>(); });
  return equal;
}

std::string to_string(const Params& params) {
  std::string text;
  const auto print = [&text](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::span<const std::int32_t>>) {
      text += fmt::format(" {}=[{}]", name, fmt::join(value, ", "));
    } else {
      text += fmt::format(" {}={}", name, value);  // shortest digits that round-trip
    }
  };
  AllParams::visit(params, [&print](const auto& held) { held.describe(print); });
  return text;
}

}  // namespace graphrun
