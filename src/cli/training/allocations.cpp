#include "cli/training/allocations.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun::cli {
namespace {

constexpr int kDepth = 24;
constexpr std::size_t kKept = 8;

struct Call {
  const char* api = nullptr;
  const void* caller = nullptr;  // return address of the hook, where the relevant frames start
  std::uint64_t bytes = 0, step = 0;
  std::array<void*, kDepth> frames{};
  int depth = 0;
};

// Counts per API name; when the table is full, the last entry counts the rest.
class CountsByName {
 public:
  void add(const char* api, std::uint64_t bytes) {
    CallCounter& entry = find(api);
    entry.calls.fetch_add(1, std::memory_order_relaxed);
    entry.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void clear() {
    for (CallCounter& entry : entries_) entry.api = nullptr, entry.calls = 0, entry.bytes = 0;
  }
  std::vector<AllocationCount> list() const {
    std::vector<AllocationCount> counts;
    for (const CallCounter& entry : entries_) {
      if (entry.calls > 0) counts.push_back({entry.api.load(), entry.calls, entry.bytes});
    }
    return counts;
  }

 private:
  struct CallCounter {
    std::atomic<const char*> api{nullptr};
    std::atomic<std::uint64_t> calls{0}, bytes{0};
  };
  CallCounter& find(const char* api) {
    for (CallCounter& entry : entries_) {
      const char* there = nullptr;
      if (entry.api.compare_exchange_strong(there, api) || std::string_view(there) == api) return entry;
    }
    return entries_.back();
  }
  std::array<CallCounter, 16> entries_;
};

CountsByName setup_counts, step_counts;
std::atomic<bool> counts_setup{false};
std::atomic<const Session*> watched{nullptr};
std::atomic<std::uint64_t> of_us{0}, of_drivers{0};
std::array<Call, kKept> kept;
thread_local bool inside = false;  // ignores allocations made while a call is inspected

std::string_view file_of(const char* path) {
  const std::string_view whole = path == nullptr ? "" : path;
  return whole.substr(whole.rfind('/') + 1);
}

// C and C++ runtime libraries: the call site is their caller.
constexpr std::string_view kRuntimes[] = {"libc.so", "libstdc++.so", "libc++.so",  "libgcc_s.so",
                                          "libm.so", "libpthread",   "libasan.so", "libtsan.so"};
constexpr std::string_view kDrivers[] = {"libcuda.so", "libcublas", "libnvidia", "libnvrtc", "libcudart"};

bool is_one_of(std::span<const std::string_view> libraries, std::string_view file) {
  return std::any_of(libraries.begin(), libraries.end(), [&](auto name) { return file.starts_with(name); });
}

bool by_driver(const Call& call) {
  for (int i = 0; i < call.depth; ++i) {
    Dl_info info{};
    if (dladdr(call.frames[static_cast<std::size_t>(i)], &info) != 0 && is_one_of(kDrivers, file_of(info.dli_fname)))
      return true;
  }
  return false;
}

void note(const char* api, std::uint64_t bytes, const void* caller) {
  const Session* session = watched.load(std::memory_order_acquire);
  if (inside) return;
  if (session == nullptr) {
    if (counts_setup.load(std::memory_order_relaxed)) setup_counts.add(api, bytes);
    return;
  }
  inside = true;
  Call call;
  call.api = api;
  call.caller = caller;
  call.bytes = bytes;
  call.step = session->step();
  call.depth = backtrace(call.frames.data(), kDepth);
  if (by_driver(call)) {
    of_drivers.fetch_add(1);
  } else {
    step_counts.add(api, bytes);
    if (const std::uint64_t at = of_us.fetch_add(1); at < kKept) kept[at] = call;
  }
  inside = false;
}

// Callback for executors.
void note_reported(const char* api, std::uint64_t bytes) {
  note(api, bytes, __builtin_return_address(0));
}

std::string symbol_of(const Dl_info& info) {
  if (info.dli_sname == nullptr) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), std::free);
  return status == 0 ? readable.get() : info.dli_sname;
}

// "libmine.so+0x1234 (run)": input for addr2line. Hidden symbols have no name at run time.
std::string site_of(void* frame, const Dl_info& info) {
  const auto offset = reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  const std::string symbol = symbol_of(info);
  return fmt::format("{}+{:#x}{}", file_of(info.dli_fname), offset, symbol.empty() ? "" : fmt::format(" ({})", symbol));
}

std::string describe(const Call& call) {
  std::string api = call.api, sites;
  int told = 0;
  const auto end = call.frames.begin() + call.depth;
  const auto first = std::find(call.frames.begin(), end, call.caller);
  for (auto at = first == end ? call.frames.begin() : first; at != end && told < 4; ++at) {
    void* frame = *at;
    Dl_info info{};
    if (dladdr(frame, &info) == 0) continue;
    const std::string_view symbol = info.dli_sname == nullptr ? "" : info.dli_sname;
    if (symbol.starts_with("_Znw") || symbol.starts_with("_Zna")) api = "operator new";
    const bool reports = symbol.find("report_allocation") != std::string_view::npos;
    if (sites.empty() && (reports || is_one_of(kRuntimes, file_of(info.dli_fname)))) continue;
    sites += fmt::format("{}{}", told++ == 0 ? "" : "\n    called from ", site_of(frame, info));
  }
  return fmt::format("{} of {} byte{} in step {}, at {}", api, call.bytes, call.bytes == 1 ? "" : "s", call.step,
                     sites.empty() ? "an unknown place" : sites);
}

}  // namespace

void AllocationWatch::count_setup() {
  watch_allocations(note_reported);
  counts_setup = true;
}

std::vector<AllocationCount> AllocationWatch::of_setup() {
  return setup_counts.list();
}
std::vector<AllocationCount> AllocationWatch::of_steps() {
  return step_counts.list();
}

void AllocationWatch::arm(const Session& session) {
  counts_setup = false;
  of_us = of_drivers = 0;
  step_counts.clear();
  std::array<void*, kDepth> frames{};
  backtrace(frames.data(), kDepth);  // the first call loads a library
  watch_allocations(note_reported);
  watched.store(&session, std::memory_order_release);
}

void AllocationWatch::disarm() {
  watched.store(nullptr, std::memory_order_release);
  watch_allocations(nullptr);
}

std::uint64_t AllocationWatch::ours() const {
  return of_us;
}
std::uint64_t AllocationWatch::drivers() const {
  return of_drivers;
}

void AllocationWatch::require_none() const {
  const std::uint64_t count = ours();
  if (count == 0) return;
  std::string message =
      fmt::format("--assert-no-alloc: {} allocation{} after the first step", count, count == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min<std::uint64_t>(count, kKept); ++i) message += "\n" + describe(kept[i]);
  if (count > kKept) message += fmt::format("\nand {} more", count - kKept);
  throw Error(ErrorKind::check, "check.allocation", std::move(message), "addr2line -e FILE +OFFSET names the line");
}

}  // namespace graphrun::cli

#ifdef GRAPHRUN_SANITIZED

// Declared in sanitizer/allocator_interface.h, which some compiler packages lack.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));

namespace {
void on_malloc(const volatile void*, std::size_t size) {
  graphrun::cli::note("malloc", size, __builtin_return_address(0));
}
void on_free(const volatile void*) {}
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}  // namespace

#else

// Replaces malloc and its family by wrappers that count and call the C library's own entry points. free() needs none,
// since the pointers are the C library's. Default visibility, so that shared libraries call them too.
#define GRAPHRUN_VISIBLE __attribute__((visibility("default")))
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t number, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

GRAPHRUN_VISIBLE void* malloc(std::size_t size) {
  graphrun::cli::note("malloc", size, __builtin_return_address(0));
  return __libc_malloc(size);
}
GRAPHRUN_VISIBLE void* calloc(std::size_t number, std::size_t size) {
  graphrun::cli::note("calloc", number * size, __builtin_return_address(0));
  return __libc_calloc(number, size);
}
GRAPHRUN_VISIBLE void* realloc(void* pointer, std::size_t size) {
  graphrun::cli::note("realloc", size, __builtin_return_address(0));
  return __libc_realloc(pointer, size);
}
GRAPHRUN_VISIBLE void* memalign(std::size_t alignment, std::size_t size) {
  graphrun::cli::note("memalign", size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
GRAPHRUN_VISIBLE void* aligned_alloc(std::size_t alignment, std::size_t size) {
  graphrun::cli::note("aligned_alloc", size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
GRAPHRUN_VISIBLE int posix_memalign(void** pointer, std::size_t alignment, std::size_t size) {
  graphrun::cli::note("posix_memalign", size, __builtin_return_address(0));
  *pointer = __libc_memalign(alignment, size);
  return *pointer == nullptr && size != 0 ? ENOMEM : 0;
}
}

#endif
