#include "executors/cuda/profile_cupti.h"

#if GRAPHRUN_HAS_CUPTI

#include <cupti.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "executors/cuda/dynamic_library.h"

namespace graphrun::cuda {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_GRAPH_TRACE,  // first: graphs as a whole, not node by node
                               CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                               CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

struct CuptiFunctions {
  DynamicLibrary library{fmt::format("libcupti.so.{}", CUDART_VERSION / 1000),
                         "CUPTI cannot be used:",
                         {},
                         "/usr/local/cuda/extras/CUPTI/lib64/"};
#define X(name) decltype(&cupti##name) name = library.find<decltype(name)>("cupti" #name);
  // clang-format off
  X(ActivityRegisterCallbacks) X(ActivityEnable) X(ActivityDisable) X(ActivityFlushAll)
  X(ActivityGetNextRecord) X(GetTimestamp) X(GetCallbackName) X(GetResultString) X(GetVersion)
  // clang-format on
#undef X
};
const CuptiFunctions& cupti() {
  static const CuptiFunctions* const loaded = new CuptiFunctions;
  return *loaded;
}

std::string reason(CUptiResult status) {
  const char* text = nullptr;
  cupti().GetResultString(status, &text);
  return text != nullptr ? text : fmt::format("status {}", static_cast<int>(status));
}

// Removes the version: "cudaMalloc_v3020" becomes "cudaMalloc".
std::string call_name(CUpti_CallbackId id) {
  const char* text = nullptr;
  if (cupti().GetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, id, &text) != CUPTI_SUCCESS || text == nullptr)
    return fmt::format("call {}", id);
  std::string name = text;
  const std::size_t at = name.rfind("_v");
  if (at != std::string::npos && at + 2 < name.size() && std::isdigit(static_cast<unsigned char>(name[at + 2])))
    name.resize(at);
  return name;
}

// Readable name without parameters and our own namespaces.
std::string kernel_name(const char* mangled) {
  if (mangled == nullptr) return "kernel";
  int status = 0;
  char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = readable != nullptr ? readable : mangled;
  std::free(readable);
  for (const std::string_view part : {"graphrun::cuda::", "graphrun::", "(anonymous namespace)::"}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part)) name.erase(at, part.size());
  }
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  int depth = 0;  // depth of template arguments, which may contain parentheses
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth == 0 && i > 0) {
      name.resize(i);
      break;
    }
  }
  return name;
}

const char* copy_name(std::uint8_t kind) {
  return kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "[CUDA memcpy HtoD]"
         : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "[CUDA memcpy DtoH]"
         : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD ? "[CUDA memcpy DtoD]"
                                                   : "[CUDA memcpy]";
}

[[noreturn]] void unusable(std::string why) {
  throw Error(ErrorKind::device, "cuda.library", std::move(why));
}

// Watches the process; there is at most one at a time. The constructor and start() throw Error.
class Watch final : public Cupti {
 public:
  Watch() {
    const std::lock_guard lock(watching_mutex);
    if (watching != nullptr) unusable("CUPTI already serves another profile of this process");
    watching = this;
    profiler_.row("GPU activities", "");  // creates the row that is shown first
  }
  ~Watch() override {
    for (const CUpti_ActivityKind kind : kKinds) cupti().ActivityDisable(kind);
    cupti().ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard watch(watching_mutex);
    watching = nullptr;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void start() {
    CUptiResult status = cupti().ActivityRegisterCallbacks(give_buffer, take_buffer);
    for (const CUpti_ActivityKind kind : kKinds) {
      if (status == CUPTI_SUCCESS) status = cupti().ActivityEnable(kind);
    }
    if (status == CUPTI_SUCCESS) status = cupti().GetTimestamp(&begin_stamp_);
    begin_ = Profiler::now();
    if (status != CUPTI_SUCCESS) unusable(fmt::format("CUPTI cannot be used: {}", reason(status)));
  }

  std::string version() const override {
    std::uint32_t number = 0;
    cupti().GetVersion(&number);
    return number >= 10000 ? fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100)
                           : fmt::format("{}", number);
  }
  void begin_group(std::string_view group) override {
    const std::uint64_t now = stamp();
    const std::lock_guard lock(mutex_);
    windows_.push_back({now, ~std::uint64_t{0}, std::string(group)});
  }
  void end_group() override {
    const std::uint64_t now = stamp();
    const std::lock_guard lock(mutex_);
    windows_.back().last = now;
  }
  void add(std::string_view group, std::string_view name, double start, double duration) override {
    const std::lock_guard lock(mutex_);
    profiler_.add(profiler_.row(group, name), start, duration);
  }
  Profile take() override {
    cupti().ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard lock(mutex_);
    return profiler_.take({}, "API calls");
  }

 private:
  struct Window {
    std::uint64_t first, last;
    std::string group;
  };

  static std::uint64_t stamp() {
    std::uint64_t now = 0;
    cupti().GetTimestamp(&now);
    return now;
  }
  void note(std::string_view group, std::string_view name, std::uint64_t start, std::uint64_t end) {
    if (start == 0 || end < start) return;  // CUPTI has no times
    const double at = begin_ + (static_cast<double>(start) - static_cast<double>(begin_stamp_)) * 1e-9;
    profiler_.add(profiler_.row(group, name), at, static_cast<double>(end - start) * 1e-9);
  }
  std::string_view group_at(std::uint64_t start) const {
    for (auto window = windows_.rbegin(); window != windows_.rend(); ++window) {
      if (start >= window->first && start <= window->last) return window->group;
    }
    return "GPU activities";
  }
  // The fields read here have the same offset in all versions of these records. Graphs are timed as a whole by our own
  // events, under the name of their phase.
  void parse(const CUpti_Activity* record) {
    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
      const auto* call = reinterpret_cast<const CUpti_ActivityAPI*>(record);
      note("API calls", call_name(call->cbid), call->start, call->end);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel4*>(record);
      note(group_at(kernel->start), kernel_name(kernel->name), kernel->start, kernel->end);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy*>(record);
      note("GPU activities", copy_name(copy->copyKind), copy->start, copy->end);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto* fill = reinterpret_cast<const CUpti_ActivityMemset*>(record);
      note("GPU activities", "[CUDA memset]", fill->start, fill->end);
    }
  }

  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *bytes = *buffer != nullptr ? kBufferBytes : 0;
    *records = 0;  // no limit
  }
  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    {
      const std::lock_guard watch(watching_mutex);
      if (watching != nullptr) {
        const std::lock_guard lock(watching->mutex_);
        CUpti_Activity* record = nullptr;
        while (cupti().ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) watching->parse(record);
      }
    }
    std::free(buffer);
  }

  static inline std::mutex watching_mutex;
  static inline Watch* watching = nullptr;  // receiver of records

  std::mutex mutex_;  // records arrive on threads of CUPTI
  Profiler profiler_;
  double begin_ = 0;  // host clock and CUPTI clock at the same moment
  std::uint64_t begin_stamp_ = 0;
  std::vector<Window> windows_;
};

}  // namespace

std::unique_ptr<Cupti> Cupti::open(std::string& why_not) {
  try {
    cupti();
    auto watch = std::make_unique<Watch>();
    watch->start();
    return watch;
  } catch (const Error& error) {
    why_not = error.diagnostics().front().message;
    return nullptr;
  }
}

}  // namespace graphrun::cuda

#else  // built without cupti.h

std::unique_ptr<graphrun::cuda::Cupti> graphrun::cuda::Cupti::open(std::string& why_not) {
  why_not = "graphrun was built without CUPTI";
  return nullptr;
}

#endif
