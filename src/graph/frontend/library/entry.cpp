#include "graph/frontend/library/entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graphrun {

std::string wrong_count(const Callable& callable, std::size_t got) {
  const std::size_t wanted = callable.operands.size();
  if (wanted == got || (callable.variadic && got > wanted)) return {};
  return fmt::format("{} takes {} operand{} ({}), got {}", callable.name, wanted, wanted == 1 ? "" : "s",
                     fmt::join(callable.operands, ", "), got);
}

Error unknown(std::string_view what, std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kListed = 16;
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= kListed)
    hint = fmt::format("there are: {}", fmt::join(names, ", "));
  if (hint.empty() && what == "function") hint = "graphrun help ops lists the functions";
  return Error(ErrorKind::input, fmt::format("{}.unknown", what), fmt::format("there is no {} named {}", what, name),
               std::move(hint));
}

}  // namespace graphrun
