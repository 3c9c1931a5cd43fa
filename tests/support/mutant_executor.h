// mutant_executor.h: an executor with one mistake planted in one step: what a verifier has to find.
// Contract: wraps another executor and runs its Program as that does, but for the step that the mutation picks. The
// mistake is a changed call of the kernel (rewrite), or what is done to the arena around the call (before, after).
// Leaves to others: which mistakes there are (executors/verify_mistakes_test.cpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun::test {

// The arena in the hands of a mutation.
struct Hands {
  const Program& program;
  const Step& step;
  Runnable& runnable;
  std::uint64_t runs;  // of this step before this one

  std::vector<std::byte> bytes(BufferId id) const;
  void write(BufferId id, const std::vector<std::byte>& bytes) const { runnable.write(id, bytes); }
  template <class T>
  std::vector<T> read(BufferId id) const {
    std::vector<T> values(program.buffers[id].bytes / sizeof(T));
    runnable.read(id, std::as_writable_bytes(std::span(values)));
    return values;
  }
  template <class T>
  void write(BufferId id, const std::vector<T>& values) const {
    runnable.write(id, std::as_bytes(std::span(values)));
  }
  // Changes the step's output through f(vector of its elements).
  template <class T = float, class F>
  void change_output(F f) const {
    std::vector<T> values = read<T>(step.output);
    f(values);
    write(step.output, values);
  }
  std::int32_t rows() const;  // in this batch
};

struct Mutation {
  std::function<bool(const Program&, const Step&)> pick = {};  // the first step for which it is true
  std::function<void(Step&)> rewrite = {};
  std::function<void(const Hands&)> before = {}, after = {};
};

class MutantExecutor final : public Executor {
 public:
  MutantExecutor(std::shared_ptr<Executor> inner, Mutation mutation)
      : inner_(std::move(inner)), mutation_(std::move(mutation)) {}

  std::string_view name() const override { return "mutant"; }
  std::string_view default_target() const override { return inner_->default_target(); }
  Support supports(const StepSignature& step, const Target& target) const override {
    return inner_->supports(step, target);
  }
  std::unique_ptr<Runnable> load(const Program& program) override;  // throws std::logic_error when no step is picked

  const Step& victim() const { return victim_; }  // as the Program has it; after load()

 private:
  std::shared_ptr<Executor> inner_;
  Mutation mutation_;
  Step victim_;
};

// What a mutation may pick: a step of a name, the first of an op, the one that writes a state.
using Pick = std::function<bool(const Program&, const Step&)>;
inline Pick named(std::string name) {
  return [name](const Program&, const Step& step) { return step.name == name; };
}
inline Pick first(Op op) {
  return [op](const Program&, const Step& step) { return step.op == op; };
}
inline Pick writes(std::string state) {
  return [state](const Program& program, const Step& step) {
    return program.buffers[program.buffers[step.output].storage].name == state;
  };
}

// Changes what the step wrote: f(vector of its elements).
template <class F>
Mutation after(Pick pick, F f) {
  return {std::move(pick), {}, {}, [f](const Hands& hands) { hands.change_output(f); }};
}

}  // namespace graphrun::test
