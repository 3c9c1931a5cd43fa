#include "compiler/views.h"

#include <algorithm>
#include <optional>

#include "graph/ops/infer.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun {
namespace {

using ir::Graph, ir::Node, ir::NodeId;

// Whether both show the same elements in the same order. Strides of axes of extent 1 do not matter.
bool shows_the_same(View a, View b) {
  for (View* view : {&a, &b})
    for (int axis = 0; axis < view->extents.rank(); ++axis)
      if (view->extents[axis] == 1) view->strides[axis] = 0;
  return a == b;
}

class ViewFinder {
 public:
  ViewFinder(const Graph& graph, const GraphAnalysis& analysis,
             const std::function<bool(const StepSignature&)>& takes_views)
      : graph_(graph), analysis_(analysis), takes_views_(takes_views) {
    views_.shown.assign(graph.size(), false);
  }

  Views run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      views_.root.push_back(id);
      views_.view.push_back(dense(graph_[id].type.shape));
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (analysis_.is_view(id)) {
        const View& from = views_.view[node.inputs[0]];
        views_.root[id] = views_.root[node.inputs[0]];
        views_.shown[id] = !is_dense(from);
        views_.view[id] = reshaped(from, node.type.shape);
      } else if (const std::optional<View> view = shown(id)) {
        const NodeId root = views_.root[node.inputs[0]];
        const bool same = shows_the_same(*view, views_.view[node.inputs[0]]);  // an explicit copy
        if (same || !may_show(root, node.op) || !may_be_shown(id) || !all_take(id, root, *view)) continue;
        views_.root[id] = root;
        views_.view[id] = *view;
        views_.shown[id] = true;
      }
    }
    return std::move(views_);
  }

 private:
  bool overwrites(NodeId id) const { return analysis_.overlays[id] == Overlay::state; }

  // View of the node's elements in the storage of its operand, if they are stored there.
  std::optional<View> shown(NodeId id) const {
    const Node& node = graph_[id];
    if (!takes_views_ || (node.op != Op::slice && node.op != Op::transpose && node.op != Op::broadcast_to &&
                          node.op != family_op::windows))
      return std::nullopt;
    const TensorType& of = graph_[node.inputs[0]].type;
    const View& from = views_.view[node.inputs[0]];
    if (!(from.extents == of.shape)) return std::nullopt;
    if (node.op == Op::broadcast_to) {
      if (of.rows != node.type.rows) return std::nullopt;  // rows past the count would not be zero
      return broadcast(from, node.type.shape);
    }
    const Params params = infer::params_of(graph_, node);
    if (const auto* slice = params.get_if<SliceParams>())
      return sliced(from, slice->axis, slice->start, node.type.shape[slice->axis]);
    if (const auto* windows = params.get_if<WindowParams>()) return windowed(from, *windows);
    return permuted(from, params.as<PermuteParams>().axes);
  }

  // A dense view, as the same elements in another shape; other views keep their axes.
  static View reshaped(const View& from, const Shape& shape) {
    if (!is_dense(from)) return from;
    View view = dense(shape);
    view.offset = from.offset;
    return view;
  }

  // Nothing but windows, whose copies are many times as large, may show a part of a batch or of a region's result:
  // otherwise the batch could not be read in place in the data set.
  bool may_show(NodeId root, Op op) const {
    if (overwrites(root)) return false;
    return op == family_op::windows || (!analysis_.in_rows(root) && graph_[root].def->rows != RowRule::select);
  }
  bool may_be_shown(NodeId id) const {
    const Node& node = graph_[id];
    return !node.keep && !node.poll && !analysis_.in_rows(id) && !analysis_.in_chain(id) &&
           !analysis_.consumers[id].empty() && node.type.shape.elements() > 0;
  }

  // Whether all readers of the value can read it through the view.
  bool all_take(NodeId value, NodeId root, const View& view) const {
    const std::vector<NodeId>& readers = analysis_.consumers[value];
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      if (analysis_.in_rows(reader) || overwrites(reader) || written_before(reader, root)) return false;
      if (!analysis_.is_view(reader)) return takes(reader, value, view);
      return may_be_shown(reader) && all_take(reader, root, reshaped(view, graph_[reader].type.shape));
    });
  }
  // The chains of a region have no order, so a writer in any of them counts.
  bool written_before(NodeId reader, NodeId state) const {
    const NodeId end = analysis_.in_chain(reader) ? graph_.regions[analysis_.places[reader].region].last : reader;
    return std::any_of(analysis_.writers[state].begin(), analysis_.writers[state].end(),
                       [&](NodeId writer) { return writer < end && graph_[writer].phase == graph_[reader].phase; });
  }
  bool takes(NodeId reader, NodeId value, const View& view) const {
    StepSignature signature = signature_of(graph_, reader);
    for (const NodeId input : graph_[reader].inputs)
      signature.views.push_back(input == value ? view : views_.view[input]);
    signature.in_chain = analysis_.in_chain(reader);
    const NodeId first = analysis_.places[reader].chain;
    const bool after_product = signature.in_chain && first != reader && graph_[first].op == Op::matmul;
    return !after_product && takes_views_(signature);
  }

  const Graph& graph_;
  const GraphAnalysis& analysis_;
  const std::function<bool(const StepSignature&)>& takes_views_;
  Views views_;
};

}  // namespace

Views find_views(const Graph& graph, const GraphAnalysis& analysis,
                 const std::function<bool(const StepSignature&)>& takes_views) {
  return ViewFinder(graph, analysis, takes_views).run();
}

}  // namespace graphrun
