// The first pass: the batch, a symbol in the graph, becomes the capacity of each phase.
// Contract: a pure function. The same nodes with numbers for extents, adapted to how the samples of a phase form
// batches: sizes of rings, steps per epoch, and a constant in place of the row count if every batch is full. Types are
// inferred again from the bound inputs. Throws Error, with the node's position in the model file, if a value would be
// too large or the samples form no batch.
// Not here: choice of the capacities (session), all other rewriting.
#include <algorithm>
#include <stdexcept>

#include "compiler/graph_analysis.h"
#include "compiler/passes.h"
#include "graph/ops/infer.h"
#include "graphrun/batches.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::Graph, ir::kNoNode, ir::kShared, ir::Node, ir::NodeId;

void make_constant(Node& node, double value) {
  node.def = &op_def(Op::constant);
  node.op = Op::constant;
  node.inputs.clear();
  node.phase = kShared;
  node.attrs = ir::Attrs(node.def->attrs,
                         {{"values", std::vector<double>{value}}, {"dtype", std::string(name_of(node.type.dtype))}});
}

// Calls `change` with the name and a reference to the value of each attribute.
template <class Change>
void change_attributes(Node& node, Change change) {
  AttrList attrs = node.attrs.list();
  for (auto& [name, value] : attrs) change(name, value);
  node.attrs = ir::Attrs(node.def->attrs, attrs);
}

// Replaces the symbol by the capacity in all attributes: the rows of a shard, but minibatches know the whole batch.
void bind_attributes(Node& node, std::int64_t capacity, std::int64_t batch) {
  change_attributes(node, [&](std::string_view name, AttrValue& value) {
    if (auto* extents = std::get_if<std::vector<std::int64_t>>(&value)) {
      for (std::int64_t& extent : *extents) extent = Shape{extent}.with_batch(capacity)[0];
    } else if (name == "capacity" && std::get<std::int64_t>(value) == 0) {
      value = batch;
    }
  });
}

Error at_its_place(const Node& node, const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) point_to(node, diagnostic);
  return Error(error.kind(), std::move(diagnostics));
}

class Binder {
 public:
  Binder(const Graph& graph, std::span<const std::int64_t> capacities)
      : given_(graph), graph_(graph), batch_(capacities.begin(), capacities.end()) {
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      const std::int64_t shards = graph_.phases[i].shards;
      graph_.phases[i].capacity = (capacities[i] + shards - 1) / shards;
    }
  }

  Rewritten run() {
    find_readers();
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) count_batches(phase);
    for (NodeId id = 0; id < graph_.size(); ++id) bind(id);
    std::vector<bool> is_read(graph_.size(), false);
    for (const Node& node : graph_.nodes) {
      for (const NodeId input : node.inputs) is_read[input] = true;
    }
    std::vector<NodeId> kept;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!is_full_[id] || is_read[id]) kept.push_back(id);
    }
    return reordered(graph_, kept);
  }

 private:
  // Values that the host writes for each batch are shared nodes, but only one phase reads them.
  void find_readers() {
    phase_.assign(graph_.size(), 0);
    for (NodeId id = graph_.size(); id-- > 0;) {
      const Node& node = given_[id];
      if (node.phase != kShared) phase_[id] = node.phase;
      for (const NodeId input : node.inputs) phase_[input] = phase_[id];
    }
  }

  void count_batches(std::uint32_t index) {
    ir::Phase& phase = graph_.phases[index];
    if (phase.row_count == kNoNode || given_[phase.row_count].op != Op::row_count) return;
    const ir::Attrs& attrs = given_[phase.row_count].attrs;
    const Batches batches{attrs.integer("total"), batch_[index], attrs.boolean("drop_last")};
    for (const NodeId ring : phase.rings) {
      const std::int64_t most = given_[ring].type.shape[0];
      const std::int64_t elements = std::clamp<std::int64_t>(batches.count(), 1, most);
      change_attributes(graph_[ring], [&](std::string_view name, AttrValue& value) {
        if (name == "shape") value = std::vector<std::int64_t>{elements};
      });
    }
    if (phase.epoch_steps != kNoNode) make_constant(graph_[phase.epoch_steps], static_cast<double>(batches.count()));
    if (!batches.all_full()) return;
    const bool alike = phase.capacity * phase.shards == batch_[index];  // shards of equal size
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op != Op::row_count || node.phase != index) continue;
      is_full_[id] = alike || node.attrs.integer("shards") == 1;
    }
    if (alike) phase.row_count = kNoNode;
  }

  void bind(NodeId id) {
    Node& node = graph_[id];
    const std::int64_t capacity = graph_.phases[phase_[id]].capacity;
    is_full_[id] = is_full_[id] || (node.op == Op::cast && is_full_[node.inputs[0]]);
    if (is_full_[id]) {
      NodeId count = id;
      while (given_[count].op == Op::cast) count = given_[count].inputs[0];
      const bool of_shard = given_[count].attrs.integer("shards") > 1;
      return make_constant(node, static_cast<double>(of_shard ? capacity : batch_[phase_[id]]));
    }
    bind_attributes(node, capacity, batch_[phase_[id]]);
    try {
      node.type = infer::type_of(graph_, node);
      (void)node.type.shape.elements();
    } catch (const Error& error) {
      throw at_its_place(node, error);
    }
  }

  const Graph& given_;
  Graph graph_;
  std::vector<std::int64_t> batch_;                                      // per phase: samples of a full batch
  std::vector<std::uint32_t> phase_;                                     // per node: its own, or that of its readers
  std::vector<bool> is_full_ = std::vector<bool>(graph_.size(), false);  // row counts of full batches
};

}  // namespace

Rewritten bind_batch(const Graph& graph, std::span<const std::int64_t> capacities) {
  if (capacities.size() != graph.phases.size()) throw std::logic_error("bind_batch: a capacity for each phase");
  return Binder(graph, capacities).run();
}

}  // namespace graphrun
