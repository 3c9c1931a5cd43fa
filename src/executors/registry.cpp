// registry.cpp: executors by name: an explicit list, then plug-in libraries.
// "cuda" is libgraphrun_cuda.so beside this library; a name with a '/' is the path of any other plug-in.
#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "executors/cpu/cpu_executor.h"
#include "executors/cuda_planner/cuda_planner.h"
#include "executors/ref/ref_executor.h"
#include "graphrun/error.h"
#include "graphrun/executor_plugin.h"

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
constexpr std::string_view kCuda = "cuda";  // a plug-in beside this library

// The folder of the library (or program) that this code is linked into.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::weakly_canonical(info.dli_fname, ignored).parent_path();
}

// Empty when it was not built.
std::string find_cuda() {
  const fs::path own = own_folder();
  for (const fs::path& folder : {own, own / ".." / "lib"}) {
    std::error_code ignored;
    if (fs::exists(folder / "libgraphrun_cuda.so", ignored)) return (folder / "libgraphrun_cuda.so").string();
  }
  return {};
}

// In its place: it plans for GPUs.
class CudaNotBuilt final : public cuda::CudaPlanner {
 public:
  std::unique_ptr<Runnable> load(const Program&) override {
    throw Error(ErrorKind::device, "executor.not_built", kReason,
                "build graphrun where the CUDA Toolkit is installed, or use --executor=cpu");
  }
  DeviceList devices() const override { return {{}, kReason}; }

 private:
  static constexpr const char* kReason =
      "the executor 'cuda' is not there: libgraphrun_cuda.so is not beside libgraphrun.so";
};

std::shared_ptr<Executor> load_plugin(const std::string& path, std::string_view argument) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  // Never closed: executors and what they made may outlive any call here.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* cause = dlerror();
    throw Error(ErrorKind::device, "executor.load",
                fmt::format("{} does not load: {}", path, cause == nullptr ? "unknown cause" : cause));
  }
  const auto expect = [&](bool is_so, std::string_view otherwise) {
    if (!is_so) throw Error(ErrorKind::input, "executor.plugin", fmt::format("{} is no executor: {}", path, otherwise));
  };
  using Entry = const ExecutorPlugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "graphrun_executor_plugin"));
  expect(entry != nullptr, "it does not export graphrun_executor_plugin()");
  const ExecutorPlugin* plugin = entry();
  expect(plugin != nullptr, "graphrun_executor_plugin() gives null");
  if (plugin->struct_size != sizeof(ExecutorPlugin) || plugin->abi != kExecutorAbi) {
    throw Error(
        ErrorKind::input, "executor.abi",
        fmt::format("{} was built for another version of graphrun, or with other settings of the C++ library: its "
                    "executor ABI is {:08x}, this one's is {:08x}",
                    path, plugin->abi, kExecutorAbi),
        "build the plug-in against the installed headers");
  }
  expect(plugin->create != nullptr, "it has no create()");
  std::shared_ptr<Executor> executor = plugin->create(argument);
  expect(executor != nullptr, "its create() gives none");
  return executor;
}

std::atomic<AllocationHook> allocation_hook{nullptr};

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
    kernel.fallback = executor->name();
    return kernel;
  }
  return {};
}

std::vector<std::string> executor_names() {
  std::vector<std::string> names;
  for (const BuiltIn& entry : kBuiltIn) names.emplace_back(entry.name);
  names.emplace_back(kCuda);
  return names;
}

std::shared_ptr<Executor> find_executor(std::string_view name) {
  if (name.find('/') != std::string_view::npos) return load_plugin(std::string(name), {});
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
  std::string hint = did_you_mean(stem == "gpu" ? kCuda : stem, executor_names());  // not cpu, which is nearer
  if (name.ends_with(".so")) hint = fmt::format("a path holds a '/': ./{}", name);
  throw Error(
      ErrorKind::input, "executor.unknown", fmt::format("unknown executor '{}'", name),
      hint.empty() ? fmt::format("known: {}, or the path of a plug-in", fmt::join(executor_names(), ", ")) : hint);
}

}  // namespace graphrun
