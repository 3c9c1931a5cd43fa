// bad_files_test.cpp: model files with mistakes (bad_cases.h), and all errors that graphrun reports for each.
// After a change of messages: GRAPHRUN_WRITE_GOLDEN=1 test_graph --gtest_filter='*BadFiles*', and read the difference:
// each message must tell a stranger what to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "bad_cases.h"
#include "graphrun/error.h"
#include "graphrun/model.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

std::vector<Diagnostic> errors(const test::BadCase& bad) {
  try {
    load_model(test::write_model(bad.text));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << bad.name;
    return error.diagnostics();
  }
  return {};
}

// The code of each error, and what a user reads.
std::string reported(std::vector<Diagnostic> diagnostics, const std::string& name) {
  std::string text;
  for (Diagnostic& d : diagnostics) {
    if (!d.file.empty()) d.file = name + ".json";  // no path of this machine
    text += d.code + " " + to_string(d) + "\n";
  }
  return text;
}

class BadFiles : public testing::TestWithParam<test::BadCase> {};

TEST_P(BadFiles, ReportWhatToDo) {
  const test::BadCase& bad = GetParam();
  const std::vector<Diagnostic> found = errors(bad);
  ASSERT_FALSE(found.empty()) << "the file was accepted";
  for (const Diagnostic& d : found) {
    EXPECT_FALSE(d.code.empty()) << to_string(d);
    EXPECT_GT(d.line, 0) << to_string(d);
    EXPECT_GT(d.column, 0) << to_string(d);
    EXPECT_TRUE(d.code.starts_with("json.") || !d.pointer.empty() || d.line == 1) << to_string(d);
  }
  const std::string text = reported(found, bad.name);
  EXPECT_EQ(text.find("-922337"), std::string::npos) << "the number behind the batch shows\n" << text;
  if (std::getenv("GRAPHRUN_WRITE_GOLDEN"))
    std::ofstream(bad.golden()) << bad.patch << text;
  else
    EXPECT_EQ(text, bad.expected);
}

INSTANTIATE_TEST_SUITE_P(All, BadFiles, testing::ValuesIn(test::bad_cases()),
                         [](const testing::TestParamInfo<test::BadCase>& bad) { return bad.param.name; });

TEST(BadFilesAll, AreMistakesOfAGoodFileAndFiveFaultsAreFiveErrors) {
  EXPECT_NO_THROW(load_model(source_folder() + "/tests/graph/bad/base.json"));
  const std::vector<test::BadCase> all = test::bad_cases();
  EXPECT_GE(all.size(), 160u);
  EXPECT_EQ(errors(*std::ranges::find(all, "five_faults", &test::BadCase::name)).size(), 5u);
}

}  // namespace
}  // namespace graphrun
