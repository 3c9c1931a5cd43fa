// The workloads of bench/compare: what bench/models/ says is what the peers are told (bench/workload.py reads it too).
#include <gtest/gtest.h>

#include <filesystem>

#include "graphrun/session.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = fs::path(source_folder()) / "bench" / "models";

struct Workload {
  const char* name;
  std::int64_t batch, rows;
  std::vector<std::int64_t> widths;
  const char* optimizer;
  double lr;
  std::int64_t entries = 0;  // of the table whose rows are the first layer's input
};
const Workload kWorkloads[] = {{"embedding_200k", 256, 5120, {16, 1}, "adam", 0.001, 200000},
                               {"embedding_20k", 256, 5120, {16, 1}, "sgd", 0.01, 20000},
                               {"embedding_20k_1024", 1024, 20480, {16, 1}, "momentum", 0.01, 20000},
                               {"mnist_logreg", 1000, 50000, {784, 10}, "sgd", 1},
                               {"mnist_mlp", 1000, 50000, {784, 256, 100, 10}, "sgd", 1},
                               {"peaks", 40000, 40000, {2, 20, 5, 1}, "adam", 0.08},
                               {"realestate_1h", 321, 321, {6, 6, 1}, "sgd", 0.005},
                               {"realestate_2h", 321, 321, {6, 6, 6, 1}, "sgd", 0.001},
                               {"spam_logreg", 3530, 3530, {19, 1}, "sgd", 0.1},
                               {"stock_800k", 800000, 800000, {8, 16, 8, 1}, "momentum", 0.01},
                               {"wide_mlp", 8192, 16384, {1024, 4096, 4096, 1024}, "adam", 0.001}};

Model load(const Workload& workload, LoadOptions options = {}) {
  return load_model((kFolder / (std::string(workload.name) + ".json")).string(), options);
}

TEST(BenchModels, AreAllHere) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(kFolder)) files += entry.path().extension() == ".json" ? 1 : 0;
  EXPECT_EQ(files, std::size(kWorkloads));
}

TEST(BenchModels, AreTheWorkloads) {
  for (const Workload& w : kWorkloads) {
    SCOPED_TRACE(w.name);
    LoadOptions options;
    options.data = DataUse::sizes;
    const Model model = load(w, options);
    EXPECT_EQ(model.graph.batch(), w.batch);
    EXPECT_EQ(model.data.find("train")->samples(), w.rows);
    EXPECT_EQ(model.train.optimizer.name, w.optimizer);
    EXPECT_EQ(model.train.optimizer.attributes.front(), (std::pair<std::string, double>("lr", w.lr)));
    const Program program = plan_program(model);
    if (w.entries > 0) {
      const BufferId table = find_buffer(program, "table");
      ASSERT_NE(table, kNoBuffer);
      EXPECT_EQ(to_string(program.buffers[table].type.shape), to_string(Shape{w.entries, w.widths.front()}));
    }
    for (std::size_t layer = 1; layer < w.widths.size(); ++layer) {
      const std::string name = layer + 1 == w.widths.size() ? "out" : "h" + std::to_string(layer);
      const BufferId weights = find_buffer(program, name + ".W");
      ASSERT_NE(weights, kNoBuffer) << name;
      EXPECT_EQ(to_string(program.buffers[weights].type.shape), to_string(Shape{w.widths[layer - 1], w.widths[layer]}));
    }
  }
}

// The gradient of an embedding costs its table and what the batch adds to it, not places times entries.
TEST(BenchModels, EmbeddingsPlanTheirTablesAndTheBatch) {
  for (const Workload& w : kWorkloads) {
    if (w.entries == 0) continue;
    SCOPED_TRACE(w.name);
    const auto arena = [&](std::int64_t batch) {
      LoadOptions options;
      options.data = DataUse::sizes;
      options.overrides = {{"train.batch", std::to_string(batch)}};
      return plan_program(load(w, options)).arena_bytes;
    };
    const auto table = static_cast<std::uint64_t>(w.entries * w.widths.front()) * sizeof(float);
    const std::uint64_t slots = w.optimizer == std::string("adam") ? 2 : w.optimizer == std::string("momentum") ? 1 : 0;
    EXPECT_LT(arena(w.batch), (2 + slots + 3) * table + (1 << 20))
        << "parameter, gradient, slots, three values between";
    EXPECT_LT(arena(4 * w.batch), arena(w.batch) + static_cast<std::uint64_t>(3 * w.batch * (16 * 4 * 4 + 64)))
        << "four rows a sample and its place";
  }
}

TEST(BenchModels, Train) {
  for (const Workload& w : kWorkloads) {
    if (w.widths.front() > 1000) continue;  // wide_mlp: 16 million parameters
    LoadOptions options;
    options.overrides = {{"data.train.random.rows", "64"}, {"train.batch", "32"}, {"train.epochs", "2"}};
    Session session(load(w, options));
    EXPECT_EQ(session.train().losses.size(), 4u) << w.name;
  }
}

}  // namespace
}  // namespace graphrun
