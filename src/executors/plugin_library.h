// plugin_library.h: an executor from a shared library: a plug-in in C (executor_plugin_c.h), or part of this build
// (common/executor_library.h).
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
