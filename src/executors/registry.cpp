// registry.cpp: executors by name: a fixed list, then plug-in libraries: "cuda" (libgraphrun_cuda.so next to this
// library), those of the plug-in folders, and any other by its path.
#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "executors/c_executor.h"
#include "executors/common/executor_library.h"
#include "executors/common/host_executor.h"
#include "executors/cpu/cpu_executor.h"
#include "executors/cuda_planner/cuda_planner.h"
#include "executors/plugin_folders.h"
#include "executors/ref/ref_executor.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

struct BuiltIn {
  std::string_view name;
  std::shared_ptr<Executor> (*create)();
};
constexpr BuiltIn kBuiltIn[] = {
    {"ref", [] { return std::shared_ptr<Executor>(std::make_shared<RefExecutor>()); }},
    {"cpu", [] { return std::shared_ptr<Executor>(std::make_shared<CpuExecutor>()); }},
};
constexpr std::string_view kCuda = "cuda";  // a plug-in next to this library

// Folder of the library (or program) that contains this code.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::weakly_canonical(info.dli_fname, ignored).parent_path();
}

// Path of the CUDA plug-in; empty if it was not built.
std::string find_cuda() {
  const fs::path own = own_folder();
  for (const fs::path& folder : {own, own / ".." / "lib"}) {
    std::error_code ignored;
    if (fs::exists(folder / "libgraphrun_cuda.so", ignored)) return (folder / "libgraphrun_cuda.so").string();
  }
  return {};
}

// Replaces the missing plug-in: plans for GPUs, but cannot load.
class CudaNotBuilt final : public cuda::CudaPlanner {
 public:
  std::unique_ptr<Runnable> load(const Program&) override {
    throw Error(ErrorKind::device, "executor.not_built", kReason,
                "build graphrun where the CUDA Toolkit is installed, or use --executor=cpu");
  }
  DeviceList devices() const override { return {{}, kReason}; }

 private:
  static constexpr const char* kReason =
      "the executor 'cuda' is not installed: libgraphrun_cuda.so is not next to libgraphrun.so";
};

std::atomic<AllocationHook> allocation_hook{nullptr};

std::vector<std::string> own_names() {
  std::vector<std::string> names;
  for (const BuiltIn& entry : kBuiltIn) names.emplace_back(entry.name);
  names.emplace_back(kCuda);
  return names;
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

// Executor from a shared library: a plug-in in C, or part of this build. The library is never closed: executors and
// their objects may outlive any call. Throws Error that names the file and the reason.
std::shared_ptr<Executor> load_plugin(const std::string& path, std::string_view argument) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  // Opening a pipe would block.
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) reject_plugin(path, "it is not a file");
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
  reject_plugin(path, "it does not export graphrun_executor_plugin_c()");
}

// Reports any failure as an executor that is not available, since the user did not name the file.
std::shared_ptr<Executor> load_known(const PluginFile& file, std::string_view argument) {
  try {
    return load_plugin(file.path, argument);
  } catch (const Error& error) {
    throw Error(ErrorKind::device, error.diagnostics(), error.more());
  }
}

}  // namespace

void watch_allocations(AllocationHook hook) noexcept {
  allocation_hook.store(hook);
}

void report_allocation(const char* api, std::uint64_t bytes) noexcept {
  if (const AllocationHook hook = allocation_hook.load()) hook(api, bytes);
}

HostKernel find_kernel(const StepSignature& step) {
  static const CpuExecutor cpu;
  static const RefExecutor ref;
  for (const HostExecutor* executor : std::initializer_list<const HostExecutor*>{&cpu, &ref}) {
    HostKernel kernel = executor->kernel(step);
    if (kernel.run == nullptr) continue;
    if (kernel.fallback.empty()) kernel.fallback = executor->name();
    return kernel;
  }
  return {};
}

std::vector<std::string> executor_names() {
  std::vector<std::string> names = own_names();
  for (PluginFile& file : plugin_files(own_names()).found) names.push_back(std::move(file.name));
  return names;
}

std::vector<RejectedPlugin> rejected_plugins() {
  return plugin_files(own_names()).rejected;
}

std::optional<PluginName> plugin_name(std::string_view executor) {
  if (executor.substr(0, executor.find(':')).find('/') == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kEnd = ".so:";
  const std::size_t end = executor.find(kEnd);
  if (end == std::string_view::npos) return PluginName{std::string(executor), {}};
  return PluginName{std::string(executor.substr(0, end + kEnd.size() - 1)),
                    std::string(executor.substr(end + kEnd.size()))};
}

std::shared_ptr<Executor> find_executor(std::string_view name) {
  if (const std::optional<PluginName> plugin = plugin_name(name)) return load_plugin(plugin->path, plugin->argument);
  const std::size_t colon = name.find(':');
  const std::string_view stem = name.substr(0, colon);
  const std::string_view argument = colon == std::string_view::npos ? std::string_view{} : name.substr(colon + 1);
  for (const BuiltIn& entry : kBuiltIn) {
    if (entry.name == name) return entry.create();
  }
  if (stem == kCuda) {
    const std::string path = find_cuda();
    return path.empty() ? std::make_shared<CudaNotBuilt>() : load_plugin(path, argument);
  }
  if (name == "auto") {
    throw Error(ErrorKind::input, "executor.auto",
                "'auto' finds the fastest executor by training a few steps; here one has to be named",
                fmt::format("known: {}", fmt::join(executor_names(), ", ")));
  }
  const PluginFiles plugins = plugin_files(own_names());
  for (const PluginFile& file : plugins.found) {
    if (file.name == stem) return load_known(file, argument);
  }
  std::string message = fmt::format("unknown executor '{}'", name);
  for (const RejectedPlugin& refused : plugins.rejected)
    message += fmt::format("; not used: {}: {}", printable(refused.path), refused.reason);
  std::string hint = did_you_mean(stem == "gpu" ? kCuda : stem, executor_names());  // "gpu" is nearer to "cpu"
  if (name.ends_with(".so")) hint = fmt::format("a path holds a '/': ./{}", name);
  throw Error(
      ErrorKind::input, "executor.unknown", std::move(message),
      hint.empty() ? fmt::format("known: {}, or the path of a plug-in", fmt::join(executor_names(), ", ")) : hint);
}

}  // namespace graphrun
