// region_runner.h: runs a Region of a Program on the host: partitions of tiles over the pool's threads, then Combine.
// Contract: regions.md. Results depend only on the Region, not on threads. run() allocates nothing: accumulators are in
// the arena, and the caller provides tile scratch. One thread runs a partition from its first tile to its last. If
// there are fewer sets of accumulators than partitions, these run in groups (graphrun/partial_results.h).
// Not here: code of a row step (kernels/cpu/tiles/tile.h), steps that run once (BoundStep).
#pragma once

#include <cstdint>
#include <vector>

#include "executors/cpu/bound_step.h"
#include "graphrun/params.h"
#include "graphrun/program.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/cpu/tiles/tile.h"

namespace graphrun {

// Memory for one tile, and the lanes of one partition, per thread.
class TileScratch {
 public:
  TileScratch(std::uint64_t bytes, int threads);  // throws Error if out of memory
  ~TileScratch();
  TileScratch(const TileScratch&) = delete;
  TileScratch& operator=(const TileScratch&) = delete;
  std::uint64_t bytes() const { return total_; }
  std::byte* of(int thread) const { return data_ + static_cast<std::uint64_t>(thread) * bytes_; }

 private:
  std::uint64_t bytes_;  // bytes per thread
  std::uint64_t total_;
  std::byte* data_;
};

class RegionRunner {
 public:
  RegionRunner(const Region& region, const Phase& phase, const Program& program, std::byte* arena, Isa isa,
               const TileScratch& scratch, cpu::Pool* pool);

  static std::uint64_t scratch_bytes(const Region& region, const Phase& phase,
                                     const Program& program);  // bytes per thread

  void run(const std::vector<BoundStep>& steps_of_phase) const;

 private:
  struct Reduced {  // a value in the arena, and the offset of its partial results
    std::byte* value;
    std::uint64_t bytes, offset;
  };
  struct Alike {  // adjacent accumulators with the same operator, in numbers
    std::int64_t first, count;
    CombineOp op;
  };
  struct StoredRows {  // rows stored in the arena
    std::byte* data;
    std::uint64_t sample_bytes;
  };
  struct Batches {  // batches of a data set that is read in place
    MinibatchParams params;
    const std::uint64_t* step;
  };
  struct BoundStage {
    std::uint32_t first, rows, last;
    std::vector<cpu::TileStep> steps;  // includes loads and stores
    std::vector<Reduced> reduced;
    std::vector<Alike> accumulators;
    std::vector<StoredRows> stored;
    std::vector<Batches> batches;
    const std::int32_t* row_count = nullptr;
  };

  void bind_stage(const Stage& stage, const Phase& phase, const Program& program, std::byte* arena, Isa isa);
  std::uint64_t set_of(int partition) const { return static_cast<std::uint64_t>(partition % group_); }
  // Real: the type of the partial results.
  template <class Real>
  void run_partition(const BoundStage& stage, int partition) const;
  template <class Real>
  void add_lanes(const BoundStage& stage, const cpu::TileContext& partition) const;
  template <class Real>
  void run_stage(const BoundStage& stage) const;
  template <class Real>
  void combine_range(const BoundStage& stage, int group, std::int64_t first, std::int64_t last) const;
  template <class Real, class Move>
  static void for_values(const BoundStage& stage, std::int64_t first, std::int64_t count, Move move);
  template <class Real>
  void combine_block(const BoundStage& stage, CombineOp op, int group, std::int64_t first, std::int64_t count) const;
  template <class Real>
  Real* accumulators(std::uint64_t set) const;
  template <class Real>
  Real* waiting(int place) const;

  std::uint32_t last_;
  std::vector<BoundStage> stages_;
  std::int64_t capacity_;
  HostTiling tiling_;
  std::int64_t tiles_;
  int group_ = 1;  // partitions that run at the same time (partial_results.h)
  std::byte* accumulators_ = nullptr;
  DType sums_;              // type of the partial results
  std::uint64_t lanes_at_;  // offset in a thread's scratch
  const TileScratch& scratch_;
  cpu::Pool* pool_;
  Isa isa_;
};

}  // namespace graphrun
