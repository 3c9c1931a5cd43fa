#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/block_rows.h"
#include "executors/cuda_planner/block_sums.h"
#include "executors/cuda_planner/kernel_frame.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

const Region& one_stage(const Region& region) {
  if (region.stages.size() != 1) throw std::logic_error("a kernel with tiles of blocks has one stage");
  return region;
}

// The body of a part after the definitions that it uses directly or indirectly.
std::string with_definitions(const std::vector<Definition>& definitions, const BlockPart& part) {
  std::string body = part.body;
  std::set<std::string> uses = part.uses;
  for (const Definition& of : std::views::reverse(definitions)) {
    if (!uses.contains(of.name)) continue;
    body.insert(0, of.text);
    uses.insert(of.uses.begin(), of.uses.end());
  }
  return body;
}

class BlockWriter : KernelFrame {
 public:
  BlockWriter(std::string_view name, const Program& in, const Phase& in_phase, const Region& of)
      : KernelFrame(name, in, in_phase, one_stage(of), ""),
        order_(in, in_phase, of, places),
        before_rows_(once_before(of.stages.front())),
        values_(*this) {}

  StepKernel run() {
    values_.has_parts = products() > 1 && tiling.threads <= 256;
    text_ = before_rows_;
    text_ += values_.define({"count",
                             fmt::format("    const int count = static_cast<int>({});\n", count_text()),
                             {count == kNoBuffer ? std::string() : once.value(count)}}) +
             "    (void)count;\n";
    add(values_.selections());
    add(block_rows(values_));
    add(block_sums(values_, order_));
    text_ += once.end_of_step();
    if (waits_) text_ += kBlockSync;
    write();
    return std::move(kernel);
  }

 private:
  // Number of matrix products. They take long to compile, so several of them become separately compiled parts. Threads
  // of a larger block have half the registers: a part, which must leave some to its caller, would spill.
  std::ptrdiff_t products() const {
    return std::ranges::count_if(values_.steps, [](const BlockStep& of) { return of.call.op == Op::matmul; });
  }
  std::string once_before(const Stage& stage) {
    for (std::uint32_t i = stage.first; i < stage.rows; ++i) {
      if (order_.levels.at(i) > 0) continue;
      const Step& step = phase.steps[i];
      const bool number = step.op == Op::record || places.is_number(root(step.output));
      if (number && !order_.sums_elements(i))
        once.run(i, i + 1);
      else
        order_.before.emplace(i, once.call(step));
    }
    return once.before_rows();
  }
  void add(const BlockText& part) {
    text_ += part.text;
    shared_ += part.shared;
    parts_bytes_ = std::max(parts_bytes_, part.parts_bytes);
    scratch_bytes_ += part.scratch_bytes;
    waits_ = waits_ || part.waits;
  }

  void write() {
    std::vector<Definition> definitions;  // before the loop over steps; of a part
    if (region.accumulators != kNoBuffer)
      definitions.push_back(
          {"scratch", fmt::format("  char* const scratch = static_cast<char*>({});\n", scratch()), {}});
    for (const Places::Array& array : places.arrays())
      definitions.push_back({array.name,
                             fmt::format("  {}* const {} = {};{}", type_name(array.dtype), array.name,
                                         pointer(array.root), this->name(array.root)),
                             {}});
    std::string pointers, numbers, passed;
    for (const Definition& of : definitions) pointers += fmt::format("{}  (void){};\n", of.text, of.name);
    for (Definition& of : values_.scratch_pointers()) pointers += definitions.emplace_back(std::move(of)).text;
    const States states = this->states();
    std::string members = values_.shared_rows() + shared_ + states.members;
    for (const BufferId id : once.read_first()) {
      if (!places.is_number(id)) continue;
      const std::string_view type = type_name(buffer(id).type.dtype);
      const std::string name = places.name(id);
      numbers += fmt::format("  {} {};{}", type, name, this->name(id));
      definitions.push_back({name, fmt::format("  const {0} {1} = numbers.{1};\n", type, name), {}});
      passed += fmt::format("{}{}", passed.empty() ? "" : ", ", name);
    }
    const bool has_parts = !values_.parts.empty();
    if (has_parts) members += "  Arguments arguments;\n";
    std::string body = fmt::format("{}  Blocks grid(s.grid, {}, a.fault);\n{}", pointers,
                                   region.accumulators != kNoBuffer ? "scratch" : "nullptr", states.numbers);
    if (has_parts) body += "  if (thread_index() == 0) s.arguments = a;\n";
    body += fmt::format(
        "  const bool is_last = block_index() == {}u, first_thread = is_last && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n  barrier();\n"
        "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{}{}  }}\n",
        tiling.blocks() - 1, has_parts ? fmt::format("    const Numbers numbers{{{}}};\n", passed) : "", text_);
    // Scalars are written back only after all blocks have read their initial values.
    if (!waits_ && !states.stores.empty()) body += "  grid.sync();\n";
    if (!states.stores.empty()) body += fmt::format("  barrier();\n  if (first_thread) {{\n{}  }}\n", states.stores);
    const std::uint64_t bytes = kBlockFlagBytes + values_.plan.bytes + scratch_bytes_;
    const std::string begin =
        this->begin(fmt::format("using Blocks = Grid<{0}>;\n"
                                "static_assert(Blocks::kScratchBytes <= {1} && {1} + {2} <= {3}, \"scratch\");\n{4}",
                                tiling.blocks(), kBlockFlagBytes, bytes - kBlockFlagBytes,
                                std::max<std::uint64_t>(tiling.scratch_bytes, bytes),
                                has_parts ? "struct Numbers {\n" + numbers + "};\n" : ""),
                    fmt::format("  alignas(16) unsigned char parts[{}];\n  Blocks::Shared grid;\n{}",
                                std::max<std::uint64_t>(parts_bytes_, 16), members));
    definitions.push_back({"i", "  const int i = 0;  // of numbers\n", {}});
    const std::size_t before_loop = definitions.size();
    const std::string kernel_text = definition(body), end = this->end();
    std::string parts, names;
    for (const BlockPart& part : values_.parts) {
      const std::string name = fmt::format("{}_part{}", kernel.name, kernel.pieces.size() + 1);
      definitions.resize(before_loop);
      definitions.insert(definitions.end(), values_.definitions.begin(),
                         values_.definitions.begin() + static_cast<std::ptrdiff_t>(part.definitions));
      const std::string text = fmt::format(
          "\nGRAPHRUN_STEP_PART({}, Arguments, a, Shared, s) {{\n  (void)a, (void)epoch, (void)numbers, (void)at;\n"
          "{}}}\n",
          name, with_definitions(definitions, part));
      names += fmt::format("GRAPHRUN_STEP_PART_OF({})\n", name);
      parts += text;
      kernel.pieces.push_back(begin + text + end);
    }
    if (has_parts) kernel.pieces.insert(kernel.pieces.begin(), begin + names + kernel_text + end);
    kernel.source = begin + parts + kernel_text + end;
    if (tiling.blocks() > 1 && tiling.scratch_bytes < bytes)
      throw std::logic_error("the scratch of a step kernel is too small");
  }

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
