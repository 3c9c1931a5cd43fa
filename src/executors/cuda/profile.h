// profile.h: where the time of one runnable goes: calls of the runtime, copies, graphs, and the kernels of some steps.
// Contract: CUPTI's records where it may be used (profile_cupti.h), else the host's clock around calls and events
// around work on the stream. Graphs are timed as a whole: CUPTI can trace the kernels in their loops, and then they
// take three times as long. Instead a few steps are run launch by launch (the same kernels, the same bits) within
// kShare of the time; their kernels are a group of their own. All of it does nothing for a null DeviceProfile. Leaves
// to others: running those steps (runnable.cpp), saying where calls begin and end (api.cpp).
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
  static constexpr double kShare = 0.02;  // of the time of run(), for steps that are run launch by launch

  explicit DeviceProfile(Profiling how);  // on or own_clock; before the device is opened
  ~DeviceProfile();
  DeviceProfile(const DeviceProfile&) = delete;
  DeviceProfile& operator=(const DeviceProfile&) = delete;

  // A call of the runtime; lives as long as the call takes.
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
  // Work that is put on the stream meanwhile, unless it is only captured. The name must live until synchronized(); that
  // of a graph is what it is for.
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
  void synchronized();  // all work on the stream is done: reads its events

  // A run() of n steps that took so long, and how many of them a sample took. Phases are told apart by name.
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
  std::string sample_;       // the group of kernels of the sample under way; empty: there is none
  std::vector<Pair> pairs_;  // made when they are first needed, then used again
  std::size_t used_ = 0;     // of pairs_, since the last synchronisation
  cudaEvent_t origin_ = nullptr;
  double origin_seconds_ = 0;  // the host's clock when origin_ was recorded
  std::uint64_t untimed_ = 0;  // work that found no pair
  double run_seconds_ = 0, sample_seconds_ = 0, sample_start_ = 0;
  std::vector<Sampled> phases_;
};

}  // namespace graphrun::cuda
