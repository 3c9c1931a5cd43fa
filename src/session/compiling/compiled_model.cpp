#include "session/compiling/compiled_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "base/host_memory.h"
#include "graph/frontend/builder_impl.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "session/compiling/fit_batch.h"
#include "session/compiling/jit.h"
#include "session/compiling/tilings.h"
#include "session/weights/initial_values.h"

namespace graphrun {
namespace {

// Steps that depend on an unsupported step fail, too: report one error, at its position in the user's file.
Error rejected(const Error& error, const Model& model, bool ref_runs) {
  const std::vector<Diagnostic>& all = error.diagnostics();
  const auto written = std::find_if(all.begin(), all.end(), [](const Diagnostic& d) { return d.line > 0; });
  Diagnostic first = written == all.end() ? all.front() : *written;
  first.file = model.file;
  const std::size_t others = all.size() - 1 + error.more();
  if (others > 0) first.message += fmt::format(" (and {} other step{})", others, others == 1 ? "" : "s");
  if (ref_runs) first.hint = "run it with --executor=ref, which computes everything in double";
  if (ref_runs && model.train.precision == Precision::fp64)
    first.hint = "--executor=cpu computes in fp64, or set \"precision\": \"fp32\"";
  return Error(error.kind(), {std::move(first)});
}

void keep_value(ir::Graph& graph, const std::string& name) {
  const std::string in_step = "train/" + name;
  std::vector<std::string> names;
  for (ir::Node& node : graph.nodes) {
    if (node.name == name || node.name == in_step) {
      node.keep = true;
      return;
    }
    if (node.name.starts_with("train/")) names.push_back(node.name.substr(6));
  }
  const std::string near = did_you_mean(name, names);
  throw Error(ErrorKind::input, "watch.unknown", fmt::format("no training step computes a '{}'", name),
              near.empty() ? "graphrun show --whole-step lists the values of a step" : near);
}

}  // namespace

std::shared_ptr<Executor> choose_executor(std::string_view name, const std::shared_ptr<Executor>& custom, int threads) {
  std::shared_ptr<Executor> executor = custom != nullptr ? custom : find_executor(name);
  if (threads != 0) executor->set_threads(threads);
  return executor;
}

namespace {

// Rejects a target of another executor: its numbers would be misleading.
void reject_foreign(const Target& target, const Executor& executor) {
  const std::string_view own = find_target(executor.default_target()).executor;
  if (target.executor == own) return;
  std::vector<std::string_view> names;
  for (const Target& row : targets()) {
    if (row.executor == own) names.push_back(row.name);
  }
  throw Error(ErrorKind::input, "target.executor",
              fmt::format("the target '{}' is a machine of the executor {}, not of {}", target.name, target.executor,
                          executor.name()),
              fmt::format("its targets: {}", fmt::join(names, ", ")));
}

}  // namespace

PlanOptions plan_options(const SessionOptions& options) {
  PlanOptions plan{options.target, options.passes, options.fuse, options.jit, options.tiling, options.watch};
  plan.shared = options.custom_executor != nullptr;
  return plan;
}

PlanOptions plain_steps(const SessionOptions& options) {
  return {options.target, options.passes, false, Jit::off};
}

namespace {

// All that a compilation depends on, in addition to the executor.
using PlanInputs = std::tuple<std::vector<ir::Node>, std::vector<ir::Phase>, std::int64_t, PlanOptions, std::string,
                              std::int64_t, Precision, MathMode, decltype(CompileOptions::codes)>;
struct SharedPlan {
  std::weak_ptr<Executor> executor = {};
  PlanInputs inputs = {};
  std::mutex mutex = {};                     // protects the result
  std::optional<CompiledModel> result = {};  // without the step graph
};

// One of the last plans, or a new one.
std::shared_ptr<SharedPlan> find_plan(const std::shared_ptr<Executor>& executor, PlanInputs inputs) {
  constexpr std::size_t kPlans = 8;
  static std::mutex mutex;
  static std::vector<std::shared_ptr<SharedPlan>> plans;
  const std::lock_guard lock(mutex);
  std::erase_if(plans, [](const auto& plan) { return plan->executor.expired(); });
  for (const auto& plan : plans)
    if (plan->executor.lock() == executor && plan->inputs == inputs) return plan;
  if (plans.size() == kPlans) plans.erase(plans.begin());
  return plans.emplace_back(new SharedPlan{executor, std::move(inputs)});
}

}  // namespace

CompiledModel compile_step(StepGraph built, std::int64_t batch, const Model& model,
                           std::span<const std::shared_ptr<Executor>> executors, const PlanOptions& options) {
  if (batch == 0) {
    throw Error(ErrorKind::input, "batch.unknown",
                "the batch is \"all\" samples, and how many those are was not read: LoadOptions::data");
  }
  set_capacity(built, batch);
  for (const std::string& name : options.keep) keep_value(built.graph, name);
  const std::string target_name = options.target.empty() ? std::string(executors[0]->default_target()) : options.target;
  const Target& target = find_target(target_name);
  reject_foreign(target, *executors[0]);
  const bool has_shards = model.train.shards > 1 && std::ranges::any_of(built.phases, [](const StepPhase& phase) {
                            return phase.name == "train";
                          });
  bool ref_runs = true;  // ref supports all steps that these executors do not
  const auto tell_ref = [&](const StepSignature& step) {
    static const std::shared_ptr<Executor> ref = find_executor("ref");
    ref_runs = ref_runs && ref->supports(step, target).yes;
  };
  std::map<std::string, std::size_t> fallbacks;  // number of steps per reason
  CompileOptions compiling;
  compiling.name = model.name;
  compiling.capacities.assign(built.phases.size(), batch);
  compiling.target = std::string(target.name);
  compiling.precision = model.train.precision == Precision::tf32 ? Precision::tf32 : Precision::fp32;
  compiling.shards = model.train.shards;
  compiling.math = model.train.math;
  compiling.simplify = options.passes;
  compiling.max_memory = options.max_memory;
  const auto other = std::ranges::find_if(executors, [](const auto& executor) { return !executor->takes_codes(); });
  std::vector<std::string> in_f32;  // because of that executor
  for (const Split& split : model.data.splits) {
    for (const auto& [input, divisor] : split.codes) {
      const std::string name = fmt::format("data/{}/{}", split.name, input);
      if (split.rows_vary || !options.passes) continue;
      if (other == executors.end())
        compiling.codes.emplace(name, divisor);
      else
        in_f32.push_back(stored_in_f32(name, fmt::format("{} does not decode bytes", (*other)->name())));
    }
  }
  compiling.supports = [&](const StepSignature& step) {
    Support all = Support::with_workspace(0);
    std::uint64_t least = 0;  // minimum over which no executor can run
    for (const std::shared_ptr<Executor>& executor : executors) {
      Support one = executor->supports(step, target);
      if (!one.yes) {
        tell_ref(step);
        return one;
      }
      all.workspace_bytes = std::max(all.workspace_bytes, one.workspace_bytes);
      least = std::max(least, one.workspace_bytes - one.spare_workspace_bytes);
      if (!one.fallback.empty())
        ++fallbacks[fmt::format("{} has no kernel for {}: {}'s runs", executor->name(), name_of(step.op),
                                one.fallback)];
    }
    all.spare_workspace_bytes = all.workspace_bytes - least;
    return all;
  };
  if (options.passes && options.views) {
    compiling.takes_views = [&](const StepSignature& step) {
      return std::all_of(executors.begin(), executors.end(), [&](const auto& e) { return e->takes_views(step); });
    };
  }
  compiling.fuse = options.passes && options.fuse;
  const WantedTiling wanted(options.tiling);
  compiling.plan_region = [&](const RegionSignature& region) {
    if (target.multiprocessors > 0 && !region.over_elements()) {
      if (options.jit == Jit::off) return RegionPlan::no("whole steps are not wanted as one kernel");
      if (has_shards) return RegionPlan::no("a step in shards is not one kernel: its ranks combine values");
    }
    RegionPlan first;
    for (const std::shared_ptr<Executor>& executor : executors) {
      RegionPlan one = executor->region_choices(region, target);
      if (!one.yes) {
        one.reason = fmt::format("{}: {}", executor->name(), one.reason);
        return one;
      }
      if (executor == executors[0]) first = std::move(one);
    }
    wanted.choose(first);
    return first;
  };
  try {
    const bool shared = options.shared && executors.size() == 1;
    const TrainSpec& train = model.train;
    const auto plan = shared
                          ? find_plan(executors[0], {built.graph.nodes, built.graph.phases, batch, options, model.name,
                                                     train.shards, train.precision, train.math, compiling.codes})
                          : std::make_shared<SharedPlan>();
    const std::lock_guard lock(plan->mutex);  // one session compiles, the others wait
    if (!plan->result) {
      plan->result = CompiledModel{compile(built.graph, compiling), {}, {}};
      for (const auto& [text, steps] : fallbacks)
        plan->result->fallbacks.push_back(fmt::format("{} {} step{}", text, steps, steps == 1 ? "" : "s"));
    }
    CompiledModel result = shared ? *plan->result : std::move(*plan->result);
    result.step = std::move(built);
    if (other != executors.end()) result.in_f32 = std::move(in_f32);
    wanted.check(result.choices);
    if (options.jit == Jit::require) require_step_kernels(result, target, executors[0]->name());
    return result;
  } catch (const Error& error) {
    if (error.diagnostics().empty()) throw;
    if (error.diagnostics().front().code == "step.unsupported") throw rejected(error, model, ref_runs);
    std::vector<Diagnostic> told = error.diagnostics();
    for (Diagnostic& one : told) one.file = one.line > 0 ? model.file : one.file;
    throw Error(error.kind(), std::move(told));
  }
}

namespace {

// Memory limit of a plan in bytes; 0: no limit. Without a budget, host memory limits the largest batch, with a tenth
// reserved for other uses; a device is queried on load (LoadedModel::load).
std::uint64_t limit_of(const Model& model, const Executor& executor, const PlanOptions& options) {
  if (model.train.max_memory > 0) return model.train.max_memory;
  const std::string target = options.target.empty() ? std::string(executor.default_target()) : options.target;
  const bool on_host = find_target(target).compute_capability == 0;
  return model.train.largest_batch && on_host ? available_host_memory() / 10 * 9 : 0;
}

}  // namespace

CompiledModel compile_model(const Model& model, std::span<const std::shared_ptr<Executor>> executors,
                            const PlanOptions& given) {
  const StepGraph step = build_step_graph(model);
  PlanOptions options = given;
  const std::uint64_t limit = options.max_memory = limit_of(model, *executors[0], options);
  CompiledModel whole = compile_step(step, model.graph.batch(), model, executors, options);
  if (limit == 0 || whole.program.arena_bytes <= limit) return whole;
  PlanOptions any = options;  // smaller batches may run in any way
  if (any.jit == Jit::require) any.jit = Jit::prefer;
  any.tiling.clear();
  if (!model.train.largest_batch) throw over_budget(limit, whole, model, executors, any);
  const FittingBatch fitting = fit_batch(step, model, executors, any, limit);
  if (!fitting.fits) throw over_budget(limit, whole, model, executors, any);
  return compile_step(step, fitting.batch, model, executors, options);
}

std::unique_ptr<Runnable> load_program(Executor& executor, const Program& program) {
  std::unique_ptr<Runnable> runnable = executor.load(program);
  if (runnable != nullptr) return runnable;
  throw Error(ErrorKind::device, "executor.load", fmt::format("the executor {} gave no Runnable", executor.name()));
}

void CompiledModel::write_number(Runnable& runnable, ir::NodeId state, double number) const {
  const auto narrow = static_cast<float>(number);
  const bool is_wide = step.graph[state].type.dtype == DType::f64;
  runnable.write(buffer(state), is_wide ? std::as_bytes(std::span(&number, 1)) : std::as_bytes(std::span(&narrow, 1)));
}

double CompiledModel::read_number(Runnable& runnable, ir::NodeId state) const {
  std::byte bytes[sizeof(double)];
  const DType dtype = step.graph[state].type.dtype;
  runnable.read(buffer(state), std::span(bytes).first(size_of(dtype)));
  return with_type(dtype, [&](auto zero) { return static_cast<double>(load_element<decltype(zero)>(bytes, 0)); });
}
namespace {

// Every row once, from windows that hold copies.
HostTensor rows_of(const HostTensor& windows, const WindowedInput& windowed) {
  const std::int64_t samples = windows.shape()[0], rows = windowed.rows(samples);
  const std::size_t row_bytes = windows.bytes().size() / static_cast<std::size_t>(samples * windowed.length);
  HostTensor result(windows.dtype(), Shape{rows, windows.shape().elements() / samples / windowed.length});
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t sample = std::min(row / windowed.hop, samples - 1);
    const std::int64_t from = sample * windowed.length + row - sample * windowed.hop;
    std::copy_n(windows.bytes().begin() + from * static_cast<std::ptrdiff_t>(row_bytes), row_bytes,
                result.bytes().begin() + row * static_cast<std::ptrdiff_t>(row_bytes));
  }
  return result;
}

}  // namespace

void write_start(const Model& model, const CompiledModel& compiled, std::initializer_list<Runnable*> runnables) {
  const auto write = [&](ir::NodeId node, std::span<const std::byte> bytes) {
    for (Runnable* const runnable : runnables) runnable->write(compiled.buffer(node), bytes);
  };
  for (const Split& split : model.data.splits) {
    if (!split.columns.empty()) continue;
    throw Error(ErrorKind::input, "data.not_read", fmt::format("the rows of '{}' were not read", split.name),
                "a model that is to run is loaded with its data: LoadOptions::data");
  }
  std::size_t i = 0;  // same order as in build_step_graph
  for (const Split& split : model.data.splits) {
    for (const auto& [name, tensor] : split.columns) {
      const auto windowed = std::ranges::find(split.windows, name, &WindowedInput::input);
      const bool shares = windowed != split.windows.end();
      write(compiled.step.data[i++].second, shares ? rows_of(tensor, *windowed).bytes() : tensor.bytes());
    }
    if (split.windows.empty()) continue;
    std::vector<double> first(static_cast<std::size_t>(split.samples()));
    for (std::size_t k = 0; k < first.size(); ++k)
      first[k] = static_cast<double>(static_cast<std::int64_t>(k) * split.windows.front().hop);
    const ir::NodeId node = compiled.step.data[i++].second;
    write(node, from_doubles(first, compiled.step.graph[node].type).bytes());
  }
  const GraphBuilder::Impl& source = model.graph.impl();
  for (const auto& [name, node] : compiled.step.parameters) {
    const Init& init = source.parameters.at(source.builder.find(name)).init;
    write(node, initial_value(init, name, compiled.step.graph[node].type, model.train.seed).bytes());
  }
  for (Runnable* const runnable : runnables) {
    for (const auto& [node, start] : compiled.step.runtime) compiled.write_number(*runnable, node, start);
    if (compiled.step.lr_factor != ir::kNoNode) compiled.write_number(*runnable, compiled.step.lr_factor, 1);
  }
  for (const auto& [split, node] : compiled.step.rows) {
    const auto rows = static_cast<std::uint64_t>(model.data.find(split)->samples());
    write(node, std::as_bytes(std::span(&rows, 1)));
  }
}

}  // namespace graphrun
