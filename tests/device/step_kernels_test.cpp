// The kernels of whole steps, compiled as a load would: of every model and of random graphs, with no register spilled
// to memory, and no function so long that its compiler takes too long. Needs no device.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda/linker.h"
#include "executors/cuda/nvrtc.h"
#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/session.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

std::vector<cuda::StepKernel> sources_of(const std::string& path, const std::string& target,
                                         const std::string& math = "fast", bool in_slots = false) {
  LoadOptions load;
  load.overrides = {{"train.math", math}};
  SessionOptions options;
  options.executor = "cuda";
  options.target = target;
  return cuda::step_sources(plan_program(load_model(path, load), options), in_slots);
}

const cuda::CompiledCode& code_of(const cuda::StepKernel& source, const std::string& architecture) {
  return cuda::compiled_code({source.text, source.pieces, source.threads}, architecture);
}

void expect_no_spills(const cuda::StepKernel& source, const std::string& architecture, const std::string& what) {
  const cuda::CompiledCode& code = code_of(source, architecture);
  EXPECT_FALSE(code.kernels().empty()) << what;
  for (const cuda::KernelResources& kernel : code.kernels())
    EXPECT_EQ(kernel.spill_bytes, 0) << what << " " << kernel.name << " on " << architecture;
}

// Of the longest function, each of which has a section of its own.
std::size_t max_instructions(const cuda::CompiledCode& code) {
  const auto read = [&]<class T>(std::size_t at, T& to) { std::memcpy(&to, code.image.data() + at, sizeof to); };
  Elf64_Ehdr header;
  read(0, header);
  Elf64_Shdr names, section;
  read(header.e_shoff + header.e_shstrndx * sizeof names, names);
  std::size_t most = 0;
  for (std::size_t k = 0; k < header.e_shnum; ++k) {
    read(header.e_shoff + k * sizeof section, section);
    if (std::string_view(code.image.data() + names.sh_offset + section.sh_name).starts_with(".text."))
      most = std::max<std::size_t>(most, section.sh_size / 16);
  }
  return most;
}

// Those that bring their data.
std::vector<std::string> models() {
  std::vector<std::string> paths;
  for (const char* name : {"xor", "digits", "gan"})
    paths.push_back(fmt::format("{}/models/{}.json", source_folder(), name));
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/bench/models"))
    if (file.path().extension() == ".json") paths.push_back(file.path());
  return paths;
}

// The compiler takes about 0.2 ms for an instruction of a function, and functions of a kernel in pieces side by side:
// as one mnist_mlp's has 8,200, and gan's had 15,800 while each group of its warps had code of its own.
// Each model by itself, so that processes share them.
class StepKernelsOfModel : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, StepKernelsOfModel, ::testing::ValuesIn(models()),
                         [](const auto& model) { return std::filesystem::path(model.param).stem().string(); });

TEST_P(StepKernelsOfModel, HaveNoSpillsAndNoLongFunctions) {
  ASSERT_GT(cuda::linker_version().major, 0) << "without libnvJitLink kernels are compiled as one text";
  const std::string& path = GetParam();
  const std::size_t limit = path.ends_with("mnist_mlp.json") ? 2200 : path.ends_with("gan.json") ? 7000 : 5800;
  for (const auto& [target, architecture] :
       {std::pair{"a100", "sm_80"}, std::pair{"h200", "sm_90a"}, std::pair{"h200", "sm_100"}}) {
    const std::vector<cuda::StepKernel> sources = sources_of(path, target);
    EXPECT_TRUE(!sources.empty() || std::string_view(target) == "a100") << "no step kernel on " << target;
    for (const cuda::StepKernel& source : sources) {
      expect_no_spills(source, architecture, path);
      if (std::string_view(architecture) != "sm_90a") continue;
      const std::size_t most = max_instructions(code_of(source, architecture));
      EXPECT_GT(most, 100) << source.name;
      EXPECT_LT(most, limit) << source.name;
    }
  }
}

// Of a kernel in pieces, which are all of it and have its steps once.
TEST(StepKernels, InPiecesAreTheSameText) {
  const auto sources = sources_of(source_folder() + "/bench/models/mnist_mlp.json", "h200");
  ASSERT_FALSE(sources.empty());
  const auto count = [](std::string_view text, std::string_view word) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) ++found;
    return found;
  };
  for (const cuda::StepKernel& source : sources) {
    ASSERT_GT(source.pieces.size(), 2) << source.name;
    for (const std::string_view word :
         {"by_block::product<", "by_block::multiply_rows<", "fold_rows<", "grid.sync()"}) {
      std::size_t in_pieces = 0;
      for (const std::string& piece : source.pieces) in_pieces += count(piece, word);
      EXPECT_EQ(in_pieces, count(source.text, word)) << source.name << " " << word;
    }
  }
}

// A block that computes a cluster has more threads, and a thread fewer registers.
TEST(StepKernels, InOneBlockHaveNoSpills) {
  const std::string path = source_folder() + "/bench/models/realestate_2h.json";
  int found = 0;
  for (const cuda::StepKernel& source : sources_of(path, "h200", "fast", true)) {
    if (!source.in_one_block) continue;
    ++found;
    expect_no_spills(source, "sm_90a", source.name);
  }
  EXPECT_GT(found, 0);
}

TEST(StepKernels, MathIsThatOfTheModel) {
  const std::string path = source_folder() + "/models/xor.json";
  const auto exact = sources_of(path, "h200", "exact"), fast = sources_of(path, "h200");
  ASSERT_FALSE(exact.empty());
  EXPECT_NE(fast.front().text.find("using Number = fast::Float;"), std::string::npos);
  EXPECT_NE(exact.front().text.find("using Number = float;"), std::string::npos);
  for (const cuda::StepKernel& source : exact) expect_no_spills(source, "sm_90a", path);
}

}  // namespace
}  // namespace graphrun
