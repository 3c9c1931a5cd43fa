#include "support/mutant_executor.h"

#include <stdexcept>

namespace graphrun::test {
namespace {

class MutantRunnable final : public Runnable {
 public:
  MutantRunnable(Program program, std::unique_ptr<Runnable> inner, const Mutation& mutation, PhaseId phase,
                 std::uint32_t step)
      : program_(std::move(program)), inner_(std::move(inner)), mutation_(mutation), phase_(phase), step_(step) {}

  void write(BufferId buffer, std::span<const std::byte> bytes) override { inner_->write(buffer, bytes); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { inner_->read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    inner_->read_range(buffer, first, bytes);
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    inner_->write_rows(buffer, first, bytes);
  }

  void run(PhaseId phase, std::uint64_t n) override {
    const auto steps = static_cast<std::uint32_t>(program_.phases.at(phase).steps.size());
    for (std::uint64_t i = 0; i < n; ++i) run_steps(phase, 0, steps);
  }

  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    for (std::uint32_t i = first; i < last; ++i) {
      const bool here = phase == phase_ && i == step_;
      const Hands hands{program_, program_.phases.at(phase).steps.at(i), *inner_, runs_};
      if (here && mutation_.before) mutation_.before(hands);
      inner_->run_steps(phase, i, i + 1);
      if (here && mutation_.after) mutation_.after(hands);
      if (here) ++runs_;
    }
  }

 private:
  Program program_;
  std::unique_ptr<Runnable> inner_;
  Mutation mutation_;
  PhaseId phase_;
  std::uint32_t step_;
  std::uint64_t runs_ = 0;
};

}  // namespace

std::vector<std::byte> Hands::bytes(BufferId id) const {
  std::vector<std::byte> bytes(program.buffers[id].bytes);
  runnable.read(id, bytes);
  return bytes;
}

std::int32_t Hands::rows() const {
  return read<std::int32_t>(step.row_count)[0];
}

std::unique_ptr<Runnable> MutantExecutor::load(const Program& program) {
  for (PhaseId phase = 0; phase < program.phases.size(); ++phase) {
    const std::vector<Step>& steps = program.phases[phase].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (!mutation_.pick(program, steps[i])) continue;
      victim_ = steps[i];
      Program changed = program;
      if (mutation_.rewrite) mutation_.rewrite(changed.phases[phase].steps[i]);
      std::unique_ptr<Runnable> inner = inner_->load(changed);
      return std::make_unique<MutantRunnable>(program, std::move(inner), mutation_, phase, i);
    }
  }
  throw std::logic_error("MutantExecutor: no step is picked");
}

}  // namespace graphrun::test
