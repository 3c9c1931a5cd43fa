// The profile of a CUDA runnable, over the fake runtime: without CUPTI, what is called, copied and launched is counted
// by our own clock. What CUPTI tells is tested on a device (device_test.cpp).
#include "graphrun/profile.h"

#include <gtest/gtest.h>

#include "fake_runtime.h"
#include "programs.h"

namespace graphrun::testing {
namespace {

Program two_kernels() {
  Builder build("two");
  const BufferId x = build.state("x", f32({8}), std::vector<float>(8, 1.0f), true);
  const BufferId y = build.step("exp", {x}, build.buffer("y", f32({8})));
  build.step("assign", {x, y}, x);
  return build.finish(*find_executor(GRAPHRUN_FAKE_CUDA));
}

const ProfileRow* find(const Profile& profile, const std::string& group, const std::string& name) {
  for (const ProfileRow& row : profile.rows) {
    if (row.group == group && row.name == name) return &row;
  }
  return nullptr;
}
std::uint64_t calls(const Profile& profile, const std::string& group, const std::string& name) {
  const ProfileRow* row = find(profile, group, name);
  return row != nullptr ? row->calls : 0;
}

Profile profile_of(Profiling how, std::initializer_list<std::uint64_t> runs) {
  const Program program = two_kernels();
  const auto executor = find_executor(GRAPHRUN_FAKE_CUDA);
  executor->set_profiling(how);
  const auto runnable = executor->load(program);
  for (const std::uint64_t n : runs) runnable->run(0, n);
  return runnable->profile();
}

TEST(DeviceProfile, SaysWhyCuptiIsNotUsed) {
  const FakeCuda machine("missing=libcupti");
  const Profile own = profile_of(Profiling::own_clock, {1});
  EXPECT_NE(own.source.find("(CUPTI was not wanted)"), std::string::npos) << own.source;
  // The library is looked for once in a process.
  const Profile missing = profile_of(Profiling::on, {1});
  EXPECT_NE(missing.source.find("(CUPTI "), std::string::npos) << missing.source;
}

TEST(DeviceProfile, CountsCallsCopiesAndKernelsOfASample) {
  const Profile profile = profile_of(Profiling::own_clock, {1000, 1000});
  EXPECT_EQ(calls(profile, "API calls", "cudaMalloc"), 1u);
  EXPECT_EQ(calls(profile, "API calls", "cudaMallocHost"), 1u);
  EXPECT_GE(calls(profile, "API calls", "cudaGraphLaunch"), 2u);
  EXPECT_EQ(calls(profile, "API calls", "cudaGraphLaunch"),
            calls(profile, "GPU activities", "[CUDA graph of phase 'run']"));
  EXPECT_EQ(calls(profile, "GPU activities", "[CUDA memcpy DtoH]"), 2u);  // the polled bytes, once a run
  EXPECT_EQ(calls(profile, "GPU activities", "[CUDA memcpy HtoD]"), 1u);  // the initial value
  std::uint64_t kernels = 0, samples = 0;
  for (const ProfileRow& row : profile.rows) {
    EXPECT_FALSE(row.name.empty());
    if (row.group == "GPU activities") {
      EXPECT_NEAR(row.total, 1e-6 * static_cast<double>(row.calls), 1e-9) << row.name;  // what the fake's events say
    }
    if (row.group == "kernels of run") kernels += row.calls;
  }
  const std::string words = "steps that were run kernel by kernel: ";
  for (const std::string& note : profile.notes) {
    if (note.rfind(words, 0) != 0) continue;
    samples = std::stoull(note.substr(words.size()));
    EXPECT_NE(note.find(" of 2000 of run; "), std::string::npos) << note;
  }
  EXPECT_GE(samples, 1u);
  EXPECT_EQ(kernels, 2 * samples) << "exp and assign";
}

// The classic check: more steps, the same allocations.
TEST(DeviceProfile, ALongerRunAllocatesNothingMore) {
  const Profile less = profile_of(Profiling::own_clock, {1000}), more = profile_of(Profiling::own_clock, {3000});
  for (const char* call : {"cudaMalloc", "cudaMallocHost"}) {
    EXPECT_EQ(calls(less, "API calls", call), 1u) << call;
    EXPECT_EQ(calls(more, "API calls", call), 1u) << call;
  }
}

TEST(DeviceProfile, IsEmptyWhenOff) {
  const Profile profile = profile_of(Profiling::off, {10});
  EXPECT_TRUE(profile.source.empty());
  EXPECT_TRUE(profile.rows.empty());
}

}  // namespace
}  // namespace graphrun::testing
