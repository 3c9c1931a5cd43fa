// step_builder.cpp: data, minibatches, copies and records of a step graph.
#include "graph/frontend/step/step_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/philox.h"
#include "graph/ir/needed.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;

const WindowedInput* find_windows(const Split& split, const std::string& input) {
  const auto found = std::ranges::find(split.windows, input, &WindowedInput::input);
  return found == split.windows.end() ? nullptr : &*found;
}

}  // namespace

StepBuilder::StepBuilder(const Model& of)
    : model(of),
      source(of.graph.impl()),
      objectives(objectives_of(of)),
      in_training(with_phase_choices(source.builder, true)),
      otherwise(with_phase_choices(source.builder, false)),
      copied(source.graph.size(), kNoNode) {
  if (is_wide()) make.will_widen();
}

const ir::Graph& StepBuilder::specialized() const {
  return result.phases.back().name == "train" ? in_training : otherwise;
}

NodeId StepBuilder::add_named(const std::string& name, Var node) {
  make.rename(node.id, name);
  return node.id;
}

NodeId StepBuilder::add_state(const std::string& name, const TensorType& type, std::string_view kind) {
  return add_named(name, make::source(make, "state", type, {{"kind", std::string(kind)}}));
}

NodeId StepBuilder::add_input(const std::string& name, const TensorType& type) {
  return add_named(name, make::source(make, "input", type, {{"rows", type.rows}}));
}

void StepBuilder::add_data(const Split& split) {
  if (split.rows_vary) {
    const std::string name = fmt::format("data/{}:rows", split.name);
    result.rows.emplace_back(split.name, add_input(name, {DType::u64, {}, 0}));
  }
  for (const auto& [column, tensor] : split.columns) {
    const NodeId input = source.builder.find(column);
    const bool widened = is_wide() && input != kNoNode && source.graph[input].type.dtype == DType::f32;
    add_column(split, column, {widened ? DType::f32 : tensor.dtype(), tensor.shape(), 0});
  }
  // If only the size of the split is known, it gets a column per input.
  for (std::size_t i = 0; i < source.inputs.size() && split.columns.empty(); ++i) {
    TensorType type = source.graph[source.inputs[i]].type;
    type.shape[0] = split.samples();
    add_column(split, source.graph[source.inputs[i]].name, {type.dtype, type.shape, 0});
  }
  if (!split.windows.empty())
    add_state_of_data(fmt::format("data/{}:windows", split.name), {DType::f32, {split.samples()}, 0});
}

void StepBuilder::add_column(const Split& split, const std::string& column, TensorType type) {
  if (const WindowedInput* windows = find_windows(split, column)) {
    const std::int64_t rows = windows->rows(split.samples());
    type.shape = Shape{rows, type.shape.elements() / split.samples() / windows->length};
  }
  add_state_of_data(fmt::format("data/{}/{}", split.name, column), type);
}

void StepBuilder::add_state_of_data(const std::string& name, const TensorType& type) {
  const NodeId id = add_input(name, type);
  result.data.emplace_back(name, id);
  data_.emplace(name, id);
}

// Windows whose first rows are `first` (batch): row numbers, which f32 holds exactly (data/inputs.h).
Var StepBuilder::gather_windows(const WindowedInput& windows, Var first, NodeId data) {
  std::vector<double> offsets(static_cast<std::size_t>(windows.length));
  std::iota(offsets.begin(), offsets.end(), 0.0);
  TensorType type = first.type();
  const Var column = make::reshape(first, Shape{type.shape[0], 1});
  type.shape.push_back(windows.length);
  const Var begin = make::broadcast_to(column, type);
  const Var constant = make::source(make, "constant", {DType::f32, {1, windows.length}, 0}, {{"values", offsets}});
  const Var rows = begin + make::broadcast_to(constant, type);
  return make::op("gather", {var(data), make::cast(rows, DType::i32)});
}

StepPhase& StepBuilder::enter_split(const std::string& name, const Split& split) {
  const bool training = name == "train";
  const std::int64_t samples = split.samples();
  const bool drops = training && model.train.drop_last;
  StepPhase& phase = start_phase({.name = name, .split = split.name, .batches = {samples, 0, drops}});
  phase.counter = counter = add_state(name + "/step:counter", {DType::u64, {}, 0}, "counter");
  make.count_steps(counter);
  copied[source.step] = counter;
  phase.rows_vary = split.rows_vary;
  // If the number of rows varies, it is the last operand of these ops.
  const auto of_rows = [&](std::string op, std::vector<NodeId> operands, const AttrList& attrs) {
    for (const auto& [of, rows] : result.rows) {
      if (of == split.name) operands.push_back(rows);
    }
    return var(make.add(split.rows_vary ? "varying_" + op : op, std::move(operands), attrs));
  };
  graph().phases.back().row_count =
      add_named(name + "/batch:count", of_rows("row_count", {counter}, {{"total", samples}, {"drop_last", drops}}));
  AttrList attrs = {{"drop_last", drops}};
  if (training && model.train.shuffle) {
    attrs.emplace_back("shuffle", true);
    attrs.emplace_back("key", stream_key("data.shuffle"));  // same order for all columns
  }
  std::optional<Var> windows;  // first row of each window of the batch
  for (NodeId input : source.inputs) {
    const std::string& column = source.graph[input].name;
    const auto data = data_.find(fmt::format("data/{}/{}", split.name, column));
    if (data == data_.end()) continue;  // nodes that need it report it
    const WindowedInput* const windowed = find_windows(split, column);
    if (windowed != nullptr && !windows)
      windows = of_rows("minibatch", {data_.at(fmt::format("data/{}:windows", split.name)), counter}, attrs);
    const Var rows = windowed != nullptr ? gather_windows(*windowed, *windows, data->second)
                                         : of_rows("minibatch", {data->second, counter}, attrs);
    copied[input] = add_named(name + "/" + column, make::reshape(rows, source.graph[input].type.shape));
  }
  return phase;
}

std::int64_t StepBuilder::stream_key(std::string_view name) const {
  return static_cast<std::int64_t>(Stream::named(model.train.seed, name).key);
}

StepPhase& StepBuilder::start_phase(StepPhase phase) {
  graph().phases.push_back({phase.name});
  make.enter(static_cast<std::uint32_t>(graph().phases.size()) - 1);
  turn.clear();
  for (NodeId id = 0; id < source.graph.size(); ++id) {
    const Op op = source.graph[id].op;
    const bool shared = op == Op::parameter || op == Op::constant || op == Op::state;
    if (!shared) copied[id] = kNoNode;
  }
  return result.phases.emplace_back(std::move(phase));
}

NodeId StepBuilder::copy(NodeId wanted) {
  if (copied[wanted] != kNoNode) return copied[wanted];
  const std::string phase = result.phases.back().name;
  const auto ends = [&](NodeId id) { return copied[id] != kNoNode || is_sample_count(source.graph, id); };
  for (const NodeId id : ir::needed_nodes(specialized(), wanted, ends)) {
    if (copied[id] == kNoNode) copied[id] = copy_node(id, phase);
  }
  return copied[wanted];
}

NodeId StepBuilder::copy_node(NodeId id, const std::string& phase) {
  const ir::Node& node = specialized()[id];
  if (is_sample_count(source.graph, id)) return make.sample_count(node.type.dtype);
  if (node.op == Op::input) {
    throw Error(ErrorKind::input, "input.unbound",
                fmt::format("phase {} has no data for the input '{}'", phase, node.name),
                phase == "predict" ? "an output must not depend on a target" : "");
  }
  if (node.op == Op::dropout && phase != "train") return copied[node.inputs[0]];
  std::vector<NodeId> inputs;
  for (NodeId input : node.inputs) inputs.push_back(copied[input]);
  AttrList attrs = node.attrs.list();
  for (auto& [name, value] : attrs) {
    if (name != "key") continue;
    const auto other = static_cast<std::size_t>(std::get<std::int64_t>(value));  // id + 1 of the stream's node
    value = stream_key(other > 0 ? specialized()[static_cast<NodeId>(other - 1)].name : node.name);
  }
  make.at(node.source);
  const NodeId added = make.add(name_of(node.op), std::move(inputs), attrs);
  make.at({});
  if (node.phase != ir::kShared) {
    std::string name = fmt::format("{}/{}", phase, node.name);
    // Values recomputed from updated parameters get the suffix of the turn.
    if (!turn.empty() && make.find(name) != kNoNode) name += turn;
    make.rename(added, name);
  } else if (node.op == Op::parameter || node.op == Op::state) {
    make.rename(added, node.name);  // constants keep generated names
  }
  if (node.op == Op::parameter) result.parameters.emplace_back(node.name, added);
  if (const auto scalar = source.runtime.find(id); scalar != source.runtime.end())
    result.runtime.emplace_back(added, scalar->second);
  return added;
}

NodeId StepBuilder::add_ring(const StepPhase& phase, const std::string& name, NodeId value) {
  if (make.type(value).shape.rank() != 0) {
    throw Error(ErrorKind::input, "metric.scalar",
                fmt::format("'{}' must be a scalar, it is {}", name, to_string(make.type(value))),
                "mean(...) makes a scalar");
  }
  const AttrList narrow = {{"dtype", make::dtype(DType::f32)}};
  value = is_wide() ? make.add("cast", {value}, narrow) : make::cast(var(value), DType::f32).id;  // for widen()
  const NodeId ring = add_state(fmt::format("{}/{}:ring", phase.name, name), {DType::f32, {kRingSize}, 0}, "metric");
  graph()[ring].poll = true;
  // Between two polls, training may record many epochs. An evaluation records one, so its ring can be smaller.
  if (phase.name != "train") graph().phases.back().rings.push_back(ring);
  make.add("assign", {ring, make.add("record", {ring, value, counter})});
  return ring;
}

Recorded& StepBuilder::add_record(StepPhase& phase, const std::string& name, NodeId value) {
  return phase.recorded.emplace_back(Recorded{name, add_ring(phase, name, value)});
}

}  // namespace graphrun
