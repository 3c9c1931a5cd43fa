// plugin_host.h: the functions of gr_host, which the library provides to executors in C.
// Contract: that of executor_plugin_c.h; nothing throws. Not here: the executor itself (c_executor.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "graphrun/executor_plugin_c.h"

namespace graphrun {

const gr_host& plugin_host();
// Writes one line, truncated to the capacity of GR_WHY.
void write_why(char* why, std::string_view text) noexcept;

}  // namespace graphrun

struct gr_progress {
  std::function<void(std::uint64_t step)> step_begins;
};
