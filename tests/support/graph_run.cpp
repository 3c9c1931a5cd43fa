#include "support/graph_run.h"

#include <fmt/format.h>

#include <stdexcept>

#include "graphrun/error.h"
#include "support/guards.h"

namespace graphrun::test {

Compiled lower_for(const ir::Graph& graph, const Executor& executor, const std::optional<ElementLimits>& elements) {
  const Target& target = find_target(executor.default_target());
  CompileOptions options;
  options.name = "test";
  options.target = std::string(target.name);
  options.supports = [&](const StepSignature& step) { return executor.supports(step, target); };
  // Existing regions over rows are tiled; new regions are formed over elements only.
  options.plan_region = [&executor, &target, elements](const RegionSignature& region) {
    return elements && !region.over_elements() ? RegionPlan::no("only regions over elements are asked for")
                                               : executor.region_choices(region, target);
  };
  options.fuse = elements.has_value();
  options.tiles.elements = elements;
  options.takes_views = [&](const StepSignature& step) { return executor.takes_views(step); };
  return compile(graph, options);
}

GraphRun::GraphRun(const ir::Graph& graph, std::shared_ptr<Executor> executor, Layout layout,
                   const std::optional<ElementLimits>& elements)
    : executor_(std::move(executor)) {
  for (const ir::Node& node : graph.nodes) types_.push_back(node.type);
  Compiled lowered = lower_for(graph, *executor_, elements);
  buffer_of_ = std::move(lowered.buffer_of);
  program_ = std::move(lowered.program);
  if (layout == Layout::guarded) {
    Guarded guarded = with_guards(program_);
    program_ = std::move(guarded.program);
    guards_ = std::move(guarded.guards);
  }
  runnable_ = executor_->load(program_);
  for (const BufferId guard : guards_) {
    runnable_->write(guard, guard_pattern(program_.buffers[guard].offset, program_.buffers[guard].bytes));
  }
  spoil();
}

void GraphRun::write(ir::NodeId node, const HostTensor& tensor) {
  const Buffer& buffer = program_.buffers[buffer_of_[node]];
  if (tensor.dtype() != types_[node].dtype || !(tensor.shape() == types_[node].shape)) {
    throw std::logic_error(fmt::format("GraphRun::write: {} is {}, not {}{}", buffer.name, to_string(types_[node]),
                                       name_of(tensor.dtype()), to_string(tensor.shape())));
  }
  runnable_->write(buffer_of_[node], tensor.bytes());
}

HostTensor GraphRun::read(ir::NodeId node) {
  HostTensor tensor(types_[node].dtype, types_[node].shape);
  runnable_->read(buffer_of_[node], tensor.bytes());
  return tensor;
}

void GraphRun::spoil() {
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.storage == id && !is_state(buffer.kind) && buffer.kind != BufferKind::tile)
      runnable_->write(id, guard_pattern(buffer.offset, buffer.bytes));
  }
}

std::string GraphRun::broken_guard() {
  for (const BufferId id : guards_) {
    const Buffer& guard = program_.buffers[id];
    std::vector<std::byte> bytes(guard.bytes);
    runnable_->read(id, bytes);
    const std::vector<std::byte> wanted = guard_pattern(guard.offset, guard.bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == wanted[i]) continue;
      std::string neighbours;
      for (const Buffer& buffer : program_.buffers) {
        if (buffer.kind == BufferKind::data && buffer.name.rfind("guard", 0) == 0) continue;
        if (buffer.offset + buffer.bytes == guard.offset) neighbours += fmt::format(" after {}", buffer.name);
        if (buffer.offset == guard.offset + guard.bytes) neighbours += fmt::format(" before {}", buffer.name);
      }
      return fmt::format("{} was written at byte {} of {}; it lies{}", guard.name, i, guard.bytes, neighbours);
    }
  }
  return {};
}

bool GraphRun::share_storage(ir::NodeId a, ir::NodeId b) const {
  return program_.buffers[buffer_of_[a]].storage == program_.buffers[buffer_of_[b]].storage;
}

const Executors& executors() {
  static const Executors found = [] {
    Executors result;
    for (const std::string& name : executor_names()) {
      try {
        std::shared_ptr<Executor> executor = find_executor(name);
        Program nothing;  // an empty program: loading it needs the device
        nothing.name = "nothing";
        nothing.target = std::string(executor->default_target());
        executor->load(nothing);
        result.present.emplace_back(name, std::move(executor));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::device) throw;
        result.missing.emplace_back(name, error.diagnostics().front().message);
      }
    }
    return result;
  }();
  return found;
}

std::shared_ptr<Executor> executor(std::string_view name) {
  for (const auto& [known, found] : executors().present) {
    if (known == name) return found;
  }
  throw std::logic_error(fmt::format("executor '{}' is not present", name));
}

}  // namespace graphrun::test
