// Which steps share a launch, and that no order between steps is lost by it. Needs no device.
#include "executors/cuda/grouping.h"

#include <gtest/gtest.h>
#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "executors/cuda/fusing.h"
#include "executors/cuda/nvrtc.h"
#include "graphrun/error.h"
#include "graphrun/model.h"
#include "graphrun/op.h"
#include "graphrun/params/scalar.h"
#include "graphrun/session.h"
#include "programs.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

using cuda::group_steps;
using cuda::Launch;
using cuda::Member;
using cuda::Segment;

// Runs the launches in a memory whose cells know who wrote them last, and compares what each step reads with what it
// reads one by one: an independent account of the same promise. A cell lies between two ends of buffers.
class Replay {
 public:
  Replay(const Program& program, const Phase& phase) : program_(program), phase_(phase), wanted_(phase.steps.size()) {
    for (const Buffer& buffer : program.buffers) {
      for (const std::uint64_t end : {std::uint64_t{0}, buffer.type.bytes(), buffer.bytes}) {
        cells_.push_back(buffer.offset + end);
      }
    }
    std::sort(cells_.begin(), cells_.end());
    cells_.erase(std::unique(cells_.begin(), cells_.end()), cells_.end());
    memory_.assign(cells_.size(), -1);
    for (std::size_t i = 0; i < phase.steps.size(); ++i) {
      for (const BufferId input : reads_of(phase.steps[i])) wanted_[i].push_back(seen(input));
      write(i, true);
    }
    final_ = memory_;
    std::fill(memory_.begin(), memory_.end(), -1);
  }

  // Launches in any order that keeps `after`: here those of later numbers first.
  void run(const std::vector<Launch>& launches) {
    std::vector<bool> done(launches.size(), false);
    std::set<std::size_t> steps;
    for (std::size_t count = 0; count < launches.size(); ++count) {
      std::size_t next = launches.size();
      for (std::size_t i = launches.size(); i-- > 0;) {
        const auto& after = launches[i].after;
        if (!done[i] && std::all_of(after.begin(), after.end(), [&](std::uint32_t a) { return done[a]; })) next = i;
        if (next == i && reversed_) break;
      }
      ASSERT_LT(next, launches.size()) << "launches wait for each other";
      done[next] = true;
      reversed_ = !reversed_;
      for (const Segment& segment : launches[next].segments) run(segment, steps);
    }
    // A step that is left out leaves no state and nobody misses it.
    for (std::size_t i = 0; i < phase_.steps.size(); ++i) {
      const TensorType& type = program_.buffers[phase_.steps[i].output].type;
      EXPECT_TRUE(steps.count(i) > 0 || type.shape.elements() == 1 || phase_.steps[i].op == Op::broadcast_to)
          << "step " << i + 1 << " never runs";
    }
    for (const Buffer& buffer : program_.buffers) {
      if (!is_state(buffer.kind)) continue;
      for (std::ptrdiff_t c = cell(buffer.offset); c < cell(buffer.offset + buffer.type.bytes()); ++c) {
        const auto at = static_cast<std::size_t>(c);
        ASSERT_EQ(memory_[at], final_[at]) << buffer.name << " is left by another step";
      }
    }
  }

 private:
  static std::vector<BufferId> reads_of(const Step& step) {
    std::vector<BufferId> ids = step.inputs;
    if (step.row_count != kNoBuffer) ids.push_back(step.row_count);
    return ids;
  }
  std::ptrdiff_t cell(std::uint64_t offset) const {
    return std::lower_bound(cells_.begin(), cells_.end(), offset) - cells_.begin();
  }
  std::vector<int> seen(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    return {memory_.begin() + cell(buffer.offset), memory_.begin() + cell(buffer.offset + buffer.type.bytes())};
  }
  void write(std::size_t index, bool stored) {
    const Step& step = phase_.steps[index];
    const auto fill = [&](BufferId id, std::uint64_t bytes, int value) {
      const std::uint64_t begin = program_.buffers[id].offset;
      std::fill(memory_.begin() + cell(begin), memory_.begin() + cell(begin + bytes), value);
    };
    if (step.workspace != kNoBuffer) fill(step.workspace, program_.buffers[step.workspace].bytes, -2);
    if (stored) fill(step.output, program_.buffers[step.output].type.bytes(), static_cast<int>(index));
  }
  void run(const Segment& segment, std::set<std::size_t>& steps) {
    for (const Member& member : segment.members) {
      if (!member.scalar) {
        EXPECT_TRUE(steps.insert(member.step).second) << "step " << member.step << " runs twice";
      }
      std::vector<BufferId> reads = reads_of(phase_.steps[member.step]);
      if (member.scalar) reads.resize(phase_.steps[member.step].inputs.size());  // a number has no rows
      for (std::size_t i = 0; i < reads.size(); ++i) {
        const std::vector<int>& wanted = wanted_[member.step][i];
        if (member.from[i] >= 0) {
          const int from = static_cast<int>(segment.members[static_cast<std::size_t>(member.from[i])].step);
          EXPECT_TRUE(std::all_of(wanted.begin(), wanted.end(), [&](int w) { return w == from; }));
        } else {
          ASSERT_EQ(seen(reads[i]), wanted) << phase_.name << ": step " << member.step + 1 << " reads another value";
        }
      }
    }
    for (const Member& member : segment.members) write(member.step, member.stored);
  }

  const Program& program_;
  const Phase& phase_;
  bool reversed_ = true;
  std::vector<std::uint64_t> cells_;
  std::vector<int> memory_, final_;
  std::vector<std::vector<std::vector<int>>> wanted_;
};

std::size_t launches_of(const Program& program, bool fuse = true) {
  std::size_t count = 0;
  for (const Phase& phase : program.phases) {
    const auto launches = group_steps(program, phase, fuse);
    Replay(program, phase).run(launches);
    if (phase.name == "train") count = launches.size();
  }
  return count;
}

Program planned(const std::string& path) {
  const Model model = load_model(path);
  SessionOptions options;
  options.executor = "cuda";
  return plan_program(model, options);
}

// The example models whose data is there.
std::vector<std::string> models() {
  if (std::getenv("GRAPHRUN_TEST_DATA") != nullptr) setenv("GRAPHRUN_DATA", std::getenv("GRAPHRUN_TEST_DATA"), 1);
  const char* folder = std::getenv("GRAPHRUN_TEST_MODELS");
  std::vector<std::string> paths;
  for (const auto& file :
       std::filesystem::directory_iterator(folder != nullptr ? folder : source_folder() + "/models")) {
    if (file.path().extension() != ".json") continue;
    try {
      load_model(file.path());
      paths.push_back(file.path());
    } catch (const Error&) {
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Grouping, KeepsWhatEveryStepReads) {
  for (const std::string& path : models()) {
    SCOPED_TRACE(path);
    const Program program = planned(path);
    const std::size_t fused = launches_of(program), alone = launches_of(program, false);
    EXPECT_LT(fused, alone);
    printf("%s: %zu of %zu\n", path.c_str(), fused, alone);
  }
}

// The words of the compiler when the source does not compile.
std::string compile(const std::string& source, const std::string& architecture = cuda::architecture_of(9, 0)) {
  try {
    return cuda::compiled_code(source, architecture).empty() ? "no code" : "";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

std::string source_of(const Program& program) {
  std::string source = cuda::fused_prelude();
  int number = 0;
  for (const Phase& phase : program.phases) {
    for (const Launch& launch : group_steps(program, phase)) {
      if (!launch.fused()) continue;
      source += cuda::fuse_launch(program, phase, launch, "fused_" + std::to_string(number++), {132, 0}).kernel.source;
    }
  }
  return source;
}

// Code for the device at hand may use all that it has: from Hopper on, what only the letter in the name allows.
TEST(Nvrtc, CompilesForAllOfTheDevice) {
  EXPECT_EQ(cuda::architecture_of(8, 0), "sm_80");
  EXPECT_EQ(cuda::architecture_of(8, 9), "sm_89");
  EXPECT_EQ(cuda::architecture_of(9, 0), "sm_90a");
  EXPECT_EQ(compile("extern \"C\" __global__ void fence() { asm volatile(\"wgmma.fence.sync.aligned;\"); }"), "");
  EXPECT_NE(compile("extern \"C\" __global__ void wrong() { no_such_function(); }"), "");
  int count = 0;
  ASSERT_EQ(nvrtcGetNumSupportedArchs(&count), NVRTC_SUCCESS);
  std::vector<int> all(static_cast<std::size_t>(count));
  ASSERT_EQ(nvrtcGetSupportedArchs(all.data()), NVRTC_SUCCESS);
  for (const int architecture : all) {
    const std::string name = cuda::architecture_of(architecture / 10, architecture % 10);
    EXPECT_EQ(compile("extern \"C\" __global__ void nothing() {}", name), "") << name;
  }
}

TEST(Nvrtc, ADeviceThatIsTooNewIsToldOf) {
  try {
    cuda::compiled_code("extern \"C\" __global__ void nothing() {}", "sm_999a");
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.diagnostics()[0].code, "cuda.architecture");
    EXPECT_NE(error.diagnostics()[0].message.find("cannot do so for this GPU (sm_999a)"), std::string::npos)
        << error.what();
  }
}

// Steps of two row counts and of samples of two sizes in one kernel: each limit is declared, and once.
TEST(Fusing, EachLimitOfRowsIsDeclaredOnce) {
  const cuda::Machine machine{132, 0};
  const auto step = [](std::int64_t rows, int row_count, int from) {
    cuda::FusedStep s;
    s.op = Op::exp;
    s.params = ScalarParams{};
    s.out.type = f32({60, 4}, rows);
    s.in.resize(1);
    s.in[0].type = s.out.type;
    (from < 0 ? s.in[0].pointer : s.in[0].value) = from < 0 ? 0 : from;
    s.row_count = row_count;
    return s;
  };
  cuda::FusedChain chain{240, {step(1, 1, -1), step(1, 1, 0), step(2, 1, 1), step(1, 11, 2), step(1, 1, 3)}};
  chain.steps.back().out.pointer = 12;
  const std::string source = cuda::fused_prelude() + cuda::fuse("limits", {&chain, 1}, 13, machine).source;
  EXPECT_EQ(compile(source), "");
  const auto declared = [&](const std::string& name) {
    std::size_t count = 0;
    for (std::size_t at = source.find("u64 " + name + " ="); at != source.npos;
         at = source.find("u64 " + name + " =", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(declared("rows1_4"), 1u);
  EXPECT_EQ(declared("rows1_8"), 1u);
  EXPECT_EQ(declared("rows11_4"), 1u);
}

TEST(Fusing, SourcesOfTheModelsCompile) {
  for (const std::string& path : models()) {
    SCOPED_TRACE(path);
    const std::string source = source_of(planned(path));
    EXPECT_EQ(source, source_of(planned(path)));
    EXPECT_EQ(compile(source), "");
    if (std::getenv("GRAPHRUN_PRINT") != nullptr) printf("%s\n", source.c_str());
  }
}

}  // namespace
}  // namespace graphrun::testing
