// After a kernel has faulted, CUDA refuses this process on the device: what the library then says, and that cpu goes
// on. A program of its own, because nothing else can use the device in it.
#include "device.h"
#include "fault_kernel.h"

namespace graphrun::testing {
namespace {

Program doubling(const std::shared_ptr<Executor>& executor) {
  Builder build("doubling");
  const BufferId x = build.state("x", f32({8}), std::vector<float>(8, 1.0f), true);
  const BufferId y = build.step("add", {x, x}, build.buffer("y", f32({8})));
  build.step("assign", {x, y}, x);
  return build.finish(*executor);
}

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.diagnostics()[0].code;
  }
  return "no error";
}

TEST_F(Device, AFaultIsReportedAndCpuGoesOn) {
  Program program = doubling(cuda);
  auto runnable = cuda->load(program);
  runnable->run(0, 3);
  EXPECT_EQ(read<float>(*runnable, program, 0)[0], 8.0f);

  ASSERT_TRUE(fault());
  EXPECT_EQ(failure_of([&] { runnable->run(0, 1); }), "cuda.fault");
  EXPECT_EQ(failure_of([&] { runnable->run(0, 1); }), "cuda.fault") << "and again";
  runnable.reset();
  EXPECT_EQ(failure_of([&] { cuda->load(program); }), "cuda.fault");

  program.target = "host";
  const auto host = find_executor("cpu")->load(program);
  host->run(0, 3);
  EXPECT_EQ(read<float>(*host, program, 0)[0], 8.0f);
}

}  // namespace
}  // namespace graphrun::testing
