// region_case.h: a random graph with its regions over rows on an executor that plans as cuda does, whether they save
// anything or not. Contract: run() once; then values can be compared, each with what the reference makes of the same
// inputs (compare_steps(), of a graph that keeps all), or with what it made of the graph (compare_kept()). Both say ""
// or which element is wrong. Leaves to others: which graphs (support/random_graph.h).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "compiler/regions.h"
#include "graphrun/executor.h"
#include "support/random_graph.h"

namespace graphrun::test {

class RegionCase {
 public:
  enum class Keep { some, all };
  RegionCase(const RandomGraph& random, std::shared_ptr<Executor> executor, Keep keep,
             std::string_view target_name = "h200");

  bool has_regions() const { return !program().phases[0].regions.empty(); }
  bool has(RowTile tile) const;                         // in some region
  void add_ops(std::set<std::string_view>& ops) const;  // that are in a region

  void run(std::uint64_t times = 1);
  std::string compare_steps() const;
  std::string compare_kept() const;
  std::vector<std::byte> read(const std::string& name) const;

  const Program& program() const { return compiled_.program; }
  const Regions& regions() const { return regions_; }
  const std::map<std::string, int>& declined() const { return declined_; }  // reasons

 private:
  void write_inputs(Runnable& to, const Compiled& compiled, const ir::Graph& graph) const;

  const RandomGraph random_;
  std::shared_ptr<Executor> executor_;
  ir::Graph graph_;  // before there were regions
  Regions regions_;
  Compiled compiled_;
  std::map<std::string, BufferId> buffers_;  // by the node's name
  std::map<std::string, int> declined_;
  std::unique_ptr<Runnable> runnable_;
};

}  // namespace graphrun::test
