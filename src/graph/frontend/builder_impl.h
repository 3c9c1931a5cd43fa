// builder_impl.h: what a GraphBuilder holds, for the library's own layers.
// Contract: `graph` has one phase (index 0, capacity = batch) that stands for the model function; the step graph is
// made from it by frontend/step_graph.h. Names given by the user are the nodes' names.
#pragma once

#include <map>
#include <set>

#include "graph/builder.h"
#include "graphrun/graph_builder.h"

namespace graphrun {

class GraphBuilder::Impl {
 public:
  explicit Impl(std::int64_t batch);

  std::int64_t batch;
  ir::Graph graph;
  ir::Builder builder{graph};
  std::map<ir::NodeId, Init> inits;  // of the parameters
  std::set<ir::NodeId> no_decay;     // parameters that weight_decay and l2 leave alone
  std::vector<ir::NodeId> inputs;    // in order of declaration
  std::vector<ir::NodeId> parameters;
  std::map<std::string, double, std::less<>> constants;  // "constants" of the model file, and pi and e
};

}  // namespace graphrun
