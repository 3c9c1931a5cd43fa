#include "executors/cuda_planner/block_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/block_rows.h"
#include "executors/cuda_planner/block_sums.h"
#include "executors/cuda_planner/row_stage.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

const Region& one_stage(const Region& region) {
  if (region.stages.size() != 1) throw std::logic_error("a kernel with tiles of blocks has one stage");
  return region;
}

bool names(std::string_view text, std::string_view name) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

// `body` after those of the definitions, a line each, that it names, and those that these name: "float* const v6 =
// ...".
std::string with_definitions(std::string_view definitions, std::string body) {
  while (definitions.size() > 1) {
    const std::size_t begin = definitions.find_last_of('\n', definitions.size() - 2) + 1;  // 0: the first line
    const std::string_view line = definitions.substr(begin);
    definitions.remove_suffix(line.size());
    const std::size_t equals = line.find(" = "), first = line.find_first_not_of(' ');
    if (equals == std::string_view::npos || line.substr(first).starts_with("if ")) continue;
    const std::size_t name = line.find_last_of(" &", equals - 1) + 1;
    if (names(body, line.substr(name, equals - name))) body.insert(0, line);
  }
  return body;
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
    values_.name = kernel_.name;
    values_.has_parts = products() > 1 && tiling_.threads <= 256;
    values_.definitions =
        before_rows_ + fmt::format("    const int count = static_cast<int>({});\n    (void)count;\n", count);
    text_ = values_.definitions;
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
  // Each takes the compiler long, so several are parts. Threads of a larger block have half the registers: there a
  // part, which has to leave some to its caller, would spill.
  std::ptrdiff_t products() const {
    return std::ranges::count_if(values_.steps, [](const BlockStep& of) { return of.call.op == Op::matmul; });
  }
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
    std::string pointers, loads, numbers, given, passed, stores;
    std::string shared = values_.shared_rows() + shared_;
    if (region_.accumulators != kNoBuffer)
      pointers += fmt::format("  char* const scratch = static_cast<char*>(a.at[{}]);\n  (void)scratch;\n",
                              pointer_index(region_.accumulators));
    for (const Places::Array& array : places_.arrays())
      pointers += fmt::format("  {}* const {} = {};  // {}\n  (void){};\n", type_name(array.dtype), array.name,
                              pointer(array.root, ""), printable_name(buffer(array.root).name), array.name);
    pointers += values_.scratch_pointers();
    for (const BufferId id : once_.read_first()) {
      if (!places_.is_number(id)) continue;
      const std::string_view type = type_name(buffer(id).type.dtype);
      const std::string name = places_.name(id), comment = "  // " + printable_name(buffer(id).name);
      loads += fmt::format("  {} {} = {}[0];{}\n", type, name, pointer(id, "const "), comment);
      numbers += fmt::format("  {} {};{}\n", type, name, comment);
      given += fmt::format("  const {0} {1} = numbers.{1};\n", type, name);
      passed += fmt::format("{}{}", passed.empty() ? "" : ", ", name);
    }
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
    const bool has_parts = !values_.parts.empty();
    if (has_parts) shared += "  Arguments arguments;\n";
    std::string body = fmt::format("{}  Blocks grid(s.grid, {}, a.fault);\n{}", pointers,
                                   region_.accumulators != kNoBuffer ? "scratch" : "nullptr", loads);
    if (has_parts) body += "  if (thread_index() == 0) s.arguments = a;\n";
    body += fmt::format(
        "  const bool is_last = block_index() == {}u, first_thread = is_last && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n  barrier();\n"
        "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{}{}  }}\n",
        tiling_.blocks() - 1, has_parts ? fmt::format("    const Numbers numbers{{{}}};\n", passed) : "", text_);
    // Who writes numbers back waits for those who read them at first.
    if (!waits_ && !stores.empty()) body += "  grid.sync();\n";
    if (!stores.empty()) body += fmt::format("  barrier();\n  if (first_thread) {{\n{}  }}\n", stores);
    const std::string begin = fmt::format(
        "namespace {0} {{\nusing Arguments = StepArguments<{1}>;\nusing Blocks = Grid<{4}>;\n"
        "static_assert(Blocks::kScratchBytes <= {5} && {5} + {6} <= {7}, \"scratch\");\n{3}struct Shared {{\n"
        "  alignas(16) unsigned char parts[{8}];\n  Blocks::Shared grid;\n{2}}};\n",
        kernel_.name, std::max<std::size_t>(kernel_.pointers.size(), 1), shared,
        has_parts ? "struct Numbers {\n" + numbers + "};\n" : "", tiling_.blocks(), kBlockFlagBytes,
        values_.plan.bytes + scratch_bytes_,
        std::max<std::uint64_t>(tiling_.scratch_bytes, kBlockFlagBytes + values_.plan.bytes + scratch_bytes_),
        std::max<std::uint64_t>(parts_bytes_, 16));
    const std::string kernel = fmt::format("\nGRAPHRUN_STEP_KERNEL({}, {}, Arguments, a, Shared, s) {{\n{}}}\n",
                                           kernel_.name, tiling_.threads, body),
                      end = fmt::format("}}  // namespace {}\n", kernel_.name);
    std::string parts, names;
    for (std::size_t k = 0; k < values_.parts.size(); ++k) {
      const std::string name = fmt::format("{}_part{}", kernel_.name, k + 1);
      const std::string part = fmt::format(
          "\nGRAPHRUN_STEP_PART({}, Arguments, a, Shared, s) {{\n  (void)a, (void)epoch, (void)numbers, (void)at;\n"
          "{}}}\n",
          name,
          with_definitions(pointers + given + "  const int i = 0;  // of numbers\n" + values_.parts[k].definitions,
                           values_.parts[k].body));
      names += fmt::format("GRAPHRUN_STEP_PART_OF({})\n", name);
      parts += part;
      kernel_.pieces.push_back(begin + part + end);
    }
    if (has_parts) kernel_.pieces.insert(kernel_.pieces.begin(), begin + names + kernel + end);
    kernel_.source = begin + parts + kernel + end;
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
