// row_stage.h: code for the rows of one stage with the tile of the region: all row steps of its samples, stores, and
// sums over rows.
// Contract: the code runs once per step and leaves the stage's sums where `reduce` reads them: element k of a combine
// is number `at + k`. Not here: single steps (row_text.h, warp_text.h), the kernel (step_kernel.h).
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
  std::string number;    // stage number for use in names
  PickedTables& picked;  // TextCall::picked
  const StepTiling& tiling = frame.tiling;
  OnceText& once = frame.once;

  std::string reduce() const { return "reduce" + number; }  // cross-block reduction, if there are sums
  std::span<const Step> rows() const {
    return std::span(frame.phase.steps).subspan(stage.rows, stage.last - stage.rows);
  }
  const Buffer& buffer(BufferId id) const { return frame.buffer(id); }
  BufferId root(BufferId id) const { return frame.root(id); }
  std::string pointer(BufferId id, std::string_view qualifier) const { return frame.pointer(id, qualifier); }
  bool is_tile(BufferId id) const { return buffer(id).kind == BufferKind::tile; }
};

struct RowStage {
  std::string types, shared;     // definitions before the kernel; members of its shared memory
  std::string kept, kept_loads;  // rows that stay in registers: variables, and the load of row `r` for turn `turn`
  std::string text;              // runs in each step
  std::int64_t sums = 0;         // elements of the cross-block reduction
  // Position of a reduced value: offset of its elements in each lane that shares them, and the name of the function
  // that finds element e; "" if element e is number `at + e`.
  struct Value {
    const Combine* combine;
    std::int64_t at, numbers;
    std::string place = {};
  };
  std::vector<Value> values;
  std::int64_t second = 0;  // offset of the second lane's elements; 0 without one
};

RowStage thread_stage(const StageCall& call);  // also pair tiles
RowStage warp_stage(const StageCall& call);

// Helpers of both.
TextCall row_call(const StageCall& call, const Step& step, const std::map<BufferId, std::string>& values);
bool is_same(const StageCall& call, BufferId arena);  // data is the same in each run of the region
bool is_same(const StageCall& call, const Step& step);

}  // namespace graphrun::cuda
