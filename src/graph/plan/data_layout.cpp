#include "graph/plan/data_layout.h"

#include <algorithm>

#include "graph/ops/op_def.h"

namespace graphrun::plan {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;

class Finder {
 public:
  Finder(const Graph& graph, std::span<const RegionLayout> layouts)
      : graph_(graph), consumers_(ir::consumers(graph)), in_rows_(graph.size(), false) {
    for (std::size_t r = 0; r < graph.regions.size(); ++r) {
      if (layouts[r].tile_rows % kTileLanes != 0) continue;
      for (const ir::RegionStage& stage : graph.regions[r].stages) {
        for (NodeId id = stage.rows; id < stage.last; ++id) in_rows_[id] = true;
      }
    }
  }

  std::vector<bool> run() {
    std::vector<bool> result(graph_.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      const bool data = node.op->state != nullptr && node.op->state(node.attrs) == BufferKind::data;
      if (!data || node.type.rows > 0 || node.type.dtype != DType::f32 || node.type.shape.rank() == 0) continue;
      std::vector<NodeId> views = {id};
      if (consumers_[id].empty() || !only_rows_read(id, views)) continue;
      for (NodeId view : views) result[view] = true;
    }
    return result;
  }

 private:
  bool is_view(NodeId id) const {
    const Node& node = graph_[id];
    if (node.op->alias == nullptr) return false;
    std::vector<TensorType> inputs;
    for (NodeId input : node.inputs) inputs.push_back(graph_[input].type);
    return node.op->alias(node.attrs, inputs, node.type).kind == Alias::Kind::view;
  }

  bool only_rows_read(NodeId id, std::vector<NodeId>& views) const {
    return std::all_of(consumers_[id].begin(), consumers_[id].end(), [&](NodeId reader) {
      const Node& node = graph_[reader];
      if (is_view(reader)) {
        if (node.keep || node.type.rows == 0) return false;
        views.push_back(reader);
        return only_rows_read(reader, views);
      }
      if (!in_rows_[reader]) return false;
      if (graph_[id].type.rows > 0) return true;  // loaded whole
      const std::int64_t capacity = node.op->rows == RowRule::select ? node.type.shape[0] : 0;
      const bool whole_vectors = capacity % kTileLanes == 0 || capacity >= graph_[id].type.shape[0];
      return capacity > 0 && whole_vectors && !node.attrs.boolean("shuffle");
    });
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> in_rows_;
};

}  // namespace

std::vector<bool> data_in_vectors(const Graph& graph, std::span<const RegionLayout> layouts) {
  return Finder(graph, layouts).run();
}

}  // namespace graphrun::plan
