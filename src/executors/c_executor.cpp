#include "executors/c_executor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "executors/common/host_executor.h"
#include "executors/common/load_check.h"
#include "executors/flat_program.h"
#include "executors/plugin_folders.h"
#include "executors/plugin_host.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::size_t kMaxName = 64;

static_assert(GR_RUN + static_cast<int>(ErrorKind::input) == GR_INPUT &&
              GR_RUN + static_cast<int>(ErrorKind::check) == GR_CHECK &&
              GR_RUN + static_cast<int>(ErrorKind::device) == GR_DEVICE);

bool is_plugin_name(const char* name) {
  return name != nullptr && *name != '\0' && strnlen(name, kMaxName + 1) <= kMaxName && has_name_characters(name);
}

// Table of a plug-in, which is never closed, and the object that its create() returned.
class CPlugin {
 public:
  const gr_executor* operator->() const { return &table_; }
  void* self() const { return self_; }
  std::string name() const { return table_.name == nullptr ? path_ : table_.name; }

  [[noreturn]] void fail(ErrorKind kind, std::string_view function, std::string_view place,
                         std::string_view what) const {
    throw Error(
        kind, "executor.failed",
        fmt::format("{} ({}): {}(){}{}: {}", name(), path_, function, place.empty() ? "" : " of ", place, what));
  }

  // Converts exceptions of f to Error.
  template <class F>
  auto call(std::string_view function, F f) const {
    try {
      return f();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& thrown) {
      fail(ErrorKind::run, function, {}, fmt::format("it threw: {}", printable(thrown.what())));
    } catch (...) {
      fail(ErrorKind::run, function, {}, "it threw something that is not a std::exception");
    }
  }

  template <class F>
  gr_array list(std::string_view function, F f) const {
    const gr_array items = call(function, f);
    if (items.count > 0 && (items.items == nullptr || items.stride == 0))
      fail(ErrorKind::run, function, {}, fmt::format("it returned {} items but no array", items.count));
    return items;
  }

  // Throws Error unless f(why), which returns 0 or a gr_kind, succeeds. `place`: target of the call, for the message.
  template <class F>
  void must(std::string_view function, std::string_view place, F f) const {
    char why[GR_WHY] = {};
    const int kind = call(function, [&] { return f(static_cast<char*>(why)); });
    if (kind == 0) return;
    why[GR_WHY - 1] = '\0';
    std::string what = *why == '\0' ? "it failed without a reason" : printable(static_cast<const char*>(why));
    const bool known = kind >= GR_RUN && kind <= GR_DEVICE;
    if (!known) what = fmt::format("it returned {}, which is not a gr_kind: {}", kind, what);
    fail(known ? static_cast<ErrorKind>(kind - GR_RUN) : ErrorKind::run, function, place, what);
  }

  CPlugin(std::string path, CEntry entry, std::string_view argument) : path_(std::move(path)) {
    const gr_executor* given = call("graphrun_executor_plugin_c", [&] { return entry(&plugin_host()); });
    if (given == nullptr) {
      reject_plugin(path_,
                    fmt::format("graphrun_executor_plugin_c() gives null: it does not run under version {} of the "
                                "interface for executors in C",
                                GR_EXECUTOR_VERSION));
    }
    check_table(*given);
    if (table_.create == nullptr) return;
    const std::string text(argument);
    must("create", {}, [&](char* why) { return table_.create(text.c_str(), &self_, why); });
  }
  ~CPlugin() {
    if (table_.destroy == nullptr) return;
    try {
      table_.destroy(self_);
    } catch (...) {  // cannot report from a destructor
    }
  }
  CPlugin(const CPlugin&) = delete;
  CPlugin& operator=(const CPlugin&) = delete;

 private:
  void check_table(const gr_executor& given) {
    if (!GR_HAS(gr_executor, &given, version))
      reject_plugin(path_, fmt::format("the struct_size of its gr_executor is {}", given.struct_size));
    if (given.version == 0 || given.version > GR_EXECUTOR_VERSION) {
      throw Error(ErrorKind::input, "executor.version",
                  fmt::format("{} needs version {} of the interface for executors in C, this graphrun has {}", path_,
                              given.version, GR_EXECUTOR_VERSION),
                  "build the plug-in against the installed headers, or update graphrun");
    }
    if (!GR_HAS(gr_executor, &given, read)) {
      reject_plugin(path_, fmt::format("the struct_size of its gr_executor is {}, and was {} in version 1",
                                       given.struct_size, offsetof(gr_executor, read) + sizeof given.read));
    }
    std::memcpy(&table_, &given, std::min(given.struct_size, sizeof table_));  // missing members stay 0
    std::vector<std::string_view> missing;
    const auto need = [&](bool there, std::string_view function) {
      if (!there) missing.push_back(function);
    };
    need(table_.supports != nullptr, "supports");
    need(table_.load != nullptr, "load");
    need(table_.unload != nullptr, "unload");
    need(table_.run != nullptr, "run");
    need(table_.run_steps != nullptr, "run_steps");
    need(table_.write != nullptr, "write");
    need(table_.read != nullptr, "read");
    if (!missing.empty())
      reject_plugin(path_, fmt::format("these of its functions are null: {}", fmt::join(missing, ", ")));
    if (!is_plugin_name(table_.name)) {
      const bool null = std::exchange(table_.name, nullptr) == nullptr;
      reject_plugin(path_, fmt::format("its name is {}; it takes 1 to {} lower-case letters, digits, _ and -",
                                       null ? "null" : "no name", kMaxName));
    }
    const std::string_view name = table_.name;
    if (name == "ref" || name == "cpu" || name == "cuda" || name == "auto")
      reject_plugin(path_, fmt::format("its name {} is reserved for a built-in executor", name));
    if (table_.targets.count > 0 && (table_.targets.items == nullptr || table_.targets.stride < sizeof(char*)))
      reject_plugin(path_, "its targets are not an array of names");
    for (std::size_t i = 0; i < table_.targets.count; ++i) {
      const char* target = *GR_AT(char*, table_.targets, i);
      if (!is_plugin_name(target)) reject_plugin(path_, fmt::format("its target {} has no name", i));
      add_target(target, name);
    }
  }

  std::string path_;
  gr_executor table_{};
  void* self_ = nullptr;
};

class CRunnable final : public Runnable {
 public:
  CRunnable(std::shared_ptr<const CPlugin> of, const Program& program, std::uint64_t fallback_steps)
      : plugin_(std::move(of)), program_(program), flat_(program_), fallback_steps_(fallback_steps) {
    plugin().must("load", {},
                  [&](char* why) { return plugin()->load(plugin().self(), &flat_.get(), &progress_, &loaded_, why); });
  }
  ~CRunnable() override {
    try {
      plugin()->unload(loaded_);
    } catch (...) {  // cannot report from a destructor
    }
  }

  void write(BufferId id, std::span<const std::byte> bytes) override { put(id, 0, whole(id, bytes.size()), bytes); }
  void read(BufferId id, std::span<std::byte> bytes) override { get(id, 0, whole(id, bytes.size()), bytes); }
  void read_range(BufferId id, std::uint64_t first, std::span<std::byte> bytes) override {
    check_range(program_.buffers.at(id), first, bytes.size());
    get(id, first, program_.buffers[id], bytes);
  }
  void write_rows(BufferId id, std::int64_t first, std::span<const std::byte> bytes) override {
    const Buffer& buffer = program_.buffers.at(id);
    const std::uint64_t row = check_rows(buffer, first, bytes.size());
    put(id, static_cast<std::uint64_t>(first) * row, buffer, bytes);
  }

  void run(PhaseId phase, std::uint64_t n) override {
    begin_step(0);
    const Phase& of = program_.phases.at(phase);
    plugin().must("run", of.name, [&](char* why) { return plugin()->run(loaded_, phase, n, why); });
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    const Phase& of = program_.phases.at(phase);
    if (first > last || last > of.steps.size()) {
      throw std::logic_error(
          fmt::format("{}: steps [{}, {}) of a phase of {}", plugin().name(), first, last, of.steps.size()));
    }
    plugin().must("run_steps", first < last ? of.steps[first].name : of.name,
                  [&](char* why) { return plugin()->run_steps(loaded_, phase, first, last, why); });
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() const override {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    if (fallback_steps_ > 0) all.emplace_back("fallback_steps", fallback_steps_);
    if (plugin()->counters == nullptr) return all;
    const gr_array counted = plugin().list("counters", [&] { return plugin()->counters(loaded_); });
    for (std::size_t i = 0; i < counted.count; ++i) {
      const gr_counter* one = GR_AT(gr_counter, counted, i);
      all.emplace_back(one->name == nullptr ? "?" : printable(one->name), one->value);
    }
    return all;
  }

 private:
  const CPlugin& plugin() const { return *plugin_; }

  const Buffer& whole(BufferId id, std::size_t bytes) const {
    const Buffer& buffer = program_.buffers.at(id);
    if (bytes == buffer.bytes) return buffer;
    throw std::logic_error(
        fmt::format("{}: {} bytes for buffer {} of {}", plugin().name(), bytes, buffer.name, buffer.bytes));
  }
  void put(BufferId id, std::uint64_t first, const Buffer& buffer, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    plugin().must("write", buffer.name,
                  [&](char* why) { return plugin()->write(loaded_, id, first, bytes.data(), bytes.size(), why); });
  }
  void get(BufferId id, std::uint64_t first, const Buffer& buffer, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    plugin().must("read", buffer.name,
                  [&](char* why) { return plugin()->read(loaded_, id, first, bytes.data(), bytes.size(), why); });
  }

  std::shared_ptr<const CPlugin> plugin_;
  Program program_;
  FlatProgram flat_;
  gr_progress progress_{[this](std::uint64_t step) { begin_step(step); }};
  std::uint64_t fallback_steps_;
  void* loaded_ = nullptr;
};

class CExecutor final : public Executor {
 public:
  explicit CExecutor(std::shared_ptr<const CPlugin> plugin) : plugin_(std::move(plugin)), name_(plugin_->name()) {
    if ((*plugin_)->targets.count > 0) target_ = *GR_AT(char*, (*plugin_)->targets, 0);
  }

  std::string_view name() const override { return name_; }
  std::string_view default_target() const override { return target_; }

  Support supports(const StepSignature& step, const Target& target) const override {
    const FlatSignature signature(step);
    const std::string target_name(target.name);
    char why[GR_WHY] = {};
    std::uint64_t workspace = 0;
    const int answer = plugin_->call("supports", [&] {
      return (*plugin_)->supports(plugin_->self(), &signature.get(), target_name.c_str(), &workspace, why);
    });
    if (answer == GR_YES) return Support::with_workspace(workspace);
    if (answer == GR_FALLBACK) {
      const HostKernel kernel = find_kernel(step);
      if (kernel.run != nullptr) return {true, {}, kernel.workspace_bytes, kernel.fallback};
      return Support::no(kernel.reason.empty() ? fmt::format("the library has no kernel for '{}'", name_of(step.op))
                                               : kernel.reason);
    }
    if (answer != GR_NO) {
      plugin_->fail(ErrorKind::run, "supports", name_of(step.op),
                    fmt::format("it returned {}, which is not a gr_answer", answer));
    }
    why[GR_WHY - 1] = '\0';
    return Support::no(*why == '\0' ? fmt::format("{} has no kernel for op '{}'", name_, name_of(step.op))
                                    : printable(static_cast<const char*>(why)));
  }

  std::unique_ptr<Runnable> load(const Program& program) override {
    check_loadable(program, *this);
    const Target& target = find_target(program.target.empty() ? target_ : program.target);
    std::uint64_t fallbacks = 0;
    for (const Phase& phase : program.phases) {
      for (const Step& step : phase.steps) {
        if (!supports(signature_of(program, step), target).fallback.empty()) ++fallbacks;
      }
    }
    for (const Buffer& buffer : program.buffers) {
      if (buffer.layout == Layout::rows) continue;
      throw Error(ErrorKind::input, "step.unsupported",
                  fmt::format("{} takes dense buffers only, and {} is not", name_, buffer.name));
    }
    return std::make_unique<CRunnable>(plugin_, program, fallbacks);
  }

  DeviceList devices() const override {
    DeviceList list;
    if ((*plugin_)->devices == nullptr) return list;
    char why[GR_WHY] = {};
    const gr_array found = plugin_->list("devices", [&] { return (*plugin_)->devices(plugin_->self(), why); });
    why[GR_WHY - 1] = '\0';
    list.missing = printable(static_cast<const char*>(why));
    const auto text = [](const char* given) { return given == nullptr ? std::string() : printable(given); };
    for (std::size_t i = 0; i < found.count; ++i) {
      const gr_device* one = GR_AT(gr_device, found, i);
      list.devices.push_back({text(one->id), text(one->name), text(one->capability), one->units, text(one->driver),
                              one->memory_free, one->memory_total});
    }
    return list;
  }

 private:
  std::shared_ptr<const CPlugin> plugin_;
  std::string name_;
  std::string target_ = "host";
};

}  // namespace

void reject_plugin(const std::string& path, std::string_view why) {
  throw Error(ErrorKind::input, "executor.plugin", fmt::format("{} is not an executor plug-in: {}", path, why));
}

std::shared_ptr<Executor> make_c_executor(const std::string& path, CEntry entry, std::string_view argument) {
  return std::make_shared<CExecutor>(std::make_shared<const CPlugin>(path, entry, argument));
}

}  // namespace graphrun
