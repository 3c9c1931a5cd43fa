// `graphrun plot`: plots of logs, output path, and rejected requests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Plot : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& from) {
    std::ifstream stream(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  const std::string run_ = file("run.csv",
                                "epoch,step,seconds,steps_per_second,loss,validation_loss\n"
                                "1,4,0.1,40,4,\n2,8,0.2,40,2,3\n3,12,0.3,40,1,\n4,16,0.4,40,0.5,2.5\n");
};

TEST_F(Plot, OfALogOfTheTraining) {
  const Outcome trained = graphrun({model_, "--quiet", "--log", path("log.csv")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome = graphrun({"plot", path("log.csv")}, {.environment = {"LC_ALL=C.UTF-8"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(lines(outcome.out).front(), "loss");
  EXPECT_TRUE(has(outcome.out, "⠉") || has(outcome.out, "⠤")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "epoch"));
  EXPECT_FALSE(has(outcome.out, "\033"));
}

TEST_F(Plot, InAsciiWhereTheLocaleIs) {
  const Outcome outcome = graphrun({"plot", run_}, {.environment = {"LC_ALL=C"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char c : outcome.out) EXPECT_TRUE((c >= ' ' && c <= '~') || c == '\n');
  EXPECT_TRUE(has(outcome.out, "* a loss   + b validation_loss\n")) << outcome.out;
}

TEST_F(Plot, WritesEachFormat) {
  const std::pair<const char*, const char*> formats[] = {{"a.svg", "<svg "}, {"a.png", "\x89PNG"}, {"a.txt", " "}};
  for (const auto& [name, begins] : formats) {
    const Outcome outcome = graphrun({"plot", run_, "-o", path(name), "--title", "A <title>"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(read(path(name)).starts_with(begins)) << name;
  }
  EXPECT_TRUE(has(read(path("a.svg")), ">A &lt;title&gt;</text>"));
}

TEST_F(Plot, RunsAreNamedByTheirFiles) {
  const std::string other = file("other.csv", "epoch,loss\n1,3\n4,1\n");
  ASSERT_EQ(graphrun({"plot", run_, other, "--columns=loss", "-o", path("two.svg")}).code, 0);
  const std::string svg = read(path("two.svg"));
  EXPECT_TRUE(has(svg, ">run</text>") && has(svg, ">other</text>") && has(svg, ">loss</text>")) << svg;
  ASSERT_EQ(graphrun({"plot", run_, other, "-o", path("two.svg")}).code, 0);
  EXPECT_TRUE(has(read(path("two.svg")), ">run validation_loss</text>"));
}

TEST_F(Plot, EachMetricHasAPlot) {
  const std::string log = file("metrics.csv",
                               "epoch,step,loss,validation_loss,validation_accuracy,lr,h:min,h:max,h:zeros\n"
                               "1,4,4,5,0.5,0.1,-1,1,0\n2,8,2,3,0.75,0.1,-2,2,0.5\n");
  const std::string text = graphrun({"plot", log}, {.environment = {"LC_ALL=C"}}).out;
  const std::vector<std::string> order = {"* a loss   + b validation_loss", "validation_accuracy",
                                          "* a h:min   + b h:max", "h:zeros"};
  std::size_t at = 0;
  for (const std::string& part : order) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    at = found;
  }
  ASSERT_EQ(graphrun({"plot", log, "-o", path("all.svg"), "--title", "Mine"}).code, 0);
  const std::string svg = read(path("all.svg"));
  EXPECT_TRUE(has(svg, "height=\"1600\"")) << svg;
  EXPECT_TRUE(has(svg, ">Mine</text>") && has(svg, ">validation_accuracy</text>"));
}

TEST_F(Plot, WhatALogarithmicAxisLeavesOutIsReported) {
  const std::string zero = file("zero.csv", "epoch,loss\n0,1\n1,0\n2,-1\n3,nan\n4,0.5\n");
  const Outcome outcome = graphrun({"plot", zero, "--log-scale=y"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.err, "loss: 2 of 5 points are omitted")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "loss: 1 of 5 points are not finite")) << outcome.err;
  EXPECT_TRUE(has(graphrun({"plot", zero, "--log-scale=xy"}).err, "loss: 3 of 5 points")) << outcome.err;
  expect_rejected(graphrun({"plot", file("below.csv", "epoch,loss\n0,-1\n"), "--log-scale=y"}), {"no point to draw"});
}

TEST_F(Plot, ReadsTablesOfOthers) {
  const std::string table = file("t.csv", "\xEF\xBB\xBF\"a, b\",c\r\n 1 ,+2\r\n\"2\",1e-3\r\n\r\n3,4");
  const Outcome outcome = graphrun({"plot", table, "--x", "a, b"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "a, b"));
}

TEST_F(Plot, FindsColumnsOfOlderLogs) {
  const std::string old = file("old.csv", "epoch,loss,h:deviation,h:bad\n1,1,2,0\n2,1,3,0\n");
  const Outcome outcome = graphrun({"plot", old, "--columns=h:std,h:nonfinite"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "h:deviation")) << outcome.out;
}

TEST_F(Plot, OfJsonLines) {
  const Outcome trained = graphrun({model_, "--quiet", "--log", path("log.csv"), "--log", path("log.jsonl")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome csv = graphrun({"plot", path("log.csv")}), json = graphrun({"plot", path("log.jsonl")});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.out, csv.out) << "the same numbers";
  // Keys come and go, null is a number that is not finite, and the last line has no end.
  const std::string odd = file("odd.jsonl",
                               "{\"epoch\":1,\"loss\":2}\r\n\n { \"epoch\" : 2 , \"loss\" : null, \"a\\\"b\": 1 }\n"
                               "{}\n{\"epoch\":3,\"loss\":1.5e-1,\"note\":\"a, b\"}");
  const Outcome outcome = graphrun({"plot", odd, "--columns=loss,a\"b"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "1 of 3 points are not finite")) << outcome.err;
  const std::string python = file("python.jsonl",
                                  "{\"epoch\": 1, \"loss\": 2}\n{\"epoch\": 2, \"loss\": NaN}\n"
                                  "{\"epoch\": 3, \"loss\": -Infinity, \"note\": \"NaN\"}\n");
  const Outcome not_finite = graphrun({"plot", python, "--columns=loss"});
  EXPECT_EQ(not_finite.code, 0) << not_finite.err;
  EXPECT_TRUE(has(not_finite.err, "2 of 3 points are not finite")) << not_finite.err;
}

TEST_F(Plot, ErrorsOfJsonLines) {
  const auto rejected = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_rejected(graphrun({"plot", file("bad.jsonl", text)}), parts);
  };
  rejected("{\"epoch\":1,\"loss\":2}\n{\"epoch\":2,\"loss\":\n", {"bad.jsonl:2:19", "expected a value"});
  rejected("{\"epoch\":1,\"loss\":[2]}\n", {"bad.jsonl:1:19", "objects and lists"});
  rejected("{\"epoch\":1,\"loss\":2} 3\n", {"bad.jsonl:1:22", "expected the end"});
  rejected("{\"epoch\":1}\nloss\n", {"bad.jsonl:2:1", "'loss'"});
  rejected("{\"epoch\":1}\n\n3\n", {"bad.jsonl:3:1", "an object on each line"});
  rejected("{\"epoch\":1,\"loss\n", {"bad.jsonl:1:12", "no closing quote"});
  rejected("{\"epoch\":1,\"loss\":\"x\"}\n", {"bad.jsonl:1", "loss is not a number: 'x'"});
  rejected("{}\n{}\n", {"bad.jsonl", "has only empty objects"});
  rejected("{\"loss\":1}\n", {"no column 'epoch'"});
}

TEST_F(Plot, ErrorsAreReportedWithTheirPlace) {
  const auto rejected = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_rejected(graphrun({"plot", file("bad.csv", text)}), parts);
  };
  rejected("", {"bad.csv", "is empty"});
  rejected("\n1,2\n", {"begins with an empty line"});
  rejected("epoch,loss\n", {"has no rows below the header"});
  rejected("epoch,loss\n1,2\n2,abc\n3,x1\n", {"bad.csv:3: loss is not a number: 'abc'", "bad.csv:4"});
  rejected("epoch,loss\n1,2\n2,3,4\n", {"bad.csv:3: 3 cells, but 2 columns"});
  rejected("epoch,loss\n1,1e999\n", {"bad.csv:2", "1e999"});
  rejected("epoch,loss\n1,\n", {"no point to draw"});
  rejected("epoch,step\n1,2\n", {"no column to draw"});
  rejected("epochs,loss\n1,2\n", {"bad.csv:1", "no column 'epoch'", "did you mean 'epochs'?"});
  rejected(std::string("epoch,loss\n1,\0\n", 15), {"bad.csv:2", "not a number"});
  expect_rejected(graphrun({"plot", run_, "--columns=los"}), {"run.csv:1", "'los'", "did you mean 'loss'?"});
}

TEST_F(Plot, ErrorsOfTheCommandLine) {
  expect_rejected(graphrun({"plot"}), {"plot needs a CSV file"});
  expect_rejected(graphrun({"plot", path("none.csv")}), {"no such file"});
  expect_rejected(graphrun({"plot", folder_.string()}), {"is a folder"});
  expect_rejected(graphrun({"plot", run_, "--log=z"}), {"must be x, y or xy, got 'z'"});
  expect_rejected(graphrun({"plot", run_, "-o", path("a.jpg")}), {".svg, .png or .txt"});
  expect_rejected(graphrun({"plot", run_, "-o", path("none/a.svg")}), {"none"});
  std::filesystem::create_symlink(run_, path("link.svg"));
  expect_rejected(graphrun({"plot", run_, "-o", path("link.svg")}), {"is a file that is read"});
  EXPECT_TRUE(has(read(run_), "epoch,step"));
}

// A picture that was there stays when there is nothing to take its place.
TEST_F(Plot, AFailureLeavesTheOldPicture) {
  const std::string old = file("old.svg", "mine");
  EXPECT_EQ(graphrun({"plot", file("bad.csv", "epoch,loss\n1,x\n"), "-o", old}).code, 2);
  EXPECT_EQ(read(old), "mine");
}

TEST_F(Plot, OfAMemoryPlan) {
  const Outcome drawn = graphrun({"plan", model_, "--svg"});
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_TRUE(drawn.out.starts_with("<svg ")) << drawn.out.substr(0, 80);
  EXPECT_TRUE(has(drawn.out, "lower bound"));
  EXPECT_EQ(graphrun({"plan", model_, "--svg"}).out, drawn.out);
  const Outcome written = graphrun({"plan", model_, "--svg", "-o", path("plan.svg")});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(read(path("plan.svg")), drawn.out);
  ASSERT_EQ(graphrun({"plan", model_, "--svg", "-o", path("plan.png")}).code, 0);
  EXPECT_TRUE(read(path("plan.png")).starts_with("\x89PNG"));
}

TEST_F(Plot, OfAMemoryPlanGoesNowhereElse) {
  const std::string before = read(model_);
  const Outcome format = graphrun({"plan", model_, "--svg", "-o", path("plan.jpg")});
  EXPECT_EQ(format.code, 2);
  EXPECT_TRUE(has(format.err, "the name ends in .svg or .png")) << format.err;
  EXPECT_FALSE(std::filesystem::exists(path("plan.jpg")));
  const Outcome no_picture = graphrun({"plan", model_, "-o", path("plan.svg")});
  EXPECT_EQ(no_picture.code, 2);
  EXPECT_TRUE(has(no_picture.err, "--svg")) << no_picture.err;
  const Outcome nowhere = graphrun({"plan", model_, "--svg", "-o", path("none/plan.svg")});
  EXPECT_NE(nowhere.code, 0);
  EXPECT_TRUE(has(nowhere.err, "plan.svg")) << nowhere.err;
  EXPECT_EQ(read(model_), before);
}

}  // namespace
}  // namespace graphrun::testing
