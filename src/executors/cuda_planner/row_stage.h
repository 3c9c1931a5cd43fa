// row_stage.h: the text of the rows of one stage, with the tile that the region has: all row steps of its samples,
// stores, and sums over rows.
// Contract: the text runs once in each step, and leaves the stage's sums where `reduce` has them: value k of a combine
// is number `at + k`. Leaves to others: single steps (row_text.h, warp_text.h), the kernel (step_kernel.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda_planner/kernel_frame.h"
#include "executors/cuda_planner/picked_tables.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

struct StageCall {
  KernelFrame& frame;
  const Stage& stage;
  std::string number;    // of the stage, in names
  PickedTables& picked;  // TextCall::picked
  const StepTiling& tiling = frame.tiling;
  OnceText& once = frame.once;

  std::string reduce() const { return "reduce" + number; }  // the exchange, if there are sums
  std::span<const Step> rows() const {
    return std::span(frame.phase.steps).subspan(stage.rows, stage.last - stage.rows);
  }
  const Buffer& buffer(BufferId id) const { return frame.buffer(id); }
  BufferId root(BufferId id) const { return frame.root(id); }
  std::string pointer(BufferId id, std::string_view qualifier) const { return frame.pointer(id, qualifier); }
  bool is_tile(BufferId id) const { return buffer(id).kind == BufferKind::tile; }
};

struct RowStage {
  std::string types, shared;     // definitions before the kernel, members of its shared memory
  std::string kept, kept_loads;  // rows that stay in registers: variables, and how turn `turn` gets its row `r`
  std::string text;              // of each step
  std::int64_t sums = 0;         // numbers of the exchange
  // Of each reduced value: where its numbers begin among them, in each of the lanes that share them out, and the name
  // of the function that finds element e, "" where it is number `at + e`.
  struct Value {
    const Combine* combine;
    std::int64_t at, numbers;
    std::string place = {};
  };
  std::vector<Value> values;
  std::int64_t second = 0;  // where those of the second lane begin, if there is one
};

RowStage thread_stage(const StageCall& call);  // and those of pairs
RowStage warp_stage(const StageCall& call);

// What both are written with.
TextCall row_call(const StageCall& call, const Step& step, const std::map<BufferId, std::string>& values);
bool is_same(const StageCall& call, BufferId arena);  // each time that the region runs
bool is_same(const StageCall& call, const Step& step);

}  // namespace graphrun::cuda
