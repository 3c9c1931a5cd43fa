// value_after.cpp: reads one value of a run by name, as soon as it is available.
#include <fmt/format.h>

#include <algorithm>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"
#include "graphrun/verify.h"
#include "session/compiling/jit.h"

namespace graphrun {
namespace {

[[noreturn]] void reject_missing(const Model& model, const CompiledModel& compiled, std::string_view name) {
  const auto& names = model.graph.impl().names;
  const std::string in_step = fmt::format("train/{}", name);
  const std::vector<ir::Node>& nodes = compiled.step.graph.nodes;
  if (std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& n) { return n.name == name || n.name == in_step; })) {
    throw Error(ErrorKind::input, "value.simplified", fmt::format("'{}' was simplified away", name),
                "--no-passes leaves the graph as it was built");
  }
  if (names.contains(name)) {
    throw Error(
        ErrorKind::input, "value.dead",
        fmt::format("no step of training or evaluation computes '{}': neither the loss nor a metric depends on it",
                    name),
        "of outputs, graphrun predict prints the values");
  }
  std::vector<std::string> candidates;
  for (const Buffer& buffer : compiled.program.buffers) candidates.push_back(buffer.name);
  for (const auto& entry : names) candidates.push_back(entry.first);
  const std::string hint = did_you_mean(name, candidates);
  throw Error(ErrorKind::input, "value.unknown", fmt::format("there is no value '{}'", name),
              hint.empty() ? "graphrun show lists the model's, graphrun plan --program all of a step" : hint);
}

BufferId find_value(const Model& model, const CompiledModel& compiled, std::string_view name) {
  for (const std::string& candidate : {std::string(name), fmt::format("train/{}", name)}) {
    if (const BufferId id = compiled.find(candidate); id != kNoBuffer) return id;
  }
  reject_missing(model, compiled, name);
}

struct Moment {
  PhaseId phase;
  std::uint32_t steps;  // steps of the phase after which the buffer has its value
};

// After the step that writes the buffer. No step writes a view: it is read before the first step that reads it or, if
// none does, at the end of the phase of the last step that writes its bytes.
Moment moment_of(const Program& program, BufferId id) {
  std::optional<Moment> reads, writes;
  for (PhaseId phase = 0; phase < program.phases.size(); ++phase) {
    const std::vector<Step>& steps = program.phases[phase].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].output == id) return {phase, i + 1};
      const bool reading = std::find(steps[i].inputs.begin(), steps[i].inputs.end(), id) != steps[i].inputs.end();
      if (reading && !reads) reads = Moment{phase, i};
      if (program.buffers[steps[i].output].storage == program.buffers[id].storage) writes = Moment{phase, i + 1};
    }
  }
  if (reads) return *reads;
  if (writes) return *writes;
  throw Error(ErrorKind::input, "value.never", fmt::format("no step computes '{}'", program.buffers[id].name));
}

}  // namespace

HostTensor value_after(const Model& model, std::string_view name, const ValueOptions& options) {
  const auto executor = choose_executor(options.executor, options.custom_executor, options.threads);
  PlanOptions planned = plain_steps(options);
  CompiledModel compiled = compile_model(model, {&executor, 1}, planned);
  const bool state = is_state(compiled.program.buffers[find_value(model, compiled, name)].kind);
  if (state && options.fuse) {
    planned = plan_options(options);
    compiled = compile_model(model, {&executor, 1}, planned);
  }
  std::optional<Moment> moment;
  if (!state) moment = moment_of(compiled.program, find_value(model, compiled, name));
  if (moment && compiled.step.phases[moment->phase].batches.count() == 0) {
    throw Error(ErrorKind::input, "value.predict",
                fmt::format("'{}' belongs to the phase {}, which has no data",
                            compiled.program.buffers[find_value(model, compiled, name)].name,
                            compiled.program.phases[moment->phase].name),
                "the phases train and evaluate compute the same");
  }
  const std::unique_ptr<Runnable> runnable = load_compiled(compiled, model, executor, planned);
  const BufferId id = find_value(model, compiled, name);  // loading may have made another plan
  const Buffer& buffer = compiled.program.buffers[id];
  write_start(model, compiled, {runnable.get()});
  if (options.steps > 0) {
    if (compiled.step.phases.empty() || compiled.step.phases[0].name != "train")
      throw Error(ErrorKind::input, "train.nothing",
                  "there is nothing to train: the model has no loss or no training data");
    runnable->run(0, options.steps);
  }
  if (moment) runnable->run_steps(moment->phase, 0, moment->steps);
  HostTensor tensor(buffer.type.dtype, buffer.type.shape);
  runnable->read(id, tensor.bytes());
  return tensor;
}

}  // namespace graphrun
