// Whole models on each executor, compared with the reference and with repeated runs, to find errors that single steps
// do not show. An executor that does not support a step of a model skips that model.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "conformance/suite.h"
#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/verify.h"
#include "session/compiling/compiled_model.h"
#include "support/graph_run.h"

namespace graphrun::test {
namespace {

using Machine = std::shared_ptr<Executor>;
using Bytes = std::vector<std::byte>;
constexpr std::uint64_t kSteps = 5;  // past the end of an epoch of both models
constexpr double kFarOff = 1e-3;     // tolerance after a few recorded steps; verify compares value by value

// ---- verifier: every step alone, regions and whole phases with their predictions of full and partial batches, and
// many steps in one run()

void check_verified(const Machine& machine, const Model& model) {
  VerifyOptions options;
  options.custom_executor = machine;
  const VerifyReport report = verify(model, options);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  EXPECT_GE(report.predictions, 2u);
  EXPECT_GT(report.training_steps, 0u);
}

// ---- a Program loaded here

struct Loaded {
  Loaded(const Machine& machine, const Model& model)
      : compiled(compile_model(model, {&machine, 1}, plan_options({}))), runnable(machine->load(compiled.program)) {
    write_start(model, compiled, {runnable.get()});
  }
  const std::vector<Buffer>& buffers() const { return compiled.program.buffers; }
  Bytes read(BufferId id) const {
    Bytes bytes(buffers()[id].type.bytes());
    runnable->read(id, bytes);
    return bytes;
  }

  CompiledModel compiled;
  std::unique_ptr<Runnable> runnable;
};

void check_two_loads(const Machine& machine, const Model& model) {
  std::vector<Bytes> alone;
  const auto states = [](const Loaded& of) {
    std::vector<Bytes> all;
    for (BufferId id = 0; id < of.buffers().size(); ++id)
      if (of.buffers()[id].storage == id && is_state(of.buffers()[id].kind)) all.push_back(of.read(id));
    return all;
  };
  {
    const Loaded one(machine, model);
    one.runnable->run(0, kSteps);
    alone = states(one);
  }
  const Loaded a(machine, model), b(machine, model);
  a.runnable->run(0, 2);
  b.runnable->run(0, 1);
  a.runnable->run(0, kSteps - 2);
  b.runnable->run(0, kSteps - 1);
  EXPECT_EQ(states(a), alone) << "two loads take turns: the first leaves something else than one alone";
  EXPECT_EQ(states(b), alone) << "two loads take turns: the second leaves something else than one alone";

  const Loaded c(machine, model), d(machine, model);
  std::thread other([&] { c.runnable->run(0, kSteps); });
  d.runnable->run(0, kSteps);
  other.join();
  EXPECT_EQ(states(c), alone) << "two loads run at once: the first leaves something else than one alone";
  EXPECT_EQ(states(d), alone) << "two loads run at once: the second leaves something else than one alone";
}

void check_rows(const Machine& machine, const Model& model) {
  const Loaded it(machine, model);
  std::size_t tried = 0;
  for (BufferId id = 0; id < it.buffers().size(); ++id) {
    const Buffer& buffer = it.buffers()[id];
    const Shape& shape = buffer.type.shape;
    if (!is_state(buffer.kind) || buffer.storage != id || buffer.layout != graphrun::Layout::rows || shape.rank() == 0)
      continue;
    const std::int64_t rows = shape[0];
    if (rows < 2 || buffer.bytes == 0) continue;
    const std::size_t row = buffer.bytes / static_cast<std::size_t>(rows);
    for (const auto& [first, count] :
         {std::pair<std::int64_t, std::int64_t>{rows - 1, 1}, {0, 1}, {rows / 2, rows - rows / 2}}) {
      const Bytes before = it.read(id);
      Bytes expected = before, written(row * static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::byte>(i % 97);
      const auto at = static_cast<std::ptrdiff_t>(row) * first;
      std::copy(written.begin(), written.end(), expected.begin() + at);
      it.runnable->write_rows(id, first, written);
      EXPECT_EQ(it.read(id), expected) << "rows " << first << " to " << first + count - 1 << " of " << buffer.name;
      Bytes part(written.size());
      it.runnable->read_range(id, static_cast<std::uint64_t>(at), part);
      EXPECT_EQ(part, written) << "read back from byte " << at << " of " << buffer.name;
      it.runnable->write(id, before);
      EXPECT_EQ(it.read(id), before) << buffer.name << " was written whole";
    }
    ++tried;
  }
  EXPECT_GT(tried, 2u);
}

void check_polled(const Machine& machine, const Model& model) {
  const Loaded it(machine, model), reference(executor("ref"), model);
  it.runnable->run(0, kSteps);
  reference.runnable->run(0, kSteps);
  std::size_t polled = 0;
  for (BufferId id = 0; id < it.buffers().size(); ++id) {
    const Buffer& buffer = it.buffers()[id];
    if (!buffer.poll) continue;
    ++polled;
    const BufferId same = find_buffer(reference.compiled.program, buffer.name);
    ASSERT_NE(same, kNoBuffer) << buffer.name;
    const Bytes got = it.read(id), expected = reference.read(same);
    ASSERT_EQ(got.size(), expected.size());
    if (buffer.type.dtype != DType::f32) {
      EXPECT_EQ(got, expected) << buffer.name << ", which the host polls";
      continue;
    }
    for (std::size_t i = 0; i < got.size(); i += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, &got[i], sizeof a);
      std::memcpy(&b, &expected[i], sizeof b);
      EXPECT_NEAR(a, b, kFarOff * std::fmax(1, std::fabs(b)))
          << "element " << i / sizeof(float) << " of " << buffer.name << ", which the host polls";
    }
  }
  EXPECT_GT(polled, 0u);
}

struct Check {
  std::string_view name;
  void (*run)(const Machine&, const Model&);
};
constexpr Check kChecks[] = {
    {"verify", check_verified}, {"two_loads", check_two_loads}, {"rows", check_rows}, {"poll", check_polled}};

struct TestedModel {
  std::string_view name;
  Model (*make)();
};
constexpr TestedModel kModels[] = {{"small", [] { return verified_model(); }},
                                   {"classes", [] { return classifier(); }}};

}  // namespace

void register_runs() {
  for (const auto& [name, machine] : tested_executors()) {
    for (const TestedModel& model : kModels) {
      for (const Check& check : kChecks) {
        register_test("Runs", fmt::format("{}/{}/{}", name, model.name, check.name), __FILE__, __LINE__,
                      [machine = machine, make = model.make, run = check.run] {
                        try {
                          run(machine, make());
                        } catch (const Error& error) {
                          if (error.diagnostics().front().code != "step.unsupported") throw;
                          GTEST_SKIP() << error.diagnostics().front().message;
                        }
                      });
      }
    }
  }
}

}  // namespace graphrun::test
