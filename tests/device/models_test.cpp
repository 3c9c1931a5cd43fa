// Whole models on the device: regions that run() repeats leave the bits of the steps one by one.
#include <gtest/gtest.h>

#include <filesystem>

#include "device.h"
#include "graphrun/model.h"
#include "graphrun/session.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

using DeviceModels = Device;

// Every state of the program, named.
std::vector<std::pair<std::string, std::vector<std::byte>>> states_of(Runnable& runnable, const Program& program) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> states;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (!is_state(buffer.kind) || buffer.kind == BufferKind::data) continue;
    states.emplace_back(buffer.name, std::vector<std::byte>(buffer.type.bytes()));
    runnable.read(id, states.back().second);
  }
  return states;
}

// Something to train on in every input and parameter, the same for each runnable.
void fill(Runnable& runnable, const Program& program) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.kind != BufferKind::data && buffer.kind != BufferKind::parameter) continue;
    if (buffer.type.dtype != DType::f32 || buffer.type.bytes() == 0) continue;
    const auto values = random_values(buffer.type.shape.elements(), id + 1, -0.3f, 0.3f);
    runnable.write(id, std::as_bytes(std::span(values)));
  }
}

TEST_F(DeviceModels, RegionsGiveTheBitsOfTheSteps) {
  if (const char* data = std::getenv("GRAPHRUN_TEST_DATA")) setenv("GRAPHRUN_DATA", data, 1);
  const char* folder = std::getenv("GRAPHRUN_TEST_MODELS");
  int models = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(folder != nullptr ? folder : source_folder() + "/models")) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path());
    const auto plan = [&](bool fuse) {
      SessionOptions options;
      options.executor = "cuda";
      options.fuse = fuse;
      options.jit = Jit::off;  // regions over rows have sums in an order of their own
      Model model = load_model(file.path());
      for (Split& split : model.data.splits) split.codes.clear();  // fill() writes numbers that no byte stands for
      return plan_program(model, options);
    };
    Program program, alone;
    try {
      program = plan(true);
      alone = plan(false);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::input) continue;  // data that is not here
      throw;
    }
    const auto regions = cuda->load(program), steps = cuda->load(alone);
    fill(*regions, program);
    fill(*steps, alone);
    EXPECT_GT(counted(*regions, "generated_kernels"), 0u);
    EXPECT_EQ(counted(*steps, "generated_kernels"), 0u);
    for (PhaseId phase = 0; phase < program.phases.size(); ++phase) {
      regions->run(phase, 3);
      for (int i = 0; i < 3; ++i)
        steps->run_steps(phase, 0, static_cast<std::uint32_t>(alone.phases[phase].steps.size()));
      EXPECT_EQ(states_of(*regions, program), states_of(*steps, alone)) << program.phases[phase].name;
    }
    ++models;
  }
  EXPECT_GT(models, 0);
}

}  // namespace
}  // namespace graphrun::testing
