// bad_files_test.cpp: bad/NAME.json is a model file with mistakes, bad/NAME.txt all that a user is told about it.
// After a change of messages: GRAPHRUN_WRITE_GOLDEN=1 test_graph --gtest_filter='BadFiles*', and read the difference:
// each message must tell a stranger what to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "graphrun/error.h"
#include "graphrun/model.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = source_folder() + "/tests/graph/bad";

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json") list.push_back(entry.path().stem().string());
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::vector<Diagnostic> errors(const std::string& name) {
  try {
    load_model((kFolder / (name + ".json")).string());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << name;
    return error.diagnostics();
  }
  return {};
}

std::string told(std::vector<Diagnostic> diagnostics, const std::string& name) {
  std::string text;
  for (Diagnostic& d : diagnostics) {
    if (!d.file.empty()) d.file = name + ".json";  // no path of this machine
    text += to_string(d) + "\n";
  }
  return text;
}

class BadFiles : public testing::TestWithParam<std::string> {};

TEST_P(BadFiles, TellWhatToDo) {
  const std::string& name = GetParam();
  const std::vector<Diagnostic> found = errors(name);
  ASSERT_FALSE(found.empty()) << "the file was accepted";
  for (const Diagnostic& d : found) {
    EXPECT_FALSE(d.code.empty()) << to_string(d);
    EXPECT_GT(d.line, 0) << to_string(d);
    EXPECT_GT(d.column, 0) << to_string(d);
    EXPECT_TRUE(d.code.starts_with("json.") || !d.pointer.empty() || d.line == 1) << to_string(d);
  }
  const std::string text = told(found, name);
  EXPECT_EQ(text.find("-922337"), std::string::npos) << "the number behind the batch shows\n" << text;
  const fs::path golden = kFolder / (name + ".txt");
  if (std::getenv("GRAPHRUN_WRITE_GOLDEN")) std::ofstream(golden) << text;
  EXPECT_EQ(text, test::content_of(golden));
}

INSTANTIATE_TEST_SUITE_P(All, BadFiles, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& bad) { return bad.param; });

TEST(BadFilesAll, ThereAreManyAndAFileWithFiveFaultsReportsFive) {
  EXPECT_GE(names().size(), 60u);
  EXPECT_EQ(errors("five_faults").size(), 5u);
}

}  // namespace
}  // namespace graphrun
