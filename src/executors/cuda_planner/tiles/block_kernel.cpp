// Writes the kernel of a region with block tiles. Its large products and sums are separately compiled functions, each
// with the definitions that it uses.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>

#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/tiles/block_values.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

// The body of a part after the definitions that it uses directly or indirectly.
std::string with_definitions(std::span<const Definition> definitions, const BlockPart& part) {
  std::string body = part.body;
  std::set<std::string> uses = part.uses;
  for (auto of = definitions.rbegin(); of != definitions.rend(); ++of) {
    if (!uses.contains(of->name)) continue;
    body.insert(0, of->text);
    uses.insert(of->uses.begin(), of->uses.end());
  }
  return body;
}

class BlockWriter : BlockKernel {
 public:
  explicit BlockWriter(const KernelRegion& of) : BlockKernel(of, ""), order_(*this) {}

  StepKernel run() {
    order_.run_scalars(once, stage.first, stage.rows, 0);
    run_once();
    plan_rows();
    // Matrix products take long to compile, so several of them become parts. Threads of a larger block have half the
    // registers: a part, which must leave some to its caller, would spill.
    has_parts = tiling.threads <= 256 &&
                std::ranges::count_if(steps, [](const BlockStep& of) { return of.call.op == Op::matmul; }) > 1;
    define({"count",
            fmt::format("    const int count = static_cast<int>({});\n", count_text()),
            {count == kNoBuffer ? std::string() : once.value(count)}});
    text += "    (void)count;\n";
    add_selections();
    add_rows(*this);
    add_sums(*this, order_);
    text += once.end_of_step();
    if (waits) text += kBlockSync;
    write();
    return std::move(kernel);
  }

 private:
  void write() {
    std::vector<Definition> given;  // outside the loop over steps
    if (region.accumulators != kNoBuffer)
      given.push_back({"scratch", fmt::format("  char* const scratch = static_cast<char*>({});\n", scratch()), {}});
    for (const Places::Array& array : places.arrays())
      given.push_back({array.name,
                       fmt::format("  {}* const {} = {};{}", type_name(array.dtype), array.name, pointer(array.root),
                                   KernelFrame::name(array.root)),
                       {}});
    std::string pointers, numbers, passed;
    for (const Definition& of : given) pointers += fmt::format("{}  (void){};\n", of.text, of.name);
    for (Definition& of : scratch_pointers()) pointers += given.emplace_back(std::move(of)).text;
    const States states = this->states();
    for (const BufferId id : once.read_first()) {
      if (!places.is_number(id)) continue;
      const std::string_view type = type_name(buffer(id).type.dtype);
      const std::string number = places.name(id);
      numbers += fmt::format("  {} {};{}", type, number, KernelFrame::name(id));
      given.push_back({number, fmt::format("  const {0} {1} = numbers.{1};\n", type, number), {}});
      passed += (passed.empty() ? "" : ", ") + number;
    }
    given.push_back({"i", "  const int i = 0;  // of numbers\n", {}});
    has_parts = !parts.empty();
    std::string body = fmt::format("{}  Blocks grid(s.grid, {}, a.fault);\n{}", pointers,
                                   region.accumulators != kNoBuffer ? "scratch" : "nullptr", states.numbers);
    if (has_parts) body += "  if (thread_index() == 0) s.arguments = a;\n";
    body += fmt::format(
        "  const bool is_last = block_index() == {}u, first_thread = is_last && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n  barrier();\n"
        "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{}{}  }}\n",
        tiling.blocks() - 1, has_parts ? fmt::format("    const Numbers numbers{{{}}};\n", passed) : "", text);
    // Scalars are written back only after all blocks have read their initial values.
    if (!waits && !states.stores.empty()) body += "  grid.sync();\n";
    if (!states.stores.empty()) body += fmt::format("  barrier();\n  if (first_thread) {{\n{}  }}\n", states.stores);
    if (tiling.blocks() > 1 && tiling.scratch_bytes < plan.bytes)
      throw std::logic_error("the scratch of a step kernel is too small");
    const std::string begin =
        this->begin(fmt::format("using Blocks = Grid<{0}>;\n"
                                "static_assert(Blocks::kScratchBytes <= {1} && {1} + {2} <= {3}, \"scratch\");\n{4}",
                                tiling.blocks(), kBlockFlagBytes, plan.bytes - kBlockFlagBytes,
                                std::max<std::uint64_t>(tiling.scratch_bytes, plan.bytes),
                                has_parts ? "struct Numbers {\n" + numbers + "};\n" : ""),
                    fmt::format("  alignas(16) unsigned char parts[{}];\n  Blocks::Shared grid;\n{}{}{}{}",
                                std::max<std::uint64_t>(plan.parts_bytes, 16), shared_rows(), shared, states.members,
                                has_parts ? "  Arguments arguments;\n" : ""));
    const std::string kernel_text = definition(body), end = this->end();
    std::string functions, names;
    definitions.insert(definitions.begin(), given.begin(), given.end());
    for (const BlockPart& part : parts) {
      const std::string name = fmt::format("{}_part{}", kernel.name, kernel.pieces.size() + 1);
      const auto known = std::span(definitions).first(given.size() + part.definitions);
      const std::string function = fmt::format(
          "\nGRAPHRUN_STEP_PART({}, Arguments, a, Shared, s) {{\n  (void)a, (void)epoch, (void)numbers, (void)at;\n"
          "{}}}\n",
          name, with_definitions(known, part));
      names += fmt::format("GRAPHRUN_STEP_PART_OF({})\n", name);
      functions += function;
      kernel.pieces.push_back(begin + function + end);
    }
    if (has_parts) kernel.pieces.insert(kernel.pieces.begin(), begin + names + kernel_text + end);
    kernel.text = begin + functions + kernel_text + end;
  }

  BlockOrder order_;
};

}  // namespace

StepKernel block_kernel(const KernelRegion& of) {
  return BlockWriter(of).run();
}

}  // namespace graphrun::cuda
