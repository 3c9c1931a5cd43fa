// plugin_folders_test.cpp: executors by name from the folders of GRAPHRUN_PLUGIN_PATH, and which folders and files are
// not taken code from.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/session.h"
#include "support/temporary_folder.h"
#include "support/variable.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;
using test::Variable;

class PluginFolders : public ::testing::Test {
 protected:
  PluginFolders() : variable_("GRAPHRUN_PLUGIN_PATH", own_.path().string()) {}

  fs::path add(const std::string& file) const {
    const fs::path to = own_.path() / file;
    fs::create_directories(to.parent_path());
    fs::copy_file(GRAPHRUN_PLUGINS "/libmatmul_plugin.so", to);
    ::chmod(to.c_str(), 0755);
    return to;
  }
  static std::string reason_for(const fs::path& path) {
    for (const RejectedPlugin& rejected : rejected_plugins()) {
      if (rejected.path == path) return rejected.reason;
    }
    return "it is not refused";
  }
  static bool knows(const std::string& name) {
    const std::vector<std::string> names = executor_names();
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  static std::string rejected(const std::string& name) {
    try {
      (void)find_executor(name);
      return "it was found";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const test::TemporaryFolder own_;
  const Variable variable_;
};

TEST_F(PluginFolders, AnExecutorIsKnownByItsName) {
  EXPECT_FALSE(knows("small"));
  add("libgraphrun_small.so");
  add("another.so");
  EXPECT_TRUE(knows("small"));
  EXPECT_EQ(executor_names().size(), 4u);
  EXPECT_TRUE(rejected_plugins().empty());
  EXPECT_EQ(find_executor("small")->name(), "matmul_plugin");
  EXPECT_NE(rejected("smal").find("small"), std::string::npos);
}

TEST_F(PluginFolders, AutoMeasuresIt) {
  add("libgraphrun_small.so");
  std::ofstream(add("libgraphrun_broken.so"), std::ios::trunc) << "no library";
  bool small = false, broken = false;
  for (const ExecutorTiming& timing : time_executors(test::verified_model())) {
    small = small || (timing.executor == "small" && timing.reason.empty() && timing.seconds_per_step > 0);
    broken = broken || (timing.executor == "broken" && timing.reason.find("does not load") != std::string::npos);
  }
  EXPECT_TRUE(small);
  EXPECT_TRUE(broken);
}

TEST_F(PluginFolders, WhatOthersMayWriteIsRejected) {
  const fs::path file = add("libgraphrun_small.so");
  ::chmod(file.c_str(), 0757);
  EXPECT_EQ(reason_for(file), "others may write it");
  EXPECT_NE(rejected("small").find("unknown executor 'small'; not used: " + file.string() + ": others may write it"),
            std::string::npos)
      << rejected("small");
  ::chmod(file.c_str(), 0775);
  EXPECT_EQ(reason_for(file), "others may write it") << "a group is others";
  ::chmod(file.c_str(), 0755);
  for (const ::mode_t mode : {0777u, 0770u, 01777u}) {
    ::chmod(own_.path().c_str(), mode);
    EXPECT_EQ(reason_for(own_.path()), "others may write it") << std::oct << mode;
    EXPECT_FALSE(knows("small"));
  }
  ::chmod(own_.path().c_str(), 0755);
  EXPECT_TRUE(knows("small"));
}

TEST_F(PluginFolders, WhatIsAboveAFolderCounts) {
  const fs::path file = add("open/inside/libgraphrun_small.so"), open = own_.path() / "open";
  const Variable inside("GRAPHRUN_PLUGIN_PATH", (open / "inside").string());
  EXPECT_TRUE(knows("small"));
  ::chmod(open.c_str(), 0777);
  EXPECT_EQ(reason_for(open / "inside"), "others may write " + fs::canonical(open).string());
  ::chmod(open.c_str(), 01777);
  EXPECT_TRUE(knows("small")) << "nobody renames what is another's in a sticky folder";
}

TEST_F(PluginFolders, WhatBelongsToAnotherIsRejected) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const fs::path file = add("libgraphrun_small.so");
  ASSERT_EQ(::chown(file.c_str(), 12345, 0), 0);
  EXPECT_EQ(reason_for(file), "it belongs to another user (number 12345)");
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(own_.path().c_str(), 12345, 0), 0);
  EXPECT_EQ(reason_for(own_.path()), "it belongs to another user (number 12345)");
  ASSERT_EQ(::chown(own_.path().c_str(), 0, 0), 0);
}

TEST_F(PluginFolders, ALinkIsWhatItLeadsTo) {
  const fs::path open = own_.path() / "open";
  const fs::path file = add("open/x.so");
  fs::create_symlink(file, own_.path() / "libgraphrun_small.so");
  EXPECT_TRUE(knows("small"));
  ::chmod(open.c_str(), 0777);
  EXPECT_EQ(reason_for(own_.path() / "libgraphrun_small.so"), "others may write " + fs::canonical(open).string());
}

TEST_F(PluginFolders, OddFoldersAndFilesAreReported) {
  add("libgraphrun_cpu.so");
  add("libgraphrun_Big.so");
  fs::create_directory(own_.path() / "libgraphrun_folder.so");
  EXPECT_EQ(reason_for(own_.path() / "libgraphrun_cpu.so"), "there is an executor 'cpu' already");
  EXPECT_NE(reason_for(own_.path() / "libgraphrun_Big.so").find("lower-case"), std::string::npos);
  EXPECT_EQ(reason_for(own_.path() / "libgraphrun_folder.so"), "it is not a regular file");
  EXPECT_EQ(executor_names().size(), 3u);
  const Variable odd("GRAPHRUN_PLUGIN_PATH", "relative::/nowhere:/dev/null");
  EXPECT_EQ(reason_for("relative"), "GRAPHRUN_PLUGIN_PATH takes absolute folders");
  EXPECT_EQ(reason_for("/nowhere"), "No such file or directory");
  EXPECT_EQ(rejected_plugins().size(), 3u);
}

TEST_F(PluginFolders, TheFirstOfANameIsTaken) {
  const fs::path first = add("a/libgraphrun_small.so"), second = add("b/libgraphrun_small.so");
  const Variable both("GRAPHRUN_PLUGIN_PATH", (own_.path() / "a").string() + ":" + (own_.path() / "b").string());
  EXPECT_EQ(reason_for(second), "'small' is " + first.string() + " already");
  EXPECT_EQ(find_executor("small")->name(), "matmul_plugin");
}

}  // namespace
}  // namespace graphrun
