// Programs written by hand, without graph or planner, run on both host executors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "executors/cpu/cpu_executor.h"
#include "executors/ref/ref_executor.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "support/allocations.h"

// AddressSanitizer ends the program where an allocation fails unless it is told not to.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace graphrun {
namespace {

// Lays buffers out one after the other; names are ids enough for a test.
struct Writer {
  Program program;

  Writer() {
    program.name = "handwritten";
    program.target = "host";
  }
  BufferId buffer(std::string name, TensorType type, BufferKind kind) {
    const auto id = static_cast<BufferId>(program.buffers.size());
    program.buffers.push_back({std::move(name), type, kind, id, program.arena_bytes, type.bytes(), false});
    program.arena_bytes += (type.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return id;
  }
  BufferId in_place_of(BufferId storage, std::string name) {
    Buffer copy = program.buffers[storage];
    copy.name = std::move(name);
    copy.storage = storage;
    program.buffers.push_back(copy);
    return static_cast<BufferId>(program.buffers.size() - 1);
  }
  template <class T>
  void initial(BufferId id, std::vector<T> values) {
    InitialValue value;
    value.buffer = id;
    value.bytes.resize(values.size() * sizeof(T));
    std::memcpy(value.bytes.data(), values.data(), value.bytes.size());
    program.initial.push_back(std::move(value));
  }
};

Step step(std::string op, std::vector<BufferId> inputs, BufferId output, Params params = {},
          BufferId rows = kNoBuffer) {
  Step s;
  s.name = op;
  s.op = find_op(op).value();
  s.inputs = std::move(inputs);
  s.output = output;
  s.row_count = rows;
  s.params = params;
  return s;
}

// y = w x by gradient descent on the squared error, five rows in batches of two: the last batch has one row.
struct Regression {
  static constexpr std::int64_t kRows = 5;
  static constexpr std::int64_t kBatch = 2;
  static constexpr float kRate = 0.05f;
  std::vector<float> x = {1, 2, -1, 0.5f, 3};
  std::vector<float> y = {2.5f, 4, -2, 1, 5.5f};
  Program program;
  BufferId all_x, w, losses, counter, batch_x, count, prediction;

  Regression() {
    Writer make;
    const TensorType scalar{DType::f32, {}, 0};
    const TensorType rows{DType::f32, {kBatch, 1}, 1};
    const TensorType data{DType::f32, {kRows, 1}, 0};
    all_x = make.buffer("x", data, BufferKind::data);
    const BufferId all_y = make.buffer("y", data, BufferKind::data);
    w = make.buffer("w", {DType::f32, {1, 1}, 0}, BufferKind::parameter);
    const BufferId rate = make.buffer("rate", scalar, BufferKind::constant);
    counter = make.buffer("step", {DType::u64, {}, 0}, BufferKind::counter);
    losses = make.buffer("losses", {DType::f32, {4}, 0}, BufferKind::metric);
    batch_x = make.buffer("batch_x", rows, BufferKind::activation);
    const BufferId batch_y = make.buffer("batch_y", rows, BufferKind::activation);
    count = make.buffer("count", {DType::i32, {}, 0}, BufferKind::activation);
    prediction = make.buffer("prediction", rows, BufferKind::activation);
    const BufferId error = make.in_place_of(prediction, "error");
    const BufferId square = make.buffer("square", rows, BufferKind::activation);
    const BufferId loss = make.buffer("loss", scalar, BufferKind::activation);
    const BufferId gradient = make.buffer("gradient", {DType::f32, {1, 1}, 0}, BufferKind::activation);
    const BufferId change = make.in_place_of(gradient, "change");
    const BufferId new_w = make.buffer("new_w", {DType::f32, {1, 1}, 0}, BufferKind::activation);
    const BufferId assigned = make.in_place_of(w, "w.assigned");
    const BufferId next = make.in_place_of(counter, "step.next");
    const BufferId recorded = make.in_place_of(losses, "losses.recorded");
    make.initial(all_x, x);
    make.initial(all_y, y);
    make.initial(rate, std::vector<float>{kRate});
    const MinibatchParams batches{kRows, kBatch};
    make.program.phases = {
        {"train",
         kBatch,
         {step("row_count", {counter}, count, batches), step("minibatch", {all_x, counter}, batch_x, batches),
          step("minibatch", {all_y, counter}, batch_y, batches),
          step("matmul", {batch_x, w}, prediction, MatmulParams{}, count),
          step("sub", {prediction, batch_y}, error, {}, count), step("square", {error}, square, {}, count),
          step("sum", {square}, loss, ReduceParams{3, false}, count),
          step("matmul", {batch_x, error}, gradient, MatmulParams{true, false}, count),
          step("mul", {gradient, rate}, change), step("sub", {w, change}, new_w), step("assign", {w, new_w}, assigned),
          step("record", {losses, loss, counter}, recorded), step("increment", {counter}, next)}},
        {"idle", kBatch, {step("row_count", {counter}, count, batches)}}};
    program = make.program;
  }

  // The same in plain C++: the weight after n steps, and the loss of each.
  double train(int n, std::vector<double>& loss_list) const {
    double weight = 0;
    for (int s = 0; s < n; ++s) {
      const std::size_t first = static_cast<std::size_t>(s % 3) * kBatch;
      double loss = 0;
      double gradient = 0;
      for (std::size_t i = first; i < std::min<std::size_t>(first + kBatch, kRows); ++i) {
        const double e = static_cast<double>(x[i]) * weight - static_cast<double>(y[i]);
        loss += e * e;
        gradient += e * static_cast<double>(x[i]);
      }
      weight -= static_cast<double>(kRate) * gradient;
      loss_list.push_back(loss);
    }
    return weight;
  }
};

template <class T>
std::vector<T> values(Runnable& runnable, BufferId buffer, std::size_t count) {
  std::vector<T> result(count);
  runnable.read(buffer, std::as_writable_bytes(std::span(result)));
  return result;
}

class Handwritten : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Executor> executor() const {
    if (std::string_view(GetParam()) == "ref") return std::make_unique<RefExecutor>();
    return std::make_unique<CpuExecutor>();
  }
};

TEST_P(Handwritten, GradientDescentFollowsPlainCode) {
  const Regression regression;
  const auto runnable = executor()->load(regression.program);
  constexpr int kSteps = 11;
  runnable->run(0, kSteps);
  std::vector<double> want;
  const double weight = regression.train(kSteps, want);
  EXPECT_NEAR(static_cast<double>(values<float>(*runnable, regression.w, 1)[0]), weight, 1e-5);
  EXPECT_EQ(values<std::uint64_t>(*runnable, regression.counter, 1)[0], std::uint64_t{kSteps});
  const std::vector<float> losses = values<float>(*runnable, regression.losses, 4);
  for (std::size_t s = kSteps - 4; s < kSteps; ++s)
    EXPECT_NEAR(static_cast<double>(losses[s % 4]), want[s], 1e-4 * want[s]) << "step " << s;
}

TEST_P(Handwritten, StepsOneByOneAreARun) {
  const Regression regression;
  const auto whole = executor()->load(regression.program);
  const auto pieces = executor()->load(regression.program);
  whole->run(0, 3);
  const auto steps = static_cast<std::uint32_t>(regression.program.phases[0].steps.size());
  for (int n = 0; n < 3; ++n)
    for (std::uint32_t i = 0; i < steps; ++i) pieces->run_steps(0, i, i + 1);
  EXPECT_EQ(values<float>(*whole, regression.w, 1), values<float>(*pieces, regression.w, 1));
  EXPECT_EQ(values<float>(*whole, regression.losses, 4), values<float>(*pieces, regression.losses, 4));
  // Batch 2 has one row; the other reads as zero.
  EXPECT_EQ(values<std::int32_t>(*pieces, regression.count, 1)[0], 1);
  EXPECT_EQ(values<float>(*pieces, regression.batch_x, 2), (std::vector<float>{3, 0}));
}

// A whole batch in order is not copied: its readers see the rows where they lie. Whatever the host writes or reads is
// the batch all the same.
TEST(ZeroCopyBatch, WholeBatchesAreReadInPlace) {
  const Regression regression;
  const auto runnable = CpuExecutor().load(regression.program);
  const auto prediction = [&] {
    runnable->run_steps(0, 3, 4);
    return values<float>(*runnable, regression.prediction, 2);
  };
  const auto write = [&](BufferId id, const std::vector<float>& x) {
    runnable->write(id, std::as_bytes(std::span(x)));
  };
  write(regression.w, {2});
  runnable->run_steps(0, 0, 2);
  EXPECT_EQ(values<float>(*runnable, regression.batch_x, 2), (std::vector<float>{1, 2}));
  EXPECT_EQ(prediction(), (std::vector<float>{2, 4}));
  write(regression.all_x, {5, 6, 7, 8, 9});
  EXPECT_EQ(prediction(), (std::vector<float>{10, 12})) << "a copy would not follow";
  write(regression.batch_x, {-1, -3});
  EXPECT_EQ(prediction(), (std::vector<float>{-2, -6}));
  EXPECT_EQ(values<float>(*runnable, regression.batch_x, 2), (std::vector<float>{-1, -3}));
  EXPECT_EQ(values<float>(*runnable, regression.all_x, 5), (std::vector<float>{5, 6, 7, 8, 9}));

  const std::uint64_t last = 2;  // of one row: copied, so that the other is zero
  runnable->write(regression.counter, std::as_bytes(std::span(&last, 1)));
  runnable->run_steps(0, 0, 2);
  EXPECT_EQ(values<float>(*runnable, regression.batch_x, 2), (std::vector<float>{9, 0}));
  EXPECT_EQ(prediction(), (std::vector<float>{18, 0}));
  write(regression.all_x, {1, 1, 1, 1, 1});
  EXPECT_EQ(prediction(), (std::vector<float>{18, 0}));
}

TEST_P(Handwritten, StateIsWrittenAndKeptAcrossPhases) {
  const Regression regression;
  const auto runnable = executor()->load(regression.program);
  const std::vector<float> start = {1.75f};
  runnable->write(regression.w, std::as_bytes(std::span(start)));
  runnable->run(1, 5);
  EXPECT_EQ(values<float>(*runnable, regression.w, 1), start);
  EXPECT_EQ(values<std::uint64_t>(*runnable, regression.counter, 1)[0], 0u);
  EXPECT_EQ(values<std::int32_t>(*runnable, regression.count, 1)[0], 2);
}

TEST_P(Handwritten, RunAllocatesNothing) {
  const Regression regression;
  const auto runnable = executor()->load(regression.program);
  const std::uint64_t before = test::allocations();
  runnable->run(0, 1000);
  const std::uint64_t after = test::allocations();
  EXPECT_EQ(after, before);
}

TEST_P(Handwritten, MisuseIsALogicError) {
  const Regression regression;
  const auto runnable = executor()->load(regression.program);
  std::vector<float> two(2);
  EXPECT_THROW(runnable->write(regression.w, std::as_bytes(std::span(two))), std::logic_error);
  EXPECT_THROW(runnable->read(regression.w, std::as_writable_bytes(std::span(two))), std::logic_error);
  EXPECT_THROW(runnable->run(7, 1), std::logic_error);
  EXPECT_THROW(runnable->run_steps(0, 0, 100), std::logic_error);
  EXPECT_THROW(runnable->run_steps(0, 2, 1), std::logic_error);
  Program unknown = regression.program;
  unknown.phases[0].steps[0].op = static_cast<Op>(9999);
  EXPECT_THROW(executor()->load(unknown), Error);
  Program broken = regression.program;
  broken.buffers[0].offset = broken.arena_bytes;
  EXPECT_THROW(executor()->load(broken), Error);
}

TEST_P(Handwritten, AnArenaThatDoesNotFitIsADeviceError) {
  Program program = Regression().program;
  program.arena_bytes = std::uint64_t{1} << 62;
  try {
    executor()->load(program);
    FAIL() << "4 EiB were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.diagnostics()[0].code, "memory.host");
  }
}

TEST_P(Handwritten, DeclinesWithAReason) {
  const auto machine = executor();
  const Params none = NoParams{};
  const TensorType f32{DType::f32, {3}, 0};
  const TensorType f64{DType::f64, {3}, 0};
  const TensorType i32{DType::i32, {3}, 0};
  const Target& target = find_target(machine->default_target());
  const auto ask = [&](Op op, std::vector<TensorType> inputs, TensorType output) {
    return machine->supports({op, none, inputs, output, false}, target);
  };
  EXPECT_TRUE(ask(Op::add, {f32, f32}, f32).yes);
  EXPECT_TRUE(ask(Op::cast, {i32}, f32).yes);
  const Support unknown = ask(Op::reshape, {f32}, f32);
  EXPECT_FALSE(unknown.yes);
  EXPECT_NE(unknown.reason.find("'reshape'"), std::string::npos);
  const bool is_ref = machine->name() == "ref";
  EXPECT_TRUE(ask(Op::add, {f64, f64}, f64).yes);
  EXPECT_TRUE(ask(Op::cast, {f32}, f64).yes);
  const Support whole = ask(Op::add, {i32, i32}, i32);
  EXPECT_EQ(whole.yes, is_ref);
  EXPECT_EQ(whole.reason.empty(), is_ref);
}

INSTANTIATE_TEST_SUITE_P(Host, Handwritten, ::testing::Values("ref", "cpu"),
                         [](const auto& param) { return std::string(param.param); });

// A run has the same bits on every instruction set, and an unknown one is an error that names those there are.
TEST(CpuExecutorIsa, EnvironmentChoosesAndKeepsTheBits) {
  const Regression regression;
  std::vector<float> first;
  for (const char* isa : {"plain", "avx2", "avx512"}) {
    ::setenv("GRAPHRUN_ISA", isa, 1);
    std::unique_ptr<Runnable> runnable;
    try {
      runnable = CpuExecutor().load(regression.program);
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics()[0].code, "isa.unknown");  // this machine does not have it
      EXPECT_STRNE(isa, "plain");
      continue;
    }
    runnable->run(0, 20);
    const std::vector<float> w = values<float>(*runnable, regression.w, 1);
    if (first.empty()) first = w;
    EXPECT_EQ(w, first) << isa;
  }
  ::setenv("GRAPHRUN_ISA", "avx3", 1);
  EXPECT_THROW(CpuExecutor().load(regression.program), Error);
  ::unsetenv("GRAPHRUN_ISA");
}

}  // namespace
}  // namespace graphrun
