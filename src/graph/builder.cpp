#include "graph/builder.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>
#include <unordered_map>

#include "graph/ir/needed.h"
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/op_traits.h"

namespace graphrun::ir {
NodeId Builder::add(std::string_view op_name, std::vector<NodeId> inputs, const AttrList& attrs) {
  const OpDef* op = find_op_def(op_name);
  if (op == nullptr)
    throw Error(ErrorKind::input, "op.unknown", fmt::format("unknown op '{}'", op_name),
                did_you_mean(op_name, op_names()));
  const bool enough = op->variadic ? inputs.size() >= op->operands.size() : inputs.size() == op->operands.size();
  if (!enough || inputs.size() > kMaxOperands) {
    throw Error(ErrorKind::input, "op.arity",
                fmt::format("{} takes {} operand{} ({}), got {}", op->name(), op->operands.size(),
                            op->operands.size() == 1 ? "" : "s", fmt::join(op->operands, ", "), inputs.size()),
                op->variadic ? fmt::format("the last one may come up to {} times in all", kMaxOperands) : "");
  }
  Node node;
  node.op = op->op;
  node.def = op;
  node.phase = op->state != nullptr ? kShared : phase_;
  node.source = source_;
  node.inputs = std::move(inputs);
  for (NodeId id : node.inputs) {
    if (id >= graph_.size()) throw std::logic_error("Builder::add: an input that is not in the graph");
  }
  try {
    node.attrs = Attrs(op->attrs, attrs);
    node.type = infer::type_of(graph_, node);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      diagnostic.message = fmt::format("{}: {}", op->name(), diagnostic.message);
    }
    throw Error(error.kind(), std::move(diagnostics));
  }
  node.name = unique(op->name());
  const NodeId id = graph_.size();
  names_.emplace(node.name, id);
  graph_.nodes.push_back(std::move(node));
  const bool is_narrow = widens_ && op->op != Op::record && traits_of(op->op).dtypes.ends_with(">S");
  return is_narrow ? add("cast", {id}, {{"dtype", make::dtype(DType::f32)}}) : id;
}

NodeId Builder::scalar(double value, DType dtype) {
  const auto [entry, fresh] = scalars_.try_emplace({std::bit_cast<std::uint64_t>(value), dtype}, kNoNode);
  if (fresh) entry->second = make::source(*this, "constant", {dtype, {}, 0}, {{"values", std::vector{value}}}).id;
  return entry->second;
}

NodeId Builder::sample_count(DType dtype) {
  if (phase_ == kShared) throw std::logic_error("Builder::sample_count: outside a phase");
  const Phase& phase = graph_.phases[phase_];
  if (phase.row_count == kNoNode) return scalar(static_cast<double>(phase.capacity), dtype);
  const auto [entry, fresh] = sample_counts_.try_emplace({phase_, dtype}, kNoNode);
  if (fresh) entry->second = add("cast", {phase.row_count}, {{"dtype", make::dtype(dtype)}});
  return entry->second;
}

NodeId Builder::step() {
  if (step_ == kNoNode) throw std::logic_error("Builder::step: no counter");
  return step_;
}

NodeId Builder::training() {
  if (training_ == kNoNode) {
    training_ = make::source(*this, "input", {DType::boolean, {}, 0}).id;
    rename(training_, "batch.training");
  }
  return training_;
}

void Builder::enter(std::uint32_t phase) {
  if (phase != kShared && phase >= graph_.phases.size()) throw std::logic_error("Builder::enter: no such phase");
  phase_ = phase;
}

void Builder::rename(NodeId id, std::string name) {
  const auto [entry, fresh] = names_.emplace(name, id);
  if (!fresh && entry->second != id) {
    const SourceRef& other = graph_[entry->second].source;
    throw Error(ErrorKind::input, "name.taken", fmt::format("the name '{}' is already taken", name),
                other.line > 0 ? fmt::format("it is defined at line {}, column {}", other.line, other.column) : "");
  }
  if (graph_[id].name == name) return;
  names_.erase(graph_[id].name);
  graph_[id].name = std::move(name);
}

NodeId Builder::find(std::string_view name) const {
  const auto entry = names_.find(name);
  return entry == names_.end() ? kNoNode : entry->second;
}

namespace {
AttrList with_f64(const Attrs& own) {
  AttrList attrs = own.list();
  for (auto& [name, value] : attrs)
    if (name == "dtype" && value == make::dtype(DType::f32)) value = make::dtype(DType::f64);
  return attrs;
}
}  // namespace

NodeId copy_as_f64(Builder& builder, const Graph& from, NodeId wanted, const std::function<NodeId(NodeId)>& given) {
  std::unordered_map<NodeId, NodeId> copied;
  for (const NodeId id : needed_nodes(from, wanted, [&](NodeId i) { return given(i) != kNoNode; })) {
    NodeId& copy = copied[id] = given(id);
    if (copy != kNoNode) continue;
    std::vector<NodeId> inputs;
    for (const NodeId input : from[id].inputs) inputs.push_back(copied.at(input));
    copy = builder.add(name_of(from[id].op), std::move(inputs), with_f64(from[id].attrs));
    if (builder.type(copy).dtype == DType::f32) copy = make::cast({&builder, copy}, DType::f64).id;  // one_hot
  }
  return copied.at(wanted);
}

void widen(Graph& graph) {
  std::vector<bool> stays(graph.size());
  for (const Node& node : graph.nodes)
    if (node.op == Op::record) stays[node.inputs[0]] = stays[node.inputs[1]] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node& node = graph[id];
    if (!stays[id]) node.attrs = Attrs(node.def->attrs, with_f64(node.attrs));
    node.type = infer::type_of(graph, node);
  }
}

std::string Builder::unique(std::string_view stem) const {
  auto counter = counters_.find(stem);
  if (counter == counters_.end()) counter = counters_.emplace(std::string(stem), 0).first;
  std::string name;
  do {
    name = fmt::format("{}_{}", stem, ++counter->second);
  } while (names_.count(name) != 0);
  return name;
}

}  // namespace graphrun::ir
