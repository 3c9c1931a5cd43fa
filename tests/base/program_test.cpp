#include "graphrun/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <stdexcept>

#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Buffer buffer(std::string name, TensorType type, BufferKind kind, BufferId storage, std::uint64_t offset) {
  Buffer b;
  b.name = std::move(name);
  b.type = type;
  b.kind = kind;
  b.storage = storage;
  b.offset = offset;
  b.bytes = type.bytes();
  return b;
}

// x (4, 2) @ W (2, 3), then relu in place, then the loss; written by hand.
Program sample() {
  Program p;
  p.name = "tiny";
  p.target = "host";
  p.arena_bytes = 2048;
  p.lower_bound = 1792;
  const TensorType rows{DType::f32, {4, 3}, 1};
  p.buffers = {
      buffer("x", {DType::f32, {4, 2}, 1}, BufferKind::data, 0, 0),
      buffer("W", {DType::f32, {2, 3}, 0}, BufferKind::parameter, 1, 256),
      buffer("step", {DType::u64, {}, 0}, BufferKind::counter, 2, 512),
      buffer("count", {DType::i32, {}, 0}, BufferKind::activation, 3, 768),
      buffer("z", rows, BufferKind::activation, 4, 1024),
      buffer("h", rows, BufferKind::activation, 4, 1024),
      buffer("loss", {DType::f32, {}, 0}, BufferKind::metric, 6, 1280),
      buffer("scratch", {}, BufferKind::workspace, 7, 1536),
  };
  p.buffers[6].poll = true;
  p.buffers[7].bytes = 512;
  Phase train;
  train.name = "train";
  train.capacity = 4;
  train.steps = {
      {Op::row_count, "count", {2}, 3, kNoBuffer, kNoBuffer, MinibatchParams{4, 4}},
      {Op::matmul, "h.matmul", {0, 1}, 4, 7, 3, MatmulParams{}},
      {*find_op("relu"), "h", {4}, 5, kNoBuffer, 3, NoParams{}},
      {Op::sum, "loss", {5}, 6, kNoBuffer, 3, ReduceParams{3, false}},
  };
  p.phases = {train};
  p.initial = {{1, bytes_of<float>({0.5, -1, 2, 0, 0, 0})}, {2, bytes_of<std::uint64_t>({0})}};
  return p;
}

TEST(ProgramText, Golden) {
  EXPECT_EQ(to_string(sample()),
            "program tiny for host\n"
            "arena 2048 bytes, lower bound 1792\n"
            "\n"
            "buffers\n"
            "  x#0: data f32(batch, 2), 32 bytes at 0\n"
            "  W#1: parameter f32(2, 3), 24 bytes at 256\n"
            "  step#2: counter u64(), 8 bytes at 512\n"
            "  count#3: activation i32(), 4 bytes at 768\n"
            "  z#4: activation f32(batch, 3), 48 bytes at 1024\n"
            "  h#5: activation f32(batch, 3), 48 bytes at 1024 in z#4\n"
            "  loss#6: metric f32(), 4 bytes at 1280, poll\n"
            "  scratch#7: workspace, 512 bytes at 1536\n"
            "\n"
            "phase train, batch 4\n"
            "  1. count#3 = row_count(step#2) total=4 capacity=4 shuffle=false key=0 drop_last=false\n"
            "  2. z#4 = matmul(x#0, W#1) transpose_a=false transpose_b=false rows=count#3 workspace=scratch#7"
            "  (h.matmul)\n"
            "  3. h#5 = relu(z#4) rows=count#3\n"
            "  4. loss#6 = sum(h#5) axes=3 keepdims=false rows=count#3\n"
            "\n"
            "initial values\n"
            "  W#1 = 0.5 -1 2 0 0 0\n"
            "  step#2 = 0\n");
}

TEST(ProgramText, InitialValuesAreShort) {
  Program p = sample();
  p.buffers[1].type.shape = {10};
  p.initial = {{1, bytes_of<float>({1, 1, 1, 1, 1, 1, 1, 1, 1, 1})}};
  EXPECT_NE(to_string(p).find("W#1 = 10 times 1\n"), std::string::npos);
  p.initial = {{1, bytes_of<float>({1, 1, 1, 1, 1, 1, 1, 1, 1, 2})}};
  EXPECT_NE(to_string(p).find("W#1 = 1 1 1 1 1 1 1 1 and 2 more\n"), std::string::npos);
}

TEST(ProgramText, BrokenProgramsPrint) {
  Program p = sample();
  p.phases[0].steps[1].inputs = {99, kNoBuffer};
  EXPECT_NE(to_string(p).find("matmul(?#99, none)"), std::string::npos);
}

TEST(Program, ComparesByValue) {
  Program p = sample();
  EXPECT_EQ(p, sample());
  p.phases[0].steps[1].params = MatmulParams{true, false};
  EXPECT_NE(p, sample());
}

TEST(Program, FindBuffer) {
  EXPECT_EQ(find_buffer(sample(), "loss"), 6u);
  EXPECT_EQ(find_buffer(sample(), "los"), kNoBuffer);
}

TEST(Program, FindPhase) {
  EXPECT_EQ(find_phase(sample(), "train"), 0u);
  try {
    find_phase(sample(), "trian");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "program 'tiny' has no phase 'trian'; its phases are train\n    hint: did you mean 'train'?");
  }
}

TEST(Program, ThePollBlockSpansThePolledBuffers) {
  Program p = sample();
  EXPECT_EQ(poll_block(p).bytes, 4u);
  p.buffers[4].poll = true;
  p.buffers[5].poll = true;  // the same bytes as 4
  const std::uint64_t first = std::min(poll_block(sample()).offset, p.buffers[4].offset);
  EXPECT_EQ(poll_block(p).offset, first);
  EXPECT_GE(poll_block(p).bytes, 52u);
  for (Buffer& b : p.buffers) b.poll = false;
  EXPECT_EQ(poll_block(p).bytes, 0u);
}

// ---- check

std::string broken(const std::function<void(Program&)>& change) {
  Program p = sample();
  change(p);
  try {
    check(p);
  } catch (const Error& error) {
    return error.what();
  }
  return "kept";
}

// The name between the first quotes.
std::string rule(const std::function<void(Program&)>& change) {
  const std::string text = broken(change);
  const std::size_t begin = text.find('\'');
  return begin == std::string::npos ? text : text.substr(begin + 1, text.find('\'', begin + 1) - begin - 1);
}

TEST(ProgramCheck, TheSampleKeepsAllRules) {
  EXPECT_NO_THROW(check(sample()));
  EXPECT_NO_THROW(check(Program{}));
}

TEST(ProgramCheck, MessagesNameRuleAndBuffer) {
  EXPECT_EQ(broken([](Program& p) { p.buffers[1].offset = 300; }),
            "program breaks rule 'alignment': buffer W#1 begins at 300, no multiple of 256");
  EXPECT_EQ(
      broken([](Program& p) { p.buffers[6].offset = 1024; }),
      "program breaks rule 'in_place': phase 'train', step 4 (loss) writes buffer loss#6 over its input buffer h#5");
  EXPECT_EQ(broken([](Program& p) { p.phases[0].steps[1].inputs.pop_back(); }),
            "program breaks rule 'step': phase 'train', step 2 (h.matmul): matmul: it takes 2 operands, 1 are given");
}

TEST(ProgramCheck, Buffers) {
  EXPECT_EQ(rule([](Program& p) { p.arena_bytes = 1900; }), "inside_arena");
  EXPECT_EQ(rule([](Program& p) { p.buffers[7].bytes = ~0ull; }), "inside_arena");  // no overflow
  EXPECT_EQ(rule([](Program& p) { p.buffers[7].offset = ~0ull - 255; }), "inside_arena");
  EXPECT_EQ(rule([](Program& p) { p.lower_bound = 4096; }), "lower_bound");
  EXPECT_EQ(rule([](Program& p) { p.buffers[0].type.shape[1] = -2; }), "extent");
  EXPECT_EQ(rule([](Program& p) { p.buffers[6].type.rows = 1; }), "rows");
  EXPECT_EQ(rule([](Program& p) { p.buffers[1].bytes = 20; }), "bytes");
  EXPECT_EQ(rule([](Program& p) { p.buffers[1].kind = static_cast<BufferKind>(200); }), "enumerators");
  EXPECT_EQ(rule([](Program& p) { p.buffers[1].type.dtype = static_cast<DType>(5); }), "enumerators");
  EXPECT_EQ(rule([](Program& p) { p.math = static_cast<MathMode>(2); }), "enumerators");
  EXPECT_EQ(rule([](Program& p) { p.buffers[1].layout = Layout::vectors; }), "layout");
}

TEST(ProgramCheck, Codes) {
  const auto in_codes = [](Program& p) {
    p.arena_bytes = 2304;
    p.buffers[0].kind = BufferKind::activation;
    p.buffers.push_back(buffer("data", {DType::f32, {8, 2}, 0}, BufferKind::data, 8, 2048));
    p.buffers[8].layout = Layout::codes, p.buffers[8].divisor = 255, p.buffers[8].bytes = 16;
    MinibatchParams batches{8, 4};
    batches.divisor = 255;
    p.phases[0].steps.insert(p.phases[0].steps.begin(), {Op::minibatch, "x", {8, 2}, 0, kNoBuffer, kNoBuffer, batches});
  };
  const auto changed = [&](auto change) { return rule([&](Program& p) { in_codes(p), change(p); }); };
  EXPECT_EQ(changed([](Program&) {}), "kept");
  EXPECT_EQ(changed([](Program& p) { p.buffers[8].bytes *= 4; }), "bytes");
  EXPECT_EQ(changed([](Program& p) { p.buffers[8].divisor = 0; }), "layout");
  EXPECT_EQ(changed([](Program& p) { p.buffers[8].divisor = 1; }), "layout");
  EXPECT_EQ(changed([](Program& p) { p.buffers[8].layout = Layout::rows, p.buffers[8].bytes *= 4; }), "layout");
  EXPECT_EQ(changed([](Program& p) { p.phases[0].steps[0].params.as<MinibatchParams>().divisor = 0; }), "layout");
  EXPECT_EQ(changed([](Program& p) { p.phases[0].steps[0].params.as<MinibatchParams>().divisor = -1; }), "step");
  EXPECT_EQ(changed([](Program& p) { p.buffers[8].poll = true; }), "layout");
  EXPECT_EQ(changed([](Program& p) { p.phases[0].steps[2].inputs[1] = 8; }), "step");  // not the weights
  EXPECT_EQ(changed([](Program& p) {
              p.buffers.push_back(buffer("shown", {DType::f32, {4}, 0}, BufferKind::data, 8, 2048));
            }),
            "layout");
  EXPECT_EQ(rule([](Program& p) { p.phases[0].steps[0].params.as<MinibatchParams>().divisor = 255; }), "layout");
}

TEST(ProgramCheck, Storage) {
  EXPECT_EQ(rule([](Program& p) { p.buffers[5].storage = 8; }), "storage");
  EXPECT_EQ(rule([](Program& p) { p.buffers[5].storage = kNoBuffer; }), "storage");
  EXPECT_EQ(rule([](Program& p) { p.buffers[4].storage = 5; }), "storage");  // a circle: 4 in 5, 5 in 4
  EXPECT_EQ(rule([](Program& p) { p.buffers[5].offset = 1028; }), "inside_storage");
  EXPECT_EQ(rule([](Program& p) { p.buffers[5].offset = 1020; }), "inside_storage");
  EXPECT_EQ(rule([](Program& p) {
              p.buffers[5].type.shape = {4, 2}, p.buffers[5].bytes = 32, p.buffers[5].offset = 1030;
            }),
            "alignment");
  EXPECT_EQ(rule([](Program& p) { p.buffers[5].kind = BufferKind::slot; }), "state");
  // A view of a view is sound, and a view need not begin where its storage does.
  EXPECT_EQ(rule([](Program& p) {
              p.buffers.push_back(buffer("v", {DType::f32, {2}, 0}, BufferKind::activation, 5, 1028));
            }),
            "kept");
}

TEST(ProgramCheck, Steps) {
  const auto step = [](std::size_t i, const std::function<void(Step&)>& change) {
    return rule([&](Program& p) { change(p.phases[0].steps[i]); });
  };
  EXPECT_EQ(step(1, [](Step& s) { s.op = {}; }), "op");
  EXPECT_EQ(step(1, [](Step& s) { s.inputs[1] = 8; }), "operand");
  EXPECT_EQ(step(1, [](Step& s) { s.inputs[1] = kNoBuffer; }), "operand");
  EXPECT_EQ(step(1, [](Step& s) { s.output = kNoBuffer; }), "operand");
  EXPECT_EQ(step(1, [](Step& s) { s.workspace = 8; }), "operand");
  EXPECT_EQ(step(1, [](Step& s) { s.row_count = 8; }), "operand");
  EXPECT_EQ(step(1, [](Step& s) { s.workspace = 6; }), "workspace");
  EXPECT_EQ(step(1, [](Step& s) { s.row_count = 6; }), "row_count");  // f32
  EXPECT_EQ(step(2, [](Step& s) { s.output = 0; }), "read_only");
  EXPECT_EQ(rule([](Program& p) { p.buffers[7].offset = 1024; }), "workspace");  // over the output
  EXPECT_EQ(rule([](Program& p) { p.buffers[3].offset = 1024; }), "in_place");   // the row count under the output
  EXPECT_EQ(step(2, [](Step& s) { s.output = 4; }), "kept");                     // the very same buffer
  EXPECT_EQ(step(1, [](Step& s) { s.op = static_cast<Op>(9999); }), "op");       // no op at all
  EXPECT_EQ(step(1, [](Step& s) { s.inputs = {0, 7}; }), "operand");             // a workspace
  EXPECT_EQ(step(1, [](Step& s) { s.inputs.clear(); }), "step");
  EXPECT_EQ(step(1, [](Step& s) { s.params = NoParams{}; }), "step");
  EXPECT_EQ(step(1, [](Step& s) { s.inputs = {1, 0}; }), "step");
  EXPECT_EQ(step(0, [](Step& s) { s.params.as<MinibatchParams>().total = -1; }), "step");
  EXPECT_EQ(step(3, [](Step& s) { s.params.as<ReduceParams>().axes = 1u << 31; }), "step");
}

TEST(ProgramCheck, Phases) {
  EXPECT_EQ(rule([](Program& p) { p.phases[0].name = ""; }), "phase_name");
  EXPECT_EQ(rule([](Program& p) { p.phases.push_back(p.phases[0]); }), "phase_name");
  EXPECT_EQ(rule([](Program& p) { p.phases[0].capacity = -1; }), "capacity");
  EXPECT_EQ(rule([](Program& p) { p.phases[0].capacity = 5; }), "capacity");
}

TEST(ProgramCheck, InitialValues) {
  EXPECT_EQ(rule([](Program& p) { p.initial[0].buffer = 8; }), "initial");
  EXPECT_EQ(rule([](Program& p) { p.initial[0].buffer = 4; }), "initial");
  EXPECT_EQ(rule([](Program& p) { p.initial[0].bytes.pop_back(); }), "initial");
  EXPECT_EQ(rule([](Program& p) { p.initial.push_back(p.initial[0]); }), "initial");
}

}  // namespace
}  // namespace graphrun
