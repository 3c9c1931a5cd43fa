#include "executors/cuda/profile_cupti.h"

#if GRAPHRUN_HAS_CUPTI

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace graphrun::cuda {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_GRAPH_TRACE,  // first: graphs as a whole, not node by node
                               CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                               CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

// The functions used, by their own names and types.
struct Functions {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiGetTimestamp) timestamp;
  decltype(&cuptiGetCallbackName) callback_name;
  decltype(&cuptiGetResultString) result_string;
  decltype(&cuptiGetVersion) version;
};

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

// Opened once and kept; null where it is not installed.
const Functions* functions() {
  static const Functions* const found = []() -> const Functions* {
    void* library = nullptr;
    const std::string name = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
    for (const std::string& path : {name, "/usr/local/cuda/extras/CUPTI/lib64/" + name}) {
      if (library == nullptr) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return nullptr;
    static Functions f{};
    const bool all =
        find(library, "cuptiActivityRegisterCallbacks", f.register_callbacks) &&
        find(library, "cuptiActivityEnable", f.enable) && find(library, "cuptiActivityDisable", f.disable) &&
        find(library, "cuptiActivityFlushAll", f.flush) && find(library, "cuptiActivityGetNextRecord", f.next_record) &&
        find(library, "cuptiGetTimestamp", f.timestamp) && find(library, "cuptiGetCallbackName", f.callback_name) &&
        find(library, "cuptiGetResultString", f.result_string) && find(library, "cuptiGetVersion", f.version);
    return all ? &f : nullptr;
  }();
  return found;
}

std::string reason(CUptiResult status) {
  const char* text = nullptr;
  functions()->result_string(status, &text);
  return text != nullptr ? text : fmt::format("status {}", static_cast<int>(status));
}

// "cudaMalloc_v3020" is cudaMalloc.
std::string call_name(CUpti_CallbackId id) {
  const char* text = nullptr;
  if (functions()->callback_name(CUPTI_CB_DOMAIN_RUNTIME_API, id, &text) != CUPTI_SUCCESS || text == nullptr)
    return fmt::format("call {}", id);
  std::string name = text;
  const std::size_t at = name.rfind("_v");
  if (at != std::string::npos && at + 2 < name.size() && std::isdigit(static_cast<unsigned char>(name[at + 2])))
    name.resize(at);
  return name;
}

// Without parameters and our own namespaces.
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
  int depth = 0;  // of template arguments, which may hold parentheses of their own
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
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "[CUDA memcpy HtoD]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "[CUDA memcpy DtoH]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "[CUDA memcpy DtoD]";
    default:
      return "[CUDA memcpy]";
  }
}

}  // namespace

struct Cupti::State {
  State() { profiler.row("GPU activities", ""); }  // shown first

  void add(std::string_view group, std::string_view name, std::uint64_t start, std::uint64_t end) {
    if (start == 0 || end < start) return;  // CUPTI could not tell
    const double at = begin + (static_cast<double>(start) - static_cast<double>(begin_stamp)) * 1e-9;
    profiler.add(profiler.row(group, name), at, static_cast<double>(end - start) * 1e-9);
  }
  std::string_view group_at(std::uint64_t start) const {
    for (auto window = windows.rbegin(); window != windows.rend(); ++window) {
      if (start >= window->first && start <= window->last) return window->group;
    }
    return "GPU activities";
  }
  // Fields that are read stand at the same place in all versions of these records.
  void parse(const CUpti_Activity* record) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_RUNTIME: {
        const auto* call = reinterpret_cast<const CUpti_ActivityAPI*>(record);
        add("API calls", call_name(call->cbid), call->start, call->end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel4*>(record);
        add(group_at(kernel->start), kernel_name(kernel->name), kernel->start, kernel->end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy*>(record);
        add("GPU activities", copy_name(copy->copyKind), copy->start, copy->end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto* fill = reinterpret_cast<const CUpti_ActivityMemset*>(record);
        add("GPU activities", "[CUDA memset]", fill->start, fill->end);
        break;
      }
      default:
        break;  // graphs as a whole: timed by events of ours, under the name of their phase
    }
  }

  struct Window {
    std::uint64_t first, last;
    std::string group;
  };
  std::mutex mutex;  // records arrive on threads of CUPTI
  Profiler profiler;
  double begin = 0;  // the host's clock and CUPTI's at the same moment
  std::uint64_t begin_stamp = 0;
  std::vector<Window> windows;

  static std::mutex watching_mutex;
  static State* watching;  // whose records come in

  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *bytes = *buffer != nullptr ? kBufferBytes : 0;
    *records = 0;  // as many as fit
  }
  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    {
      const std::lock_guard watch(watching_mutex);
      if (watching != nullptr) {
        const std::lock_guard lock(watching->mutex);
        CUpti_Activity* record = nullptr;
        while (functions()->next_record(buffer, valid, &record) == CUPTI_SUCCESS) watching->parse(record);
      }
    }
    std::free(buffer);
  }
};

std::mutex Cupti::State::watching_mutex;
Cupti::State* Cupti::State::watching = nullptr;

Cupti::Cupti(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<Cupti> Cupti::open(std::string& why_not) {
  const Functions* f = functions();
  if (f == nullptr) {
    why_not = fmt::format("CUPTI is not installed: libcupti.so.{}", CUDART_VERSION / 1000);
    return nullptr;
  }
  auto state = std::make_unique<State>();
  {
    const std::lock_guard watch(State::watching_mutex);
    if (State::watching != nullptr) {
      why_not = "CUPTI already serves another profile of this process";
      return nullptr;
    }
    State::watching = state.get();
  }
  std::unique_ptr<Cupti> cupti(new Cupti(std::move(state)));  // from here on its end is the end of watching
  CUptiResult status = f->register_callbacks(State::give_buffer, State::take_buffer);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (status == CUPTI_SUCCESS) status = f->enable(kind);
  }
  if (status == CUPTI_SUCCESS) status = f->timestamp(&cupti->state_->begin_stamp);
  cupti->state_->begin = Profiler::now();
  if (status == CUPTI_SUCCESS) return cupti;
  why_not = fmt::format("CUPTI cannot be used: {}", reason(status));
  return nullptr;
}

Cupti::~Cupti() {
  for (const CUpti_ActivityKind kind : kKinds) functions()->disable(kind);
  functions()->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard watch(State::watching_mutex);
  State::watching = nullptr;
}

std::string Cupti::version() const {
  std::uint32_t number = 0;
  functions()->version(&number);
  return number >= 10000 ? fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100)
                         : fmt::format("{}", number);
}

void Cupti::begin_group(std::string_view group) {
  std::uint64_t now = 0;
  functions()->timestamp(&now);
  const std::lock_guard lock(state_->mutex);
  state_->windows.push_back({now, ~std::uint64_t{0}, std::string(group)});
}

void Cupti::end_group() {
  std::uint64_t now = 0;
  functions()->timestamp(&now);
  const std::lock_guard lock(state_->mutex);
  state_->windows.back().last = now;
}

void Cupti::add(std::string_view group, std::string_view name, double start, double duration) {
  const std::lock_guard lock(state_->mutex);
  state_->profiler.add(state_->profiler.row(group, name), start, duration);
}

Profile Cupti::take() {
  functions()->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(state_->mutex);
  return state_->profiler.take({}, "API calls");
}

}  // namespace graphrun::cuda

#else  // built where cupti.h was not

namespace graphrun::cuda {

struct Cupti::State {};

std::unique_ptr<Cupti> Cupti::open(std::string& why_not) {
  why_not = "graphrun was built without CUPTI";
  return nullptr;
}
Cupti::Cupti(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cupti::~Cupti() = default;
std::string Cupti::version() const {
  return {};
}
void Cupti::begin_group(std::string_view) {}
void Cupti::end_group() {}
void Cupti::add(std::string_view, std::string_view, double, double) {}
Profile Cupti::take() {
  return {};
}

}  // namespace graphrun::cuda

#endif
