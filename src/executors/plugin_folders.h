// plugin_folders.h: plug-ins known by name: libgraphrun_NAME.so in a folder of GRAPHRUN_PLUGIN_PATH.
// Contract: each call reads the variable and the folders again. A folder is absolute. It, its parents and the file must
// belong to root or the user and be writable by nobody else (a parent may be sticky, such as /tmp): otherwise others
// could inject code by a variable or a file. Rejected files are reported with the reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun {

struct PluginFile {
  std::string name, path;
};
struct PluginFiles {
  std::vector<PluginFile> found;  // ordered by folder, then by name
  std::vector<RejectedPlugin> rejected;
};

bool has_name_characters(std::string_view name);  // lower-case letters, digits, _ and - only

// `taken`: names of existing executors.
PluginFiles plugin_files(const std::vector<std::string>& taken);

}  // namespace graphrun
