#include "executors/cuda_planner/print/kernel_frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/op.h"

namespace graphrun::cuda {

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

KernelFrame::KernelFrame(std::string_view name, const Program& in, const Phase& in_phase, const Region& of,
                         std::string_view arrays)
    : program(in),
      phase(in_phase),
      region(of),
      tiling(std::get<StepTiling>(of.tiling)),
      kernel{std::string(name), {}, {}, {}},
      places(in, in_phase, of),
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
  if (once.folds()) out.members += fmt::format("  float fold[{}];\n", tiling.threads / 32);
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
      out.loads += fmt::format("  copy<{}, {}>(s.{}, {});\n", type.shape.elements(), tiling.threads, places.name(id),
                               pointer(id, "const "));
  }
  const std::vector<BufferId> unread = once.unread_numbers();
  for (const BufferId id : unread)
    out.members += fmt::format("  {} {};{}", type_name(buffer(id).type.dtype), places.name(id), name(id));
  for (const BufferId id : once.written_back()) {
    const std::int64_t n = buffer(id).type.shape.elements();
    if (places.is_number(id))
      out.stores += fmt::format("    {}{}[0] = {}{};{}", in_arena_ ? "" : "if (thread_index() == 0) ", pointer(id),
                                std::ranges::find(unread, id) == unread.end() ? "" : "s.", places.name(id), name(id));
    else if (in_arena_ || places.is_passed(id))
      continue;
    else if (places.is_sliced(id))
      out.slices += fmt::format("    by_split::store_slice<{}, {}, {}>({}, s.{});{}", places.elements(id), n,
                                tiling.threads, pointer(id), places.name(id), name(id));
    else
      out.stores +=
          fmt::format("    copy<{}, {}>({}, {});{}", n, tiling.threads, pointer(id), once.array(id), name(id));
  }
  return out;
}

std::string KernelFrame::begin(std::string_view definitions, std::string_view members) const {
  return fmt::format("namespace {} {{\nusing Arguments = StepArguments<{}>;\n{}struct Shared {{\n{}}};\n", kernel.name,
                     std::max<std::size_t>(kernel.pointers.size(), 1), definitions,
                     members.empty() ? "  int nothing;\n" : members);
}
std::string KernelFrame::definition(std::string_view body) const {
  return fmt::format("\nGRAPHRUN_STEP_KERNEL({}, {}, Arguments, a, Shared, s) {{\n{}}}\n", kernel.name, tiling.threads,
                     body);
}
std::string KernelFrame::end() const {
  return fmt::format("}}  // namespace {}\n", kernel.name);
}

}  // namespace graphrun::cuda
