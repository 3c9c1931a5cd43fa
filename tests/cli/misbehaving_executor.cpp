// misbehaving_executor.cpp: an executor library that runs as cpu does but for one thing at one step, which the variable
// MISBEHAVING_EXECUTOR names: "allocate=7", "allocate_in_thread=7", "allocate_on_device=7", "sleep=7" (20 ms), "nan=7"
// (into the first parameter) or "interrupt=7" (as Ctrl-C does; every step takes a millisecond); "device=0" plans as for
// a GPU. What the checks of the command line have to find. A file that MISBEHAVING_EXECUTOR_ASKED names grows by a byte
// for each step that the plug-in is asked about.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "executors/common/executor_library.h"
#include "graphrun/target.h"

namespace {

using namespace graphrun;

void* volatile kept = nullptr;

[[gnu::noinline]] void allocate_one_byte() {
  kept = std::malloc(1);
}

class MisbehavingRunnable final : public Runnable {
 public:
  MisbehavingRunnable(const Program& program, std::unique_ptr<Runnable> inner)
      : program_(program), inner_(std::move(inner)) {
    const char* wanted = std::getenv("MISBEHAVING_EXECUTOR");
    const std::string text = wanted == nullptr ? "nothing=0" : wanted;
    what_ = text.substr(0, text.find('='));
    at_ = std::stoull(text.substr(text.find('=') + 1));
    if (what_ == "allocate_in_thread") {
      worker_ = std::thread([this] {
        while (turn_.load() == 0) std::this_thread::yield();
        if (turn_.load() == 1) allocate_one_byte();
        turn_ = 2;
      });
    }
  }
  ~MisbehavingRunnable() override {
    if (!worker_.joinable()) return;
    if (turn_.load() == 0) turn_ = 3;
    worker_.join();
  }

  void write(BufferId buffer, std::span<const std::byte> bytes) override { inner_->write(buffer, bytes); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { inner_->read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    inner_->read_range(buffer, first, bytes);
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    inner_->write_rows(buffer, first, bytes);
  }
  void run(PhaseId phase, std::uint64_t n) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      begin_step(i);
      if (phase == 0 && ++steps_ == at_) be_odd();
      if (what_ == "interrupt") std::this_thread::sleep_for(std::chrono::milliseconds(1));
      inner_->run(phase, 1);
    }
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    inner_->run_steps(phase, first, last);
  }

 private:
  void be_odd() {
    if (what_ == "allocate") allocate_one_byte();
    if (what_ == "allocate_on_device") report_allocation("cudaMalloc", 1);
    if (what_ == "sleep") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (what_ == "interrupt") std::raise(SIGINT);
    if (what_ == "allocate_in_thread") {
      turn_ = 1;
      while (turn_.load() != 2) std::this_thread::yield();
    }
    if (what_ == "nan") {
      for (BufferId id = 0; id < program_.buffers.size(); ++id) {
        if (program_.buffers[id].kind != BufferKind::parameter) continue;
        const std::vector<float> values(program_.buffers[id].bytes / sizeof(float),
                                        std::numeric_limits<float>::quiet_NaN());
        return inner_->write(id, std::as_bytes(std::span(values)));
      }
    }
  }

  Program program_;
  std::unique_ptr<Runnable> inner_;
  std::string what_;
  std::uint64_t at_ = 0, steps_ = 0;
  std::atomic<int> turn_{0};
  std::thread worker_;
};

class MisbehavingExecutor final : public Executor {
 public:
  std::string_view name() const override { return "odd"; }
  std::string_view default_target() const override { return is("device") ? "h200" : "host"; }
  Support supports(const StepSignature& step, const Target& target) const override {
    if (const char* asked = std::getenv("MISBEHAVING_EXECUTOR_ASKED")) std::ofstream(asked, std::ios::app) << '.';
    return cpu_->supports(step, is("device") ? find_target("host") : target);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    Program on_host = program;
    on_host.target = "host";
    return std::make_unique<MisbehavingRunnable>(program, cpu_->load(on_host));
  }

 private:
  static bool is(std::string_view what) {
    const char* asked = std::getenv("MISBEHAVING_EXECUTOR");
    return asked != nullptr && std::string_view(asked).starts_with(what);
  }
  std::shared_ptr<Executor> cpu_ = find_executor("cpu");
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ExecutorLibrary* graphrun_executor_library() {
  static const ExecutorLibrary library{kExecutorLibraryVersion, [](std::string_view) {
                                         return std::unique_ptr<Executor>(std::make_unique<MisbehavingExecutor>());
                                       }};
  return &library;
}
