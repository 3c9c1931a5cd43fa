#include "executors/cuda/profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace graphrun::cuda {
namespace {

constexpr std::size_t kMaxPairs = 4096;
constexpr std::string_view kCalls = "API calls";
constexpr std::string_view kWork = "GPU activities";

std::string kernels_of(std::string_view phase) {
  return fmt::format("kernels of {}", phase);
}

}  // namespace

DeviceProfile::DeviceProfile(Profiling how) {
  if (how == Profiling::own_clock) {
    why_no_cupti_ = "CUPTI was not wanted";
  } else {
    cupti_ = Cupti::open(why_no_cupti_);
  }
  profiler_.row(kWork, "");  // creates the row that is shown first
}

DeviceProfile::~DeviceProfile() {
  for (const Pair& pair : pairs_) {
    cudaEventDestroy(pair.begin);
    cudaEventDestroy(pair.end);
  }
  if (origin_ != nullptr) cudaEventDestroy(origin_);
}

void DeviceProfile::add_call(const char* name, double start) {
  profiler_.add(profiler_.row(kCalls, name), start, Profiler::now() - start);
}

// Ignores errors: the work itself reports them, too.
bool DeviceProfile::begin_work(Kind kind, std::string_view name, cudaStream_t stream) {
  if (cupti_ != nullptr && kind != Kind::graph) return false;
  if (used_ == pairs_.size()) {
    Pair fresh;
    if (pairs_.size() == kMaxPairs || cudaEventCreate(&fresh.begin) != cudaSuccess ||
        cudaEventCreate(&fresh.end) != cudaSuccess) {
      ++untimed_;
      return false;
    }
    pairs_.push_back(fresh);
  }
  if (origin_ == nullptr) {
    if (cudaEventCreate(&origin_) != cudaSuccess || cudaEventRecord(origin_, stream) != cudaSuccess) return false;
    origin_seconds_ = Profiler::now();
  }
  Pair& pair = pairs_[used_];
  const bool in_sample = kind == Kind::kernel && !sample_.empty();
  pair.group = in_sample ? std::string_view(sample_) : kWork;
  pair.name = name;
  pair.kind = kind;
  return cudaEventRecord(pair.begin, stream) == cudaSuccess;
}

void DeviceProfile::end_work(cudaStream_t stream) {
  if (cudaEventRecord(pairs_[used_].end, stream) == cudaSuccess) ++used_;
}

void DeviceProfile::synchronized() {
  for (std::size_t i = 0; i < used_; ++i) {
    const Pair& pair = pairs_[i];
    float start = 0, duration = 0;  // milliseconds
    if (cudaEventElapsedTime(&start, origin_, pair.begin) != cudaSuccess) continue;
    if (cudaEventElapsedTime(&duration, pair.begin, pair.end) != cudaSuccess) continue;
    const double seconds = static_cast<double>(duration) * 1e-3;
    const double at = origin_seconds_ + static_cast<double>(start) * 1e-3;
    const std::string name(pair.kind == Kind::graph ? fmt::format("[CUDA graph of {}]", pair.name) : pair.name);
    if (cupti_ != nullptr) {
      cupti_->add(pair.group, name, at, seconds);
    } else {
      profiler_.add(profiler_.row(pair.group, name), at, seconds);
    }
  }
  used_ = 0;
}

DeviceProfile::Sampled& DeviceProfile::sampled(std::string_view phase) {
  for (Sampled& known : phases_) {
    if (known.phase == phase) return known;
  }
  return phases_.emplace_back(Sampled{std::string(phase), 0, 0});
}

bool DeviceProfile::sample_due(std::string_view phase) {
  return sampled(phase).samples == 0 || sample_seconds_ < kShare * run_seconds_;
}

void DeviceProfile::begin_sample(std::string_view phase) {
  sample_ = kernels_of(phase);
  if (cupti_ != nullptr) cupti_->begin_group(sample_);
  ++sampled(phase).samples;
  sample_start_ = Profiler::now();
}

void DeviceProfile::end_sample() {
  sample_seconds_ += Profiler::now() - sample_start_;
  if (cupti_ != nullptr) cupti_->end_group();
  sample_.clear();
}

void DeviceProfile::add_run(std::string_view phase, std::uint64_t steps, double seconds) {
  sampled(phase).steps += steps;
  run_seconds_ += seconds;
}

Profile DeviceProfile::take() {
  Profile profile;
  if (cupti_ != nullptr) {
    profile = cupti_->take();
    profile.source = fmt::format("CUPTI {}, CUDA events for graphs", cupti_->version());
  }
  const bool told =
      std::any_of(profile.rows.begin(), profile.rows.end(), [](const ProfileRow& row) { return row.group == kCalls; });
  if (!told) {
    if (cupti_ != nullptr) why_no_cupti_ = "CUPTI reported nothing";
    profile =
        profiler_.take(fmt::format("the host's clock for calls, CUDA events for the GPU ({})", why_no_cupti_), kCalls);
    profile.notes.push_back("times between two events include a microsecond or two of overhead");
  }
  std::string samples;
  for (const Sampled& phase : phases_)
    samples += fmt::format("{}{} of {} of {}", samples.empty() ? "" : ", ", phase.samples, phase.steps, phase.phase);
  if (!samples.empty()) {
    profile.notes.push_back(fmt::format(
        "steps that were run kernel by kernel: {}; the others ran in graphs, which are timed as a whole", samples));
  }
  if (untimed_ > 0) profile.notes.push_back(fmt::format("{} pieces of work were not timed", untimed_));
  return profile;
}

}  // namespace graphrun::cuda
