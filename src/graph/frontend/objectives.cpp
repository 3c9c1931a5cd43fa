#include "graph/frontend/objectives.h"

#include <algorithm>

#include "graph/frontend/builder_impl.h"
#include "graph/ir/needed.h"

namespace graphrun {

std::vector<Objective> objectives_of(const Model& model) {
  const GraphBuilder::Impl& graph = model.graph.impl();
  const TrainSpec& train = model.train;
  std::vector<Objective> found;
  for (const ObjectiveSpec& spec : train.objectives) {
    Objective& one =
        found.emplace_back(Objective{spec.name, graph.node(spec.minimize), {}, &spec.optimizer, spec.every});
    for (const Value parameter : spec.parameters) one.parameters.push_back(graph.node(parameter));
  }
  if (!found.empty() || !train.minimize.valid()) return found;
  const ir::NodeId loss = graph.node(train.minimize);
  const std::vector<bool> reached = ir::needed_by(graph.graph, {&loss, 1});
  std::vector<ir::NodeId> parameters = graph.trainable();
  std::erase_if(parameters, [&](ir::NodeId id) { return !reached[id]; });
  return {{"", loss, std::move(parameters), &train.optimizer}};
}

}  // namespace graphrun
