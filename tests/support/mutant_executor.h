// mutant_executor.h: an executor with one bug planted in one step, which a verifier must find.
// Contract: wraps another executor and runs its Program unchanged except for the step selected by the mutation. The bug
// is a modified kernel call (rewrite) or a change to the arena before or after it. Leaves to others: the list of bugs
// (executors/verify_mistakes_test.cpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun::test {

// Access of a mutation to the arena.
struct Hands {
  const Program& program;
  const Step& step;
  Runnable& runnable;
  std::uint64_t runs;  // earlier runs of this step

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
  std::function<bool(const Program&, const Step&)> pick = {};  // selects the first step for which it returns true
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
  std::unique_ptr<Runnable> load(const Program& program) override;  // throws std::logic_error if no step matches

  const Step& victim() const { return victim_; }  // unmodified, as in the Program; valid after load()

 private:
  std::shared_ptr<Executor> inner_;
  Mutation mutation_;
  Step victim_;
};

// Predicates for Mutation::pick: a step by name, the first of an op, the one that writes a state.
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

// Changes the step's output after it ran: f(vector of its elements).
template <class F>
Mutation after(Pick pick, F f) {
  return {std::move(pick), {}, {}, [f](const Hands& hands) { hands.change_output(f); }};
}

}  // namespace graphrun::test
