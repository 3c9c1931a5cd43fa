#include "kernels/cpu/threads/parallel.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace graphrun::cpu {
namespace {

class Cores : public testing::Test {
 protected:
  void write(std::string_view file, std::string_view text) { folder_.write(file, text); }
  std::optional<int> of(std::string_view groups) { return cores_of_groups(groups, folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(Cores, NoGroupIsNoLimit) {
  EXPECT_EQ(of(""), std::nullopt);
  EXPECT_EQ(of("0::/\n"), std::nullopt);
  EXPECT_EQ(of("not what it should be"), std::nullopt);
  write("cpu.max", "max 100000\n");
  EXPECT_EQ(of("0::/\n"), std::nullopt);
}

TEST_F(Cores, AQuotaIsRoundedUpToWholeCores) {
  write("cpu.max", "150000 100000\n");
  EXPECT_EQ(of("0::/\n"), 2);
  write("cpu.max", "5000 100000\n");
  EXPECT_EQ(of("0::/\n"), 1);
  write("cpu.max", "400000 100000\n");
  EXPECT_EQ(of("0::/\n"), 4);
}

TEST_F(Cores, TheSmallestLimitOfTheGroupsAroundCounts) {
  write("a/cpu.max", "300000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "800000 100000\n");
  EXPECT_EQ(of("0::/a/b/c\n"), 3);
  EXPECT_EQ(of("0::/a/b\n"), 3);
  EXPECT_EQ(of("0::/d\n"), std::nullopt);
}

TEST_F(Cores, GroupsOfTheFirstVersion) {
  write("cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n");
  write("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(of("5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n"), 3);
  write("cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(of("4:cpu,cpuacct:/box\n"), std::nullopt);
}

TEST_F(Cores, OfThisProcessAtLeastOne) {
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace graphrun::cpu
