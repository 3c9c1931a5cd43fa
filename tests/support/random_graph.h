// random_graph.h: seeded random graphs of one phase over all registered ops: rows, partial batches, broadcasting,
// dtypes, attributes within the bounds of their schema.
// Contract: the same seed and candidate give the same graph. Both ref and the candidate support every step. All values
// are finite and of moderate size, and operands of a discontinuous op stay away from its edges, so that two correct
// executors agree. New ops in the registry are included automatically; one with a restricted domain or with edges needs
// a row in the table of random_graph.cpp. Leaves to others: running and comparing.
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
  std::vector<std::pair<ir::NodeId, HostTensor>> inputs;  // values to write before the step
  std::vector<std::pair<ir::NodeId, HostTensor>> kept;    // nodes to read after it, with ref's value of each node alone
  std::int64_t samples = 0;                               // in this batch
};

// Graph for a batch capacity of 1 to `largest_batch` samples; values grow with it. `real`: type of the sources.
RandomGraph random_graph(std::uint64_t seed, const Executor& candidate, std::int64_t largest_batch = 6,
                         DType real = DType::f32);

// Ops that are excluded: effects on states, which have no value of their own, rows in use, whose number differs from
// the phase's, solve_spd, which needs a positive definite matrix, and ops of shards, which other ranks complete.
bool is_left_out(std::string_view op);

}  // namespace graphrun::test
