#include "executors/cuda_planner/print/kernel_frame.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "executors/cuda_planner/plan/block_phases.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {
namespace {

// Limit on the rows of a table per block: a larger one does not fit next to values shared by all rows.
constexpr std::int64_t kMaxTableRows = 2048;

}  // namespace

std::string printable_name(std::string_view name) {
  std::string text(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~' || c == '\\'; }, '?');
  return text;
}

std::string comment_of(const Step& step) {
  return fmt::format("{} {}", printable_name(step.name), name_of(step.op));
}
std::string step_comment(const Step& step) {
  return fmt::format("  // {}\n", comment_of(step));
}

KernelFrame::KernelFrame(const KernelRegion& of, std::string_view arrays)
    : program(of.program),
      phase(of.phase),
      region(of.region),
      tiling(std::get<StepTiling>(region.tiling)),
      in_slots(of.in_slots),
      together(of.together),
      joined(together > 0 ? joined_warps(region) : 1),
      threads(together > 0 ? 32 * together : tiling.threads),
      kernel{{{}, {}, threads}, of.name, {}, {}, in_slots, together > 0},
      places(program, phase, region),
      once(*this, arrays),
      in_arena_(arrays.empty()) {
  for (const Stage& stage : region.stages)
    for (std::uint32_t i = stage.rows; i < stage.last; ++i)
      if (phase.steps[i].row_count != kNoBuffer) count = phase.steps[i].row_count;
}

std::size_t KernelFrame::pointer_index(BufferId id) {
  const auto found = std::ranges::find(kernel.pointers, id);
  const auto index = static_cast<std::size_t>(found - kernel.pointers.begin());
  if (found == kernel.pointers.end()) kernel.pointers.push_back(id);
  return index;
}
std::string KernelFrame::pointer(BufferId id, std::string_view qualifier) {
  return fmt::format("static_cast<{}{}*>(a.at[{}])", qualifier, type_name(buffer(id).type.dtype), pointer_index(id));
}
std::string KernelFrame::scratch() {
  return region.accumulators == kNoBuffer ? "nullptr" : fmt::format("a.at[{}]", pointer_index(region.accumulators));
}

std::string KernelFrame::key(const Step& step) {
  const auto* draw = step.params.get_if<RandomParams>();
  const auto* batches = step.params.get_if<MinibatchParams>();
  if (draw == nullptr && (batches == nullptr || !batches->shuffle)) return {};
  const std::uint64_t key = draw != nullptr ? draw->key : batches->key;
  const auto [found, fresh] = keys_.try_emplace(&step, kernel.keys.size());
  if (fresh) kernel.keys.push_back(key);
  return fmt::format("a.keys[{}]", found->second);
}

std::string KernelFrame::count_text() const {
  return count == kNoBuffer ? fmt::format("{}u", phase.capacity)
                            : fmt::format("rows_of<{}>({})", phase.capacity, once.value(count));
}
std::string KernelFrame::name(BufferId id) const {
  return fmt::format("  // {}\n", printable_name(buffer(id).name));
}

KernelFrame::States KernelFrame::states() {
  States out;
  for (const Places::Array& array : places.arrays())
    if (!in_arena_ && !places.is_passed(array.root))
      out.members += fmt::format("  alignas(16) {} {}[{}];{}", type_name(array.dtype), array.name,
                                 std::max<std::int64_t>(array.capacity, 1), name(array.root));
  if (once.folds()) out.members += fmt::format("  float fold[{}];\n", threads / 32);
  for (const BufferId id : once.read_first()) {
    const TensorType& type = buffer(id).type;
    if (places.is_number(id))
      out.numbers +=
          fmt::format("  {} {} = {}[0];{}", type_name(type.dtype), places.name(id), pointer(id, "const "), name(id));
    else if (places.is_sliced(id))
      out.loads +=
          fmt::format("  by_split::load_slice<{}, {}, {}, {}>(s.{}, {});\n", places.elements(id), places.capacity(id),
                      type.shape.elements(), tiling.threads, places.name(id), pointer(id, "const "));
    else if (!in_arena_)
      out.loads += fmt::format("  copy<{}, {}>(s.{}, {});\n", type.shape.elements(), threads, places.name(id),
                               pointer(id, "const "));
  }
  for (const BufferId id : once.written_back()) {
    const TensorType& type = buffer(id).type;
    if (places.is_number(id)) {
      const bool in_shared = !once.is_read_first(id);
      if (in_shared) out.members += fmt::format("  {} {};{}", type_name(type.dtype), places.name(id), name(id));
      out.stores += fmt::format("    {}{}[0] = {}{};{}", in_arena_ ? "" : "if (thread_index() == 0) ", pointer(id),
                                in_shared ? "s." : "", places.name(id), name(id));
    } else if (places.is_sliced(id) && !places.is_passed(id)) {
      out.slices += fmt::format("    by_split::store_slice<{}, {}, {}>({}, s.{});{}", places.elements(id),
                                type.shape.elements(), tiling.threads, pointer(id), places.name(id), name(id));
    } else if (!in_arena_ && !places.is_passed(id)) {
      out.stores += fmt::format("    copy<{}, {}>({}, {});{}", type.shape.elements(), threads, pointer(id),
                                once.array(id), name(id));
    }
  }
  return out;
}

std::uint32_t joined_warps(const Region& region) {
  const auto& tiling = std::get<StepTiling>(region.tiling);
  const bool only_sums = std::ranges::all_of(region.stages, [](const Stage& stage) {
    return std::ranges::all_of(stage.combines, [](const Combine& one) { return one.op == CombineOp::sum; });
  });
  return only_sums && tiling.threads / tiling.groups % 64 == 0 ? 2 : 1;
}

std::int64_t warps_with_rows(const Phase& phase, const StepTiling& tiling) {
  const std::int64_t of_block = tiling.threads / 32, blocks = divide_up(phase.capacity, tiling.block_rows());
  if (blocks > tiling.cluster || tiling.groups > 1) return std::min<std::int64_t>(blocks, tiling.cluster) * of_block;
  return divide_up(phase.capacity * of_block, tiling.block_rows());
}

bool counts_steps(const Program& program, const Phase& phase, BufferId number) {
  const BufferId state = storage_root(program, number);
  std::int64_t increments = 0, writes = 0;
  for (const Step& step : phase.steps) {
    if (storage_root(program, step.output) != state) continue;
    ++writes;
    if (step.op == Op::increment && storage_root(program, step.inputs[0]) == state) ++increments;
  }
  return program.buffers[state].kind == BufferKind::counter && writes == 1 && increments == 1;
}

// A table holds the rows of the next steps, so the step number must count steps.
std::string KernelFrame::picked_table(const TextCall& call, const Step& step) {
  const auto& p = call.params->as<MinibatchParams>();
  // Rows of a block: `chunk` of every `chunk` times `blocks`.
  const bool has_all = tiling.tile == RowTile::block || tiling.tile == RowTile::split || together > 0;
  const std::int64_t chunk = has_all                        ? phase.capacity
                             : tiling.tile == RowTile::warp ? tile::kTileRows
                                                            : std::int64_t{tiling.block_rows()};
  const std::int64_t blocks = has_all ? 1 : tiling.blocks(), max_rows = has_all ? kMaxLookedUp : kMaxTableRows;
  if (!p.shuffle || divide_up(phase.capacity, chunk * blocks) * chunk > max_rows ||
      p.total > std::numeric_limits<std::uint32_t>::max() || !counts_steps(program, phase, step.inputs[1]))
    return {};
  const std::string batches = batches_text(call), &number = call.inputs[1].name;
  const auto [found, fresh] = tables_.try_emplace(batches + number, fmt::format("picked{}", tables_.size() + 1));
  if (fresh) {
    picked_members +=
        fmt::format("  PickedRows<{}, {}, {}, {}> {};\n", phase.capacity, threads, blocks, chunk, found->second);
    picked_statements += fmt::format("    s.{}.look_ahead({}, {}, epoch, a.steps);\n", found->second, batches, number);
  }
  return "s." + found->second;
}

std::string KernelFrame::begin(std::string_view definitions, std::string_view members) const {
  const std::size_t pointers = std::max<std::size_t>(kernel.pointers.size(), 1);
  return fmt::format("namespace {} {{\nusing Arguments = {};\n{}struct Shared {{\n{}}};\n", kernel.name,
                     in_slots
                         ? fmt::format("SlotArguments<{}, {}>", pointers, std::max<std::size_t>(kernel.keys.size(), 1))
                         : fmt::format("StepArguments<{}>", pointers),
                     definitions, members.empty() ? "  int nothing;\n" : members);
}
std::string KernelFrame::definition(std::string_view body) const {
  return fmt::format("\nGRAPHRUN_{}_KERNEL({}, {}, Arguments, a, Shared, s) {{\n{}}}\n", in_slots ? "SLOT" : "STEP",
                     kernel.name, threads, body);
}

}  // namespace graphrun::cuda
