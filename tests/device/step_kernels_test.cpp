// The kernels of whole steps, compiled as a load would: of every model and of random graphs, with no register spilled
// to memory. Needs no device.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "executors/cuda/nvrtc.h"
#include "graphrun/session.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

std::string source_of(const std::string& path, const std::string& target, const std::string& math = "fast") {
  LoadOptions load;
  load.overrides = {{"train.math", math}};
  SessionOptions options;
  options.executor = "cuda";
  options.target = target;
  return generated_source(load_model(path, load), options).text;
}

void expect_no_spills(const std::string& source, const std::string& architecture, const std::string& what) {
  const cuda::CompiledCode& code = cuda::compiled_code(source, architecture);
  EXPECT_FALSE(code.kernels.empty()) << what;
  for (const cuda::KernelResources& kernel : code.kernels)
    EXPECT_EQ(kernel.spill_bytes, 0) << what << " " << kernel.name << " on " << architecture;
}

// Those that bring their data.
std::vector<std::string> models() {
  std::vector<std::string> paths{source_folder() + "/models/xor.json"};
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/bench/models"))
    if (file.path().extension() == ".json") paths.push_back(file.path());
  return paths;
}

TEST(StepKernels, OfModelsCompileWithoutSpills) {
  int compiled = 0;
  for (const std::string& path : models()) {
    for (const auto& [target, architecture] :
         {std::pair{"a100", "sm_80"}, std::pair{"h200", "sm_90a"}, std::pair{"h200", "sm_100"}}) {
      const std::string source = source_of(path, target);
      if (source.empty()) continue;
      expect_no_spills(source, architecture, path);
      ++compiled;
    }
  }
  EXPECT_GT(compiled, 10);
}

TEST(StepKernels, MathIsThatOfTheModel) {
  const std::string path = source_folder() + "/models/xor.json";
  const std::string exact = source_of(path, "h200", "exact");
  EXPECT_NE(source_of(path, "h200").find("using Number = fast::Float;"), std::string::npos);
  EXPECT_NE(exact.find("using Number = float;"), std::string::npos);
  expect_no_spills(exact, "sm_90a", path);
}

}  // namespace
}  // namespace graphrun
