// passes.h: runs the rewriting passes on a graph and verifies the result of each.
#pragma once

#include "compiler/passes.h"
#include "graph/verifier.h"

namespace graphrun {

inline ir::Graph run_passes(ir::Graph graph) {
  verify(graph);
  for (const auto pass : {simplify, remove_dead}) {
    graph = pass(graph).graph;
    verify(graph);
  }
  return graph;
}

}  // namespace graphrun
