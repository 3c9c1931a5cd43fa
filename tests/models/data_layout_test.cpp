// Where a data set lies, and that regions which read it in place train as plain steps do: batches that begin at whole
// vectors, that are filled up to them, that lie in rows, and last batches that are not full.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "graphrun/session.h"
#include "kernels/cpu/cpu_kernels.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

// With this loss x is read by products only; y has one feature.
constexpr const char* kLoss = "mean(square(out - y))";

std::string model_text(int rows, const std::string& batch, const std::string& loss = kLoss) {
  return R"({"format": 1, "name": "batches", "data": {"train": {"random": {"rows": )" + std::to_string(rows) +
         R"(, "seed": 3, "columns": {"a": {"normal": 1, "shape": [5]}, "b": {"normal": 1, "shape": [1]}}},
         "x": ["a"], "y": ["b"]}}, "inputs": {"x": ["batch", 5], "y": ["batch", 1]},
         "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 3, "activation": "tanh"},
         {"name": "out", "op": "dense", "inputs": ["h"], "units": 1}, "loss = )" +
         loss + R"("], "outputs": {"out": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.05}},
         "batch": )" +
         batch + R"(, "epochs": 4}})";
}

Session open(const std::string& text, bool fuse) {
  const TemporaryFolder folder;
  SessionOptions options;
  options.fuse = fuse;
  options.threads = 1;
  return Session(load_model(folder.write("model.json", text), LoadOptions{}), options);
}

const Buffer& buffer_of(const Session& session, std::string_view name) {
  const BufferId id = find_buffer(session.program(), name);
  EXPECT_NE(id, kNoBuffer) << name;
  return session.program().buffers.at(id);
}

struct Batches {
  int rows;
  const char* batch;
  bool vectors;
};
class DataLayoutOfBatches : public testing::TestWithParam<Batches> {};
INSTANTIATE_TEST_SUITE_P(, DataLayoutOfBatches,
                         testing::Values(Batches{100, "32", true},        // whole vectors; the last batch has 4 rows
                                         Batches{130, "60", true},        // 60 rows are filled up to 64
                                         Batches{90, "20", false},        // 20 rows would be filled up to 32
                                         Batches{96, "16", true},         // all batches are full
                                         Batches{37, "\"all\"", true}));  // one batch

TEST_P(DataLayoutOfBatches, TrainAsPlainSteps) {
  const std::string text = model_text(GetParam().rows, GetParam().batch);
  Session fused = open(text, true), plain = open(text, false);
  EXPECT_EQ(buffer_of(fused, "data/train/x").layout, GetParam().vectors ? Layout::vectors : Layout::rows);
  EXPECT_EQ(buffer_of(plain, "data/train/x").layout, Layout::rows);
  const TrainResult a = fused.train(), b = plain.train();
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 1e-5 * b.losses[i]) << i;
  const Metrics x = fused.evaluate("train"), y = plain.evaluate("train");
  EXPECT_NEAR(x.loss, y.loss, 1e-5 * y.loss);
  EXPECT_EQ(fused.read("data/train/x").bytes().size(), plain.read("data/train/x").bytes().size());
  EXPECT_TRUE(std::ranges::equal(fused.read("data/train/x").bytes(), plain.read("data/train/x").bytes()));
}

TEST_P(DataLayoutOfBatches, GiveTheSameBitsOnEachInstructionSet) {
  const char* const before = std::getenv("GRAPHRUN_ISA");
  const std::string saved = before != nullptr ? before : "";
  std::string hash;
  for (const Isa isa : available_isas()) {
    ::setenv("GRAPHRUN_ISA", std::string(name_of(isa)).c_str(), 1);
    Session session = open(model_text(GetParam().rows, GetParam().batch), true);
    session.train();
    if (hash.empty()) hash = session.weights_hash();
    EXPECT_EQ(session.weights_hash(), hash) << name_of(isa);
  }
  if (before != nullptr) {
    ::setenv("GRAPHRUN_ISA", saved.c_str(), 1);
  } else {
    ::unsetenv("GRAPHRUN_ISA");
  }
}

// Tile values that are read in place, by the data set that they come from.
std::vector<std::string> in_place(const Session& session) {
  std::vector<std::string> names;
  for (const Buffer& buffer : session.program().buffers) {
    if (buffer.kind != BufferKind::tile || buffer.layout != Layout::vectors) continue;
    EXPECT_EQ(buffer.bytes, 0u) << buffer.name;
    if (buffer.name.rfind("train/", 0) == 0) names.push_back(buffer.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(DataInPlace, TakesNoRoomInATile) {
  const Session products = open(model_text(100, "32"), true);
  EXPECT_EQ(in_place(products).size(), 2u);  // x and y
  // The square wants its features one after the other, in the tile.
  const Session square = open(model_text(100, "32", std::string(kLoss) + " + 0.1 * mean(square(x))"), true);
  EXPECT_EQ(in_place(square).size(), 1u);  // y
  const auto bytes_of_row = [](const Session& session) {
    const auto& tiling = std::get<HostTiling>(session.program().phases[0].regions.at(0).tiling);
    return tiling.tile_bytes / static_cast<std::uint64_t>(tiling.tile_rows);
  };
  EXPECT_GE(bytes_of_row(square), bytes_of_row(products) + 5 * sizeof(float));
}

}  // namespace
}  // namespace graphrun::test
