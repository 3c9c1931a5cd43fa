// plugin_folders.h: the plug-ins that are known by name: libgraphrun_NAME.so in a folder of GRAPHRUN_PLUGIN_PATH.
// Contract: the variable and the folders are looked at again for each call. A folder is absolute; it, what is above it
// and the file belong to root or to the user, and nobody else may write them (a folder above may be sticky, as /tmp
// is): else whoever sets a variable or may write somewhere would bring code. What is refused is told, with its reason.
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
  std::vector<PluginFile> found;  // in the order of folders and names
  std::vector<RejectedPlugin> rejected;
};

// `taken`: names that are executors already.
PluginFiles plugin_files(const std::vector<std::string>& taken);

}  // namespace graphrun
