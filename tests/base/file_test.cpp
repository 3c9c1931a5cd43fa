#include "base/file.h"

#include <gtest/gtest.h>

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
};

TEST_F(File, EveryByteIsRead) {
  std::string bytes(100'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  EXPECT_EQ(read_file(own.write("a", bytes)), bytes);
  EXPECT_EQ(read_file(own.write("a", "")), "");
}

TEST_F(File, MissingFileNamesItsNeighbour) {
  own.write("model.json", "{}");
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
}

}  // namespace
}  // namespace graphrun
