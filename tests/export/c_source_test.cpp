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
