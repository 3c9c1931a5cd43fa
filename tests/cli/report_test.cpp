// `graphrun report`, `train --report`, `eval --report`: content of the page, and rejected requests.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class ReportPages : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& from) {
    std::ifstream stream(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

void expect_parts(const std::string& page, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST_F(ReportPages, OfATraining) {
  const Outcome trained = graphrun({model_, "--quiet", "--json", "--report", path("run.html")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string page = read(path("run.html"));
  const double loss = Json::parse(trained.out)["test"]["loss"];
  expect_parts(
      page, {"default-src 'none'", "<h1>line</h1>", "prefers-color-scheme: dark", "<h2>Curves</h2>",
             "alt=\"loss over the epochs\"", "data:image/svg+xml;base64,", "<h2>Memory</h2>", "rmse", "r2", "line.json",
             "graphrun 0.2.0", "f32(batch, 1)", "alt=\"The graph, each value below its operands",
             "<details><summary>The graph as text</summary>", "<figcaption>test, p: quantiles of predicted - actual"});
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", loss);
  EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_LT(page.size(), std::size_t{2} << 20);
}

TEST_F(ReportPages, OfAStoredRun) {
  ASSERT_EQ(graphrun({model_, "--quiet", "--run-dir", path("runs"), "--run-name", "a<b>"}).code, 0);
  const Outcome outcome = graphrun({"report", path("runs/a<b>")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string page = read(path("runs/a<b>/report.html"));
  expect_parts(page, {"<h1>line: run a&lt;b&gt;</h1>", "<td>done</td>", "<h2>Curves</h2>", "&quot;command&quot;"});
  EXPECT_EQ(page.find("<b>&"), std::string::npos);
  EXPECT_TRUE(has(outcome.err, "wrote " + path("runs/a<b>/report.html"))) << outcome.err;
  ASSERT_EQ(graphrun({"report", path("runs/a<b>"), "-o", path("other.html")}).code, 0);
  EXPECT_EQ(read(path("other.html")), page);
}

TEST_F(ReportPages, OfAnEvaluation) {
  ASSERT_EQ(graphrun({model_, "--quiet", "--save-weights", path("w.npz")}).code, 0);
  const Outcome outcome = graphrun({"eval", model_, "--weights", path("w.npz"), "--report", path("eval.html")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read(path("eval.html"));
  expect_parts(page, {"<h1>line: evaluation</h1>", "<h2>Metrics</h2>", "<h2>Evaluation</h2>"});
  EXPECT_EQ(page.find("<h2>Curves</h2>"), std::string::npos);
}

TEST_F(ReportPages, EscapeTextOfOthers) {
  std::string hostile(kLine);
  hostile.replace(hostile.find("\"line\""), 6, R"("<script>\"><img src=x>")");
  const std::string model = file("hostile.json", hostile);
  ASSERT_EQ(graphrun({model, "--quiet", "--report", path("run.html")}).code, 0);
  const std::string page = read(path("run.html"));
  expect_parts(page, {"<h1>&lt;script&gt;&quot;&gt;&lt;img src=x&gt;</h1>"});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img src=x"), std::string::npos);
}

TEST_F(ReportPages, AreRejectedWhereThereIsNothingToTell) {
  const Outcome none = graphrun({"report", path("nothing")});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("is not the folder of a run"), std::string::npos) << none.err;
  ASSERT_EQ(graphrun({model_, "--quiet", "--run-dir", path("runs")}).code, 0);
  const std::string log = read(path("runs/0001/log.csv"));
  const Outcome over = graphrun({"report", path("runs/0001"), "-o", path("runs/0001/log.csv")});
  EXPECT_EQ(over.code, 2);
  EXPECT_NE(over.err.find("is a file of the run"), std::string::npos) << over.err;
  EXPECT_EQ(read(path("runs/0001/log.csv")), log);
  std::filesystem::remove(path("runs/0001/weights.npz"));
  const Outcome unfinished = graphrun({"report", path("runs/0001"), "-o", path("run.html")});
  EXPECT_EQ(unfinished.code, 2);
  EXPECT_NE(unfinished.err.find("has no weights"), std::string::npos) << unfinished.err;
  EXPECT_FALSE(std::filesystem::exists(path("run.html")));
  const Outcome same = graphrun({model_, "--quiet", "--log", path("x"), "--report", path("x")});
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.err.find("--report"), std::string::npos) << same.err;
}

}  // namespace
}  // namespace graphrun::testing
