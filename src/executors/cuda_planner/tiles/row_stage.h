// row_stage.h: code of a stage's rows, and the reduced values to which they contribute, one file for each layout.
// Contract: rows read values shared by all rows and write only tiles and sums. Element k of a reduced value is number
// `at + k`. Not here: single steps (row_text.h, lanes.h, warp.cpp), the kernel (step_kernel.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda_planner/print/kernel_frame.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// The code of a stage's rows while a layout writes it.
struct RowStage {
  KernelFrame& frame;
  const Stage& stage;
  std::string number;                          // stage number for use in names
  std::map<BufferId, std::string> names = {};  // roots of the tiles

  std::string types = {}, shared = {};     // definitions before the kernel; members of its shared memory
  std::string kept = {}, kept_loads = {};  // rows that stay in registers: variables, and the load of row `r`
  std::string text = {};                   // runs in each step
  std::int64_t sums = 0;                   // elements of the cross-block reduction
  // Position of a reduced value: offset of its elements in each lane that shares them, and the name of the function
  // that finds element e; "" if element e is number `at + e`.
  struct Value {
    const Combine* combine;
    std::int64_t at, numbers;
    std::string place = {};
    std::size_t group = 0;  // group of warps that adds it up
  };
  std::vector<Value> values = {};
  std::int64_t second = 0;  // offset of the second lane's elements; 0 without one

  std::string reduce() const { return "reduce" + number; }  // cross-block reduction, if there are sums
  const StepTiling& tiling() const { return frame.tiling; }
  std::span<const Step> rows() const {
    return std::span(frame.phase.steps).subspan(stage.rows, stage.last - stage.rows);
  }
  const Buffer& buffer(BufferId id) const { return frame.buffer(id); }
  BufferId root(BufferId id) const { return frame.root(id); }
  std::string pointer(BufferId id, std::string_view qualifier) const { return frame.pointer(id, qualifier); }
  bool is_tile(BufferId id) const { return buffer(id).kind == BufferKind::tile; }
  std::int64_t elements(BufferId id) const { return buffer(id).type.shape.elements(); }
  std::int64_t features(BufferId id) const { return feature_count(buffer(id).type); }
  const Step* maker(BufferId reduced) const;  // row step that computes the value; null: none
  const Value& value_of(const Step& reduction) const {
    return *std::ranges::find(values, reduction.output, [](const Value& value) { return value.combine->value; });
  }

  TextCall row_call(const Step& step) const;  // the step with the names of its operands
  // Defines and names a tile.
  void let(BufferId tile, std::string_view code, std::string_view comment);
};

RowStage lanes_stage(RowStage stage);  // thread and pair tiles
RowStage warp_stage(RowStage stage);

}  // namespace graphrun::cuda
