#include "base/host_memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/temporary_folder.h"

namespace graphrun {
namespace {

class HostMemory : public ::testing::Test {
 protected:
  void file(const std::string& path, const char* content) const { folder_.write(path.substr(1), content); }

  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(HostMemory, UnknownIsNoLimit) {
  EXPECT_EQ(available_host_memory(root_), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(HostMemory, TheKernelsEstimate) {
  file("/proc/meminfo", "MemTotal:       24684444 kB\nMemFree:  17 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(available_host_memory(root_), 1024000u);
  file("/sys/fs/cgroup/memory.max", "max\n");
  file("/sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(available_host_memory(root_), 1024000u);
}

TEST_F(HostMemory, AContainersLimit) {
  file("/proc/meminfo", "MemAvailable:   1000 kB\n");
  file("/sys/fs/cgroup/memory.max", "9000\n");
  file("/sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(available_host_memory(root_), 4000u);
  file("/sys/fs/cgroup/memory.stat", "anon 3000\nfile 2000\ninactive_file 1500\n");
  EXPECT_EQ(available_host_memory(root_), 5500u);
  file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "700\n");
  file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
  EXPECT_EQ(available_host_memory(root_), 0u);
}

TEST_F(HostMemory, OfThisMachine) {
  EXPECT_GT(available_host_memory(), 1u << 20);
}

}  // namespace
}  // namespace graphrun
