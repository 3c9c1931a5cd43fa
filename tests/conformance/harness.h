// harness.h: a sample as a graph of one phase, its operands as tensors, and the comparison of results.
// Contract: the graph holds the op's node alone unless a variant asks for more; operands are states, the result is
// kept. Leaves to others: running it (support/graph_run.h), what is checked (the *_test.cpp files).
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

// Where the op's operands come from.
enum class Feed {
  states,         // straight from the states
  dying_copies,   // from copies that no one else reads: the op may take their place
  living_copies,  // from copies that are read after the step as well
  same_twice,     // both operands are one dying copy (ops of two operands of one type)
};

// The op's node over the sample's states, in phase 0. `copies`: the nodes between, when asked for.
SampleGraph build(const Sample& sample, Feed feed = Feed::states, std::vector<ir::NodeId>* copies = nullptr);
// The states of the sample and the empty phase, entered: what other graphs around the op start from.
SampleGraph build_operands(ir::Builder& builder, ir::Graph& graph, const Sample& sample);

std::vector<HostTensor> operand_values(const Sample& sample);
void write_operands(GraphRun& run, const SampleGraph& built, const Sample& sample,
                    const std::vector<HostTensor>& values);

inline std::int64_t samples_in_batch(const Sample& sample) {
  return sample.count < 0 ? sample.capacity : sample.count;
}

// "" or a sentence about the first element that is too far off. NaN must meet NaN, infinity the same infinity.
std::string difference(const HostTensor& value, const HostTensor& reference, Tolerance tolerance);
// "" or the first element past the batch that is not zero.
std::string stray_row(const HostTensor& value, const TensorType& type, std::int64_t samples);

// "cpu/matmul/transpose_a_partial_rows": the name of a test.
std::string full_name(std::string_view executor, const Sample& sample);

}  // namespace graphrun::test
