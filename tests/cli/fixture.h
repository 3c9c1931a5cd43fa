// fixture.h: what the tests of the command line share: the program, a small model in a folder of its own, and questions
// to its output. Contract: a test's folder is empty but for line.json and is removed afterwards.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "process.h"
#include "support/temporary_folder.h"

namespace graphrun::testing {

using Json = nlohmann::ordered_json;

// y = 2x + 1 from four points; the test split is on the same line.
inline constexpr const char* kLine = R"json({
  "format": 1,
  "name": "line",
  "data": {
    "train": {"inline": {"x": [[0], [1], [2], [3]], "y": [[1], [3], [5], [7]]}},
    "test": {"inline": {"x": [[4], [5]], "y": [[9], [11]]}}
  },
  "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
  "graph": [
    {"name": "p", "op": "dense", "inputs": ["x"], "units": 1},
    "loss = mean((p - y) ^ 2)"
  ],
  "outputs": {"p": "y"},
  "train": {
  "minimize" : "loss", "metrics" : ["rmse"], "optimizer" : {"sgd" : {"lr" : 0.05}}, "epochs" : 20, "seed" : 1
}
})json";

class Cli : public ::testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) const { return own_.write(name, content); }

  static Outcome graphrun(std::vector<std::string> words, const ProcessOptions& options = {}) {
    words.insert(words.begin(), GRAPHRUN_CLI);
    return run(words, options);
  }

  const test::TemporaryFolder own_;
  const std::filesystem::path& folder_ = own_.path();
  const std::string model_ = file("line.json", kLine);
};

inline std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Usage error: exit code 2, nothing on stdout, every part somewhere on stderr.
inline void expect_rejected(const Outcome& outcome, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : parts) EXPECT_TRUE(has(outcome.err, part)) << part << " is not in:\n" << outcome.err;
}

}  // namespace graphrun::testing
