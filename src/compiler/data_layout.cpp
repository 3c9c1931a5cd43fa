#include "compiler/data_layout.h"

#include <algorithm>

#include "graph/ops/op_def.h"
#include "graphrun/batches.h"
#include "graphrun/op.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::kNoNode, ir::Node, ir::NodeId;

// Padding the batches to whole vectors may enlarge a data set by up to an eighth.
constexpr std::int64_t kMaxFilling = 8;

class DataLayoutFinder {
 public:
  DataLayoutFinder(const Graph& graph, const GraphAnalysis& analysis, const TileChoice& choice)
      : graph_(graph), analysis_(analysis), aligned_(choice.rows % kTileLanes == 0) {}

  DataLayout run() {
    DataLayout layout{std::vector<std::int64_t>(graph_.size(), 0), std::vector<bool>(graph_.size(), false)};
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      const bool data = node.def->state != nullptr && node.def->state(node.attrs) == BufferKind::data;
      if (!data || node.type.rows > 0 || node.type.dtype != DType::f32) continue;
      if (node.type.shape.rank() == 0 || node.type.shape.elements() == 0) continue;
      Readers readers;
      if (analysis_.consumers[id].empty() || !find_readers(id, node.type.shape[0], readers)) continue;
      for (NodeId view : readers.views) layout.block[view] = readers.block;
      for (NodeId rows : readers.rows) mark_in_place(rows, layout.in_place);
    }
    return layout;
  }

 private:
  struct Readers {
    std::int64_t block = 0;
    std::vector<NodeId> views;  // the data set, and views into it
    std::vector<NodeId> rows;   // values with rows: views of the whole data set, and minibatches
  };

  bool is_view(NodeId id) const { return analysis_.is_view(id); }

  // Returns false if a reader cannot read vectors.
  bool find_readers(NodeId data, std::int64_t samples, Readers& readers) const {
    readers.views = {data};
    for (std::size_t i = 0; i < readers.views.size(); ++i) {  // grows during the loop
      if (!find_readers_of(readers.views[i], samples, readers)) return false;
    }
    return true;
  }

  bool find_readers_of(NodeId id, std::int64_t samples, Readers& readers) const {
    return std::all_of(analysis_.consumers[id].begin(), analysis_.consumers[id].end(), [&](NodeId reader) {
      const Node& node = graph_[reader];
      if (is_view(reader)) {
        if (node.keep || node.type.rows == 0) return false;
        readers.views.push_back(reader);
        if (graph_[id].type.rows == 0) readers.rows.push_back(reader);
        return true;
      }
      if (!aligned_ || !analysis_.in_rows(reader)) return false;
      if (graph_[id].type.rows > 0) return agree(samples, samples, readers);  // the whole data set is one batch
      return node.def->rows == RowRule::select && !node.attrs.boolean("shuffle") && node.attrs.integer("shards") == 1 &&
             counts_its_rows(reader, samples) && agree(node.type.shape[0], samples, readers) &&
             (readers.rows.push_back(reader), true);
    });
  }

  static bool agree(std::int64_t capacity, std::int64_t samples, Readers& readers) {
    const std::int64_t block = std::min(capacity, samples);
    const std::int64_t filling = (kTileLanes - block % kTileLanes) % kTileLanes;
    if (block < samples && filling * kMaxFilling > block) return false;
    if (readers.block == 0) readers.block = block;
    return readers.block == block;
  }

  // Whether the phase counts the rows of this minibatch: then nothing beyond them is read.
  bool counts_its_rows(NodeId minibatch, std::int64_t samples) const {
    const Node& node = graph_[minibatch];
    const Batches batches{samples, node.type.shape[0], node.attrs.boolean("drop_last")};
    const NodeId counter = graph_.phases[node.phase].row_count;
    if (counter == kNoNode) return batches.all_full();
    const Node& count = graph_[counter];
    return count.op == Op::row_count && count.inputs[0] == node.inputs[1] && count.attrs.integer("total") == samples &&
           count.attrs.integer("capacity") == batches.capacity && !batches.drop_last;
  }

  void mark_in_place(NodeId id, std::vector<bool>& in_place) const {
    std::vector<NodeId> values = {id};  // `id` and its views
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!read_in_place(values[i], id, values)) return;
    }
    for (NodeId value : values) in_place[value] = true;
  }
  // A minibatch is read in place only by the stage that makes it; a view of the data set, by every stage that loads it.
  bool read_in_place(NodeId id, NodeId rows, std::vector<NodeId>& views) const {
    if (graph_[id].keep || graph_[id].poll) return false;
    const bool one_feature = graph_[id].type.shape.elements() == graph_.phases[graph_[id].phase].capacity;
    return std::all_of(analysis_.consumers[id].begin(), analysis_.consumers[id].end(), [&](NodeId reader) {
      if (is_view(reader)) {
        views.push_back(reader);
        return true;
      }
      const bool here =
          is_view(rows) ? analysis_.in_rows(reader) : analysis_.places[reader].stage == analysis_.places[rows].stage;
      return here && (one_feature || graph_[reader].def->rows == RowRule::contraction);
    });
  }

  const Graph& graph_;
  const GraphAnalysis& analysis_;
  bool aligned_;  // false: tiles would begin within vectors
};

}  // namespace

DataLayout lay_out_data(const Graph& graph, const GraphAnalysis& analysis, const TileChoice& choice, bool in_vectors) {
  if (!in_vectors) return {std::vector<std::int64_t>(graph.size(), 0), std::vector<bool>(graph.size(), false)};
  return DataLayoutFinder(graph, analysis, choice).run();
}

}  // namespace graphrun::plan
