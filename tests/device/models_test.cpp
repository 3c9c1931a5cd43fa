// Whole models on the device: what run() groups and repeats leaves the bits of the steps one by one.
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

TEST_F(DeviceModels, GroupsGiveTheBitsOfTheSteps) {
  if (const char* data = std::getenv("GRAPHRUN_TEST_DATA")) setenv("GRAPHRUN_DATA", data, 1);
  const char* folder = std::getenv("GRAPHRUN_TEST_MODELS");
  int models = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(folder != nullptr ? folder : source_folder() + "/models")) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path());
    std::optional<Program> planned;
    try {
      SessionOptions options;
      options.executor = "cuda";
      planned = plan_program(load_model(file.path()), options);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::input) continue;  // data that is not here
      throw;
    }
    const Program& program = *planned;
    const auto grouped = cuda->load(program), single = cuda->load(program);
    fill(*grouped, program);
    fill(*single, program);
    EXPECT_GT(counted(*grouped, "fused_kernels"), 0u);
    for (PhaseId phase = 0; phase < program.phases.size(); ++phase) {
      const auto steps = static_cast<std::uint32_t>(program.phases[phase].steps.size());
      grouped->run(phase, 3);
      for (int i = 0; i < 3; ++i) single->run_steps(phase, 0, steps);
      const auto got = states_of(*grouped, program), wanted = states_of(*single, program);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i] == wanted[i]) << program.phases[phase].name << ": " << got[i].first;
      }
    }
    ++models;
  }
  EXPECT_GT(models, 0);
}

}  // namespace
}  // namespace graphrun::testing
