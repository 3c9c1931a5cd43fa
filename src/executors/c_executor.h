// c_executor.h: an Executor made of the table that a plug-in in C gives.
// Contract: executor.h's. What the plug-in says is wrong, throws or leaves undone is an Error that names it and the
// function. Leaves to others: finding and opening the library (plugin_library.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/executor.h"
#include "graphrun/executor_plugin_c.h"

namespace graphrun {

using CEntry = const gr_executor* (*)(const gr_host*);

// Throws Error when the table is none, or of a version that is not ours to run.
std::shared_ptr<Executor> make_c_executor(const std::string& path, CEntry entry, std::string_view argument);

}  // namespace graphrun
