#include "base/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace graphrun {
namespace {

namespace fs = std::filesystem;

class HostMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "graphrun_host_memory_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  void file(const char* path, const char* content) const {
    fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << content;
  }
  std::string root_;
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
