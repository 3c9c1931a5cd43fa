#include "session/not_finite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/frontend/library/optimizers.h"
#include "graph/ops/op_def.h"
#include "graphrun/elements.h"
#include "graphrun/op.h"
#include "session/compiling/jit.h"

namespace graphrun {
namespace {

std::string plain_name(const std::string& name) {
  return name.starts_with("train/") ? name.substr(6) : name;
}

std::optional<std::size_t> first_not_finite(const HostTensor& tensor) {
  if (!is_float(tensor.dtype())) return std::nullopt;
  return with_elements(tensor, [](const auto all) -> std::optional<std::size_t> {
    const auto found = std::ranges::find_if(all, [](auto x) { return !std::isfinite(static_cast<double>(x)); });
    if (found == all.end()) return std::nullopt;
    return static_cast<std::size_t>(found - all.begin());
  });
}

// Returns "h[2, 0]", or "h" for a scalar.
std::string element_name(const std::string& name, const Shape& shape, std::size_t i) {
  return shape.rank() == 0 ? name : fmt::format("{}[{}]", name, fmt::join(index_of(shape, i), ", "));
}

// Operand element that is broadcast to element i of the result.
std::size_t operand_element(const Shape& operand, const Shape& result, std::size_t i) {
  const std::vector<std::int64_t> index = index_of(result, i);
  const int missing = result.rank() - operand.rank();
  std::int64_t at = 0;
  for (int axis = 0; axis < operand.rank(); ++axis) {
    const std::int64_t own = operand[axis] == 1 ? 0 : index[static_cast<std::size_t>(axis + missing)];
    at = at * operand[axis] + own;
  }
  return static_cast<std::size_t>(at);
}

double element(const HostTensor& tensor, std::size_t i) {
  return with_elements(tensor, [&](auto all) { return static_cast<double>(all[i]); });
}

std::string range_text(const HostTensor& tensor) {
  return with_elements(tensor, [&](auto all) {
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    if (all.size() == 1) return fmt::format("= {}", *least);
    return fmt::format("from {} to {}", *least, *most);
  });
}

std::string hint_for(std::string_view op, DType dtype, const Model& model) {
  struct Hint {
    std::string_view op, text;
  };
  static constexpr std::string_view kLog =
      "log(0) is -inf and the log of a negative number is NaN: use log(x + 1e-7), or a loss that takes logits";
  static constexpr std::string_view kDivision = "division by 0: add a small number to the divisor";
  static constexpr std::string_view kExp =
      "exp(x) overflows f32 for x > 88.7 and f64 for x > 709.7: subtract the maximum first, as softmax and logsumexp "
      "do, or clip x";
  static constexpr Hint kHints[] = {
      {"log", kLog},
      {"log1p", kLog},
      {"div", kDivision},
      {"reciprocal", kDivision},
      {"rsqrt", "1 / sqrt(0) is inf and the root of a negative number is NaN: use rsqrt(x + 1e-7)"},
      {"sqrt", "the root of a negative number is NaN: use sqrt(relu(x)) or sqrt(abs(x))"},
      {"exp", kExp},
      {"expm1", kExp},
      {"pow", "0 to a negative power is inf, and a negative number to a fractional power is NaN"},
  };
  for (const Hint& hint : kHints) {
    if (hint.op == op) return std::string(hint.text);
  }
  return fmt::format("too large for {}: {}", name_of(dtype), hint_for_large(model));
}

// One training step of a loaded program, run in pieces.
class StepRun {
 public:
  StepRun(const CompiledModel& compiled, Runnable& runnable)
      : program_(compiled.program),
        runnable_(runnable),
        phase_id_(find_phase(program_, "train")),
        phase_(program_.phases[phase_id_]) {}

  const Program& program() const { return program_; }
  const std::vector<Step>& steps() const { return phase_.steps; }
  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  const std::vector<Region>& regions() const { return phase_.regions; }
  void run(std::uint32_t first, std::uint32_t last) { runnable_.run_steps(phase_id_, first, last); }

  // Matches states by name, which is the same in every program of a model.
  void rewind(const Program& other, const StateCopy& states) {
    for (std::size_t i = 0; i < states.buffers().size(); ++i)
      runnable_.write(find_buffer(program_, other.buffers[states.buffers()[i]].name), states.bytes(i));
  }
  HostTensor read(BufferId id) {
    HostTensor tensor(buffer(id).type.dtype, buffer(id).type.shape);
    runnable_.read(id, tensor.bytes());
    return tensor;
  }
  bool bad(BufferId id) {
    const Buffer& one = buffer(id);
    const bool readable = one.kind != BufferKind::tile && one.layout != Layout::registers;
    return readable && is_float(one.type.dtype) && first_not_finite(read(id)).has_value();
  }
  BufferId root(BufferId id) const { return storage_root(program_, id); }

 private:
  const Program& program_;
  Runnable& runnable_;
  PhaseId phase_id_;
  const Phase& phase_;
};

class Trace {
 public:
  Trace(const Model& model, const CompiledModel& plain, Runnable& runnable, const Program& fused,
        const StateCopy& states)
      : model_(model), plain_(plain), step_(plain, runnable), fused_(fused), states_(states) {}

  std::optional<Diagnostic> run() {
    std::optional<std::uint32_t> at = first_to_describe();
    if (!at) return std::nullopt;
    for (;;) {
      rewind(*at);
      std::optional<BufferId> from = bad_input(*at);
      if (!from) return describe(*at);
      const std::optional<std::uint32_t> writer = writer_of(*from, *at);
      if (!writer) return describe_state(*from);
      at = writer;
    }
  }

 private:
  const Step& step(std::uint32_t i) const { return step_.steps()[i]; }

  void rewind(std::uint32_t to) {
    step_.rewind(fused_, states_);
    if (to > 0) step_.run(0, to);
  }

  // First step that makes the loss or a parameter non-finite.
  std::optional<std::uint32_t> first_to_describe() {
    const BufferId ring = plain_.buffer(plain_.step.phases[0].recorded[0].ring);
    rewind(0);
    for (std::uint32_t i = 0; i < step_.steps().size(); ++i) {
      const bool records = step(i).op == Op::record && step_.root(step(i).inputs[0]) == step_.root(ring);
      if (records && step_.bad(step(i).inputs[1])) return i;
      step_.run(i, i + 1);
      const bool updates = step_.buffer(step_.root(step(i).output)).kind == BufferKind::parameter;
      if (updates && step_.bad(step(i).output)) return i;
    }
    return std::nullopt;
  }

  // Non-finite input that was written first; states and data precede all steps.
  std::optional<BufferId> bad_input(std::uint32_t at) {
    std::optional<BufferId> earliest;
    for (std::size_t i = 0; i < step(at).inputs.size(); ++i) {
      const BufferId input = step(at).inputs[i];
      if (step(at).op == Op::record && i == 0) continue;  // values of earlier steps
      if (!step_.bad(input)) continue;
      if (!earliest || writer_of(input, at) < writer_of(*earliest, at)) earliest = input;
    }
    return earliest;
  }

  std::optional<std::uint32_t> writer_of(BufferId input, std::uint32_t before) const {
    for (std::uint32_t i = before; i-- > 0;) {
      if (step_.root(step(i).output) == step_.root(input)) return i;
    }
    return std::nullopt;
  }

  // With a batch of all rows, the column is the data itself, "train/x".
  bool is_column(const std::string& name, const std::string& column) const {
    const Split* train = model_.data.find("train");
    return train != nullptr && name == "train/" + column &&
           std::any_of(train->columns.begin(), train->columns.end(), [&](const auto& c) { return c.first == column; });
  }

  Diagnostic describe_state(BufferId id) {
    const HostTensor values = step_.read(id);
    const std::size_t i = *first_not_finite(values);
    const std::string& name = step_.buffer(id).name;
    Diagnostic cause;
    const std::vector<std::int64_t> index = index_of(values.shape(), i);
    const std::string column = name.substr(name.rfind('/') + 1);
    if (name.starts_with("data/") || is_column(name, column)) {
      cause.message = fmt::format("it began in the data: {} of the split train is {}",
                                  element_name(column, values.shape(), i), unsigned_nan(element(values, i)));
      cause.hint =
          "rows count from 0; leave such rows out or put numbers in their place; \"missing\" next to a data source "
          "does it for tables";
    } else {
      cause.message = fmt::format("it began in the state {}, which is {} before the step",
                                  element_name(name, values.shape(), i), unsigned_nan(element(values, i)));
      cause.hint = hint_for("", values.dtype(), model_);
    }
    return cause;
  }

  // Call before the step runs.
  Diagnostic describe(std::uint32_t at) {
    const Step& one = step(at);
    std::vector<HostTensor> inputs;
    for (const BufferId id : one.inputs) inputs.push_back(step_.read(id));
    step_.run(at, at + 1);
    const HostTensor result = step_.read(one.output);
    const std::optional<std::size_t> i = first_not_finite(result);
    Diagnostic cause;
    const bool by_element = op_def(one.op).rows == RowRule::elementwise && i.has_value();
    std::string operands;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::string name = plain_name(step_.buffer(one.inputs[k]).name);
      operands += k == 0 ? "" : ", ";
      if (by_element && inputs[k].shape().elements() > 0) {
        const std::size_t j = operand_element(inputs[k].shape(), result.shape(), *i);
        operands += fmt::format("{} = {}", element_name(name, inputs[k].shape(), j), number_text(inputs[k], j));
      } else {
        operands += fmt::format("{} {}", name, range_text(inputs[k]));
      }
    }
    const std::string value = i ? number_text(result, *i) : std::string("not finite");
    cause.message = fmt::format("it began with the op {}: {} is {}; operands: {}", name_of(one.op),
                                element_name(plain_name(one.name), result.shape(), i.value_or(0)), value, operands);
    cause.hint = hint_for(name_of(one.op), result.dtype(), model_);
    place(one.name, cause);
    return cause;
  }

  static std::string number_text(const HostTensor& tensor, std::size_t i) {
    return with_elements(tensor, [&](const auto all) { return fmt::format("{}", unsigned_nan(all[i])); });
  }

  // Adds the node's position in the model file; for gradients and updates, only a note.
  void place(const std::string& name, Diagnostic& cause) const {
    const ir::Graph& graph = plain_.step.graph;
    const auto node =
        std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& n) { return n.name == name; });
    if (node == graph.nodes.end()) return;
    if (node->source.line > 0) {
      cause.file = model_.file;
      cause.line = node->source.line;
      cause.column = node->source.column;
      cause.pointer = node->source.pointer;
    } else if (!model_.file.empty()) {  // nodes of the model file have a position
      cause.message += " (of the gradients or the update)";
    }
  }

  const Model& model_;
  const CompiledModel& plain_;
  StepRun step_;
  const Program& fused_;
  const StateCopy& states_;
};

}  // namespace

std::string hint_for_large(const Model& model) {
  const bool joint = model.train.objectives.empty() && is_joint(model.train.optimizer);
  return joint ? "start from other parameters, or standardize the data"
               : "lower the learning rate, set clip_norm, or standardize the data";
}

std::optional<Diagnostic> trace_not_finite(const Model& model, const CompiledModel& compiled, const StateCopy& states,
                                           const std::shared_ptr<Executor>& executor, PlanOptions options) {
  options.fuse = false;
  options.jit = Jit::off;
  options.tiling.clear();
  options.keep.clear();
  // Same batches, ignoring any budget: this plan is in addition to the running one.
  CompiledModel plain =
      compile_step(compiled.step, compiled.program.phases.front().capacity, model, {&executor, 1}, options);
  const std::unique_ptr<Runnable> runnable = load_compiled(plain, model, executor, options);
  write_start(model, plain, {runnable.get()});
  return Trace(model, plain, *runnable, compiled.program, states).run();
}

std::optional<Diagnostic> find_in_regions(const CompiledModel& compiled, const StateCopy& states, Runnable& runnable) {
  StepRun step(compiled, runnable);
  step.rewind(compiled.program, states);
  const std::vector<Step>& steps = step.steps();
  auto region = step.regions().begin();
  for (std::uint32_t first = 0; first < steps.size();) {
    const bool is_region = region != step.regions().end() && region->first() == first;
    const std::uint32_t last = is_region ? region->last : first + 1;
    if (is_region) ++region;
    step.run(first, last);
    for (std::uint32_t i = first; i < last; ++i) {
      if (steps[i].op == Op::record || !step.bad(steps[i].output)) continue;
      Diagnostic cause;
      cause.message = is_region
                          ? fmt::format("with regions it shows first in the one of {} steps from '{}' to '{}', in '{}'",
                                        last - first, plain_name(steps[first].name), plain_name(steps[last - 1].name),
                                        plain_name(steps[i].name))
                          : fmt::format("with regions it shows first in '{}'", plain_name(steps[i].name));
      return cause;
    }
    first = last;
  }
  return std::nullopt;
}

namespace {

// First training step up to `last` that left a parameter non-finite, or `last`. On return, the program and `good` hold
// the states before it.
std::uint64_t first_nonfinite_step(LoadedModel& loaded, GoodStates& good, std::uint64_t last) {
  const std::size_t index = loaded.training();
  const auto go_to = [&](std::uint64_t step) {
    good.put(*loaded.runnable);
    loaded.set_done(index, good.step());
    while (loaded.done[index] < step)
      loaded.run(index, std::min(step - loaded.done[index], static_cast<std::uint64_t>(loaded.phases()[index].ring)));
    return good.look(*loaded.runnable, step);
  };
  if (go_to(last)) return last;
  std::uint64_t bad = last;  // number of steps
  // The first guess is usually right.
  for (std::uint64_t step = bad - 1; bad - good.step() > 1; step = good.step() + (bad - good.step()) / 2) {
    if (!go_to(step)) bad = step;
  }
  (void)go_to(good.step());
  return good.step();
}

}  // namespace

void reject_not_finite(LoadedModel& loaded, GoodStates* good, std::uint64_t step, std::optional<double> loss) {
  const std::uint64_t batches = loaded.steps_of_epoch();
  const auto place = [&](std::uint64_t at) { return fmt::format("step {} (epoch {})", at + 1, at / batches + 1); };
  Diagnostic diagnostic;
  diagnostic.code = "run.not_finite";
  diagnostic.message = loss ? fmt::format("the loss is {} at {}", *loss, place(step))
                            : fmt::format("a parameter is not finite after {}", place(step));
  if (good == nullptr) {
    diagnostic.hint = hint_for_large(loaded.model);
    throw NotFinite(std::move(diagnostic), 0);
  }
  const std::uint64_t first = first_nonfinite_step(loaded, *good, step);
  if (!loss) diagnostic.message = fmt::format("a parameter is not finite after {}", place(first));
  if (loss && first < step) diagnostic.message += fmt::format("; a parameter is not finite after {}", place(first));
  std::optional<Diagnostic> found;
  std::string reason;
  try {
    found = trace_not_finite(loaded.model, loaded.compiled, good->states(), loaded.executor, loaded.planned);
  } catch (const OutOfMemory&) {
    reason = "there is no memory for a second plan, to run the step op by op";
  }
  if (!found) {
    if (reason.empty()) reason = "run op by op, without regions, the same step stays finite";
    diagnostic.message += "; " + reason;
    found = find_in_regions(loaded.compiled, good->states(), *loaded.runnable);
    good->put(*loaded.runnable);
    if (found) found->hint = "sums in another order may overflow: set --no-fuse, " + hint_for_large(loaded.model);
  }
  if (found) {
    found->code = diagnostic.code;
    found->message = fmt::format("{}; {}", diagnostic.message, found->message);
    diagnostic = std::move(*found);
  }
  throw NotFinite(std::move(diagnostic), first);
}

}  // namespace graphrun
