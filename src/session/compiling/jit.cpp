#include "session/compiling/jit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "graphrun/target.h"
#include "session/compiling/members.h"

namespace graphrun {
namespace {

bool over_rows(const Region& region) {
  return !region.stages.empty();
}

}  // namespace

bool has_step_kernels(const Phase& phase) {
  return std::ranges::any_of(phase.regions, over_rows);
}

void require_step_kernels(const Compiled& compiled, const Target& target, std::string_view executor) {
  const auto reject = [](const std::string& message, const char* hint) {
    throw Error(ErrorKind::input, "jit.required", message, hint);
  };
  if (target.multiprocessors == 0) {
    reject(fmt::format("the executor {} compiles no kernels for whole steps, which --jit=require asks for", executor),
           "--executor=cuda does");
  }
  const std::vector<Phase>& phases = compiled.program.phases;
  if (phases.empty() || has_step_kernels(phases[0])) return;
  std::string reason = "regions are off";
  for (const RegionNote& note : compiled.regions.notes) {
    if (note.phase != 0) continue;
    reason = fmt::format("{}: {}", note.node, note.text);
    break;
  }
  reject(fmt::format("no kernel runs a whole step of '{}', which --jit=require asks for: {}", phases[0].name, reason),
         "--jit=prefer then runs it step by step");
}

std::optional<CompiledModel> without_step_kernels(const Error& error, const CompiledModel& compiled, const Model& model,
                                                  const std::shared_ptr<Executor>& executor,
                                                  const PlanOptions& options) {
  if (options.jit != Jit::prefer || error.diagnostics().front().code != "cuda.kernels") return std::nullopt;
  if (std::ranges::none_of(compiled.program.phases, [](const Phase& phase) { return has_step_kernels(phase); }))
    return std::nullopt;
  PlanOptions without = options;
  without.jit = Jit::off;
  without.tiling.clear();
  CompiledModel again = compile_model(model, {&executor, 1}, without);
  again.fallbacks.push_back(
      fmt::format("{} runs no whole step as one kernel: {}", executor->name(), error.diagnostics().front().message));
  return again;
}

bool has_step_kernels(const Compiled& compiled) {
  return find_target(compiled.program.target).multiprocessors > 0 &&
         std::ranges::any_of(compiled.program.phases, [](const Phase& phase) { return has_step_kernels(phase); });
}

std::unique_ptr<Runnable> load_compiled(CompiledModel& compiled, const Model& model,
                                        const std::shared_ptr<Executor>& executor, const PlanOptions& options,
                                        const std::shared_ptr<Communicator>& communicator) {
  try {
    return load_members(*executor, compiled.program, communicator);
  } catch (const Error& error) {
    std::optional<CompiledModel> again = without_step_kernels(error, compiled, model, executor, options);
    if (!again) throw;
    compiled = std::move(*again);
  }
  return load_members(*executor, compiled.program, communicator);
}

}  // namespace graphrun
