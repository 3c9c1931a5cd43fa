#include "compiler/pipeline.h"

#include "graph/verifier.h"

namespace graphrun {

ir::Graph run_passes(const ir::Graph& graph) {
  verify(graph);
  ir::Graph result = simplify(graph);
  verify(result);
  result = remove_dead(result);
  verify(result);
  return result;
}

}  // namespace graphrun
