// plugin_library.h: an executor from a shared library, in C++ (executor_plugin.h) or in C (executor_plugin_c.h).
// Contract: throws Error that names the file and the reason. A library is never closed: executors and their objects may
// outlive any call. Not here: mapping of names to files (registry.cpp, plugin_folders.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/executor.h"

namespace graphrun {

std::shared_ptr<Executor> load_plugin(const std::string& path, std::string_view argument);

}  // namespace graphrun
