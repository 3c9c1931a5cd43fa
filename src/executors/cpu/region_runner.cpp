#include "executors/cpu/region_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "executors/cpu/combine.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/partial_results.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun {
namespace {

static_assert(cpu::kLanes == kTileLanes);  // kernels do not depend on Program
constexpr std::uint64_t kPage = 4096;      // scratch of two threads never shares a page

// Number of partial results that one part combines: two or three microseconds, as for a partition.
constexpr std::int64_t kCombinePart = 8192;

const HostTiling& tiling_of(const Region& region) {
  return std::get<HostTiling>(region.tiling);
}
// Type of the partial results, one for the whole region.
DType sum_type(const Region& region, const Program& program) {
  for (const Stage& stage : region.stages)
    for (const Combine& combine : stage.combines) return program.buffers[combine.value].type.dtype;
  return DType::f32;
}
std::uint64_t lane_bytes(const HostTiling& tiling, DType sums) {
  return tiling.lanes ? tiling.accumulator_bytes / size_of(sums) * cpu::kVectorBytes : 0;
}
// Lanes are added kLanes numbers at a time, so the last step of a sum reads beyond its lanes and ignores the excess.
constexpr std::uint64_t kBeyondLanes = (kTileLanes - 1) * cpu::kVectorBytes;
std::uint64_t whole_lines(std::uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Masks of a stage's dropouts, stored after its tile. The dropout of a gradient has the key, rate and step of the
// dropout of the value, hence the same mask, which is generated once.
class TileMasks {
 public:
  explicit TileMasks(const HostTiling& tiling) : tiling_(tiling), end_(whole_lines(tiling.tile_bytes)) {}

  // Offset of a dropout's mask, and whether an earlier dropout of the stage has generated it.
  std::pair<std::uint64_t, bool> of(const Step& step, const TensorType& type) {
    const auto& params = step.params.as<RandomParams>();
    const std::int64_t features = feature_count(type);
    const auto [at, added] = at_.try_emplace({params.key, params.a, step.inputs.back(), features}, end_);
    if (added) end_ += whole_lines(static_cast<std::uint64_t>(features * whole_lanes(tiling_.tile_rows)));
    return {at->second, !added};
  }
  std::uint64_t end() const { return end_; }

 private:
  const HostTiling& tiling_;
  std::uint64_t end_;
  std::map<std::tuple<std::uint64_t, double, BufferId, std::int64_t>, std::uint64_t> at_;
};

// Offset of the lanes in a thread's scratch: after the tile and the masks of the stage with most masks.
std::uint64_t lanes_at(const Region& region, const Phase& phase, const Program& program) {
  std::uint64_t at = 0;
  for (const Stage& stage : region.stages) {
    TileMasks masks(tiling_of(region));
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const Step& step = phase.steps[i];
      if (step.op == Op::dropout) masks.of(step, program.buffers[step.output].type);
    }
    at = std::max(at, masks.end());
  }
  return at;
}

}  // namespace

TileScratch::TileScratch(std::uint64_t bytes, int threads)
    : bytes_((bytes + kPage - 1) / kPage * kPage), total_(bytes_ * static_cast<std::uint64_t>(threads)) {
  data_ = static_cast<std::byte*>(::operator new (total_, std::align_val_t{kPage}, std::nothrow));
  if (data_ == nullptr)
    throw Error(ErrorKind::device, "memory.tiles", fmt::format("the host cannot give {} bytes for tiles", total_));
  std::memset(data_, 0, total_);
}
TileScratch::~TileScratch() {
  ::operator delete (data_, std::align_val_t{kPage});
}

std::uint64_t RegionRunner::scratch_bytes(const Region& region, const Phase& phase, const Program& program) {
  const std::uint64_t lanes = lane_bytes(tiling_of(region), sum_type(region, program));
  return lanes_at(region, phase, program) + lanes + (lanes > 0 ? kBeyondLanes : 0);
}

RegionRunner::RegionRunner(const Region& region, const Phase& phase, const Program& program, std::byte* arena, Isa isa,
                           const TileScratch& scratch, cpu::Pool* pool)
    : last_(region.last),
      capacity_(phase.capacity),
      tiling_(tiling_of(region)),
      tiles_((phase.capacity + tiling_.tile_rows - 1) / tiling_.tile_rows),
      sums_(sum_type(region, program)),
      lanes_at_(lanes_at(region, phase, program)),
      scratch_(scratch),
      pool_(pool),
      isa_(isa) {
  group_ = tiling_.partitions;
  if (region.accumulators != kNoBuffer) {
    const Buffer& sets = program.buffers[region.accumulators];
    accumulators_ = arena + sets.offset;
    if (tiling_.accumulator_bytes > 0)
      group_ = largest_group(tiling_.partitions, sets.bytes / tiling_.accumulator_bytes);
  }
  for (const Stage& stage : region.stages) bind_stage(stage, phase, program, arena, isa);
}

void RegionRunner::bind_stage(const Stage& stage, const Phase& phase, const Program& program, std::byte* arena,
                              Isa isa) {
  TileMasks masks(tiling_);
  BoundStage& bound = stages_.emplace_back();
  bound.first = stage.first;
  bound.rows = stage.rows;
  bound.last = stage.last;
  const auto root = [&](BufferId id) { return storage_root(program, id); };
  for (const Combine& combine : stage.combines) {
    const Buffer& value = program.buffers[combine.value];
    if (value.type.bytes() == 0) continue;  // a region with nothing else to combine has no accumulators
    bound.reduced.push_back({arena + value.offset, value.bytes, combine.offset});
    const auto first = static_cast<std::int64_t>(combine.offset / size_of(sums_));
    const auto count = static_cast<std::int64_t>(value.bytes / size_of(sums_));
    std::vector<Alike>& alike = bound.accumulators;
    if (!alike.empty() && alike.back().op == combine.op && alike.back().first + alike.back().count == first) {
      alike.back().count += count;
    } else {
      alike.push_back({first, count, combine.op});
    }
  }
  const auto rows_of = [&](const TileMove& load) {
    const Buffer& from = program.buffers[load.arena];
    if (from.layout != Layout::vectors) return cpu::DataVectors{};
    return cpu::whole_data(arena + from.offset, feature_count(program.buffers[load.tile].type));
  };
  std::map<BufferId, cpu::DataVectors> in_place;              // operands read in place, by root
  std::map<BufferId, std::vector<const TileMove*>> loads_of;  // all other loads, by root
  for (const TileMove& load : stage.loads) {
    if (program.buffers[load.tile].layout == Layout::vectors)
      in_place[root(load.tile)] = rows_of(load);
    else
      loads_of[root(load.tile)].push_back(&load);
  }
  std::multimap<BufferId, BufferId> stores_of;  // arena buffers that store a tile value
  for (const TileMove& store : stage.stores) stores_of.emplace(store.tile, store.arena);
  std::map<BufferId, std::uint64_t> accumulators_of;
  for (const Combine& combine : stage.combines) accumulators_of.emplace(combine.value, combine.offset);
  const auto operand = [&](BufferId id) {
    const Buffer& buffer = program.buffers[id];
    for (const TileMove* load : std::exchange(loads_of[root(id)], {})) {
      const Buffer& to = program.buffers[load->tile];
      bound.steps.push_back(
          cpu::make_tile_load({to.type, to.offset}, arena + program.buffers[load->arena].offset, rows_of(*load), isa));
    }
    const bool tile = buffer.kind == BufferKind::tile;
    return cpu::TileOperand{buffer.type, tile ? buffer.offset : 0, tile ? nullptr : arena + buffer.offset,
                            tile ? in_place[root(id)] : cpu::DataVectors{}};
  };
  std::vector<bool> done(stage.last - stage.rows, false);  // computed by a fused product at a later step
  std::vector<FusedSteps> due(stage.last - stage.rows);
  for (const FusedSteps& fused : stage.fused) {
    for (const std::uint32_t i : {fused.product, fused.bias, fused.epilogue, fused.sum})
      if (i != kNoStep) done[i - stage.rows] = i != fused.last();
    due[fused.last() - stage.rows] = fused;
  }
  for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
    if (done[i - stage.rows]) continue;
    const FusedSteps& fused = due[i - stage.rows];
    const Step& step = phase.steps[fused.product != kNoStep ? fused.product : i];
    if (step.row_count != kNoBuffer)
      bound.row_count = reinterpret_cast<const std::int32_t*>(arena + program.buffers[step.row_count].offset);
    cpu::TileCall call;
    call.op = step.op;
    call.params = &step.params;
    for (const BufferId input : step.inputs) call.inputs.push_back(operand(input));
    if (fused.bias != kNoStep) call.epilogue.bias = arena + program.buffers[phase.steps[fused.bias].inputs[1]].offset;
    if (fused.epilogue != kNoStep) {
      const Step& epilogue = phase.steps[fused.epilogue];
      call.epilogue.op = epilogue.op;
      if (epilogue.inputs.size() == 2)
        call.epilogue.with = operand(epilogue.inputs[1 - static_cast<std::size_t>(cpu::epilogue_input(epilogue.op))]);
    }
    const Buffer& output = program.buffers[phase.steps[i].output];
    if (step.op == Op::minibatch && program.buffers[step.inputs[0]].layout == Layout::vectors) {
      const cpu::TileOperand& data = call.inputs[0];
      const auto& params = step.params.as<MinibatchParams>();
      call.inputs[0].vectors =
          cpu::minibatch_data(data.address, feature_count(output.type), call.inputs[1].address, params);
      bound.batches.push_back({params, reinterpret_cast<const std::uint64_t*>(call.inputs[1].address)});
      if (output.layout == Layout::vectors) {
        in_place[root(step.output)] = call.inputs[0].vectors;
        continue;
      }
    }
    call.output = {output.type, output.kind == BufferKind::tile ? output.offset : accumulators_of.at(step.output)};
    if (step.op == Op::dropout) std::tie(call.mask_at, call.mask_known) = masks.of(step, output.type);
    if (fused.sum != kNoStep) call.sums_at = accumulators_of.at(phase.steps[fused.sum].output);
    std::string reason;
    bound.steps.push_back(cpu::make_tile_step(call, isa, reason));
    if (bound.steps.back() == nullptr)
      throw std::logic_error(fmt::format("cpu: row step '{}' ({}) was not asked of region_fault(): {}", step.name,
                                         name_of(step.op), reason));
    const auto [first_store, last_store] = stores_of.equal_range(phase.steps[i].output);
    for (auto store = first_store; store != last_store; ++store) {
      const Buffer& to = program.buffers[store->second];
      bound.steps.push_back(cpu::make_tile_store(arena + to.offset, {to.type, output.offset}, isa));
      bound.stored.push_back({arena + to.offset, to.type.bytes() / static_cast<std::uint64_t>(phase.capacity)});
    }
  }
}

template <class Real>
Real* RegionRunner::accumulators(std::uint64_t set) const {
  return reinterpret_cast<Real*>(accumulators_ + set * tiling_.accumulator_bytes);
}

// Partial results that wait for later groups. Place 0 is the final values, which are stored elsewhere.
template <class Real>
Real* RegionRunner::waiting(int place) const {
  return accumulators<Real>(static_cast<std::uint64_t>(group_ + place - 1));
}

template <class Real>
void RegionRunner::run_partition(const BoundStage& stage, int partition) const {
  cpu::TileContext context;
  context.tile = scratch_.of(pool_ == nullptr ? 0 : cpu::Pool::current());
  if (accumulators_ != nullptr) {
    Real* const sums = accumulators<Real>(set_of(partition));
    context.accumulators = reinterpret_cast<std::byte*>(sums);
    std::memset(context.accumulators, 0, tiling_.accumulator_bytes);
    if (tiling_.lanes) {
      context.lanes = context.tile + lanes_at_;
      std::memset(context.lanes, 0, lane_bytes(tiling_, sums_));
    }
    for (const Alike& alike : stage.accumulators) {
      if (alike.op != CombineOp::sum) std::fill_n(sums + alike.first, alike.count, Real{identity(alike.op)});
    }
  }
  std::int64_t samples =
      stage.row_count != nullptr ? std::clamp<std::int64_t>(*stage.row_count, 0, capacity_) : capacity_;
  // Rows beyond the data set cannot be read, whatever the phase counts.
  for (const Batches& of : stage.batches) samples = std::min(samples, cpu::batch_of(of.params, *of.step).count);
  const std::int64_t begin = tiles_ * partition / tiling_.partitions * tiling_.tile_rows;
  const std::int64_t end = std::min(tiles_ * (partition + 1) / tiling_.partitions * tiling_.tile_rows, capacity_);
  for (context.first = begin; context.first < std::min(end, samples); context.first += tiling_.tile_rows) {
    context.rows = std::min(tiling_.tile_rows, samples - context.first);
    context.stride = (context.rows + kTileLanes - 1) / kTileLanes * kTileLanes;
    for (const cpu::TileStep& step : stage.steps) step(context);
  }
  if (context.lanes != nullptr) add_lanes<Real>(stage, context);
  const std::int64_t unused = std::max(begin, std::min(samples, end));
  for (const StoredRows& rows : stage.stored) {
    if (unused < end)
      std::memset(rows.data + static_cast<std::uint64_t>(unused) * rows.sample_bytes, 0,
                  static_cast<std::uint64_t>(end - unused) * rows.sample_bytes);
  }
}

template <class Real>
void RegionRunner::add_lanes(const BoundStage& stage, const cpu::TileContext& partition) const {
  for (const Alike& alike : stage.accumulators) {
    if (alike.op != CombineOp::sum) continue;
    cpu::table_of<Real>(isa_).add_lanes(
        reinterpret_cast<Real*>(partition.accumulators) + alike.first,
        reinterpret_cast<const Real*>(partition.lanes) + alike.first * cpu::kLanesOf<Real>, alike.count);
  }
}

template <class Real>
void RegionRunner::run_stage(const BoundStage& stage) const {
  const auto numbers = static_cast<std::int64_t>(tiling_.accumulator_bytes / sizeof(Real));
  for (int group = 0; group * group_ < tiling_.partitions; ++group) {
    const int first = group * group_, count = std::min(group_, tiling_.partitions - first);
    cpu::for_parts(pool_, count, [&](int partition) { run_partition<Real>(stage, first + partition); });
    if (stage.reduced.empty()) continue;
    const std::int64_t parts = std::min<std::int64_t>(numbers * count / kCombinePart, cpu::kMaxParts);
    cpu::for_ranges(pool_, static_cast<int>(parts), numbers, cpu::kGrain,
                    [&](std::int64_t from, std::int64_t to) { combine_range<Real>(stage, group, from, to); });
  }
}

// Combines numbers [first, last) of the accumulators.
template <class Real>
void RegionRunner::combine_range(const BoundStage& stage, int group, std::int64_t first, std::int64_t last) const {
  for (const Alike& alike : stage.accumulators) {
    const std::int64_t end = std::min(last, alike.first + alike.count);
    for (std::int64_t begin = std::max(first, alike.first); begin < end; begin += kCombineBlock)
      combine_block<Real>(stage, alike.op, group, begin, std::min(kCombineBlock, end - begin));
  }
}

// Calls move(value, offset in the range, bytes) for each part of a final value in numbers [first, first + count) of the
// accumulators.
template <class Real, class Move>
void RegionRunner::for_values(const BoundStage& stage, std::int64_t first, std::int64_t count, Move move) {
  for (const Reduced& value : stage.reduced) {
    const auto value_first = static_cast<std::int64_t>(value.offset / sizeof(Real));
    const std::int64_t begin = std::max(first, value_first);
    const std::int64_t end =
        std::min(first + count, value_first + static_cast<std::int64_t>(value.bytes / sizeof(Real)));
    if (begin < end)
      move(reinterpret_cast<Real*>(value.value) + (begin - value_first), begin - first,
           static_cast<std::size_t>(end - begin) * sizeof(Real));
  }
}

// Combines the results of a group with earlier ones that wait for them. The last group writes the final values.
template <class Real>
void RegionRunner::combine_block(const BoundStage& stage, CombineOp op, int group, std::int64_t first,
                                 std::int64_t count) const {
  const auto bits = static_cast<unsigned>(group);
  const bool is_last = (group + 1) * group_ >= tiling_.partitions;
  int waits = std::popcount(bits);
  const int merged = is_last ? waits : std::countr_one(bits);
  const PartitionResults<Real> results{accumulators<Real>(0) + first, tiling_.accumulator_bytes / sizeof(Real),
                                       std::min(group_, tiling_.partitions - group * group_)};
  Real block[kCombineBlock], before[kCombineBlock];
  const Real* from = combined(cpu::table_of<Real>(isa_), op, results, count, block);
  for (int i = 0; i < merged; ++i) {
    --waits;
    if (waits == 0)
      for_values<Real>(stage, first, count, [&](Real* value, std::int64_t at, std::size_t bytes) {
        std::memcpy(before + at, value, bytes);
      });
    from = combine_two<Real>(cpu::table_of<Real>(isa_), op, waits == 0 ? before : waiting<Real>(waits) + first, from,
                             count, block);
  }
  if (waits > 0) {
    std::memcpy(waiting<Real>(waits) + first, from, static_cast<std::size_t>(count) * sizeof(Real));
    return;
  }
  for_values<Real>(stage, first, count,
                   [&](Real* value, std::int64_t at, std::size_t bytes) { std::memcpy(value, from + at, bytes); });
}

void RegionRunner::run(const std::vector<BoundStep>& steps) const {
  for (const BoundStage& stage : stages_) {
    for (std::uint32_t i = stage.first; i < stage.rows; ++i) steps[i].run();
    sums_ == DType::f64 ? run_stage<double>(stage) : run_stage<float>(stage);
  }
  for (std::uint32_t i = stages_.back().last; i < last_; ++i) steps[i].run();
}

}  // namespace graphrun
