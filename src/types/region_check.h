// region_check.h: error reporting of the checks of a Program, and the part of check() that validates the regions of a
// phase. Contract: every check throws Error (kind input, code "program.rule") that names the first broken rule. `root`
// is storage_root() of each buffer. All buffer ids in the phase's steps must be valid. Buffers and steps themselves are
// checked in program_check.cpp.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/program.h"

namespace graphrun {

void check_regions(const Phase& phase, const Program& program, const std::vector<BufferId>& root);
// Checks an element region, which has chains instead of stages.
void check_elements(const Region& region, const Phase& phase, const Program& program,
                    const std::vector<BufferId>& root);

template <class... Values>
[[noreturn]] void broken(std::string_view rule, fmt::format_string<Values...> what, Values&&... values) {
  throw Error(ErrorKind::input, "program.rule",
              fmt::format("program breaks rule '{}': {}", rule, fmt::format(what, std::forward<Values>(values)...)));
}

// Base class of the region checks.
class RegionRules {
 public:
  RegionRules(const Phase& phase, const Program& program, const std::vector<BufferId>& root)
      : phase_(phase), program_(program), root_(root) {}

 protected:
  template <class... Values>
  [[noreturn]] void broken(std::string_view rule, fmt::format_string<Values...> what, Values&&... values) const {
    graphrun::broken(fmt::format("region.{}", rule), "phase '{}': {}", phase_.name,
                     fmt::format(what, std::forward<Values>(values)...));
  }
  const Buffer& buffer(BufferId id) const {
    if (id >= program_.buffers.size()) broken("operand", "buffer {} does not exist", id);
    return program_.buffers[id];
  }
  bool is_tile(BufferId id) const { return buffer(id).kind == BufferKind::tile; }
  std::string named(BufferId id) const { return fmt::format("{}#{}", buffer(id).name, id); }

  const Phase& phase_;
  const Program& program_;
  const std::vector<BufferId>& root_;
};

}  // namespace graphrun
