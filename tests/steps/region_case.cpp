#include "steps/region_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "executors/ref/ref_executor.h"
#include "graph/verifier.h"
#include "graphrun/op.h"
#include "session/verify/compare.h"
#include "support/guards.h"

namespace graphrun::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes absolute(const Buffer& buffer, Bytes bytes) {
  if (is_float(buffer.type.dtype)) {
    const std::size_t width = size_of(buffer.type.dtype);
    for (std::size_t i = width; i <= bytes.size(); i += width) bytes[i - 1] &= std::byte{0x7f};
  }
  return bytes;
}

Bytes read_buffer(Runnable& from, const Program& program, BufferId id) {
  Bytes bytes(program.buffers[id].type.bytes());
  from.read(id, bytes);
  return bytes;
}

// What no state holds is garbage before the first step.
void spoil(Runnable& runnable, const Program& program) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.storage == id && !is_state(buffer.kind) && buffer.kind != BufferKind::tile)
      runnable.write(id, guard_pattern(buffer.offset, buffer.bytes));
  }
}

ir::Graph kept(ir::Graph graph, RegionCase::Keep keep) {
  if (keep == RegionCase::Keep::some) return graph;
  for (ir::Node& node : graph.nodes) node.keep = node.keep || node.def->state == nullptr;
  return graph;
}

CompileOptions options_for(const Executor& executor, const Target& target) {
  CompileOptions options;
  options.name = "random";
  options.target = target.name;
  options.supports = [&](const StepSignature& step) { return executor.supports(step, target); };
  options.takes_views = [&](const StepSignature& step) { return executor.takes_views(step); };
  options.plan_region = [&](const RegionSignature& region) { return executor.region_choices(region, target); };
  return options;
}

}  // namespace

RegionCase::RegionCase(const RandomGraph& random, std::shared_ptr<Executor> executor, Keep keep,
                       std::string_view target_name)
    : random_(random), executor_(std::move(executor)), graph_(kept(random.graph, keep)) {
  const Target& target = find_target(target_name);
  RegionOptions wanted;
  wanted.only_if_it_saves = false;
  wanted.plan = [&](const RegionSignature& region) {
    RegionPlan plan = executor_->region_choices(region, target);
    if (!plan.yes && !region.over_elements()) ++declined_[plan.reason];
    return plan;
  };
  regions_ = find_regions(graph_, wanted);
  verify(regions_.graph);
  compiled_ = compile(regions_.graph, options_for(*executor_, target));
  for (ir::NodeId id = 0; id < regions_.graph.size(); ++id) buffers_[regions_.graph[id].name] = compiled_.buffer(id);
}

bool RegionCase::has(RowTile tile) const {
  return std::ranges::any_of(program().phases[0].regions, [&](const Region& region) {
    const auto* step = std::get_if<StepTiling>(&region.tiling);
    return step != nullptr && step->tile == tile;
  });
}
void RegionCase::add_ops(std::set<std::string_view>& ops) const {
  const Phase& phase = program().phases[0];
  for (const Region& region : phase.regions)
    for (std::uint32_t i = region.first(); i < region.last; ++i) ops.insert(name_of(phase.steps[i].op));
}

void RegionCase::write_inputs(Runnable& to, const Compiled& compiled, const ir::Graph& graph) const {
  for (const auto& [node, tensor] : random_.inputs) {
    for (ir::NodeId id = 0; id < graph.size(); ++id)
      if (graph[id].name == random_.graph[node].name) to.write(compiled.buffer(id), tensor.bytes());
  }
}

void RegionCase::run(std::uint64_t times) {
  runnable_ = executor_->load(program());
  spoil(*runnable_, program());
  write_inputs(*runnable_, compiled_, regions_.graph);
  runnable_->run(0, times);
}

std::vector<std::byte> RegionCase::read(const std::string& name) const {
  return read_buffer(*runnable_, program(), buffers_.at(name));
}

std::string RegionCase::compare_steps() const {
  RefExecutor ref;
  const Compiled plain = compile(graph_, options_for(ref, find_target("host")));
  const Program& program = plain.program;
  const auto run = ref.load(program), scale = ref.load(program);
  for (Runnable* runnable : {run.get(), scale.get()}) write_inputs(*runnable, plain, graph_);
  const std::vector<Step>& steps = program.phases[0].steps;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const Buffer& output = program.buffers[step.output];
    std::vector<BufferId> inputs = step.inputs;
    if (step.row_count != kNoBuffer) inputs.push_back(step.row_count);
    for (const BufferId input : inputs) {
      const Bytes bytes = read(program.buffers[input].name);
      run->write(input, bytes);
      scale->write(input, absolute(program.buffers[input], bytes));
    }
    run->run_steps(0, i, i + 1);
    scale->run_steps(0, i, i + 1);
    const Bytes got = read(output.name), expected = read_buffer(*run, program, step.output);
    const Agreement rule = agreement_of(step.op);
    const Bytes scales = rule == Agreement::scaled ? read_buffer(*scale, program, step.output) : Bytes();
    const Sides sides{output.type, got, expected, rule, scales};
    for (std::size_t e = 0; e < sides.elements(); ++e) {
      if (sides.agrees(e)) continue;
      return fmt::format("{} ({}) [{}]: fused {}, reference {}, tolerance {:.3g}\n{}", step.name, name_of(step.op),
                         fmt::join(index_of(output.type.shape, e), ", "), element_text(output.type.dtype, got, e),
                         element_text(output.type.dtype, expected, e), sides.tolerance(e),
                         neighbourhood(sides, e, "fused", "reference"));
    }
  }
  return {};
}

// Rounding grows from step to step.
std::string RegionCase::compare_kept() const {
  for (const auto& [node, tensor] : random_.kept) {
    const ir::Node& of = random_.graph[node];
    const Bytes got = read(of.name);
    const Sides sides{of.type, got, tensor.bytes(), Agreement::exact};
    for (std::size_t e = 0; e < sides.elements(); ++e) {
      const double a = element(of.type.dtype, got, e), b = element(of.type.dtype, tensor.bytes(), e);
      if (distance_of(a, b) > 1e-3 * std::max(1.0, std::fabs(b)))
        return fmt::format("{} ({}) [{}]: fused {}, reference {}\n{}", of.name, name_of(of.op),
                           fmt::join(index_of(of.type.shape, e), ", "), a, b,
                           neighbourhood(sides, e, "fused", "reference"));
    }
  }
  return {};
}

}  // namespace graphrun::test
