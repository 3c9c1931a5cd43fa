#include "executors/cuda_planner/block_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/block_rows.h"
#include "executors/cuda_planner/block_sums.h"
#include "executors/cuda_planner/row_stage.h"

namespace graphrun::cuda {
namespace {

const Region& one_stage(const Region& region) {
  if (region.stages.size() != 1) throw std::logic_error("a kernel with tiles of blocks has one stage");
  return region;
}

class BlockWriter {
 public:
  BlockWriter(std::string_view name, const Program& program, const Phase& phase, const Region& region)
      : program_(program),
        phase_(phase),
        region_(one_stage(region)),
        tiling_(std::get<StepTiling>(region.tiling)),
        places_(program, phase, region),
        once_(
            program, phase, region, places_, tiling_.threads, [this](BufferId id) { return pointer(id, ""); }, ""),
        order_(program, phase, region, places_),
        before_rows_(once_before(region.stages.front())),
        values_(program, phase, region, places_, once_,
                [this](BufferId id, std::string_view qualifier) { return pointer(id, qualifier); }) {
    kernel_.name = name;
    kernel_.tiling = tiling_;
  }

  StepKernel run() {
    const std::string count = values_.count == kNoBuffer
                                  ? fmt::format("{}u", values_.phase.capacity)
                                  : fmt::format("rows_of<{}>({})", values_.phase.capacity, once_.value(values_.count));
    text_ = before_rows_ + fmt::format("    const int count = static_cast<int>({});\n    (void)count;\n", count);
    add(values_.selections());
    add(block_rows(values_));
    add(block_sums(values_, order_));
    text_ += once_.end_of_step();
    if (waits_) text_ += kBlockSync;
    write();
    return std::move(kernel_);
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  std::string once_before(const Stage& stage) {
    for (std::uint32_t i = stage.first; i < stage.rows; ++i) {
      if (order_.levels.at(i) > 0) continue;
      const Step& step = phase_.steps[i];
      const bool number = step.op == Op::record || places_.is_number(storage_root(program_, step.output));
      if (number && !order_.sums_elements(i))
        once_.run(i, i + 1);
      else
        order_.before.emplace(i, once_.call(step));
    }
    return once_.before_rows();
  }
  void add(const BlockText& part) {
    text_ += part.text;
    shared_ += part.shared;
    parts_bytes_ = std::max(parts_bytes_, part.parts_bytes);
    scratch_bytes_ += part.scratch_bytes;
    waits_ = waits_ || part.waits;
  }

  std::string pointer(BufferId id, std::string_view qualifier) {
    const auto [entry, fresh] = pointers_.try_emplace(id, kernel_.pointers.size());
    if (fresh) kernel_.pointers.push_back(id);
    return fmt::format("static_cast<{}{}*>(a.at[{}])", qualifier, type_name(buffer(id).type.dtype), entry->second);
  }

  void write() {
    std::string begin, stores;
    std::string shared = values_.shared_rows() + shared_;
    if (region_.accumulators != kNoBuffer)
      begin += fmt::format("  char* const scratch = static_cast<char*>({});\n  (void)scratch;\n",
                           fmt::format("a.at[{}]", pointer_index(region_.accumulators)));
    begin +=
        fmt::format("  Blocks grid(s.grid, {}, a.fault);\n", region_.accumulators != kNoBuffer ? "scratch" : "nullptr");
    for (const Places::Array& array : places_.arrays())
      begin += fmt::format("  {}* const {} = {};  // {}\n  (void){};\n", type_name(array.dtype), array.name,
                           pointer(array.root, ""), printable_name(buffer(array.root).name), array.name);
    for (const BufferId id : once_.read_first())
      if (places_.is_number(id))
        begin += fmt::format("  {} {} = {}[0];  // {}\n", type_name(buffer(id).type.dtype), places_.name(id),
                             pointer(id, "const "), printable_name(buffer(id).name));
    const std::vector<BufferId> unread = once_.unread_numbers();
    for (const BufferId id : unread)
      shared += fmt::format("  {} {};  // {}\n", type_name(buffer(id).type.dtype), places_.name(id),
                            printable_name(buffer(id).name));
    for (const BufferId id : once_.written_back()) {
      if (!places_.is_number(id)) continue;
      stores += fmt::format("    {}[0] = {}{};  // {}\n", pointer(id, ""),
                            std::ranges::find(unread, id) == unread.end() ? "" : "s.", places_.name(id),
                            printable_name(buffer(id).name));
    }
    std::string body = begin + values_.scratch_pointers() +
                       fmt::format(
                           "  const bool is_last = block_index() == {}u, first_thread = is_last && thread_index() == "
                           "0;\n  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n  barrier();\n"
                           "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{}  }}\n",
                           tiling_.blocks() - 1, text_);
    // Who writes numbers back waits for those who read them at first.
    if (!waits_ && !stores.empty()) body += "  grid.sync();\n";
    if (!stores.empty()) body += fmt::format("  barrier();\n  if (first_thread) {{\n{}  }}\n", stores);
    kernel_.source = fmt::format(
        "namespace {0} {{\nusing Arguments = StepArguments<{1}>;\nusing Blocks = Grid<{5}>;\n"
        "static_assert(Blocks::kScratchBytes <= {6} && {6} + {7} <= {8}, \"scratch\");\nstruct Shared {{\n"
        "  alignas(16) unsigned char parts[{9}];\n  Blocks::Shared grid;\n{2}}};\n\nGRAPHRUN_STEP_KERNEL({0}, {4}, "
        "Arguments, a, Shared, s) {{\n{3}}}\n}}  // namespace {0}\n",
        kernel_.name, std::max<std::size_t>(kernel_.pointers.size(), 1), shared, body, tiling_.threads,
        tiling_.blocks(), kBlockFlagBytes, values_.plan.bytes + scratch_bytes_,
        std::max<std::uint64_t>(tiling_.scratch_bytes, kBlockFlagBytes + values_.plan.bytes + scratch_bytes_),
        std::max<std::uint64_t>(parts_bytes_, 16));
    if (tiling_.blocks() > 1 && tiling_.scratch_bytes < kBlockFlagBytes + values_.plan.bytes + scratch_bytes_)
      throw std::logic_error("the scratch of a step kernel is too small");
  }
  std::size_t pointer_index(BufferId id) {
    (void)pointer(id, "");
    return pointers_.at(id);
  }

  const Program& program_;
  const Phase& phase_;
  const Region& region_;
  const StepTiling tiling_;
  StepKernel kernel_;
  std::map<BufferId, std::size_t> pointers_;
  Places places_;
  OnceText once_;
  BlockOrder order_;
  std::string before_rows_;
  BlockValues values_;
  std::string text_, shared_;
  std::uint64_t parts_bytes_ = 0, scratch_bytes_ = 0;
  bool waits_ = false;
};

}  // namespace

StepKernel block_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region) {
  return BlockWriter(name, program, phase, region).run();
}

}  // namespace graphrun::cuda
