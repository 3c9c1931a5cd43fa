// Test of the suite itself: ref with one injected fault at a time, which check_values() must report. A suite that no
// executor can fail is worthless.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "conformance/suite.h"
#include "support/graph_run.h"

namespace graphrun::test {
namespace {

// Changes memory after each run.
using Fault = std::function<void(Runnable& inner, const Program& program, int run)>;

class FaultyRunnable final : public Runnable {
 public:
  FaultyRunnable(std::unique_ptr<Runnable> inner, const Program& program, const Fault& fault)
      : inner_(std::move(inner)), program_(program), fault_(fault) {}
  void write(BufferId buffer, std::span<const std::byte> bytes) override { inner_->write(buffer, bytes); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { inner_->read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    inner_->read_range(buffer, first, bytes);
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    inner_->write_rows(buffer, first, bytes);
  }
  void run(PhaseId phase, std::uint64_t n) override {
    inner_->run(phase, n);
    fault_(*inner_, program_, ++runs_);
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    inner_->run_steps(phase, first, last);
  }

 private:
  std::unique_ptr<Runnable> inner_;
  Program program_;
  Fault fault_;
  int runs_ = 0;
};

class FaultyExecutor final : public Executor {
 public:
  explicit FaultyExecutor(Fault fault) : fault_(std::move(fault)) {}
  std::string_view name() const override { return "faulty"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override {
    return executor("ref")->supports(step, target);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    return std::make_unique<FaultyRunnable>(executor("ref")->load(program), program, fault_);
  }

 private:
  Fault fault_;
};

void set_float(Runnable& inner, const Program& program, BufferId id, std::size_t element, float value) {
  std::vector<std::byte> bytes(program.buffers[id].bytes);
  inner.read(id, bytes);
  std::memcpy(bytes.data() + element * sizeof(float), &value, sizeof(float));
  inner.write(id, bytes);
}

BufferId output(const Program& program) {
  return program.phases[0].steps[0].output;
}

// All failures that check_values() reports for the sample on ref with that fault.
std::string complaints(const Sample& sample, Fault fault) {
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    check_values(std::make_shared<FaultyExecutor>(std::move(fault)), sample);
  }
  std::string text;
  for (int i = 0; i < failures.size(); ++i) text += failures.GetTestPartResult(i).message();
  return text;
}

Sample rows_sample() {
  return {.op = "exp",
          .name = "self_test",
          .operands = {{rows_f32({5, 3})}},
          .tolerance = {1, 0},
          .capacity = 5,
          .count = 3};
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

TEST(SelfTest, WithoutAFaultThereIsNoComplaint) {
  EXPECT_EQ(complaints(rows_sample(), [](Runnable&, const Program&, int) {}), "");
}

TEST(SelfTest, AWrongValueIsFound) {
  EXPECT_TRUE(contains(complaints(rows_sample(), [](Runnable& inner, const Program& program,
                                                    int) { set_float(inner, program, output(program), 4, 0.5f); }),
                       "element 4: 0.5 instead of"));
}

TEST(SelfTest, AStrayRowIsFound) {
  EXPECT_TRUE(contains(complaints(rows_sample(),
                                  [](Runnable& inner, const Program& program, int) {
                                    set_float(inner, program, output(program), 9, 1);  // exp(0) of an excess row
                                  }),
                       "the batch has 3 samples"));
}

TEST(SelfTest, ADroppedNanIsFound) {
  Sample sample{
      .op = "relu", .name = "self_test", .operands = {{f32({2}), 0, 0, {1, std::numeric_limits<double>::quiet_NaN()}}}};
  sample.nan_spreads = true;
  EXPECT_TRUE(contains(complaints(sample, [](Runnable& inner, const Program& program,
                                             int) { set_float(inner, program, output(program), 1, 0); }),
                       "although an operand is NaN"));
}

TEST(SelfTest, ARunThatDiffersIsFound) {
  EXPECT_TRUE(contains(complaints(rows_sample(),
                                  [](Runnable& inner, const Program& program, int run) {
                                    if (run == 2) set_float(inner, program, output(program), 0, 1);
                                  }),
                       "a second run gives other bytes"));
}

TEST(SelfTest, AWrittenOperandIsFound) {
  EXPECT_TRUE(contains(
      complaints(rows_sample(), [](Runnable& inner, const Program& program,
                                   int) { set_float(inner, program, program.phases[0].steps[0].inputs[0], 2, 7); }),
      "operand 0 was written"));
}

TEST(SelfTest, AByteBeforeOrAfterTheResultIsFound) {
  for (const bool before : {true, false}) {
    EXPECT_TRUE(contains(complaints(rows_sample(),
                                    [before](Runnable& inner, const Program& program, int) {
                                      const Buffer& result = program.buffers[output(program)];
                                      for (BufferId id = 0; id < program.buffers.size(); ++id) {
                                        const Buffer& guard = program.buffers[id];
                                        if (guard.name.rfind("guard_", 0) != 0) continue;
                                        const bool here = before ? guard.offset + guard.bytes == result.offset
                                                                 : result.offset + result.bytes == guard.offset;
                                        if (!here) continue;
                                        std::vector<std::byte> bytes(guard.bytes);
                                        inner.read(id, bytes);
                                        (before ? bytes.back() : bytes.front()) = std::byte{0};
                                        inner.write(id, bytes);
                                      }
                                    }),
                         before ? "before exp_1" : "after exp_1"));
  }
}

}  // namespace
}  // namespace graphrun::test
