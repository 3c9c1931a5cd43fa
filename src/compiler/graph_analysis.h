// graph_analysis.h: readers, overlays, view roots, regions and rows of the nodes of a graph, computed once for all
// passes; and the signatures of nodes and regions for executors. Contract: pure functions of the graph; vectors are
// indexed by node id. Not here: decisions based on this: storage (storage.h), regions (regions.h), layouts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun {

// How a value depends on the batch. Follows from the ops' rules (OpDef::rows) and the declared row flags, never from
// sizes.
enum class RowKind : std::uint8_t {
  row,      // dimension 0 is the batch; rows are independent
  shared,   // the same for all rows
  reduced,  // a sum, product or extremum over the rows of a value
  opaque,   // made from rows in a way that no rule describes
};
std::string_view name_of(RowKind kind);

std::vector<RowKind> row_kinds(const ir::Graph& graph);

// Place of a node in the graph's regions; kNoNode: none.
struct RegionPlace {
  std::uint32_t region = ir::kNoNode;  // index in the graph
  ir::NodeId stage = ir::kNoNode;      // first row step of the stage whose row step it is
  ir::NodeId chain = ir::kNoNode;      // first step of its chain
};

struct GraphAnalysis {
  std::vector<std::vector<ir::NodeId>> consumers;  // in order
  std::vector<Overlay> overlays;                   // from OpDef::view and the traits
  std::vector<ir::NodeId> roots;                   // node that a view shows, through other views; any other node itself
  std::vector<std::vector<ir::NodeId>> writers;    // per state: nodes of all phases that overwrite it, in order
  std::vector<RegionPlace> places;

  bool is_view(ir::NodeId id) const { return overlays[id] == Overlay::view; }
  // Whether it is a row step of a region, or a view there.
  bool in_rows(ir::NodeId id) const { return places[id].stage != ir::kNoNode; }
  bool in_chain(ir::NodeId id) const { return places[id].chain != ir::kNoNode; }
};

std::int64_t elements_of(const ir::Node& node);  // elements that it computes: a record writes one

GraphAnalysis analyze(const ir::Graph& graph);

bool reads_rows(const ir::Graph& graph, const ir::Node& node);  // whether an operand has rows

// The nodes, given in order, that the host or a node not among them reads, directly or through views.
std::set<ir::NodeId> leaving(const ir::Graph& graph, const GraphAnalysis& analysis, std::span<const ir::NodeId> nodes);

std::vector<ir::NodeId> nodes_of(const ir::Graph& graph, std::uint32_t phase);

StepSignature signature_of(const ir::Graph& graph, ir::NodeId id);

// Executor::region_choices() for one target.
using PlanRegion = std::function<RegionPlan(const RegionSignature&)>;

// Steps of a graph in the form that Executor::region_choices() takes: an element region if chains were added; otherwise
// a row region.
class RegionQuestion {
 public:
  RegionQuestion(const ir::Graph& graph, const GraphAnalysis& analysis, std::uint32_t phase)
      : graph_(graph), analysis_(analysis) {
    region_.capacity = graph.phases[phase].capacity;
  }

  // Adds a step that runs over the rows of a stage, or once.
  void add(ir::NodeId id, std::optional<std::uint32_t> stage);
  void add(const ir::FusedNodes& nodes);
  void add_chain(std::span<const ir::NodeId> steps);
  RegionPlan ask(const PlanRegion& plan, const RegionSize& size = {});  // once

 private:
  const ir::Graph& graph_;
  const GraphAnalysis& analysis_;
  RegionSignature region_;
  std::vector<ir::NodeId> row_ids_, once_ids_;
};

// Adds the node's name, op and position in the model file to the diagnostic.
void point_to(const ir::Node& node, Diagnostic& diagnostic);

}  // namespace graphrun
