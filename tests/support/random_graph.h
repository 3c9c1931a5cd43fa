// random_graph.h: seeded random graphs of one phase over the whole registry: rows, partial batches, broadcasting,
// dtypes where meant, attributes within the bounds of their schema.
// Contract: the same seed and candidate give the same graph. Every step is one that ref and the candidate support, all
// values are finite and of moderate size, and the operands of a discontinuous op stay away from its edges, so that two
// right executors agree. A new op of the registry takes part by itself; one with a domain or with edges gets a row in
// the table of random_graph.cpp. Leaves to others: running and comparing.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graphrun/executor.h"
#include "graphrun/tensor.h"

namespace graphrun::test {

struct RandomGraph {
  ir::Graph graph;
  std::vector<std::pair<ir::NodeId, HostTensor>> inputs;  // what to write before the step
  std::vector<std::pair<ir::NodeId, HostTensor>> kept;    // nodes to read after it: what ref computed for each alone
  std::int64_t samples = 0;                               // in this batch
};

// Of 1 to `largest_batch` samples at most; values grow with it.
RandomGraph random_graph(std::uint64_t seed, const Executor& candidate, std::int64_t largest_batch = 6);

// Ops that take no part: effects on states, which are no values of their own, and rows in use, of which there are
// others than the phase says.
bool is_left_out(std::string_view op);

}  // namespace graphrun::test
