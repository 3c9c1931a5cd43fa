// inspection.cpp: turns named values and gradients of a model into outputs of a prediction, which keeps them all.
#include "graphrun/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/not_moved.h"
#include "graph/frontend/builder_impl.h"
#include "graph/gradients.h"
#include "graph/ir/needed.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/profile.h"
#include "session/compiling/compiled_model.h"
#include "session/compiling/jit.h"

namespace graphrun {
namespace {

// Moves the split out of the model, so that the rest of the data takes no arena memory.
Split taken_split(Model& model, const std::string& wanted) {
  std::vector<Split>& splits = model.data.splits;
  const auto called = [&](std::string_view name) {
    return std::find_if(splits.begin(), splits.end(), [&](const Split& one) { return one.name == name; });
  };
  auto found = called(wanted.empty() ? "train" : wanted);
  if (found == splits.end() && wanted.empty()) found = splits.begin();
  if (found == splits.end()) {
    std::vector<std::string> names;
    for (const Split& one : splits) names.push_back(one.name);
    throw Error(ErrorKind::input, "split.unknown",
                names.empty() ? "the model has no data to inspect" : fmt::format("the model has no split '{}'", wanted),
                names.empty() ? std::string() : fmt::format("splits: {}", fmt::join(names, ", ")));
  }
  if (found->columns.empty()) {
    throw Error(ErrorKind::input, "data.not_read", fmt::format("the rows of '{}' were not read", found->name),
                "a model that is to run is loaded with its data: LoadOptions::data");
  }
  Split split = std::move(*found);
  splits.clear();
  return split;
}

Inspection::Kind kind_of(const ir::Node& node) {
  if (node.op == Op::input) return Inspection::Kind::input;
  return node.op == Op::parameter ? Inspection::Kind::parameter : Inspection::Kind::value;
}

// Inputs first, then parameters, then the rest, each in graph order.
std::vector<std::pair<std::string, ir::NodeId>> named_nodes(const GraphBuilder::Impl& impl) {
  std::vector<std::pair<std::string, ir::NodeId>> nodes(impl.names.begin(), impl.names.end());
  const auto order = [&](const auto& one) { return std::pair(kind_of(impl.graph[one.second]), one.second); };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return nodes;
}

// Finds the float scalar to differentiate.
ir::NodeId differentiated(Model& model, const std::string& of) {
  if (of.empty() && !model.train.minimize.valid())
    throw Error(
        ErrorKind::input, "gradient.nothing",
        model.train.objectives.empty() ? "the model has no loss to differentiate" : "the model has several objectives",
        model.train.objectives.empty() ? "" : "choose the value to differentiate with --of");
  GraphBuilder::Impl& impl = model.graph.impl();
  const ir::NodeId id = of.empty() ? model.train.minimize.id : impl.node(model.graph.expression(of));
  const TensorType& type = impl.graph[id].type;
  if (!is_float(type.dtype)) {
    throw Error(
        ErrorKind::input, "gradient.float",
        fmt::format("there are no gradients of '{}': it is {}", of.empty() ? impl.graph[id].name : of, to_string(type)),
        "only a float has them");
  }
  if (type.shape.rank() == 0) return id;
  std::vector<std::int64_t> axes(static_cast<std::size_t>(type.shape.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return impl.node(model.graph.op("sum", {impl.value(id)}, {{"axes", std::move(axes)}, {"keepdims", false}}));
}

}  // namespace

struct __attribute__((visibility("hidden"))) Inspection::Impl {  // member of an exported class
  Impl(Model of_model, const InspectionOptions& options) : model(std::move(of_model)) {
    if (options.gradients) of = options.of.empty() ? name_of_loss() : options.of;
    const Split rows_of = taken_split(model, options.split);
    split = rows_of.name;
    const std::int64_t batch = model.graph.batch();
    rows = batch > 0 ? std::min(batch, rows_of.samples()) : rows_of.samples();
    model.graph.impl().set_batch(rows);
    add_entries(options);
    model.train.minimize = {};
    model.train.objectives.clear();
    model.train.metrics.clear();
    run(rows_of, options);
  }

  std::string name_of_loss() const {
    return model.train.minimize.valid() ? model.graph.impl().graph[model.train.minimize.id].name : std::string();
  }

  void add_entries(const InspectionOptions& options) {
    GraphBuilder::Impl& impl = model.graph.impl();
    const std::vector<std::pair<std::string, ir::NodeId>> nodes = named_nodes(impl);
    model.outputs.clear();
    const auto add = [&](const std::string& name, Kind kind, ir::NodeId id) {
      entries.push_back({name, kind, {}});
      model.outputs.push_back({impl.value(id), name, {}});
    };
    for (const auto& [name, id] : nodes) add(name, kind_of(impl.graph[id]), id);
    if (!options.gradients) return;
    const ir::NodeId target = differentiated(model, options.of);
    const std::vector<bool> on_path = ir::needed_by(impl.graph, {&target, 1});
    std::vector<std::string> names;
    std::vector<ir::NodeId> wanted;
    for (const auto& [name, id] : nodes) {
      if (id == target || !on_path[id] || !is_float(impl.graph[id].type.dtype)) continue;
      names.push_back(name + ":gradient");
      wanted.push_back(id);
    }
    const std::vector<ir::NodeId> found = gradients(impl.builder, target, wanted);
    for (std::size_t i = 0; i < found.size(); ++i) add(names[i], Kind::gradient, found[i]);
  }

  void run(const Split& from, const InspectionOptions& options) {
    const auto executor = choose_executor(options.executor, options.custom_executor, options.threads);
    const PlanOptions planned = plain_steps(options);
    compiled = compile_model(model, {&executor, 1}, planned);
    runnable = load_compiled(compiled, model, executor, planned);
    write_start(model, compiled, {runnable.get()});
    const StepPhase& phase = compiled.step.phases.front();
    for (const auto& [name, node] : phase.inputs) write_rows(from, name, node);
    const auto count = static_cast<std::int32_t>(rows);
    runnable->write(compiled.buffer(phase.count), std::as_bytes(std::span(&count, 1)));
    runnable->run(0, 1);
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i].type = compiled.program.buffers[buffer(i)].type;
  }

  void write_rows(const Split& from, const std::string& input, ir::NodeId node) {
    const auto column =
        std::find_if(from.columns.begin(), from.columns.end(), [&](const auto& one) { return one.first == input; });
    if (column == from.columns.end()) {
      throw Error(ErrorKind::input, "input.unbound",
                  fmt::format("the split '{}' has no rows for the input '{}'", from.name, input));
    }
    const std::span<const std::byte> bytes = column->second.bytes();
    const std::size_t a_row = bytes.size() / static_cast<std::size_t>(from.samples());
    runnable->write(compiled.buffer(node), bytes.first(a_row * static_cast<std::size_t>(rows)));
  }

  BufferId buffer(std::size_t entry) const { return compiled.buffer(compiled.step.phases.front().outputs[entry]); }

  // For each step of the phase, the entry it is computed for; entries.size() if no entry needs it.
  std::vector<std::size_t> entries_of_steps() const {
    std::map<BufferId, std::size_t> entry_of;
    for (std::size_t i = 0; i < entries.size(); ++i) entry_of.emplace(buffer(i), i);
    const std::vector<Step>& steps = compiled.program.phases.front().steps;
    const auto storage = [&](BufferId id) { return compiled.program.buffers[id].storage; };
    std::vector<std::size_t> owners(steps.size(), entries.size());
    std::map<BufferId, std::size_t> reader_of;  // entry of the first later step that reads the buffer
    for (std::size_t i = steps.size(); i-- > 0;) {
      if (const auto named = entry_of.find(steps[i].output); named != entry_of.end())
        owners[i] = named->second;
      else if (const auto reader = reader_of.find(storage(steps[i].output)); reader != reader_of.end())
        owners[i] = reader->second;
      for (const BufferId input : steps[i].inputs) reader_of[storage(input)] = owners[i];
    }
    return owners;
  }

  std::vector<double> times(double within) {
    const std::vector<std::size_t> owners = entries_of_steps();
    std::int32_t count = 0;
    const BufferId counted = compiled.buffer(compiled.step.phases.front().count);
    // Reading includes the wait for the device.
    const auto timed = [&](auto work) {
      const double before = Profiler::now();
      work();
      runnable->read(counted, std::as_writable_bytes(std::span(&count, 1)));
      return Profiler::now() - before;
    };
    constexpr int kMaxRounds = 50;
    double reading = std::numeric_limits<double>::infinity();
    std::vector<double> least(owners.size(), std::numeric_limits<double>::infinity());
    const double begin = Profiler::now();
    for (int round = 0; round < kMaxRounds && (round == 0 || Profiler::now() - begin < within); ++round) {
      reading = std::min(reading, timed([] {}));
      for (std::uint32_t i = 0; i < owners.size(); ++i)
        least[i] = std::min(least[i], timed([&] { runnable->run_steps(0, i, i + 1); }));
    }
    std::vector<double> seconds(entries.size() + 1);
    for (std::size_t i = 0; i < owners.size(); ++i) seconds[owners[i]] += std::max(0.0, least[i] - reading);
    seconds.pop_back();
    return seconds;
  }

  std::size_t find(std::string_view name) const {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].name == name) return i;
    }
    std::vector<std::string> names;
    for (const NamedValue& entry : entries) names.push_back(entry.name);
    const std::string_view suffix = ":gradient";
    const std::string_view of_value = name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : "";
    if (!of.empty() && std::find(names.begin(), names.end(), of_value) != names.end()) {
      throw Error(ErrorKind::input, "value.unknown",
                  fmt::format("there is no gradient '{}': {} does not depend on {}", name, of, of_value),
                  of_value == of ? "it is 1" : "or it is not a float");
    }
    throw Error(ErrorKind::input, "value.unknown", fmt::format("there is no value '{}'", name),
                did_you_mean(name, names));
  }

  Model model;
  std::string split, of;
  std::int64_t rows = 0;
  std::vector<NamedValue> entries;  // in the order of the model's outputs
  CompiledModel compiled;
  std::unique_ptr<Runnable> runnable;
};

Inspection::Inspection(Model model, const InspectionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Inspection::~Inspection() = default;
Inspection::Inspection(Inspection&&) noexcept = default;
Inspection& Inspection::operator=(Inspection&&) noexcept = default;

const std::vector<Inspection::NamedValue>& Inspection::entries() const {
  return not_moved(impl_, "inspection").entries;
}
HostTensor Inspection::read(std::string_view name) const {
  const Impl& impl = not_moved(impl_, "inspection");
  const std::size_t i = impl.find(name);
  HostTensor tensor(impl.entries[i].type.dtype, impl.entries[i].type.shape);
  impl.runnable->read(impl.buffer(i), tensor.bytes());
  return tensor;
}
std::vector<double> Inspection::times(double within) {
  return not_moved(impl_, "inspection").times(within);
}
const std::string& Inspection::split() const {
  return not_moved(impl_, "inspection").split;
}
std::int64_t Inspection::rows() const {
  return not_moved(impl_, "inspection").rows;
}
const std::string& Inspection::of() const {
  return not_moved(impl_, "inspection").of;
}

}  // namespace graphrun
