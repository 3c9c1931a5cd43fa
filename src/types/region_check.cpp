#include "types/region_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "graphrun/error.h"
#include "graphrun/limits.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

class RegionChecker {
 public:
  RegionChecker(const Phase& phase, const Program& program, const std::vector<BufferId>& root)
      : phase_(phase), program_(program), root_(root), row_step_(phase.steps.size(), false) {}

  void run() {
    std::uint32_t end = 0;
    for (const Region& region : phase_.regions) {
      if (region.stages.empty()) broken("stages", "a region has no stage");
      if (region.first() < end) broken("order", fmt::format("step {} belongs to two regions", region.first() + 1));
      check_shape(region);
      for (const Stage& stage : region.stages) check_stage(region, stage);
      end = region.last;
    }
    for (std::size_t i = 0; i < phase_.steps.size(); ++i) {
      if (!row_step_[i]) check_outside(phase_.steps[i]);
    }
  }

 private:
  [[noreturn]] void broken(std::string_view rule, const std::string& what) const {
    throw Error(ErrorKind::input, "program.rule",
                fmt::format("program breaks rule 'region.{}': phase '{}': {}", rule, phase_.name, what));
  }
  const Buffer& buffer(BufferId id) const {
    if (id >= program_.buffers.size()) broken("operand", fmt::format("buffer {} is none", id));
    return program_.buffers[id];
  }
  bool is_tile(BufferId id) const { return buffer(id).kind == BufferKind::tile; }
  std::string named(BufferId id) const { return fmt::format("{}#{}", buffer(id).name, id); }

  void check_shape(const Region& region) const {
    if (phase_.capacity < 1 || region.tile_rows <= 0 || region.tile_rows > kMaxBatch || region.strands <= 0 ||
        region.strands > kMostStrands || region.tile_bytes > kMostBytes || region.accumulator_bytes > kMostBytes) {
      broken("tiles", fmt::format("{} rows a tile of {} bytes, {} strands of {}", region.tile_rows, region.tile_bytes,
                                  region.strands, region.accumulator_bytes));
    }
    check_accumulators(region);
    std::uint32_t at = region.first();
    for (const Stage& stage : region.stages) {
      if (stage.first != at || stage.rows < stage.first || stage.last < stage.rows) {
        broken("order",
               fmt::format("a stage of steps {}, {}, {} follows step {}", stage.first, stage.rows, stage.last, at));
      }
      at = stage.last;
    }
    if (region.last < at || region.last > phase_.steps.size()) {
      broken("order", fmt::format("the region ends at step {} of {}", region.last, phase_.steps.size()));
    }
  }

  void check_accumulators(const Region& region) const {
    if (region.accumulator_bytes % 64 != 0) {
      broken("accumulators", fmt::format("{} bytes are not whole lines", region.accumulator_bytes));
    }
    if (region.accumulators != kNoBuffer && buffer(region.accumulators).kind != BufferKind::workspace) {
      broken("accumulators", named(region.accumulators) + " is no workspace");
    }
    const std::uint64_t wanted = region.accumulator_bytes * static_cast<std::uint64_t>(region.strands);
    if (wanted == 0) return;  // of empty values only
    if (region.accumulators == kNoBuffer || buffer(region.accumulators).bytes < wanted) {
      broken("accumulators", fmt::format("{} strands need {} bytes of workspace", region.strands, wanted));
    }
  }

  void check_stage(const Region& region, const Stage& stage) {
    std::set<BufferId> written;  // roots of tile buffers that hold a value
    for (const TileMove& load : stage.loads) {
      check_move(region, load);
      written.insert(root_[load.tile]);
    }
    std::set<BufferId> combined;
    std::multimap<std::uint64_t, std::uint64_t> taken;  // of the accumulators: begin to end
    for (const Combine& combine : stage.combines) {
      check_combine(region, combine);
      taken.emplace(combine.offset, combine.offset + buffer(combine.value).bytes);
      if (!combined.insert(combine.value).second) broken("combine", named(combine.value) + " is combined twice");
    }
    std::uint64_t end = 0;
    for (const auto& [first, last] : taken) {
      if (first < end) broken("accumulators", fmt::format("two values share the bytes from {} on", first));
      end = last;
    }
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const Step& step = phase_.steps[i];
      row_step_[i] = true;
      check_in_place(step);
      check_vectors(region, step);
      for (const BufferId input : step.inputs) {
        if (!is_tile(input) && buffer(input).type.rows > 0) {
          broken("load", fmt::format("row step {} reads {} from the arena", step.name, named(input)));
        }
        if (is_tile(input) && written.count(root_[input]) == 0) {
          broken("load", fmt::format("row step {} reads {} before it is there", step.name, named(input)));
        }
        if (is_tile(input)) check_place(region, input);
      }
      if (is_tile(step.output)) {
        check_place(region, step.output);
        written.insert(root_[step.output]);
      } else if (combined.erase(step.output) == 0) {
        broken("combine", fmt::format("row step {} writes {}, which is not combined", step.name, named(step.output)));
      }
    }
    if (!combined.empty()) broken("combine", named(*combined.begin()) + " is written by no row step");
    for (const TileMove& store : stage.stores) {
      check_move(region, store);
      const BufferKind kind = buffer(root_[store.arena]).kind;
      if (kind == BufferKind::data || kind == BufferKind::constant || buffer(store.tile).layout != Layout::rows) {
        broken("store", fmt::format("{} cannot go to {}", named(store.tile), named(store.arena)));
      }
      if (written.count(root_[store.tile]) == 0) broken("store", named(store.tile) + " is never written");
    }
  }

  void check_place(const Region& region, BufferId id) const {
    const Buffer& b = buffer(id);
    if (b.layout == Layout::vectors) {
      if (region.tile_rows % kTileLanes != 0) broken("in_place", named(id) + " is read by tiles that begin in vectors");
      return;
    }
    if (b.offset > region.tile_bytes || b.bytes > region.tile_bytes - b.offset) {
      broken("inside_tile",
             fmt::format("{} is {} bytes at {}, a tile has {}", named(id), b.bytes, b.offset, region.tile_bytes));
    }
    if (b.offset % 64 != 0)
      broken("inside_tile", fmt::format("{} begins at {}, no multiple of 64", named(id), b.offset));
    const std::int64_t lanes = (region.tile_rows + kTileLanes - 1) / kTileLanes * kTileLanes;
    const std::int64_t features = phase_.capacity == 0 ? 0 : b.type.shape.elements() / phase_.capacity;
    if (b.bytes < static_cast<std::uint64_t>(features * lanes) * size_of(b.type.dtype)) {
      broken("inside_tile",
             fmt::format("{} has {} bytes for {} features of {} rows", named(id), b.bytes, features, lanes));
    }
  }

  void check_move(const Region& region, const TileMove& move) const {
    if (!is_tile(move.tile) || is_tile(move.arena)) broken("move", "a move is not between the arena and a tile");
    if (buffer(move.tile).type.dtype != buffer(move.arena).type.dtype ||
        buffer(move.tile).type.shape.elements() != buffer(move.arena).type.shape.elements() ||
        buffer(move.arena).type.rows == 0) {
      broken("move", fmt::format("{} is not what {} is", named(move.tile), named(move.arena)));
    }
    for (const BufferId id : {move.tile, move.arena}) {
      const TensorType& type = buffer(id).type;
      if (type.rows == 0 || type.shape[0] != type.rows * phase_.capacity) {
        broken("move", fmt::format("{} has not {} samples", named(id), phase_.capacity));
      }
    }
    if (buffer(move.arena).layout == Layout::vectors &&
        (region.tile_rows % kTileLanes != 0 || buffer(move.arena).block != phase_.capacity)) {
      broken("layout", fmt::format("{} is not one batch in vectors that tiles begin", named(move.arena)));
    }
    if (is_in_place(move.tile) && buffer(move.arena).layout != Layout::vectors) {
      broken("in_place",
             fmt::format("{} is to be read in {}, which lies in rows", named(move.tile), named(move.arena)));
    }
    check_place(region, move.tile);
  }

  // A batch of a data set in vectors is one block of it, row after row.
  void check_vectors(const Region& region, const Step& step) const {
    if (step.op != Op::minibatch || buffer(step.inputs[0]).layout != Layout::vectors) return;
    const auto& params = std::get<MinibatchParams>(step.params);
    if (!params.shuffle && region.tile_rows % kTileLanes == 0 &&
        buffer(step.inputs[0]).block == std::min(params.capacity, params.total)) {
      return;
    }
    broken("layout", fmt::format("the batches of row step {} are no blocks of {}", step.name, named(step.inputs[0])));
  }

  bool is_in_place(BufferId id) const { return is_tile(id) && buffer(id).layout == Layout::vectors; }

  // What lies in a data set is read by products, or as the one feature that it is, and written by nobody.
  void check_in_place(const Step& step) const {
    for (const BufferId input : step.inputs) {
      if (is_in_place(input) && step.op != Op::matmul && buffer(input).type.shape.elements() != phase_.capacity) {
        broken("in_place", fmt::format("row step {} reads {} in the data set", step.name, named(input)));
      }
    }
    if (!is_in_place(step.output)) return;
    if (step.op != Op::minibatch || buffer(step.inputs[0]).layout != Layout::vectors) {
      broken("in_place", fmt::format("row step {} writes {} in the data set", step.name, named(step.output)));
    }
  }

  void check_combine(const Region& region, const Combine& combine) const {
    const Buffer& value = buffer(combine.value);
    if (value.kind == BufferKind::tile || value.type.rows > 0) broken("combine", named(combine.value) + " has rows");
    if (value.type.dtype != DType::f32 || value.bytes != value.type.bytes() || combine.op > CombineOp::min) {
      broken("combine", fmt::format("{} is {}, combined by {}", named(combine.value), to_string(value.type),
                                    static_cast<int>(combine.op)));
    }
    if (combine.offset % sizeof(float) != 0) {
      broken("accumulators", fmt::format("{} at {}: not whole numbers", named(combine.value), combine.offset));
    }
    if (combine.offset > region.accumulator_bytes || value.bytes > region.accumulator_bytes - combine.offset) {
      broken("accumulators", fmt::format("{} is {} bytes at {} of {}", named(combine.value), value.bytes,
                                         combine.offset, region.accumulator_bytes));
    }
  }

  void check_outside(const Step& step) const {
    for (const BufferId input : step.inputs) {
      if (is_tile(input)) broken("tile", fmt::format("step {} reads {}, which is in a tile", step.name, named(input)));
    }
    for (const BufferId input : step.inputs) {
      if (buffer(input).layout == Layout::vectors) {
        broken("layout", fmt::format("step {} reads {}, which lies in vectors", step.name, named(input)));
      }
    }
    if (is_tile(step.output)) broken("tile", fmt::format("step {} writes a tile outside of rows", step.name));
  }

  static constexpr std::int32_t kMostStrands = 1 << 16;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 43;  // as of a tensor: sums of them do not wrap

  const Phase& phase_;
  const Program& program_;
  const std::vector<BufferId>& root_;
  std::vector<bool> row_step_;
};

}  // namespace

void check_regions(const Phase& phase, const Program& program, const std::vector<BufferId>& root) {
  RegionChecker(phase, program, root).run();
}

}  // namespace graphrun
