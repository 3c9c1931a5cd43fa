// Exported C: compiled by the host's compiler without a warning, it gives what `ref` gives.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "deployments.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr const char* kFlags = "-std=c99 -O1 -Wall -Wextra -Wpedantic -Werror -Wconversion";

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool has_compiler() {
  return shell("cc --version > /dev/null 2>&1") == 0;
}
#define GRAPHRUN_SKIP_WITHOUT_CC() \
  if (!has_compiler()) GTEST_SKIP() << "there is no C compiler `cc`"

// Compiles a file with its self-test and runs it; what it printed, or what the compiler said.
struct Outcome {
  int code;
  std::string text;
};
Outcome compile_and_run(const test::TemporaryFolder& folder, const std::string& name, const std::string& flags) {
  const std::string out = folder.file("out"), program = folder.file(name);
  const std::string compiled = "cc " + std::string(kFlags) + " " + flags + " " + folder.file(name + ".c") + " -lm -o " +
                               program + " > " + out + " 2>&1";
  if (shell(compiled) != 0) return {-1, test::content_of(out)};
  const int code = shell(program + " > " + out + " 2>&1");
  return {code, test::content_of(out)};
}

class ExportedC : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, ExportedC, testing::ValuesIn(test::model_names_to_export()),
                         [](const auto& run) { return run.param; });
INSTANTIATE_TEST_SUITE_P(Unrolled, ExportedC, testing::Values("forecast"), [](const auto& run) { return run.param; });

TEST_P(ExportedC, IsWithinOneUlpOfRef) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  Session session = test::model_session(GetParam());
  const test::TemporaryFolder folder;
  folder.write("net.c", c_source(deployment(session), "net"));
  const Outcome outcome = compile_and_run(folder, "net", "-DNET_SELF_TEST");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("8 predictions"), std::string::npos) << outcome.text;
}

TEST(ExportC, HasEveryOp) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  Session session = test::odd_session();
  const test::TemporaryFolder folder;
  for (const bool views : {true, false}) {
    folder.write("net.c", c_source(deployment(session, {.rows = 1, .views = views, .examples = 50}), "net"));
    const Outcome outcome = compile_and_run(folder, "net", "-DNET_SELF_TEST");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
}

TEST(ExportC, HasEveryLayer) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  Session session = test::layers_session();
  const test::TemporaryFolder folder;
  folder.write("net.c", c_source(deployment(session, {.rows = 1, .views = true, .examples = 50}), "net"));
  const Outcome outcome = compile_and_run(folder, "net", "-DNET_SELF_TEST");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

// Numbers, dates, categories with gaps, and class labels: the function takes a row of the table.
std::string table_model(const std::string& transform) {
  return R"j({"format": 1, "name": "rows", "data": {"source": {"records": "t.jsonl",
  "x": ["a", "city", "days(sold) * 2 + exp(a)"], "y": "y", "missing": {"a": "mean", "city": "most_frequent"}},
  "transform": {"a": ["log1p", "standardize"], "city": [)j" +
         transform + R"j(], "y": ["classes"]}},
  "inputs": {"x": ["batch", 4], "y": ["batch", 1]},
  "graph": ["p = dense(x, units=1)", "loss = mean(sigmoid_cross_entropy(p, y))"], "outputs": {"p": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}, "batch": "all", "epochs": 3}})j";
}

TEST(ExportC, TakesTheColumnsOfTheTable) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  const test::TemporaryFolder folder;
  folder.write("t.jsonl", R"j({"a": 1, "city": "Oslo", "sold": "2020-01-01", "y": "no"}
{"a": null, "city": "New \"York\"?", "sold": "2020-02-29", "y": "yes"}
{"a": 4, "city": null, "sold": "1969-12-31T23:00", "y": "no"}
)j");
  folder.write("m.json", table_model(R"("one_hot")"));
  Session session = test::on_ref(load_model(folder.file("m.json")));
  session.train();
  const std::string text = c_source(deployment(session), "net");
  EXPECT_NE(text.find("typedef struct {\n  double a;\n  int32_t city;\n  double sold;\n} net_row;"), std::string::npos)
      << text;
  EXPECT_NE(text.find("void net_predict(void *arena, const net_row *row, float *p, int32_t *y)"), std::string::npos);
  EXPECT_NE(text.find("\"New \\042York\\042\\077\""), std::string::npos);
  folder.write("net.c", text);
  folder.write("main.c", R"(#include <stdio.h>
#include <math.h>
#define NET_DECLARATIONS
#include "net.c"
int main(void) {
  static double arena[NET_ARENA_BYTES / 8 + 1];
  const net_row rows[] = {{4.0, 1, -3600.0}, {4.0, -1, -3600.0}, {4.0, 2, -3600.0}, {-4.0, 0, 0.0}};
  float p[4];
  int32_t y[4];
  int i;
  for (i = 0; i < 4; i++) net_predict(arena, rows + i, p + i, y + i);
  return !(p[0] == p[1] && y[0] >= 0 && isnan(p[2]) && y[2] == -1 && isnan(p[3]));
}
)");
  EXPECT_EQ(compile_and_run(folder, "main", folder.file("net.c")).code, 0);
  for (const char* flags : {"-DNET_SELF_TEST", "-DNET_SELF_TEST -DNET_FLOAT -DNET_SELF_TEST_ULPS=4096"}) {
    const Outcome outcome = compile_and_run(folder, "net", flags);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
  folder.write("m.json", table_model(R"({"class_weight": "balanced"})"));
  LoadOptions load;
  load.overrides = {{"inputs.x", R"(["batch", 3])"}};
  Session weighted = test::on_ref(load_model(folder.file("m.json"), load));
  try {
    deployment(weighted);
    FAIL() << "nothing was rejected";
  } catch (const Error& error) {
    EXPECT_STREQ(error.diagnostics()[0].message.c_str(),
                 "column 'city': the transform \"class_weight\" is not exported");
  }
}

TEST(ExportC, ItsTestFailsWhenAWeightIsAnother) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  Session session = test::model_session("xor");
  Deployment one = deployment(session);
  one.values.front().second.elements<float>()[0] += 0.25f;
  const test::TemporaryFolder folder;
  folder.write("net.c", c_source(one, "net"));
  EXPECT_EQ(compile_and_run(folder, "net", "-DNET_SELF_TEST").code, 1);
}

TEST(ExportC, ComputesInFloatToo) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  Session session = test::model_session("realestate_mlp2");
  const test::TemporaryFolder folder;
  folder.write("net.c", c_source(deployment(session), "net"));
  const Outcome outcome = compile_and_run(folder, "net", "-DNET_SELF_TEST -DNET_FLOAT -DNET_SELF_TEST_ULPS=64");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST(ExportC, IsSmallAndLinksTwice) {
  GRAPHRUN_SKIP_WITHOUT_CC();
  Session peaks = test::model_session("peaks"), logic = test::model_session("xor");
  const test::TemporaryFolder folder;
  folder.write("peaks.c", c_source(deployment(peaks), "peaks"));
  folder.write("other.c", c_source(deployment(logic), "other"));
  folder.write("both.c", R"(#define PEAKS_DECLARATIONS
#include "peaks.c"
#define OTHER_DECLARATIONS
#include "other.c"
static unsigned char arena[PEAKS_ARENA_BYTES + OTHER_ARENA_BYTES];
int main(void) {
  const float x[2] = {0.0f, 1.0f};
  float y;
  peaks_predict(arena, x, &y);
  other_predict(arena, x, &y);
  return y != y;
}
)");
  EXPECT_EQ(compile_and_run(folder, "both", folder.file("peaks.c") + " " + folder.file("other.c")).code, 0);
  EXPECT_EQ(compile_and_run(folder, "peaks", "-Os -s -DPEAKS_SELF_TEST").code, 0);
  EXPECT_LT(std::filesystem::file_size(folder.path() / "peaks"), 50'000u);
}

TEST(ExportC, ListsAllThatItCannotSay) {
  Session session = test::formulas_session(R"j("r = x + random_normal(x)", "u = x * random_uniform(x)", "v = r @ W")j",
                                           R"("v", "u")");
  try {
    c_source(deployment(session), "net");
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    ASSERT_EQ(error.diagnostics().size(), 2u) << error.what();
    EXPECT_EQ(error.diagnostics()[0].code, "export.unsupported");
    EXPECT_NE(std::string(error.what()).find("random_normal"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("random_uniform"), std::string::npos) << error.what();
  }
}

TEST(ExportC, RejectsRowsThatDependOnEachOther) {
  LoadOptions load;
  load.predicts = 1;
  Session session = test::on_ref(
      load_model(test::write_model(test::formulas_model(R"j("c = x - mean(x, axis=0)")j", R"("c")")), load));
  try {
    deployment(session);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics()[0].code, "export.coupled");
  }
}

TEST(ExportC, NamesAreOfC) {
  EXPECT_EQ(c_name("out/my-net.v2.c"), "my_net");
  EXPECT_EQ(c_name("3d.c"), "v3d");
  Session session = test::model_session("xor");
  EXPECT_THROW(c_source(deployment(session), "3d"), Error);
  EXPECT_THROW(c_source(deployment(session), "a b"), Error);
}

}  // namespace
}  // namespace graphrun
