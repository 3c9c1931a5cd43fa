// harness.h: converts a sample to a graph of one phase and its operands to tensors, and compares results.
// Contract: the graph contains only the op's node unless a variant requests more; operands are states, the result is
// kept. Leaves to others: running it (support/graph_run.h), the checks (the *_test.cpp files).
#pragma once

#include <string>
#include <vector>

#include "conformance/sample.h"
#include "graph/builder.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {

struct SampleGraph {
  ir::Graph graph;
  std::vector<ir::NodeId> operands;
  ir::NodeId row_count = ir::kNoNode;
  ir::NodeId result = ir::kNoNode;
};

// Source of the op's operands.
enum class Feed {
  states,         // directly from the states
  dying_copies,   // copies without other readers: the op may overwrite them
  living_copies,  // copies that are also read after the step
  same_twice,     // both operands are one dying copy (binary ops on one type)
};

// Builds the op's node over the sample's states, in phase 0. `copies` receives the intermediate nodes, if not null.
SampleGraph build(const Sample& sample, Feed feed = Feed::states, std::vector<ir::NodeId>* copies = nullptr);
// Builds the sample's states and enters the empty phase: the base of other graphs around the op.
SampleGraph build_operands(ir::Builder& builder, ir::Graph& graph, const Sample& sample);

std::vector<HostTensor> operand_values(const Sample& sample);
void write_operands(GraphRun& run, const SampleGraph& built, const Sample& sample,
                    const std::vector<HostTensor>& values);

inline std::int64_t samples_in_batch(const Sample& sample) {
  return sample.count < 0 ? sample.capacity : sample.count;
}

// Returns "" or a description of the first element out of tolerance. NaN only matches NaN, infinity the same infinity.
std::string difference(const HostTensor& value, const HostTensor& reference, Tolerance tolerance);
// Returns "" or a description of the first nonzero element past the batch.
std::string stray_row(const HostTensor& value, const TensorType& type, std::int64_t samples);

// Name of a test, such as "cpu/matmul/transpose_a_partial_rows".
std::string full_name(std::string_view executor, const Sample& sample);

}  // namespace graphrun::test
