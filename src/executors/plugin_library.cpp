#include "executors/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include "executors/c_executor.h"
#include "executors/common/executor_library.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

Error no_executor(const std::string& path, std::string_view why) {
  return Error(ErrorKind::input, "executor.plugin", fmt::format("{} is not an executor plug-in: {}", path, why));
}

std::shared_ptr<Executor> make_library_executor(const std::string& path, const ExecutorLibrary& library,
                                                std::string_view argument) {
  if (library.version != kExecutorLibraryVersion) {
    throw Error(ErrorKind::input, "executor.version",
                fmt::format("{} belongs to another build of graphrun: its version is {}, this one's is {}", path,
                            library.version, kExecutorLibraryVersion),
                "install both libraries from the same build");
  }
  return library.create(argument);
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
  using LibraryEntry = const ExecutorLibrary* (*)();
  if (const auto entry = reinterpret_cast<LibraryEntry>(dlsym(library, "graphrun_executor_library")))
    return make_library_executor(path, *entry(), argument);
  if (const auto entry = reinterpret_cast<CEntry>(dlsym(library, "graphrun_executor_plugin_c")))
    return make_c_executor(path, entry, argument);
  throw no_executor(path, "it does not export graphrun_executor_plugin_c()");
}

}  // namespace graphrun
