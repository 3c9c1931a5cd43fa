#include "executors/cuda_planner/tiles/block_values.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {

std::int64_t width_of(std::initializer_list<std::int64_t> sizes) {
  std::int64_t width = 4;
  for (const std::int64_t size : sizes) width = std::gcd(width, size);
  return width;
}

std::string BlockContext::fetch(DType dtype, const std::string& element) {
  const std::string name = fmt::format("f{}", ++fetches);
  members += fmt::format("{} {}; ", type_name(dtype), name);
  fetched += (fetches == 1 ? "" : ", ") + element;
  return "f." + name;
}

std::string BlockContext::fetch_function(std::string_view parameters, std::string_view begin,
                                         std::string_view indent) const {
  return fmt::format("[&]({0}) {{\n{1}{2}struct Fetched {{ {3}}};\n{2}return Fetched{{{4}}};\n{2}}}", parameters, begin,
                     indent, members, fetched);
}

void BlockKernel::plan_rows() {
  std::map<BufferId, int> makers;  // last producer by root
  for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
    const Step& of = step(i);
    BlockStep& made = steps.emplace_back(BlockStep{once.call(of), {}});
    for (std::size_t k = 0; k < of.inputs.size(); ++k) {
      const auto found = makers.find(root(of.inputs[k]));
      const bool rows = made.call.inputs[k].has_rows();
      made.makers.push_back(!rows || found == makers.end() ? -1 : found->second);
    }
    makers[root(of.output)] = static_cast<int>(i - stage.rows);
  }
  for (const TileMove& move : stage.loads) loads[root(move.tile)] = move.arena;
  stores.resize(steps.size());
  for (const TileMove& move : stage.stores)
    stores[static_cast<std::size_t>(makers.at(root(move.tile)))].push_back(move.arena);
  const GpuCosts& costs = find_target(program.target).gpu;
  if (tiling.tile == RowTile::split) {
    split = split_plan(steps, phase.capacity, tiling, costs);
    if (!split->fault.empty()) throw std::logic_error(split->fault);
    plan = split->block;
  } else {
    plan = block_phases(steps, phase.capacity, tiling.blocks(), tiling.threads, costs);
  }
}

std::string BlockKernel::shared_rows() const {
  std::string members;
  for (int k = 0; k < count_steps(); ++k)
    if (in_shared(k))
      members += fmt::format("  alignas(16) {} v{}[{}][{}];  // {}\n", type_name(call(k).output.dtype), output(k),
                             rows_at_once(), shared_stride(features(k)), printable_name(row_step(k).name));
  return members;
}

std::vector<Definition> BlockKernel::scratch_pointers() {
  std::vector<Definition> pointers;
  for (int k = 0; k < count_steps(); ++k)
    if (place(k) == BlockPlace::arena)
      pointers.push_back({fmt::format("g{}", output(k)),
                          fmt::format("  {0}* const g{1} = reinterpret_cast<{0}*>(scratch + {2});  // {3}\n",
                                      type_name(call(k).output.dtype), output(k), plan.value(k).offset,
                                      printable_name(row_step(k).name)),
                          {"scratch"}});
  return pointers;
}

void BlockKernel::clear_rows() {
  std::string clears;
  for (int k = 0; k < count_steps() && count != kNoBuffer; ++k)
    for (const BufferId arena : stores_of(k))
      clears += fmt::format(" clear<{0}>({1} + u64(r) * {0});", features(k), pointer(arena));
  if (clears.empty()) return;
  text += fmt::format(
      "    for (u32 r = u32(count) + block_index() * {0}u + thread_index(); r < {1}u; r += {2}u) {{{3} }}\n",
      tiling.threads, phase.capacity, tiling.threads * tiling.blocks(), clears);
}

void BlockKernel::define(Definition definition) {
  text += definitions.emplace_back(std::move(definition)).text;
}
void BlockKernel::run_once() {
  text += once.before_rows();
  std::ranges::move(std::exchange(once.definitions, {}), std::back_inserter(definitions));
}

std::string BlockKernel::part(const std::string& body, std::string_view at, std::string_view indent) {
  if (!has_parts) return body;
  uses_.insert({"count", "i"});
  parts.push_back({definitions.size(), body, std::exchange(uses_, {})});
  return fmt::format("{}{}_part{}(epoch, numbers, {});\n", indent, kernel.name, parts.size(), at);
}

void BlockKernel::add_selections() {
  for (int k = 0; k < count_steps(); ++k) {
    if (place(k) != BlockPlace::data) continue;
    const Step& of = row_step(k);
    TextCall& call = steps[static_cast<std::size_t>(k)].call;
    const bool shuffled = is_shuffled(k);
    call.picked = picked_table(call, of);
    define({fmt::format("d{}", of.output),
            fmt::format("    const {}* const d{} = {} + {}{};{}", type_name(call.output.dtype), of.output,
                        pointer(of.inputs[0], "const "), call.inputs[0].view.offset,
                        shuffled ? "" : fmt::format(" + {} * {}", batch_row_text(call, "0"), features(k)),
                        step_comment(of)),
            shuffled ? std::set<std::string>{} : std::set{call.inputs[1].name}});
  }
  shared += picked_members;
  text += picked_statements;
}

std::string BlockKernel::row_of(int k, bool in_rows) {
  const BufferId id = output(k);
  switch (place(k)) {
    case BlockPlace::data:
      if (in_rows && fetched.contains(k)) return fmt::format("s.d{}[turn % 2][b]", id);
      return stored(k).at(data_row(k));
    case BlockPlace::recomputed:
      return fmt::format("x{}", id);
    default:
      if (split && place(k) == BlockPlace::arena) {
        const std::uint64_t offset = plan.value(k).offset / sizeof(float);
        return in_rows ? fmt::format("(s.cluster.own[b] + {})", offset)
                       : fmt::format("(all + l * {} + {})", split->gathered, offset);
      }
      if (in_rows && in_shared(k)) return fmt::format("s.v{}[b]", id);
      return stored(k).at("r");
  }
}

std::string BlockKernel::data_row(int k) {
  if (!is_shuffled(k)) return "r";
  if (!table_of(k).empty()) return batch_row_text(call(k), "int(r) < count ? r : 0");
  use(call(k).inputs[1].name);
  return batch_row_text(call(k), "r");
}

BlockRows BlockKernel::outside(int k, std::size_t input) {
  const BufferId arena = loads.at(root(row_step(k).inputs[input]));
  return {pointer(arena, "const "), feature_count(buffer(arena).type)};
}
BlockRows BlockKernel::stored(int k) {
  return {use(fmt::format("{}{}", place(k) == BlockPlace::data ? "d" : "g", output(k))), plan.value(k).stride};
}

std::string BlockKernel::factor(int k, std::size_t input, bool in_rows) {
  const int from = maker(k, input);
  if (from >= 0 && in_rows && is_of_phase(from) && in_shared(from))
    return fmt::format("by_block::Rows{{s.v{}[0], {}}}", output(from), shared_stride(features(from)));
  const BlockRows rows = from < 0 ? outside(k, input) : stored(from);
  if (from < 0 || place(from) != BlockPlace::data || !is_shuffled(from))
    return fmt::format("by_block::Rows{{{}{}, {}}}", rows.begin,
                       in_rows ? fmt::format(" + u64(first) * {}", rows.stride) : "", rows.stride);
  const std::string where = fmt::format("static_cast<int>({}), count", in_rows ? "first" : "0");
  if (!table_of(from).empty())
    return fmt::format("by_block::PickedData{{{}, {}, {}.rows(epoch), {}}}", rows.begin, rows.stride, table_of(from),
                       where);
  return fmt::format("by_block::ShuffledData{{{}, {}, {}, {}, {}}}", rows.begin, rows.stride, batches_text(call(from)),
                     use(call(from).inputs[1].name), where);
}

TextCall BlockKernel::named(int k, BlockContext& context) {
  TextCall out = call(k);
  for (std::size_t i = 0; i < out.inputs.size(); ++i) {
    TextOperand& operand = out.inputs[i];
    if (!operand.has_rows()) {
      use(operand.name);
      continue;
    }
    const int from = maker(k, i);
    if (from < 0) {
      operand.name = outside(k, i).at("r");
      continue;
    }
    if (place(from) == BlockPlace::recomputed) define(from, context);
    const bool same = is_scalar(out.op) && feature_count(operand.type) == feature_count(out.output);
    if (same && context.live.contains(from)) {
      operand.number = true;
      operand.name = fmt::format("x{}", output(from));
    } else {
      operand.name = row_of(from, context.in_rows && is_of_phase(from));
      const bool here = context.in_rows && is_of_phase(from) && (in_shared(from) || split);
      if (!here && place(from) != BlockPlace::recomputed) fetch(operand, out, context);
    }
  }
  for (TextOperand& operand : out.inputs)
    if (!operand.has_rows() && !operand.number && operand.type.shape.elements() > 1) fetch(operand, out, context);
  return out;
}

void BlockKernel::fetch(TextOperand& operand, const TextCall& by, BlockContext& context) {
  if (!context.fetches_first || operand.number || !(is_scalar(by.op) || by.op == Op::dropout)) return;
  operand.name = context.fetch(operand.type.dtype, element(operand, features_of(by.output)));
  operand.number = true;
}

void BlockKernel::define(int k, BlockContext& context) {
  if (!context.made.insert(k).second) return;
  BlockContext inner;
  inner.made = context.made;
  inner.in_rows = context.in_rows;
  const std::string value = feature_text(named(k, inner));
  context.made = inner.made;
  context.text += inner.text + fmt::format("      const auto x{} = by_block::made([&](int i) {{ return {}; }});{}",
                                           output(k), value, comment(k));
}

std::string BlockKernel::keep(int k, bool in_rows) {
  const BufferId id = output(k);
  std::string kept;
  const auto store = [&](const BlockRows& to) {
    kept += fmt::format("      {}[u64(r) * {} + i] = x{};\n", to.begin, to.stride, id);
  };
  if (in_rows && in_shared(k)) kept += fmt::format("      s.v{0}[b][i] = x{0};\n", id);
  if (place(k) == BlockPlace::arena && !split) store(stored(k));
  if (place(k) == BlockPlace::arena && split && in_rows)
    kept += fmt::format("      {}[i] = x{};\n", row_of(k, true), id);
  for (const BufferId arena : stores_of(k)) store({pointer(arena), features(k)});
  return kept;
}

std::string BlockKernel::let(int k, BlockContext& context, const std::string& value) {
  context.live.insert(k);
  const bool is_sum = call(k).op == Op::matmul && !split;  // adds parts of a product, which has the comment
  return fmt::format("{}      const {} x{} = {};{}{}", std::exchange(context.text, {}), type_name(call(k).output.dtype),
                     output(k), value, is_sum ? "\n" : comment(k), keep(k, context.in_rows));
}
std::string BlockKernel::statement(int k, BlockContext& context) {
  return let(k, context, feature_text(named(k, context)));
}

}  // namespace graphrun::cuda
