// graph_run.h: runs an ir::Graph of one or more phases on an executor: lower, load, write, run, read, by node.
// Contract: the constructor lowers with the executor's own supports() and throws Error "step.unsupported" for what it
// declines. Before the first run all memory that is no state holds garbage, not zeros.
// Leaves to others: passes (none are run), what the values should be.
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

  void spoil();                // fills what is no state with garbage
  std::string broken_guard();  // "" or which guard was written; always "" in the planned layout

  const Program& program() const { return program_; }
  Runnable& runnable() { return *runnable_; }
  BufferId buffer(ir::NodeId node) const { return buffer_of_[node]; }
  bool share_storage(ir::NodeId a, ir::NodeId b) const;

 private:
  std::shared_ptr<Executor> executor_;
  std::vector<TensorType> types_;  // by node
  std::vector<BufferId> buffer_of_;
  Program program_;
  std::vector<BufferId> guards_;
  std::unique_ptr<Runnable> runnable_;
};

// `elements`: with regions over elements within these limits, where the executor takes them.
Compiled lower_for(const ir::Graph& graph, const Executor& executor, const std::optional<ElementLimits>& elements = {});

// The executors of the registry that work on this machine, made once; `missing` says why the others do not.
struct Executors {
  std::vector<std::pair<std::string, std::shared_ptr<Executor>>> present;
  std::vector<std::pair<std::string, std::string>> missing;
};
const Executors& executors();
std::shared_ptr<Executor> executor(std::string_view name);  // one that is present

}  // namespace graphrun::test
