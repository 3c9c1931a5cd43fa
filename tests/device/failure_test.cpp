// What goes wrong on a device, made to go wrong by the fake runtime: each failure is one clear Error of kind device,
// and the process goes on: with the same executor where CUDA allows it, with cpu always.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "fake_runtime.h"
#include "graphrun/error.h"
#include "graphrun/params.h"
#include "graphrun/session.h"
#include "programs.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

std::shared_ptr<Executor> fake() {
  return find_executor(GRAPHRUN_FAKE_CUDA);
}

Program small_program(const std::string& op = "exp") {
  Builder build("small");
  const BufferId x = build.state("x", f32({8}), std::vector<float>(8, 1.0f), true);
  const BufferId y = build.step(op, {x}, build.buffer("y", f32({8})));
  build.step("assign", {x, y}, x);
  return build.finish(*fake());
}

Diagnostic failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);  // exit code 4
    EXPECT_EQ(error.diagnostics().size(), 1u);
    EXPECT_EQ(std::string(error.what()).find("\n    hint: ") != std::string::npos,
              !error.diagnostics()[0].hint.empty());
    return error.diagnostics()[0];
  }
  ADD_FAILURE() << "nothing failed";
  return {};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_that_the_fake_works() {
  const Program program = small_program();
  const auto runnable = fake()->load(program);
  runnable->run(0, 100);
  EXPECT_EQ(counted(*runnable, "allocations"), 1u);
  EXPECT_EQ(read<float>(*runnable, program, 0), std::vector<float>(8, 1.0f));  // kernels do not run
}

void expect_that_cpu_works() {
  Program program = small_program();
  program.target = "host";
  const auto runnable = find_executor("cpu")->load(program);
  runnable->run(0, 1);
  EXPECT_NEAR(read<float>(*runnable, program, 0)[0], 2.71828f, 1e-5f);
}

TEST(Failure, TheFakeWorksWhenNothingFails) {
  expect_that_the_fake_works();
}

TEST(Failure, NoDriver) {
  {
    const FakeCuda machine("driver=0");
    const Diagnostic told = failure_of([] { fake()->load(small_program()); });
    EXPECT_EQ(told.code, "cuda.driver");
    EXPECT_EQ(told.message, "no CUDA device: this machine has no NVIDIA driver (libcuda.so.1)");
  }
  expect_that_the_fake_works();
}

TEST(Failure, DriverTooOld) {
  const FakeCuda machine("driver=11080,runtime=13000");
  const Diagnostic told = failure_of([] { fake()->load(small_program()); });
  EXPECT_EQ(told.code, "cuda.driver");
  EXPECT_EQ(told.message, "no CUDA device: the driver is for CUDA 11.8, 13.0 or newer is needed");
}

TEST(Failure, NoDevice) {
  const FakeCuda machine("devices=0");
  const Diagnostic told = failure_of([] { fake()->load(small_program()); });
  EXPECT_EQ(told.code, "cuda.device");
  EXPECT_EQ(told.message, "no CUDA device: the driver sees no GPU");
}

TEST(Failure, DeviceTooOld) {
  const FakeCuda machine("cudaFuncGetAttributes=209@1");  // cudaErrorNoKernelImageForDevice
  const Diagnostic told = failure_of([] { fake()->load(small_program()); });
  EXPECT_EQ(told.code, "cuda.architecture");
  EXPECT_EQ(told.message,
            "no CUDA device: this build has no code that runs on Fake GPU (compute capability 6.0): as CUDA puts it");
}

TEST(Failure, OutOfMemory) {
  {
    const FakeCuda machine("memory=300000000");
    Builder build("large");
    build.buffer("x", f32({100000000}));
    const Program program = build.finish(*fake());
    try {
      fake()->load(program);
      FAIL() << "it must not fit";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.diagnostics()[0].code, "cuda.memory");
      EXPECT_EQ(error.diagnostics()[0].message,
                "the plan needs 400000000 bytes of device memory, 300000000 of 300000000 are free");
      EXPECT_EQ(error.needed(), 400000000u);
      EXPECT_GT(error.usable(), 0u);
      EXPECT_LT(error.usable(), 300000000u) << "graphs and code need some too";
    }
  }
  expect_that_the_fake_works();
}

// The whole way: a model that is too large, the batch that the message proposes, and a training with it.
TEST(Failure, OutOfMemoryNamesABatchThatRuns) {
  const FakeCuda machine("memory=300000000");
  const auto model = [](std::int64_t batch) {
    GraphBuilder graph(batch);
    const Value x = graph.input("x", {kBatch, 4});
    const Value y = graph.input("y", {kBatch, 1});
    const Value hidden = graph.dense("hidden", x, 2000, "tanh");
    const Value out = graph.dense("out", hidden, 1);
    const Value loss = graph.op("mse", {out, y});
    Model made(std::move(graph));
    made.train.minimize = loss;
    Split train{"train", {}};
    train.columns.emplace_back("x", HostTensor(DType::f32, {20000, 4}));
    train.columns.emplace_back("y", HostTensor(DType::f32, {20000, 1}));
    made.data.splits.push_back(std::move(train));
    return made;
  };
  SessionOptions options;
  options.executor = GRAPHRUN_FAKE_CUDA;
  const Diagnostic told = failure_of([&] { Session(model(20000), options); });
  EXPECT_EQ(told.code, "cuda.memory");
  EXPECT_TRUE(has(told.message, "; the largest values: ")) << told.message;
  EXPECT_TRUE(has(told.message, "(160000000 bytes)")) << told.message;
  ASSERT_EQ(told.hint.rfind("--batch=", 0), 0u) << told.hint;
  const std::int64_t batch = std::stoll(told.hint.substr(8));
  EXPECT_GT(batch, 100);
  EXPECT_LT(batch, 20000);
  Session session(model(batch), options);
  session.train();
}

TEST(Failure, PinnedMemory) {
  const FakeCuda machine("cudaMallocHost=2@1");
  const Diagnostic told = failure_of([] { fake()->load(small_program()); });
  EXPECT_EQ(told.code, "cuda.memory");
  EXPECT_TRUE(has(told.message, "load: cudaMallocHost: ")) << told.message;
  EXPECT_TRUE(has(told.message, "cudaErrorMemoryAllocation")) << told.message;
}

// Any other call of load(), each in turn: what was allocated is given back, and the next load works.
TEST(Failure, EveryCallOfALoad) {
  for (const std::string call :
       {"cudaSetDevice", "cudaStreamCreateWithFlags", "cudaMalloc", "cudaMallocHost", "cudaMemsetAsync",
        "cudaMemcpyAsync", "cudaStreamBeginCaptureToGraph", "cudaStreamEndCapture", "cudaLaunchKernel",
        "cudaGraphCreate", "cudaGraphAddNode", "cudaGraphInstantiate", "cudaGraphUpload", "cudaStreamSynchronize",
        "cudaEventCreate"}) {
    SCOPED_TRACE(call);
    {
      const FakeCuda machine((call + "=1@1").c_str());  // cudaErrorInvalidValue
      const Diagnostic told = failure_of([] { fake()->load(small_program()); });
      EXPECT_EQ(told.code, call == "cudaSetDevice" ? "cuda.device" : "cuda.call") << told.message;
      EXPECT_TRUE(call == "cudaSetDevice" || has(told.message, call)) << told.message;
    }
    const FakeCuda machine("memory=2048");  // no room for what an earlier load might have left behind
    expect_that_the_fake_works();
  }
}

TEST(Failure, ALaunchIsReportedWithItsStep) {
  const FakeCuda machine("cudaLaunchKernel=1@1");
  const Diagnostic told = failure_of([] { fake()->load(small_program()); });
  EXPECT_EQ(told.message.rfind("phase 'run', step", 0), 0u) << told.message;
  EXPECT_TRUE(has(told.message, "cudaLaunchKernel of ")) << told.message;
}

// Without a graph each of the 5 steps asks for its own launches, and the one that fails is told of.
TEST(Failure, DebuggersGetStepsWithoutAGraph) {
  const Program program = small_program();
  setenv("GRAPHRUN_DEBUG_GRAPHS", "off", 1);
  const auto runnable = fake()->load(program);
  setenv("GRAPHRUN_DEBUG_GRAPHS", "no", 1);
  try {
    fake()->load(program);
    ADD_FAILURE() << "a value that means nothing was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_STREQ(error.what(), "GRAPHRUN_DEBUG_GRAPHS can be 'off', got 'no'");
  }
  unsetenv("GRAPHRUN_DEBUG_GRAPHS");
  const std::uint64_t launches = counted(*runnable, "launches");
  runnable->run(0, 5);
  EXPECT_GE(counted(*runnable, "launches"), launches + 5);
  EXPECT_EQ(counted(*runnable, "graph_launches"), 0u);
  const FakeCuda machine("cudaLaunchKernel=1@1");
  EXPECT_TRUE(has(failure_of([&] { runnable->run(0, 1); }).message, "phase 'run', step"));
}

TEST(Failure, ACopyInMidRun) {
  const Program program = small_program();
  const auto runnable = fake()->load(program);
  {
    const FakeCuda machine("cudaMemcpyAsync=1@1");
    const Diagnostic told = failure_of([&] { runnable->run(0, 1); });
    EXPECT_EQ(told.code, "cuda.call");
    EXPECT_TRUE(has(told.message, "phase 'run': cudaMemcpyAsync to the host failed: ")) << told.message;
  }
  runnable->run(0, 1);  // such a failure is no end
}

TEST(Failure, ACopyFromTheHost) {
  const Program program = small_program();
  const auto runnable = fake()->load(program);
  const FakeCuda machine("cudaMemcpyAsync=1@1");
  const std::vector<float> values(8, 2.0f);
  const Diagnostic told = failure_of([&] { runnable->write(0, std::as_bytes(std::span(values))); });
  EXPECT_EQ(told.code, "cuda.call");
  EXPECT_EQ(told.message.rfind("x: cudaMemcpyAsync to the device failed: ", 0), 0u) << told.message;
}

TEST(Failure, AKernelFault) {
  const Program program = small_program();
  auto runnable = fake()->load(program);
  {
    const FakeCuda machine("cudaStreamSynchronize=700@1,sticky");  // cudaErrorIllegalAddress
    Diagnostic told = failure_of([&] { runnable->run(0, 10); });
    EXPECT_EQ(told.code, "cuda.fault");
    EXPECT_EQ(told.message,
              "phase 'run': a kernel faulted (reported by cudaStreamSynchronize): as CUDA puts it "
              "(cudaErrorIllegalAddress)");
    EXPECT_TRUE(has(told.hint, "--executor=cpu")) << told.hint;

    // The device is lost for this process: every use says so in the same words, destruction is quiet, cpu goes on.
    told = failure_of([&] { runnable->run(0, 1); });
    EXPECT_EQ(told.code, "cuda.fault");
    runnable.reset();
    told = failure_of([&] { fake()->load(program); });
    EXPECT_EQ(told.code, "cuda.fault");
    expect_that_cpu_works();
  }
  expect_that_the_fake_works();
}

TEST(Failure, ADeviceLostInMidRun) {
  const Program program = small_program();
  const auto runnable = fake()->load(program);
  const FakeCuda machine("cudaGraphLaunch=214@3,sticky");  // cudaErrorECCUncorrectable
  runnable->run(0, 1);
  runnable->run(0, 1);
  const Diagnostic told = failure_of([&] { runnable->run(0, 1); });
  EXPECT_EQ(told.code, "cuda.lost");
  EXPECT_EQ(
      told.message,
      "phase 'run': the device is lost (reported by cudaGraphLaunch): as CUDA puts it (cudaErrorECCUncorrectable)");
  expect_that_cpu_works();
}

// A product that is wide enough for the library; its shape is told apart from others, because what was chosen is kept.
Program wide_program(std::int64_t extent) {
  Builder build("wide");
  const BufferId a = build.state("a", f32({extent, 256}), {});
  const BufferId b = build.state("b", f32({256, 256}), {});
  build.step("matmul", {a, b}, build.buffer("c", f32({extent, 256})), MatmulParams{false, false, Precision::tf32});
  return build.finish(*fake());
}

// In a process of its own, which has not opened the library before: once found it stays.
TEST(Failure, AMissingLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto load = [] {
    const FakeCuda machine("missing=libcublasLt");
    const Diagnostic told = failure_of([] { fake()->load(wide_program(256)); });
    EXPECT_EQ(told.code, "cuda.library");
    EXPECT_EQ(told.message.rfind("this model has large matrix products, which need libcublasLt.so.", 0), 0u);
    EXPECT_TRUE(has(told.message, "cannot open shared object file")) << told.message;
    expect_that_the_fake_works();  // which needs no library
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(load(), ::testing::ExitedWithCode(0), "");
}

// From here on in this process the library is the fake one.
TEST(Failure, AnAlgorithmThatDoesNotRunIsNotChosen) {
  std::int64_t extent = 256;
  for (const auto& [offers, chosen] :
       {std::pair{"rr", "0"}, {"dr", "1"}, {"sr", "1"}, {"lr", "1"}, {"sdlrr", "3"}, {"rs", "0"}, {"rd", "0"}}) {
    SCOPED_TRACE(offers);
    const FakeCuda machine((std::string("products=") + offers).c_str());
    const auto runnable = fake()->load(wide_program(extent += 64));
    EXPECT_EQ(FakeCuda::product(), chosen);
    runnable->run_steps(0, 0, 1);
    EXPECT_EQ(FakeCuda::product(), chosen);
  }
}

TEST(Failure, NoAlgorithmRuns) {
  std::int64_t extent = 1024;
  for (const auto& [offers, call] :
       {std::pair{"dd", "cublasLtMatmul"}, {"ss", "cublasLtMatmulAlgoGetHeuristic"}, {"sd", "cublasLtMatmul"}}) {
    SCOPED_TRACE(offers);
    const FakeCuda machine((std::string("products=") + offers).c_str());
    const Diagnostic told = failure_of([&] { fake()->load(wide_program(extent += 64)); });
    EXPECT_EQ(told.code, "cuda.call");
    EXPECT_EQ(told.message, std::string("phase 'run', step 1 (matmul c): ") + call + " failed: as cuBLASLt puts it");
  }
}

// A run of many steps does not put them all on the stream at once, whatever is known of their time.
TEST(Failure, AtMostTwoLaunchesAreAhead) {
  const auto runnable = fake()->load(small_program());
  const FakeCuda machine("memory=2048");
  for (const std::uint64_t n : {5, 5000, 1000000}) runnable->run(0, n);
  EXPECT_EQ(FakeCuda::ahead(), "2");
  EXPECT_GT(counted(*runnable, "graph_launches"), 10u);
}

TEST(Failure, TheFirstLaunchIsAStep) {
  const auto runnable = fake()->load(small_program());
  const FakeCuda machine("cudaGraphLaunch=1@2");
  EXPECT_EQ(counted(*runnable, "steps_per_launch.run"), 1u);
  failure_of([&] { runnable->run(0, 4096); });
  EXPECT_EQ(runnable->steps_begun(), 0u);
  EXPECT_EQ(counted(*runnable, "graph_launches"), 1u);
}

// What launches use is given back when they are done: after a run that failed in the middle, and a load that did.
TEST(Failure, NothingIsFreedWhileLaunchesAreInFlight) {
  const Program program = ElementProgram({30, 4}, true).program;
  auto runnable = fake()->load(program);
  EXPECT_EQ(counted(*runnable, "generated_kernels"), 1u);
  EXPECT_EQ(counted(*runnable, "compiled_kernels") + counted(*runnable, "cached_kernels"), 1u);
  EXPECT_EQ(counted(*fake()->load(program), "cached_kernels"), 1u);  // of this process
  {
    const FakeCuda machine("cudaGraphLaunch=1@3");
    failure_of([&] { runnable->run(0, 4096); });
    runnable.reset();
    EXPECT_EQ(FakeCuda::freed_in_flight(), "");
  }
  for (const char* failing : {"cudaGraphInstantiate=1@1", "cudaLaunchKernel=1@2", "cudaMemcpyAsync=1@2"}) {
    SCOPED_TRACE(failing);
    const FakeCuda machine(failing);
    failure_of([&] { fake()->load(program); });
    EXPECT_EQ(FakeCuda::freed_in_flight(), "");
  }
}

// Between two polled states lies one that is not: it is read from the device, not from what was copied for them.
TEST(Failure, WhatIsNotPolledIsReadFromTheDevice) {
  for (const char* arena : {"", "split"}) {
    SCOPED_TRACE(arena);
    setenv("GRAPHRUN_DEBUG_ARENA", arena, 1);
    Builder build("polled");
    const BufferId first = build.state("first", f32({64}), std::vector<float>(64, 1.0f), true);
    const BufferId inside = build.state("inside", f32({64}), std::vector<float>(64, 2.0f));
    const BufferId last = build.state("last", f32({64}), std::vector<float>(64, 3.0f), true);
    const Program program = build.finish(*fake());
    const auto runnable = fake()->load(program);
    unsetenv("GRAPHRUN_DEBUG_ARENA");
    runnable->run(0, 1);
    EXPECT_EQ(read<float>(*runnable, program, first)[63], 1.0f);
    EXPECT_EQ(read<float>(*runnable, program, inside)[63], 2.0f);
    EXPECT_EQ(read<float>(*runnable, program, last)[63], 3.0f);
  }
}

// Runs a network in each of so many threads. Returns their errors, and the number of launches.
std::pair<std::vector<std::string>, std::uint64_t> share_launches(int networks = 8) {
  const Model model = load_model(source_folder() + "/models/xor.json");
  SessionOptions options;
  options.executor = GRAPHRUN_FAKE_CUDA;
  const Program program = plan_program(model, options);
  const std::shared_ptr<Executor> executor = fake();
  EXPECT_GT(executor->share_launches(program), 1u);
  std::vector<std::unique_ptr<Runnable>> runnables;
  for (int i = 0; i < networks; ++i) runnables.push_back(executor->load(program));
  std::vector<std::string> errors(runnables.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < runnables.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          for (int k = 0; k < 20; ++k) runnables[i]->run(0, 1);
        } catch (const Error& error) {
          errors[i] = error.diagnostics().front().message;
        }
      });
    }
  }
  std::uint64_t launches = 0;
  for (const auto& runnable : runnables) launches += counted(*runnable, "launches");
  return {errors, launches};
}

TEST(SharedLaunches, RunAllNetworks) {
  const FakeCuda machine("");
  const auto [errors, launches] = share_launches();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_GE(launches, 20u);
  EXPECT_LE(launches, 8u * 20u);
}

// Threads that wake wake others, some of them at second hand.
TEST(SharedLaunches, WakeAllThreads) {
  const FakeCuda machine("");
  for (const std::string& error : share_launches(300).first) EXPECT_EQ(error, "");
}

TEST(SharedLaunches, CreateFewStreamsAndNoEvents) {
  const FakeCuda machine("cudaStreamCreateWithFlags=1@17,cudaEventCreate=1@1");
  for (const std::string& error : share_launches(40).first) EXPECT_EQ(error, "");
}

// Reads and writes before the first run make no calls, and that run has what was written.
TEST(SharedLaunches, CopyTheStatesWithTheFirstRun) {
  const FakeCuda machine("");
  SessionOptions options;
  options.executor = GRAPHRUN_FAKE_CUDA;
  const Program program = plan_program(load_model(source_folder() + "/models/xor.json"), options);
  const std::shared_ptr<Executor> executor = fake();
  executor->share_launches(program);
  const auto runnable = executor->load(program);
  const std::uint64_t reads = counted(*runnable, "copies_to_host");
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (!is_state(buffer.kind) || buffer.type.dtype != DType::f32 || buffer.layout == Layout::strided) continue;
    const std::vector<float> wanted(buffer.type.bytes() / sizeof(float), static_cast<float>(id + 1));
    runnable->write(id, std::as_bytes(std::span(wanted)));
    EXPECT_EQ(read<float>(*runnable, program, id), wanted) << buffer.name;
  }
  EXPECT_EQ(counted(*runnable, "copies_to_device"), 0u);
  EXPECT_EQ(counted(*runnable, "copies_to_host"), reads);
  runnable->run(0, 1);
  EXPECT_EQ(counted(*runnable, "copies_to_device"), 2u);  // the states, and the arguments of the launch
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.kind != BufferKind::data || buffer.type.dtype != DType::f32) continue;
    EXPECT_EQ(read<float>(*runnable, program, id)[0], static_cast<float>(id + 1)) << buffer.name;
  }

  // Hundreds of large data sets would fill the memory of the host.
  const Program large = plan_program(load_model(source_folder() + "/bench/models/peaks.json"), options);
  const auto other = executor->load(large);
  const auto copies = counted(*other, "copies_to_device");
  const auto data = std::ranges::find(large.buffers, BufferKind::data, &Buffer::kind);
  other->write(static_cast<BufferId>(data - large.buffers.begin()), std::vector<std::byte>(data->type.bytes()));
  EXPECT_EQ(counted(*other, "copies_to_device"), copies + 1);
}

TEST(SharedLaunches, FailInTheThreadsOfTheLaunchOnly) {
  const FakeCuda machine("cudaLaunchKernelExC=1@5");  // cudaErrorInvalidValue
  const auto [errors, launches] = share_launches();
  const auto failed = std::ranges::count_if(errors, [](const std::string& error) { return !error.empty(); });
  EXPECT_GE(failed, 1);
  for (const std::string& error : errors) EXPECT_TRUE(error.empty() || has(error, "cudaLaunchKernelExC")) << error;
}

}  // namespace
}  // namespace graphrun::testing
