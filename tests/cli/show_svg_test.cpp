// `graphrun show --svg`: output path, and rejected requests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fixture.h"
#include "support/graph_places.h"

namespace graphrun::testing {
namespace {

class ShowSvg : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& from) {
    std::ifstream stream(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

TEST_F(ShowSvg, WritesAFile) {
  const Outcome shown = graphrun({"show", model_, "--svg"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(shown.out.starts_with("<svg ")) << shown.out;
  EXPECT_EQ(test::malformed(shown.out), "");
  ASSERT_EQ(graphrun({"show", model_, "--svg", "-o", path("a.svg")}).code, 0);
  EXPECT_EQ(read(path("a.svg")), shown.out);
  ASSERT_EQ(graphrun({"show", model_, "--svg", "--whole-step", "-o", path("a.png")}).code, 0);
  EXPECT_EQ(read(path("a.png")).substr(1, 3), "PNG");
}

TEST_F(ShowSvg, Errors) {
  const auto rejected = [&](std::vector<std::string> words, const std::vector<std::string>& parts) {
    words.insert(words.begin(), "show");
    expect_rejected(graphrun(words), parts);
  };
  rejected({model_, "-o", path("a.svg")}, {"--output goes with --svg"});
  rejected({model_, "--svg", "-o", path("a.gif")}, {"a.gif", "a format that show cannot draw", ".svg or .png"});
  rejected({model_, "--svg", "--dot"}, {"goes with no other form"});
  rejected({model_, "--svg", "-o", path("none/a.svg")}, {"none/a.svg"});
  std::filesystem::create_symlink(model_, path("link.svg"));
  rejected({model_, "--svg", "-o", path("link.svg")}, {"is a file that is read"});
  std::string graph = R"json({"format": 1, "data": {"train": {"inline": {"x": [1]}}}, "inputs": {"x": ["batch", 1]},
    "parameters": {"w": {"shape": [1], "init": "zeros"}}, "graph": ["v0 = x * w", )json";
  for (int i = 1; i < 1200; ++i) graph += "\"v" + std::to_string(i) + " = tanh(v" + std::to_string(i - 1) + ")\", ";
  graph += R"json("loss = mean(v1199)"], "outputs": ["v1199"],
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 1}}, "batch": 1}})json";
  rejected({file("long.json", graph), "--svg", "-o", path("long.svg")},
           {"a graph of 1,202 values is too large for a drawing", "--dot"});
  EXPECT_FALSE(std::filesystem::exists(path("long.svg")));
}

}  // namespace
}  // namespace graphrun::testing
