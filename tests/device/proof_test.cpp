// Memory and time on a device: what does not fit is answered with a batch that does, a long run takes no more host
// memory than a short one, and a profile counts what was really done.
#include <cstdio>
#include <fstream>

#include "device.h"
#include "graphrun/session.h"

namespace graphrun::testing {
namespace {

// Two dense layers from 4 columns; `samples` samples in batches of `batch`.
Model wide_model(std::int64_t samples, std::int64_t batch, std::int64_t units, std::int64_t epochs = 1) {
  GraphBuilder graph(batch);
  const Value x = graph.input("x", {kBatch, 4});
  const Value y = graph.input("y", {kBatch, 1});
  const Value out = graph.dense("out", graph.dense("hidden", x, units, "tanh"), 1);
  const Value loss = graph.op("mse", {out, y});
  Model model(std::move(graph));
  model.train.minimize = loss;
  model.train.epochs = epochs;
  model.train.log_every = 1;
  HostTensor rows(DType::f32, {samples, 4}), answers(DType::f32, {samples, 1});
  std::size_t i = 0;
  for (float& value : rows.elements<float>()) value = static_cast<float>(i++ % 17) * 0.05f;
  for (float& value : answers.elements<float>()) value = static_cast<float>(i++ % 3) * 0.1f;
  model.data.splits.push_back({"train", {{"x", rows}, {"y", answers}}});
  return model;
}

SessionOptions on_cuda(Profiling profiling = Profiling::off) {
  SessionOptions options;
  options.executor = "cuda";
  options.profiling = profiling;
  return options;
}

std::uint64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

TEST_F(Device, OutOfMemoryNamesABatchThatFits) {
  const std::int64_t samples = 20000, units = 8000000;  // 640 GB for one layer: more than any device has
  std::int64_t batch = 0;
  try {
    Session(wide_model(samples, samples, units), on_cuda());
    FAIL() << "it must not fit";
  } catch (const OutOfMemory& error) {
    std::printf("%s\n", error.what());
    EXPECT_EQ(error.diagnostics()[0].code, "cuda.memory");
    const std::string& hint = error.diagnostics()[0].hint;
    ASSERT_EQ(hint.rfind("--batch=", 0), 0u) << hint;
    batch = std::stoll(hint.substr(8));
  }
  EXPECT_LT(batch, samples);
  const Session fits(wide_model(samples, batch, units), on_cuda());
  EXPECT_GT(fits.program().arena_bytes, 0u);
}

TEST_F(Device, HostMemoryStaysAsItIs) {
  std::uint64_t early = 0, late = 0;
  Session session(wide_model(4000, 100, 256, 200), on_cuda());
  TrainOptions options;
  options.keep_losses = false;
  options.on_report = [&](const Report& report) {
    if (report.epoch == 5) early = resident_bytes();
    if (report.epoch == 200) late = resident_bytes();
  };
  session.train(options);
  std::printf("resident after epoch 5: %llu, after epoch 200: %llu bytes\n", static_cast<unsigned long long>(early),
              static_cast<unsigned long long>(late));
  ASSERT_GT(early, 0u);
  EXPECT_LE(late, early + (1u << 20));
}

TEST_F(Device, AProfileCountsWhatWasDoneAndChangesNothing) {
  // Of kernels of single steps, of which there are several.
  const auto step_by_step = [](Profiling how) {
    SessionOptions options = on_cuda(how);
    options.jit = Jit::off;
    return options;
  };
  Session plain(wide_model(4000, 100, 256, 50), step_by_step(Profiling::off));
  plain.train();
  for (const Profiling how : {Profiling::on, Profiling::own_clock}) {
    Session session(wide_model(4000, 100, 256, 50), step_by_step(how));
    session.train();
    const Profile profile = session.profile();
    std::printf("%s\n", profile.source.c_str());
    EXPECT_EQ(session.weights_hash(), plain.weights_hash());
    std::uint64_t allocations = 0, graphs = 0, kernels = 0;
    double graph_seconds = 0;
    for (const ProfileRow& row : profile.rows) {
      EXPECT_GT(row.calls, 0u) << row.name;
      EXPECT_LE(row.min, row.max) << row.name;
      EXPECT_LE(row.max, row.total * 1.0001) << row.name;
      if (row.group == "API calls" && row.name == "cudaMalloc") allocations = row.calls;
      if (row.group == "kernels of train") kernels += row.calls;
      if (row.group != "GPU activities" || row.name != "[CUDA graph of phase 'train']") continue;
      graphs = row.calls;
      graph_seconds = row.total;
    }
    EXPECT_EQ(allocations, 1u);
    EXPECT_GE(graphs, 50u);
    EXPECT_GT(graph_seconds, 2000 * 1e-6) << "2000 steps take longer";
    EXPECT_GT(kernels, 5u);
  }
}

}  // namespace
}  // namespace graphrun::testing
