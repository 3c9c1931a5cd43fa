// profile.h: time profile of one runnable: runtime calls, copies, graphs, and the kernels of some steps.
// Contract: uses CUPTI's records if available (profile_cupti.h), else the host clock around calls and events around
// work on the stream. Graphs are timed as a whole, because tracing the kernels in their loops with CUPTI makes them
// three times as slow. Instead, a few steps run launch by launch (same kernels, same bits) within kShare of the time;
// their kernels form a separate group. Everything is a no-op for a null DeviceProfile. Not here: running those steps
// (runnable.cpp), marking begin and end of calls (api.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda/profile_cupti.h"
#include "graphrun/profile.h"

namespace graphrun::cuda {

class DeviceProfile {
 public:
  static constexpr double kShare = 0.02;  // share of run() time for steps that run launch by launch

  explicit DeviceProfile(Profiling how);  // on or own_clock; construct before the device is opened
  ~DeviceProfile();
  DeviceProfile(const DeviceProfile&) = delete;
  DeviceProfile& operator=(const DeviceProfile&) = delete;

  // Scope of a runtime call.
  class Call {
   public:
    Call(DeviceProfile* profile, const char* name) : profile_(profile), name_(name) {
      if (profile_ != nullptr) start_ = Profiler::now();
    }
    ~Call() {
      if (profile_ != nullptr) profile_->add_call(name_, start_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    DeviceProfile* profile_;
    const char* name_;
    double start_ = 0;
  };

  enum class Kind { copy, kernel, graph };
  // Scope that enqueues work on the stream, unless it is only captured. The name must live until synchronized(); for a
  // graph, it is the purpose.
  class Work {
   public:
    Work(DeviceProfile* profile, Kind kind, std::string_view name, cudaStream_t stream, bool capturing = false)
        : profile_(profile != nullptr && !capturing && profile->begin_work(kind, name, stream) ? profile : nullptr),
          stream_(stream) {}
    ~Work() {
      if (profile_ != nullptr) profile_->end_work(stream_);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    DeviceProfile* profile_;
    cudaStream_t stream_;
  };
  void synchronized();  // reads the events; all work on the stream must be done

  // Times of run() and of sampled steps within it. Phases are identified by name.
  bool sample_due(std::string_view phase);
  void begin_sample(std::string_view phase);
  void end_sample();
  void add_run(std::string_view phase, std::uint64_t steps, double seconds);

  Profile take();

 private:
  struct Pair {
    cudaEvent_t begin = nullptr, end = nullptr;
    Kind kind = Kind::copy;
    std::string_view group, name;
  };
  struct Sampled {
    std::string phase;
    std::uint64_t steps = 0, samples = 0;
  };

  void add_call(const char* name, double start);
  bool begin_work(Kind kind, std::string_view name, cudaStream_t stream);
  void end_work(cudaStream_t stream);
  Sampled& sampled(std::string_view phase);

  Profiler profiler_;
  std::unique_ptr<Cupti> cupti_;
  std::string why_no_cupti_;
  std::string sample_;       // kernel group of the active sample; empty without one
  std::vector<Pair> pairs_;  // created on demand, then reused
  std::size_t used_ = 0;     // number of pairs_ in use since the last synchronization
  cudaEvent_t origin_ = nullptr;
  double origin_seconds_ = 0;  // host clock when origin_ was recorded
  std::uint64_t untimed_ = 0;  // number of operations without a pair
  double run_seconds_ = 0, sample_seconds_ = 0, sample_start_ = 0;
  std::vector<Sampled> phases_;
};

}  // namespace graphrun::cuda
