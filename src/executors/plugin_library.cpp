#include "executors/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <mutex>

#include "executors/c_executor.h"
#include "graphrun/error.h"
#include "graphrun/executor_plugin.h"

namespace graphrun {
namespace {

using CppEntry = const ExecutorPlugin* (*)();

Error no_executor(const std::string& path, std::string_view why) {
  return Error(ErrorKind::input, "executor.plugin", fmt::format("{} is not an executor plug-in: {}", path, why));
}

std::shared_ptr<Executor> make_cpp_executor(const std::string& path, CppEntry entry, std::string_view argument) {
  const auto guarded = [&](std::string_view function, auto f) {
    try {
      return f();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& thrown) {
      throw no_executor(path, fmt::format("its {}() threw: {}", function, printable(thrown.what())));
    } catch (...) {
      throw no_executor(path, fmt::format("its {}() threw something that is not a std::exception", function));
    }
  };
  const ExecutorPlugin* plugin = guarded("graphrun_executor_plugin", entry);
  if (plugin == nullptr) throw no_executor(path, "graphrun_executor_plugin() gives null");
  if (plugin->struct_size != sizeof(ExecutorPlugin) || plugin->abi != kExecutorAbi) {
    throw Error(
        ErrorKind::input, "executor.abi",
        fmt::format("{} was built for another version of graphrun, or with other settings of the C++ library: its "
                    "executor ABI is {:08x}, this one's is {:08x}",
                    path, plugin->abi, kExecutorAbi),
        "build the plug-in against the installed headers");
  }
  if (plugin->create == nullptr) throw no_executor(path, "it has no create()");
  std::shared_ptr<Executor> executor = guarded("create", [&] { return plugin->create(argument); });
  if (executor == nullptr) throw no_executor(path, "its create() gives none");
  return executor;
}

}  // namespace

std::shared_ptr<Executor> load_plugin(const std::string& path, std::string_view argument) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  // Opening a pipe would block.
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    throw no_executor(path, "it is not a file");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* cause = dlerror();
    throw Error(ErrorKind::device, "executor.load",
                fmt::format("{} does not load: {}", path, cause == nullptr ? "unknown cause" : cause));
  }
  if (const auto entry = reinterpret_cast<CppEntry>(dlsym(library, "graphrun_executor_plugin")))
    return make_cpp_executor(path, entry, argument);
  if (const auto entry = reinterpret_cast<CEntry>(dlsym(library, "graphrun_executor_plugin_c")))
    return make_c_executor(path, entry, argument);
  throw no_executor(path, "it exports neither graphrun_executor_plugin_c() nor graphrun_executor_plugin()");
}

}  // namespace graphrun
