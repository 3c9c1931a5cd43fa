#include "graphrun/params.h"

#include <fmt/format.h>

namespace graphrun {

std::string to_string(const Params& params) {
  std::string text;
  const auto print = [&text](std::string_view name, const auto& value) {
    text += fmt::format(" {}={}", name, value);  // the shortest digits that read back as the same double
  };
  std::visit([&print](const auto& fields) { fields.describe(print); }, params);
  return text;
}

}  // namespace graphrun
