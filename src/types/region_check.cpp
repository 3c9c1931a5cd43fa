#include "types/region_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/partial_results.h"

namespace graphrun {
namespace {

class RegionChecker : RegionRules {
 public:
  using RegionRules::RegionRules;

  void run() {
    std::uint32_t end = 0;
    for (const Region& region : phase_.regions) {
      if (region.stages.empty() && region.chains.empty()) broken("stages", "a region has no stage");
      if (region.first() < end) broken("order", "step {} belongs to two regions", region.first() + 1);
      if (region.chains.empty()) {
        check_shape(region);
        sums_.reset();
        for (const Stage& stage : region.stages) check_stage(region, stage);
      } else {
        check_elements(region, phase_, program_, root_);
        std::fill(in_region_.begin() + region.first(), in_region_.begin() + region.last, true);
      }
      end = region.last;
    }
    for (std::size_t i = 0; i < phase_.steps.size(); ++i) {
      if (!in_region_[i]) check_outside(phase_.steps[i]);
    }
  }

 private:
  void check_shape(const Region& region) {
    const auto* tiling = std::get_if<HostTiling>(&region.tiling);
    in_registers_ = std::holds_alternative<StepTiling>(region.tiling);
    if (in_registers_) return check_launch(region, std::get<StepTiling>(region.tiling));
    if (tiling == nullptr) broken("tiling", "a region over rows has a tiling for elements");
    tiling_ = *tiling;
    if (phase_.capacity < 1 || tiling_.tile_rows <= 0 || tiling_.tile_rows > kMaxBatch || tiling_.partitions <= 0 ||
        tiling_.partitions > kMaxPartitions || tiling_.tile_bytes > kMaxBytes || tiling_.accumulator_bytes > kMaxBytes)
      broken("tiles", "{} rows a tile of {} bytes, {} partitions of {}", tiling_.tile_rows, tiling_.tile_bytes,
             tiling_.partitions, tiling_.accumulator_bytes);
    check_accumulators(region);
    check_order(region);
  }

  // StepTiling has no accumulator size: it is the largest end of a combined value.
  void check_launch(const Region& region, const StepTiling& tiling) {
    if (phase_.capacity < 1 || tiling.threads < 32 || tiling.threads > 1024 || tiling.threads % 32 != 0 ||
        tiling.cluster < 1 || tiling.cluster > 16 || tiling.clusters < 1 || tiling.clusters > kMaxPartitions ||
        tiling.groups < 1 || tiling.threads % (32 * std::uint64_t{tiling.groups}) != 0 ||
        (tiling.tile != RowTile::thread && tiling.groups != 1) || tiling.tile > RowTile::split ||
        tiling.scratch_bytes > kMaxBytes)
      broken("tiles", "{} clusters of {} blocks of {} threads, {} bytes of scratch", tiling.clusters, tiling.cluster,
             tiling.threads, tiling.scratch_bytes);
    if (tiling.scratch_bytes > 0 &&
        (region.accumulators == kNoBuffer || buffer(region.accumulators).kind != BufferKind::workspace ||
         buffer(region.accumulators).bytes < tiling.scratch_bytes))
      broken("accumulators", "{} bytes of scratch do not fit the workspace", tiling.scratch_bytes);
    tiling_ = HostTiling{};
    for (const Stage& stage : region.stages) {
      if (!stage.fused.empty()) broken("fused", "steps are fused whose rows are in registers");
      for (const Combine& combine : stage.combines)
        tiling_.accumulator_bytes =
            std::max(tiling_.accumulator_bytes, combine.offset + buffer(combine.value).type.bytes());
    }
    check_order(region);
  }

  void check_order(const Region& region) const {
    std::uint32_t at = region.first();
    for (const Stage& stage : region.stages) {
      if (stage.first != at || stage.rows < stage.first || stage.last < stage.rows)
        broken("order", "a stage of steps {}, {}, {} follows step {}", stage.first, stage.rows, stage.last, at);
      at = stage.last;
    }
    if (region.last < at || region.last > phase_.steps.size())
      broken("order", "the region ends at step {} of {}", region.last, phase_.steps.size());
  }

  void check_accumulators(const Region& region) const {
    if (tiling_.accumulator_bytes % 64 != 0)
      broken("accumulators", "{} bytes are not whole lines", tiling_.accumulator_bytes);
    if (region.accumulators != kNoBuffer && buffer(region.accumulators).kind != BufferKind::workspace)
      broken("accumulators", "{} is not a workspace", named(region.accumulators));
    const std::uint64_t min_bytes = tiling_.accumulator_bytes * min_sets(tiling_.partitions);
    if (min_bytes == 0) return;  // all combined values are empty
    if (region.accumulators == kNoBuffer || buffer(region.accumulators).bytes < min_bytes)
      broken("accumulators", "{} partitions need {} bytes of workspace", tiling_.partitions, min_bytes);
    const std::uint64_t all = tiling_.accumulator_bytes * static_cast<std::uint64_t>(tiling_.partitions);
    if (buffer(region.accumulators).bytes >= all) return;
    for (const Stage& stage : region.stages) check_waiting(stage);
  }

  // With fewer sets than partitions, partial results wait in the combined values, which row steps then must not read.
  void check_waiting(const Stage& stage) const {
    for (std::uint32_t i = stage.rows; i < stage.last && i < phase_.steps.size(); ++i) {
      for (const BufferId input : phase_.steps[i].inputs) {
        const Buffer& read = buffer(input);
        if (read.kind == BufferKind::tile) continue;
        for (const Combine& combine : stage.combines) {
          if (overlap(read, buffer(combine.value)))
            broken("accumulators", "row step {} reads {} where {} has partial results", phase_.steps[i].name,
                   named(input), named(combine.value));
        }
      }
    }
  }

  void check_stage(const Region& region, const Stage& stage) {
    std::set<BufferId> written;  // roots of tile buffers that hold a value
    for (const TileMove& load : stage.loads) {
      check_move(load);
      written.insert(root_[load.tile]);
    }
    std::set<BufferId> combined;
    std::multimap<std::uint64_t, std::uint64_t> taken;  // byte ranges of the accumulators: begin, end
    for (const Combine& combine : stage.combines) {
      check_combine(region, combine);
      taken.emplace(combine.offset, combine.offset + buffer(combine.value).bytes);
      if (!combined.insert(combine.value).second) broken("combine", "{} is combined twice", named(combine.value));
    }
    std::uint64_t end = 0;
    for (const auto& [first, last] : taken) {
      if (first < end) broken("accumulators", "two values share the bytes from {} on", first);
      end = last;
    }
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const Step& step = phase_.steps[i];
      in_region_[i] = true;
      check_in_place(step);
      check_vectors(step);
      for (const BufferId input : step.inputs) {
        if (buffer(input).layout == Layout::strided)
          broken("layout", "row step {} reads {}, which is strided", step.name, named(input));
        if (!is_tile(input) && buffer(input).type.rows > 0)
          broken("load", "row step {} reads {} from the arena", step.name, named(input));
        if (is_tile(input) && written.count(root_[input]) == 0)
          broken("load", "row step {} reads {} before it is there", step.name, named(input));
        if (is_tile(input)) check_place(input);
      }
      if (is_tile(step.output)) {
        check_place(step.output);
        written.insert(root_[step.output]);
      } else if (combined.erase(step.output) == 0)
        broken("combine", "row step {} writes {}, which is not combined", step.name, named(step.output));
    }
    if (!combined.empty()) broken("combine", "{} is written by no row step", named(*combined.begin()));
    check_fused(stage);
    for (const TileMove& store : stage.stores) {
      check_move(store);
      const BufferKind kind = buffer(root_[store.arena]).kind;
      if (kind == BufferKind::data || kind == BufferKind::constant ||
          (!in_registers_ && buffer(store.tile).layout != Layout::rows))
        broken("store", "{} cannot go to {}", named(store.tile), named(store.arena));
      if (written.count(root_[store.tile]) == 0) broken("store", "{} is never written", named(store.tile));
    }
  }

  // Fused steps form a chain in which only the next step reads a link. Only links are in registers.
  void check_fused(const Stage& stage) const {
    if (in_registers_) return check_registers(stage);
    std::set<std::uint32_t> taken;
    std::set<BufferId> links;
    for (const FusedSteps& fused : stage.fused) {
      for (const std::uint32_t step : {fused.product, fused.bias, fused.epilogue, fused.sum}) {
        if (step == kNoStep && step != fused.product) continue;
        if (step < stage.rows || step >= stage.last || !taken.insert(step).second)
          broken("fused", "step {} is not a row step of the stage, or is fused twice", step + 1);
      }
      if (phase_.steps[fused.product].op != Op::matmul) broken_fused(fused, "is not a matmul");
      if (fused.sum != kNoStep) {
        check_fused_sum(fused);
      } else {
        check_chain(fused, links);
      }
    }
    std::set<BufferId> unwritten = links;  // erased at the one step that writes it
    std::map<BufferId, int> reads;
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const BufferId output = phase_.steps[i].output;
      if (is_tile(output) && buffer(output).layout == Layout::registers && unwritten.erase(output) == 0)
        broken("fused", "{} is in registers and no link between fused steps, or is written twice", named(output));
      for (const BufferId input : phase_.steps[i].inputs) {
        ++reads[input];
        if (buffer(input).layout == Layout::registers && links.count(input) == 0)
          broken("fused", "{} is in registers and no link between fused steps", named(input));
      }
    }
    for (const BufferId link : links)
      if (reads[link] != 1) broken("fused", "{} is not read once", named(link));
    for (const std::vector<TileMove>* moves : {&stage.loads, &stage.stores})
      for (const TileMove& move : *moves)
        if (buffer(move.tile).layout == Layout::registers) broken("fused", "{} is in registers", named(move.tile));
  }
  // All tile buffers must be in registers, so none is read in place in the data set.
  void check_registers(const Stage& stage) const {
    const auto check = [&](BufferId id) {
      if (is_tile(id) && buffer(id).layout != Layout::registers) broken("tile", "{} is not in registers", named(id));
    };
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      check(phase_.steps[i].output);
      for (const BufferId input : phase_.steps[i].inputs) check(input);
    }
    for (const std::vector<TileMove>* moves : {&stage.loads, &stage.stores})
      for (const TileMove& move : *moves) check(move.tile);
  }
  template <class... Values>
  [[noreturn]] void broken_fused(const FusedSteps& fused, fmt::format_string<Values...> what,
                                 Values&&... values) const {
    broken("fused", "step {}, first of fused steps, {}", fused.product + 1,
           fmt::format(what, std::forward<Values>(values)...));
  }

  void check_chain(const FusedSteps& fused, std::set<BufferId>& links) const {
    if (fused.last() == fused.product) broken_fused(fused, "is fused with nothing");
    if (!is_tile(phase_.steps[fused.product].output)) broken_fused(fused, "is reduced over rows");
    std::uint32_t at = fused.product;
    for (const std::uint32_t next : {fused.bias, fused.epilogue}) {
      if (next == kNoStep) continue;
      const BufferId link = phase_.steps[at].output;
      const Step& step = phase_.steps[next];
      const bool in_registers = is_tile(step.output) && buffer(link).layout == Layout::registers;
      if (next <= at || !in_registers || buffer(step.output).type != buffer(link).type ||
          std::count(step.inputs.begin(), step.inputs.end(), link) != 1 || !links.insert(link).second)
        broken_fused(fused, "does not lead to step {}", next + 1);
      if (next == fused.bias ? !adds_bias(step, link) : !is_epilogue(step, link))
        broken_fused(fused, "cannot do step {} in registers", next + 1);
      at = next;
    }
    if (buffer(phase_.steps[at].output).layout == Layout::registers) broken_fused(fused, "stores nothing");
  }
  bool adds_bias(const Step& step, BufferId link) const {
    if (step.op != Op::add || step.inputs[0] != link || is_tile(step.inputs[1])) return false;
    return is_bias(buffer(step.inputs[1]).type, buffer(link).type);
  }
  bool is_epilogue(const Step& step, BufferId link) const {
    return step.inputs.size() <= 2 && std::all_of(step.inputs.begin(), step.inputs.end(), [&](BufferId input) {
             return is_tile(input) && buffer(input).type == buffer(link).type;
           });
  }

  void check_fused_sum(const FusedSteps& fused) const {
    const Step& product = phase_.steps[fused.product];
    const Step& sum = phase_.steps[fused.sum];
    if (fused.last() != fused.product || is_tile(product.output) || is_tile(sum.output) || !tiling_.lanes ||
        sum.op != Op::sum || sum.inputs[0] != product.inputs[1])
      broken_fused(fused, "cannot do step {} too", fused.sum + 1);
    const std::uint32_t axes = sum.params.as<ReduceParams>().axes;
    const Shape& shape = buffer(sum.inputs[0]).type.shape;
    if (axes != 1u && (axes != 3u || shape.rank() != 2 || shape[1] != 1))
      broken_fused(fused, "cannot do step {}, a sum over other axes", fused.sum + 1);
  }

  void check_place(BufferId id) const {
    const Buffer& b = buffer(id);
    if (b.layout == Layout::registers) return;
    if (b.layout == Layout::vectors) {
      if (tiling_.tile_rows % kTileLanes != 0)
        broken("in_place", "{} is read by tiles that begin in vectors", named(id));
      return;
    }
    if (b.offset > tiling_.tile_bytes || b.bytes > tiling_.tile_bytes - b.offset)
      broken("inside_tile", "{} is {} bytes at {}, a tile has {}", named(id), b.bytes, b.offset, tiling_.tile_bytes);
    if (b.offset % 64 != 0) broken("inside_tile", "{} begins at {}, no multiple of 64", named(id), b.offset);
    const std::int64_t lanes = whole_lanes(tiling_.tile_rows);
    const std::int64_t features = phase_.capacity == 0 ? 0 : b.type.shape.elements() / phase_.capacity;
    if (b.bytes < static_cast<std::uint64_t>(features * lanes) * size_of(b.type.dtype))
      broken("inside_tile", "{} has {} bytes for {} features of {} rows", named(id), b.bytes, features, lanes);
  }

  void check_move(const TileMove& move) const {
    if (!is_tile(move.tile) || is_tile(move.arena) || buffer(move.arena).kind == BufferKind::workspace)
      broken("move", "a move is not between a value of the arena and one of a tile");
    if (buffer(move.tile).type.dtype != buffer(move.arena).type.dtype ||
        buffer(move.tile).type.shape.elements() != buffer(move.arena).type.shape.elements() ||
        buffer(move.arena).type.rows == 0 || buffer(move.arena).layout == Layout::strided)
      broken("move", "{} is not what {} is", named(move.tile), named(move.arena));
    for (const BufferId id : {move.tile, move.arena}) {
      const TensorType& type = buffer(id).type;
      if (type.rows == 0 || type.shape[0] != type.rows * phase_.capacity)
        broken("move", "{} has not {} samples", named(id), phase_.capacity);
    }
    if (buffer(move.arena).layout == Layout::vectors &&
        (tiling_.tile_rows % kTileLanes != 0 || buffer(move.arena).block != phase_.capacity))
      broken("layout", "{} is not one batch in vectors that tiles begin", named(move.arena));
    if (is_in_place(move.tile) && buffer(move.arena).layout != Layout::vectors)
      broken("in_place", "{} is to be read in {}, which is laid out in rows", named(move.tile), named(move.arena));
    check_place(move.tile);
  }

  // Batches from a data set in vectors must be its blocks, in order.
  void check_vectors(const Step& step) const {
    if (step.op != Op::minibatch || buffer(step.inputs[0]).layout != Layout::vectors) return;
    const auto& params = step.params.as<MinibatchParams>();
    if (!params.shuffle && tiling_.tile_rows % kTileLanes == 0 &&
        buffer(step.inputs[0]).block == std::min(params.capacity, params.total)) {
      return;
    }
    broken("layout", "the batches of row step {} are not blocks of {}", step.name, named(step.inputs[0]));
  }

  bool is_in_place(BufferId id) const { return is_tile(id) && buffer(id).layout == Layout::vectors; }

  // Only matmul reads a batch in place in the data set, or any op if it has one feature. Only minibatch writes one.
  void check_in_place(const Step& step) const {
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const bool selects = step.op == Op::minibatch && i == 0;
      if (!is_tile(step.inputs[i]) && buffer(step.inputs[i]).layout == Layout::vectors && !selects)
        broken("layout", "row step {} reads {}, which is laid out in vectors", step.name, named(step.inputs[i]));
      if (buffer(step.inputs[i]).layout == Layout::codes && (!selects || in_registers_))
        broken("layout", "row step {} reads {}, which is stored in codes", step.name, named(step.inputs[i]));
    }
    for (const BufferId input : step.inputs) {
      if (is_in_place(input) && step.op != Op::matmul && buffer(input).type.shape.elements() != phase_.capacity)
        broken("in_place", "row step {} reads {} in the data set", step.name, named(input));
    }
    if (!is_in_place(step.output)) return;
    if (step.op != Op::minibatch || buffer(step.inputs[0]).layout != Layout::vectors)
      broken("in_place", "row step {} writes {} in the data set", step.name, named(step.output));
  }

  void check_combine(const Region& region, const Combine& combine) {
    const Buffer& value = buffer(combine.value);
    const DType sums = sums_.value_or(value.type.dtype);
    if (value.kind == BufferKind::tile || value.type.rows > 0) broken("combine", "{} has rows", named(combine.value));
    if (!is_float(sums) || value.type.dtype != sums || value.bytes != value.type.bytes() || combine.op > CombineOp::min)
      broken("combine", "{} is {}, combined by {}", named(combine.value), to_string(value.type),
             static_cast<int>(combine.op));
    if (region.accumulators != kNoBuffer && overlap(value, buffer(region.accumulators)))
      broken("accumulators", "{} overlaps its own partial results", named(combine.value));
    sums_ = sums;
    if (combine.offset % size_of(sums) != 0)
      broken("accumulators", "{} at {}: not whole numbers", named(combine.value), combine.offset);
    if (combine.offset > tiling_.accumulator_bytes || value.bytes > tiling_.accumulator_bytes - combine.offset)
      broken("accumulators", "{} is {} bytes at {} of {}", named(combine.value), value.bytes, combine.offset,
             tiling_.accumulator_bytes);
  }

  void check_outside(const Step& step) const {
    for (const BufferId input : step.inputs) {
      if (is_tile(input)) broken("tile", "step {} reads {}, which is in a tile", step.name, named(input));
      if (buffer(input).layout == Layout::vectors)
        broken("layout", "step {} reads {}, which is laid out in vectors", step.name, named(input));
    }
    if (is_tile(step.output)) broken("tile", "step {} writes a tile outside of rows", step.name);
  }

  static constexpr std::int32_t kMaxPartitions = 1 << 16;
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 43;  // as for a tensor: sums cannot overflow

  std::vector<bool> in_region_ = std::vector<bool>(phase_.steps.size(), false);
  HostTiling tiling_;          // the current region's
  std::optional<DType> sums_;  // type of the current region's combined values
  bool in_registers_ = false;  // whether the tiles of the current region are in registers
};

}  // namespace

void check_regions(const Phase& phase, const Program& program, const std::vector<BufferId>& root) {
  RegionChecker(phase, program, root).run();
}

}  // namespace graphrun
