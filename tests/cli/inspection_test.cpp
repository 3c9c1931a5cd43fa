// Commands that inspect a model: plan, show, check, verify.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fixture.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

TEST_F(Cli, PlanSummarises) {
  const Outcome outcome = graphrun({"plan", model_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"line on cpu", "arena", "lower bound", "parameter", "activation", "phase", "steps",
                           "largest buffers", "train/loss:ring"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part << " is not in:\n" << outcome.out;
  }
  EXPECT_GE(graphrun({"plan", model_, "-v"}).out.size(), outcome.out.size());
}

TEST_F(Cli, PlanForAGpuNeedsNone) {
  const Outcome outcome = graphrun({"plan", model_, "--executor=cuda", "--target=h200", "--json"},
                                   {.environment = {"CUDA_VISIBLE_DEVICES="}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["executor"], "cuda");
  EXPECT_EQ(plan["target"], "h200");
  EXPECT_EQ(plan["math"], "fast");
  for (const char* math : {"exact", "fast"}) {
    const std::string flag = std::string("--math=") + math;
    const Outcome text = graphrun({"plan", model_, "--executor=cuda", "--target=h200", "--program", flag});
    EXPECT_EQ(has(text.out, " for h200, fast math\n"), math == std::string("fast")) << text.out;
  }
}

TEST_F(Cli, PlanJsonDescribesTheProgram) {
  const Outcome outcome = graphrun({"plan", model_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(keys(plan),
            (std::vector<std::string>{"model", "executor", "math", "target", "arena_bytes", "lower_bound",
                                      "over_lower_bound", "poll_bytes", "bytes_by_kind", "bytes_without_reuse", "peak",
                                      "largest", "outside_arena", "phases", "buffers", "fusion", "fallbacks"}));
  EXPECT_EQ(keys(plan["peak"]), (std::vector<std::string>{"phase", "step", "at", "bytes", "state_bytes", "live"}));
  EXPECT_GE(plan["bytes_without_reuse"], plan["arena_bytes"]);
  EXPECT_EQ(plan["outside_arena"]["polled"], plan["poll_bytes"]);
  const Json& fusion = plan["fusion"];
  EXPECT_EQ(keys(fusion), (std::vector<std::string>{"arena_bytes_without", "bytes_without_reuse", "regions", "notes"}));
  ASSERT_FALSE(fusion["regions"].empty());
  EXPECT_EQ(fusion["regions"][0]["phase"], "train");
  EXPECT_GT(fusion["regions"][0]["bytes_in_tiles"], 0);
  const Json unfused = Json::parse(graphrun({"plan", model_, "--json", "--no-fuse"}).out);
  EXPECT_EQ(unfused["arena_bytes"], fusion["arena_bytes_without"]);
  EXPECT_TRUE(unfused["fusion"]["regions"].empty());
  const std::uint64_t arena = plan["arena_bytes"];
  EXPECT_GE(arena, plan["lower_bound"].get<std::uint64_t>());
  EXPECT_EQ(Json::parse(graphrun({model_, "--json"}).out)["arena_bytes"], arena);

  std::size_t id = 0, with_use = 0;
  for (const Json& buffer : plan["buffers"]) {
    EXPECT_EQ(buffer["id"], id++);
    const bool tile = buffer["kind"] == "tile";  // its offset is that in a tile
    EXPECT_TRUE(tile || buffer["offset"].get<std::uint64_t>() + buffer["bytes"].get<std::uint64_t>() <= arena);
    EXPECT_LT(buffer["storage_id"].get<std::size_t>(), plan["buffers"].size());
    EXPECT_EQ(buffer.contains("first_use"), buffer.contains("last_use"));
    if (!buffer.contains("first_use")) continue;
    ++with_use;
    EXPECT_LE(buffer["first_use"].get<int>(), buffer["last_use"].get<int>());
  }
  EXPECT_GT(with_use, 0u);
  ASSERT_FALSE(plan["phases"].empty());
  EXPECT_EQ(plan["phases"][0]["name"], "train");
  EXPECT_EQ(plan["phases"][0]["capacity"], 4);
  for (const Json& phase : plan["phases"]) {
    for (const Json& node : phase["nodes"]) {
      EXPECT_TRUE(node["op"].is_string());
      EXPECT_TRUE(node["attrs"].is_object());
      EXPECT_LT(node["output"].get<std::size_t>(), plan["buffers"].size());
    }
  }
}

TEST_F(Cli, PlanCanPrintTheProgram) {
  const Outcome outcome = graphrun({"plan", model_, "--program"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "matmul")) << outcome.out;
  EXPECT_EQ(graphrun({"plan", model_, "--program"}).out, outcome.out);
}

TEST_F(Cli, ShowPrintsTheGraphInItsForms) {
  Json model = Json::parse(kLine);  // no data is read
  model["data"] = Json::parse(R"({"train": {"csv": "nowhere.csv", "y": "y"}})");
  const std::string path = file("far.json", model.dump());
  const Outcome text = graphrun({"show", path});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"line", "p.W", "f32(1, 1)", "loss = "}) EXPECT_TRUE(has(text.out, part)) << text.out;
  const Outcome gradients = graphrun({"show", path, "--gradients"});
  EXPECT_TRUE(has(gradients.out, "p.W:gradient")) << gradients.out;
  EXPECT_EQ(graphrun({"show", path, "--dot"}).out.rfind("digraph", 0), 0u);
  EXPECT_TRUE(has(graphrun({"show", model_, "--whole-step"}).out, "train/p")) << "minibatch to optimizer";
  const std::string rows = graphrun({"show", model_, "--rows"}).out;
  for (const char* part : {"phase train", "Row", "Shared", "Reduced", "region 1 rows", "region 1 once"})
    EXPECT_TRUE(has(rows, part)) << part << " is not in\n" << rows;
  const Outcome canonical = graphrun({"show", path, "--json"});
  ASSERT_EQ(canonical.code, 0) << canonical.err;
  EXPECT_EQ(Json::parse(canonical.out)["format"], 1);
  EXPECT_EQ(graphrun({"show", file("canonical.json", canonical.out), "--json"}).out, canonical.out);
  EXPECT_EQ(Json::parse(graphrun({"show", path, "--json", "--epochs=3"}).out)["train"]["epochs"], 3);
  expect_rejected(graphrun({"show", path, "--json", "--dot"}), {"--json"});
  expect_rejected(graphrun({"show", path, "--threads=2"}), {"--threads goes with"});
}

TEST_F(Cli, ShowPrintsTheGeneratedKernels) {
  const auto source_of = [&](const std::string& model, const char* executor) {
    return graphrun({"show", model, "--source", executor, "--target=h200"});
  };
  const Outcome line = source_of(model_, "--executor=cuda");
  EXPECT_EQ(line.code, 0) << line.err;
  EXPECT_TRUE(has(line.out, "// train, ")) << line.out;
  EXPECT_EQ(line.err, "");
  const Outcome none = graphrun({"show", model_, "--source", "--executor=cpu"});
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(has(none.out, "no step of this model runs in a generated kernel")) << none.out;
  // Only its evaluation has a kernel.
  const Outcome wide = source_of(source_folder() + "/bench/models/wide_mlp.json", "--executor=cuda");
  EXPECT_EQ(wide.code, 3);
  EXPECT_TRUE(has(wide.out, "// evaluate.train, ")) << wide.out;
  EXPECT_FALSE(has(wide.out, "// train, "));
  EXPECT_TRUE(has(wide.err, "no step of the training runs in a generated kernel")) << wide.err;
  EXPECT_TRUE(has(wide.err, "train: train/matmul_1: ")) << wide.err;
  EXPECT_FALSE(has(wide.err, "evaluate.train: ")) << wide.err;
}

TEST_F(Cli, CheckFindsEveryMistakeWithoutData) {
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "nowhere.csv", "y": "y"}})");
  const std::string path = file("far.json", model.dump());
  const Outcome fine = graphrun({"check", path});
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_TRUE(has(fine.out, "far.json: ok: line with 2 inputs, 2 parameters (2 numbers), 2 graph entries\n"))
      << fine.out;
  const Json summary = Json::parse(graphrun({"check", path, "--json"}).out);
  EXPECT_EQ(summary["inputs"][0]["shape"][0], "batch");
  EXPECT_TRUE(summary["inputs"][0]["shape"][1].is_number());
  EXPECT_EQ(keys(summary), (std::vector<std::string>{"model", "description", "batch", "inputs", "parameters", "outputs",
                                                     "parameter_elements", "entries"}));
  EXPECT_EQ(summary["batch"], "all");
  model["graph"][1] = "loss = mean((q - y) ^ 2)";
  model["train"]["epoch"] = 3;
  expect_rejected(graphrun({"check", file("wrong.json", model.dump(2))}),
                  {"no value named q", "unknown key 'epoch'", "did you mean 'epochs'?"});
}

TEST_F(Cli, VerifySaysTwoLines) {
  const Outcome outcome = graphrun({"verify", model_, "--batch=3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(lines(outcome.out).size(), 2u) << outcome.out;
  EXPECT_EQ(outcome.out.rfind("verified: ", 0), 0u) << outcome.out;
  EXPECT_TRUE(has(outcome.out, " values in 3 steps of training, 3 steps of evaluation, 2 steps of prediction, "))
      << outcome.out;
  EXPECT_TRUE(has(lines(outcome.out)[1], "as it runs: ")) << outcome.out;
  const Outcome same = graphrun({"verify", model_, "--executor=ref", "--against=ref", "--steps=1"});
  EXPECT_TRUE(has(same.out, "in 1 step of training, ")) << same.out;
  EXPECT_TRUE(has(same.out, ", all equal\n")) << same.out;
  const Outcome verbose = graphrun({"verify", model_, "-v", "--no-passes"});
  EXPECT_EQ(verbose.code, 0);
  for (const char* op : {"matmul", "sum", "record", "increment"}) EXPECT_TRUE(has(verbose.out, op)) << verbose.out;
}

TEST_F(Cli, VerifyJsonHasTheseKeys) {
  const Outcome outcome = graphrun({"verify", model_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(keys(result), (std::vector<std::string>{"model", "executor", "math", "against", "passed", "steps",
                                                    "evaluation_steps", "predictions", "values", "regions",
                                                    "fused_values", "fallbacks", "ops", "growth", "difference"}));
  EXPECT_GT(result["regions"], 0);
  EXPECT_GT(result["fused_values"], 0);
  EXPECT_EQ(result["passed"], true);
  EXPECT_TRUE(result["difference"].is_null());
  EXPECT_EQ(keys(result["ops"].at(0)), (std::vector<std::string>{"op", "steps", "values", "worst", "node"}));
  for (const Json& op : result["ops"]) {  // each step compares a value or more
    EXPECT_GT(op["steps"], 0u) << op;
    EXPECT_LE(op["steps"], op["values"]) << op;
  }
}

TEST_F(Cli, ATrajectoryBeyondItsBoundExitsWithThree) {
  Json model = Json::parse(kLine);  // exp rounds otherwise on the two
  model["graph"].insert(model["graph"].begin() + 1, "q = exp(p / 8)");
  model["graph"].back() = "loss = mean((q - y) ^ 2)";
  const std::string curved = file("curved.json", model.dump());
  const Outcome free = graphrun({"verify", curved, "--trajectory", "--steps=500"});
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(has(free.out, "difference  parameter")) << free.out;
  EXPECT_TRUE(has(free.out, "500")) << free.out;
  EXPECT_TRUE(has(free.out, "verified: ")) << free.out;
  EXPECT_LT(lines(free.out).size(), 40u);
  const Outcome bounded = graphrun({"verify", curved, "--trajectory", "--steps=500", "--tolerance=1e-12"});
  EXPECT_EQ(bounded.code, 3) << bounded.out;
  EXPECT_TRUE(has(bounded.out, "not verified: train, step ")) << bounded.out;
  const Outcome json = graphrun({"verify", curved, "--trajectory", "--steps=500", "--tolerance=1e-12", "--json"});
  EXPECT_EQ(json.code, 3);
  const Json result = Json::parse(json.out);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(keys(result["difference"]),
            (std::vector<std::string>{"kind", "phase", "step", "program_step", "op", "node", "buffer", "index", "got",
                                      "expected", "tolerance", "text"}));
  EXPECT_EQ(result["difference"]["kind"], "parameter");
  // A diverging run fails verification, too.
  EXPECT_EQ(graphrun({"verify", curved, "--trajectory", "--steps=50", "--set", "train.optimizer.sgd.lr=1e30"}).code, 3);
}

TEST_F(Cli, VerifyDumpsAnyValue) {
  const Outcome text = graphrun({"verify", model_, "--dump=y"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, "y f32(4, 1)\n1\n3\n5\n7\n");
  EXPECT_EQ(graphrun({"verify", model_, "--dump", "train/step:counter", "--steps=7"}).out,
            "train/step:counter u64()\n7\n");
  const Json json = Json::parse(graphrun({"verify", model_, "--dump=x", "--json"}).out);
  EXPECT_EQ(keys(json), (std::vector<std::string>{"name", "dtype", "shape", "values"}));
  EXPECT_EQ(json["values"], (std::vector<float>{0, 1, 2, 3}));

  const std::string path = (folder_ / "x.npy").string();
  const Outcome saved = graphrun({"verify", model_, "--dump=x", "--dump-to", path});
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(saved.out, "");
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_EQ(bytes.size(), 128 + 4 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), } ");
  EXPECT_EQ(bytes[127], '\n');
  float three = 0;
  std::memcpy(&three, bytes.data() + 128 + 3 * sizeof(float), sizeof(float));
  EXPECT_EQ(three, 3);
}

TEST_F(Cli, ErrorsOfVerifyAreRejected) {
  expect_rejected(graphrun({"verify", model_, "--steps=0"}), {"at least one step"});
  expect_rejected(graphrun({"verify", model_, "--steps=-1"}), {"--steps"});
  expect_rejected(graphrun({"verify", model_, "--tolerance=1e-3"}), {"--tolerance goes with --trajectory"});
  expect_rejected(graphrun({"verify", model_, "--dump-to=x.npy"}), {"--dump-to goes with --dump"});
  expect_rejected(graphrun({"verify", model_, "--dump=p", "--against=ref"}), {"--dump", "--against"});
  expect_rejected(graphrun({"verify", model_, "--dump=train/mathmul_1"}), {"did you mean 'train/matmul_1'?"});
  expect_rejected(graphrun({"verify", model_, "--dump=p", "--dump-to", (folder_ / "none" / "x").string()}),
                  {"cannot write"});
  expect_rejected(graphrun({"verify", model_, "--against=reff"}), {"reff", "ref"});
  expect_rejected(graphrun({model_, "--against=ref"}), {"--against goes with verify"});
  expect_rejected(graphrun({"plan", model_, "--steps=3"}), {"--steps goes with predict, verify, bench"});
}

}  // namespace
}  // namespace graphrun::testing
