// c_executor.h: an Executor from the function table of a plug-in in C.
// Contract: that of executor.h. An error that the plug-in reports, an exception or a missing result is an Error that
// names the plug-in and the function. Not here: finding and opening the library (registry.cpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/executor.h"
#include "graphrun/executor_plugin_c.h"

namespace graphrun {

using CEntry = const gr_executor* (*)(const gr_host*);

// Throws Error: the library is not an executor plug-in.
[[noreturn]] void reject_plugin(const std::string& path, std::string_view why);

// Throws Error if the table is invalid, or of an unsupported version.
std::shared_ptr<Executor> make_c_executor(const std::string& path, CEntry entry, std::string_view argument);

}  // namespace graphrun
