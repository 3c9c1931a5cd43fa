#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "graphrun/error.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  const test::TemporaryFolder own;
  const fs::path& folder = own.path();
  std::string path(const std::string& name) const { return own.file(name); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
};

TEST_F(File, RoundTrip) {
  std::string bytes(100'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  write_file(path("a"), bytes);
  EXPECT_EQ(read_file(path("a")), bytes);
  write_file(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(File, KeepsTheModeOfTheOldFile) {
  write_file(path("a"), "x");
  ::chmod(path("a").c_str(), 0640);
  write_file(path("a"), "y");
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(File, MissingFileNamesItsNeighbour) {
  write_file(path("model.json"), "{}");
  try {
    read_file(path("modle.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.diagnostics()[0].message, "cannot read '" + path("modle.json") + "': No such file or directory");
    EXPECT_EQ(error.diagnostics()[0].hint, "did you mean '" + path("model.json") + "'?");
  }
}

TEST_F(File, FoldersAreNoFiles) {
  try {
    read_file(folder.string());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics()[0].message, "cannot read '" + folder.string() + "': Is a directory");
  }
  EXPECT_THROW(write_file(folder.string(), "x"), Error);
  EXPECT_THROW(write_file(path("no/such"), "x"), Error);
  EXPECT_EQ(files(), 0u);
}

TEST_F(File, WritesToDevices) {
  EXPECT_NO_THROW(write_file("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// A limit on the size of files stands for a full disk.
TEST_F(File, AFailedWriteLeavesTheOldFile) {
  write_file(path("a"), "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_file(path("a"), std::string(100'000, 'x'));
  } catch (const Error& error) {
    message = error.diagnostics()[0].message;
    EXPECT_EQ(error.kind(), ErrorKind::run);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot write '" + path("a") + "': File too large");
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(files(), 1u);  // nothing half-written stays
}

}  // namespace
}  // namespace graphrun
