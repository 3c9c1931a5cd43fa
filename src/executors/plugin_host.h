// plugin_host.h: what the library gives to executors in C: the functions of gr_host.
// Contract: executor_plugin_c.h's; nothing is thrown. Leaves to others: the executor itself (c_executor.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "graphrun/executor_plugin_c.h"

namespace graphrun {

class StepWatch {  // of a gr_progress
 public:
  virtual void step_begins(std::uint64_t step) noexcept = 0;

 protected:
  ~StepWatch() = default;
};

const gr_host& plugin_host();
// One line, cut to the room there is.
void write_why(char* why, std::string_view text) noexcept;

}  // namespace graphrun

struct gr_progress {
  graphrun::StepWatch* watch;
};
