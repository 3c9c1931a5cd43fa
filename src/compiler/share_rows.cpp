// share_rows: splits each batch of the phase `train` into shards, so that members can compute one each (members.h).
// Contract: a pure function. Minibatches and random samples with rows get the counter of the shard, kernels stop at the
// rows of the shard, and a value that is reduced over rows is combined over the shards before anything reads it. The
// row count of the whole batch stays for means. The graph holds the number of shards but not which shard a member has:
// that is a number the host writes ("train/shard"). Throws Error that names a value whose rows depend on the rest of
// the batch in a way that cannot be combined. Not here: combining (session/compiling/members.h), sizes
// (bind_batch.cpp).
#include <fmt/format.h>

#include <map>

#include "compiler/graph_analysis.h"
#include "compiler/passes.h"
#include "graph/ops/infer.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/op_traits.h"

namespace graphrun {
namespace {

using ir::Graph, ir::kNoNode, ir::Node, ir::NodeId;

[[noreturn]] void reject(const Node& node, std::string why) {
  Diagnostic diagnostic;
  diagnostic.code = "shards.rows";
  diagnostic.message = std::move(why);
  point_to(node, diagnostic);
  diagnostic.hint = "train it without --shards and --ranks";
  throw Error(ErrorKind::input, {std::move(diagnostic)});
}

// Reason why shards cannot compute the value; "" if they can.
std::string fault_of(const Node& node, RowKind kind) {
  if (node.op == family_op::varying_minibatch || node.op == family_op::varying_row_count)
    return "the number of rows varies, and shards need a fixed one";
  if (kind == RowKind::opaque || (kind == RowKind::reduced && !traits_of(node.op).combine))
    return "its rows depend on the rest of the batch, so shards cannot compute it";
  if (node.type.rows == 0)
    for (int axis = 0; axis < node.type.shape.rank(); ++axis)
      if (batch_rows(node.type.shape[axis]) > 0) return "it has as many elements as the batch, which a shard has not";
  return {};
}

class Sharer {
 public:
  Sharer(const Graph& graph, std::uint32_t phase, std::int64_t shards)
      : graph_(graph), kinds_(row_kinds(graph)), phase_(phase), shards_(shards) {}

  Rewritten run() {
    shard_ =
        add(Op::input, {}, {{"dtype", std::string("u64")}, {"shape", std::vector<std::int64_t>{}}}, "train/shard", {});
    result_.nodes.back().phase = ir::kShared;
    for (NodeId id = 0; id < graph_.size(); ++id) copy(id);
    IdMap ids{std::move(mapped_)};
    result_.phases = renumbered(graph_.phases, ids);
    result_.phases[phase_].shards = shards_;
    if (count_ != kNoNode) result_.phases[phase_].row_count = count_;
    return {std::move(result_), std::move(ids)};
  }

 private:
  NodeId add(Op op, std::vector<NodeId> inputs, const AttrList& attrs, std::string name, const ir::SourceRef& source) {
    Node node;
    node.op = op;
    node.def = &op_def(op);
    node.inputs = std::move(inputs);
    node.attrs = ir::Attrs(node.def->attrs, attrs);
    node.name = std::move(name);
    node.phase = phase_;
    node.source = source;
    node.type = infer::type_of(result_, node);
    result_.nodes.push_back(std::move(node));
    return result_.size() - 1;
  }

  // The counter of the shard, for a counter of batches.
  NodeId shard_step(NodeId step) {
    const auto [entry, fresh] = steps_.try_emplace(step, kNoNode);
    if (fresh)
      entry->second = add(Op::shard_step, {step, shard_}, {{"shards", shards_}},
                          fmt::format("train/shard_step{}", steps_.size() > 1 ? steps_.size() : 0), {});
    return entry->second;
  }

  static AttrList with_shards(const Node& node, std::int64_t shards) {
    AttrList attrs = node.attrs.list();
    for (auto& [name, value] : attrs)
      if (name == "shards") value = shards;
    return attrs;
  }

  void copy(NodeId id) {
    Node node = graph_[id];
    for (NodeId& input : node.inputs) input = mapped_[input];
    const bool trains = node.phase == phase_;
    if (trains)
      if (std::string why = fault_of(node, kinds_[id]); !why.empty()) reject(node, std::move(why));
    const bool selects = node.def->rows == RowRule::select || node.op == Op::dropout;
    if (trains && selects && node.type.rows > 0) {
      node.inputs.back() = shard_step(node.inputs.back());
      if (node.op == Op::minibatch) node.attrs = ir::Attrs(node.def->attrs, with_shards(node, shards_));
    }
    if (trains && kinds_[id] == RowKind::reduced) {
      const AttrList attrs = {{"shards", shards_}, {"combine", static_cast<std::int64_t>(*traits_of(node.op).combine)}};
      Node whole = node;
      node.name += ":shard";
      node.keep = node.poll = false;
      result_.nodes.push_back(std::move(node));
      const NodeId all = add(Op::combine_shards, {result_.size() - 1}, attrs, whole.name, whole.source);
      result_[all].keep = whole.keep;
      result_[all].poll = whole.poll;
      mapped_.push_back(all);
      return;
    }
    result_.nodes.push_back(std::move(node));
    mapped_.push_back(result_.size() - 1);
    if (id != graph_.phases[phase_].row_count) return;
    const Node& count = result_.nodes.back();
    const NodeId step = count.inputs[0];
    const AttrList attrs = with_shards(count, shards_);
    const std::string name = count.name + ":shard";
    count_ = add(Op::row_count, {shard_step(step)}, attrs, name, {});
  }

  const Graph& graph_;
  std::vector<RowKind> kinds_;
  std::uint32_t phase_;
  std::int64_t shards_;
  Graph result_;
  std::vector<NodeId> mapped_;
  std::map<NodeId, NodeId> steps_;  // shard_step of each counter
  NodeId shard_ = kNoNode, count_ = kNoNode;
};

}  // namespace

Rewritten share_rows(const Graph& graph, std::int64_t shards) {
  for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase)
    if (graph.phases[phase].name == "train") return Sharer(graph, phase, shards).run();
  return {graph, IdMap::identity(graph.size())};
}

}  // namespace graphrun
