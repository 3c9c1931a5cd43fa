// graph_run.h: runs an ir::Graph of one or more phases on an executor: lower, load, write, run, read, by node.
// Contract: the constructor lowers with the executor's own supports() and throws Error "step.unsupported" for
// unsupported steps. Before the first run, all memory except states holds garbage, not zeros.
// Leaves to others: passes (none are run), expected values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"
#include "graphrun/tensor.h"

namespace graphrun::test {

enum class Layout { planned, guarded };

class GraphRun {
 public:
  GraphRun(const ir::Graph& graph, std::shared_ptr<Executor> executor, Layout layout = Layout::planned,
           const std::optional<ElementLimits>& elements = {});

  void write(ir::NodeId node, const HostTensor& tensor);
  HostTensor read(ir::NodeId node);
  void run(PhaseId phase = 0, std::uint64_t n = 1) { runnable_->run(phase, n); }

  void spoil();                // fills all memory except states with garbage
  std::string broken_guard();  // name of the overwritten guard, or ""; always "" in the planned layout

  const Program& program() const { return program_; }
  Runnable& runnable() { return *runnable_; }
  BufferId buffer(ir::NodeId node) const { return buffer_of_[node]; }
  bool share_storage(ir::NodeId a, ir::NodeId b) const;

 private:
  std::shared_ptr<Executor> executor_;
  std::vector<TensorType> types_;  // indexed by node
  std::vector<BufferId> buffer_of_;
  Program program_;
  std::vector<BufferId> guards_;
  std::unique_ptr<Runnable> runnable_;
};

// `elements`: with regions over elements within these limits, if the executor supports them.
Compiled lower_for(const ir::Graph& graph, const Executor& executor, const std::optional<ElementLimits>& elements = {});

// The registered executors that work on this machine, created once; `missing` holds the reasons for the others.
struct Executors {
  std::vector<std::pair<std::string, std::shared_ptr<Executor>>> present;
  std::vector<std::pair<std::string, std::string>> missing;
};
const Executors& executors();
std::shared_ptr<Executor> executor(std::string_view name);  // must be present

}  // namespace graphrun::test
