// row_stage.h: the text of the rows of one stage, with the tile that the region has: all row steps of its samples,
// stores, and sums over rows.
// Contract: the text runs once in each step, and leaves the stage's sums where `reduce` has them: value k of a combine
// is number `at + k`. Leaves to others: single steps (row_text.h, warp_text.h), the kernel (step_kernel.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda_planner/once_text.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

struct StageCall {
  const Program& program;
  const Phase& phase;
  const Region& region;
  const Stage& stage;
  const StepTiling& tiling;
  const Places& places;
  OnceText& once;
  std::function<std::string(BufferId, std::string_view)> pointer;   // into the arena, with a qualifier
  std::string number;                                               // of the stage, in names
  BufferId count = kNoBuffer;                                       // of samples, where a batch may be partial
  std::function<std::string(const TextCall&, const Step&)> picked;  // TextCall::picked

  std::string reduce() const { return "reduce" + number; }  // the exchange, if there are sums
  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
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
std::string printable_name(std::string_view name);
std::string comment_of(const Step& step);
TextCall row_call(const StageCall& call, const Step& step, const std::map<BufferId, std::string>& values);
std::string count_text(const StageCall& call);        // how many samples there are
bool is_same(const StageCall& call, BufferId arena);  // each time that the region runs
bool is_same(const StageCall& call, const Step& step);

}  // namespace graphrun::cuda
