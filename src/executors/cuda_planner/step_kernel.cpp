#include "executors/cuda_planner/step_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "executors/cuda_planner/once_text.h"
#include "executors/cuda_planner/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {
namespace {

// Rows whose data stay in registers for the whole launch: floats of a thread.
constexpr std::int64_t kMostKept = 96;
// Weights and sums of a thread that fit its registers together, beside the values of a row: with more, each row reads
// the weights anew.
constexpr std::int64_t kMostHeld = 112;
// Rows of a thread as straight code: of all together so many multiplications, that they stay in the instruction cache.
constexpr std::int64_t kMostUnrolled = 4, kMostUnrolledProducts = 640;

class Writer {
 public:
  Writer(std::string_view name, const Program& program, const Phase& phase, const Region& region)
      : program_(program),
        phase_(phase),
        region_(region),
        tiling_(std::get<StepTiling>(region.tiling)),
        places_(program, phase, region),
        once_(program, phase, region, places_, tiling_.threads, [this](BufferId id) { return pointer(id, ""); }) {
    kernel_.name = name;
    kernel_.tiling = tiling_;
  }

  StepKernel run() {
    const auto all_threads = static_cast<std::int64_t>(rows_at_once());
    turns_ = (phase_.capacity + all_threads - 1) / all_threads;
    find_count();
    std::string steps;
    for (std::size_t s = 0; s < region_.stages.size(); ++s) steps += stage(s);
    once_.run(region_.stages.back().last, region_.last);
    steps += once_.end_of_step();
    write(steps);
    return std::move(kernel_);
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  bool is_tile(BufferId id) const { return buffer(id).kind == BufferKind::tile; }

  // How many samples there are: the same for all steps of a phase.
  void find_count() {
    for (const Stage& stage : region_.stages) {
      for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
        const Step& step = phase_.steps[i];
        if (step.row_count != kNoBuffer) count_ = step.row_count;
      }
    }
  }

  // ---- stages

  std::string stage(std::size_t s) {
    const Stage& stage = region_.stages[s];
    once_.run(stage.first, stage.rows);
    std::string text = once_.before_rows();
    if (stage.rows == stage.last) return text;
    text += fmt::format("    {{  // stage {}: rows\n", s + 1);
    const std::vector<SumGroup> groups = sum_groups(stage);
    const bool keeps = keeps_rows(stage);
    const std::string count = count_ == kNoBuffer
                                  ? fmt::format("{}u", phase_.capacity)
                                  : fmt::format("rows_of<{}>({})", phase_.capacity, once_.value(count_));
    const std::string total = fmt::format("{}u", rows_at_once());
    kept_now_.clear();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const SumGroup& group = groups[g];
      if (groups.size() > 1) text += fmt::format("    if (group == {}) {{\n", g);
      if (group.sums > 0) text += fmt::format("    float sums[{}];\n", group.sums);
      for (const auto& [combine, offset] : group.values) {
        const std::int64_t n = buffer(combine->value).type.shape.elements();
        if (n > 0)
          text +=
              fmt::format("    start<{}, {}>(sums, {});\n", offset, n, kStarts[static_cast<std::size_t>(combine->op)]);
      }
      text +=
          "    const auto row = [&](int turn, u32 r, bool live) GRAPHRUN_TILE_INLINE {\n      (void)turn, (void)r, "
          "(void)live;\n";
      if (weights(stage) + group.sums > kMostHeld) text += "      forget();\n";
      text += rows(stage, group, keeps, g == 0);
      text += fmt::format("    }};\n    for_rows<{}u, {}, {}, {}>(first_row, {}, row);\n", phase_.capacity, total,
                          keeps ? turns_ : unrolled(stage), count_ != kNoBuffer, count);
      if (group.sums > 0) text += fmt::format("    reduce{}.add<{}>(sums);\n", s + 1, group.first);
      if (groups.size() > 1) text += "    }\n";
    }
    text += "    }\n";
    if (std::string clears = clear_rows(stage); !clears.empty() && count_ != kNoBuffer)
      text += fmt::format("    for (u32 r = first_row; r < {}u; r += {}) {{\n      if (r < {}) continue;\n{}    }}\n",
                          phase_.capacity, total, count, clears);
    const std::int64_t sums = groups.back().first + groups.back().sums;
    if (sums == 0) return text;
    std::string combines;
    for (const SumGroup& group : groups) {
      for (const auto& [combine, offset] : group.values) {
        const std::int64_t n = buffer(combine->value).type.shape.elements();
        if (combine->op != CombineOp::sum && n > 0)
          combines += fmt::format("    if (v >= {} && v < {}) return {};\n", offset, offset + n,
                                  kFunctions[static_cast<std::size_t>(combine->op)]);
      }
    }
    reductions_.push_back({s, sums, combines, tiling_.groups});
    text += fmt::format("    reduce{}.run(epoch);\n", s + 1);
    once_.after_barrier();
    for (const SumGroup& group : groups)
      for (const auto& [combine, offset] : group.values)
        once_.combined(combine->value, fmt::format("reduce{}.total", s + 1), group.first + offset);
    return text;
  }

  std::int64_t unrolled(const Stage& stage) const {
    std::int64_t products = 1;
    for (std::uint32_t i = stage.rows; i < stage.last; ++i)
      if (phase_.steps[i].op == Op::matmul) products += products_of(phase_.steps[i]);
    return turns_ <= kMostUnrolled && products * turns_ <= kMostUnrolledProducts ? turns_ : 1;
  }
  std::int64_t products_of(const Step& step) const {
    const TensorType &a = buffer(step.inputs[0]).type, &b = buffer(step.inputs[1]).type,
                     &out = buffer(step.output).type;
    const std::int64_t k = a.rows > 0 ? feature_count(a) : 1;
    return out.rows > 0 ? k * feature_count(out) / std::max<std::int64_t>(a.rows, 1) : k * feature_count(b);
  }

  // Numbers of what all rows share that a row reads.
  std::int64_t weights(const Stage& stage) const {
    std::map<BufferId, std::int64_t> read;
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const Step& step = phase_.steps[i];
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (!is_tile(step.inputs[k]) && !places_.stays_in_arena(step, k))
          read[step.inputs[k]] = buffer(step.inputs[k]).type.shape.elements();
    }
    std::int64_t numbers = 0;
    for (const auto& [id, elements] : read) numbers += elements;
    return numbers;
  }

  // The reduced values of a group of warps: numbers from `first` on, and where each lies among them.
  struct SumGroup {
    std::int64_t first = 0, sums = 0;
    std::vector<std::pair<const Combine*, std::int64_t>> values;
  };
  // The largest first, each to the group that has least.
  std::vector<SumGroup> sum_groups(const Stage& stage) const {
    std::vector<SumGroup> groups(tiling_.groups);
    std::vector<const Combine*> order;
    for (const Combine& combine : stage.combines) order.push_back(&combine);
    const auto size = [&](const Combine* combine) { return buffer(combine->value).type.shape.elements(); };
    if (groups.size() > 1) std::ranges::stable_sort(order, std::greater<>(), size);
    for (const Combine* combine : order) {
      SumGroup& group = *std::ranges::min_element(groups, {}, &SumGroup::sums);
      group.values.emplace_back(combine, group.sums);
      group.sums += size(combine);
    }
    for (std::size_t g = 1; g < groups.size(); ++g)
      groups[g].first = (groups[g - 1].first + groups[g - 1].sums + 3) / 4 * 4;
    return groups;
  }
  std::uint64_t rows_at_once() const {
    return static_cast<std::uint64_t>(tiling_.threads / tiling_.groups) * tiling_.blocks();
  }

  // Stored rows past the batch are zero.
  std::string clear_rows(const Stage& stage) {
    std::string text;
    for (const TileMove& move : stage.stores) {
      const std::int64_t n = feature_count(buffer(move.arena).type);
      text += fmt::format("      clear<{}>({} + u64(r) * {});\n", n, pointer(move.arena, ""), n);
    }
    return text;
  }

  // Data that are the same each time the region runs, if they are few enough for registers.
  bool keeps_rows(const Stage& stage) {
    if (count_ != kNoBuffer || unrolled(stage) == 1) return false;
    std::int64_t floats = 0;
    for (const TileMove& move : stage.loads)
      if (is_same(move.arena)) floats += feature_count(buffer(move.tile).type);
    for (std::uint32_t i = stage.rows; i < stage.last; ++i)
      if (is_same(phase_.steps[i])) floats += feature_count(buffer(phase_.steps[i].output).type);
    return floats > 0 && floats * turns_ <= kMostKept;
  }
  bool is_same(BufferId arena) const { return buffer(storage_root(program_, arena)).kind == BufferKind::data; }
  bool is_same(const Step& step) const {
    if (step.op != Op::minibatch || !places_.stays_in_arena(step, 0)) return false;
    const auto& p = step.params.as<MinibatchParams>();
    return !p.shuffle && p.batches() == 1;
  }

  // Of a group of warps: the first one stores rows.
  std::string rows(const Stage& stage, const SumGroup& group, bool keeps, bool stores) {
    std::string text;
    std::map<BufferId, std::string> values;  // by the root of the tile's storage
    const auto load = [&](BufferId out, std::string_view from, std::string_view comment, bool same) {
      const std::string name = fmt::format("v{}", out);
      values[storage_root(program_, out)] = name;
      if (same && keeps) {
        const TensorType& type = buffer(out).type;
        if (kept_now_.insert(out).second) {
          kept_ +=
              fmt::format("  Row<{}, {}> {}_kept[{}];\n", type_name(type.dtype), feature_count(type), name, turns_);
          kept_loads_ += fmt::format("      {}_kept[turn] = {};\n", name, from);
        }
        text += fmt::format("      const auto {} = {}_kept[turn];  // {}\n", name, name, comment);
      } else {
        text += fmt::format("      const auto {} = {};  // {}\n", name, from, comment);
      }
    };
    for (const TileMove& move : stage.loads) {
      const std::int64_t n = feature_count(buffer(move.tile).type);
      load(move.tile, fmt::format("load<{}>({} + u64(r) * {})", n, pointer(move.arena, "const "), n),
           printable_name(buffer(move.tile).name), is_same(move.arena));
    }
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const Step& step = phase_.steps[i];
      TextCall call = once_.call(step);
      once_.rows_read(step);
      for (std::size_t k = 0; k < step.inputs.size(); ++k) {
        if (is_tile(step.inputs[k])) call.inputs[k].name = values.at(storage_root(program_, step.inputs[k]));
        if (places_.stays_in_arena(step, k)) call.inputs[k].name = pointer(step.inputs[k], "const ");
      }
      std::string reason;
      const bool reduces = !is_tile(step.output);
      std::int64_t at = 0;
      if (reduces) {
        const auto mine =
            std::ranges::find(group.values, step.output, [](const auto& value) { return value.first->value; });
        if (mine == group.values.end() || buffer(step.output).type.shape.elements() == 0) continue;
        at = mine->second;
      }
      const std::string made = row_text(call, at, reason);
      if (made.empty()) throw std::logic_error(fmt::format("{}: {}", step.name, reason));
      const std::string comment = fmt::format("{} {}", printable_name(step.name), name_of(step.op));
      if (reduces)
        text += fmt::format("      {}  // {}\n", made, comment);
      else
        load(step.output, made, comment, is_same(step));
    }
    for (const TileMove& move : stage.stores) {
      if (!stores) break;
      const std::int64_t n = feature_count(buffer(move.arena).type);
      text += fmt::format("      if (live) store({} + u64(r) * {}, {});\n", pointer(move.arena, ""), n,
                          values.at(storage_root(program_, move.tile)));
    }
    return text;
  }

  // ---- the kernel around them

  std::string pointer(BufferId id, std::string_view qualifier) {
    const auto [entry, fresh] = pointers_.try_emplace(id, kernel_.pointers.size());
    if (fresh) kernel_.pointers.push_back(id);
    return fmt::format("static_cast<{}{}*>(a.at[{}])", qualifier, type_name(buffer(id).type.dtype), entry->second);
  }

  struct Reduction {
    std::size_t stage;
    std::int64_t sums;
    std::string combines;
    std::uint32_t groups;
  };

  static constexpr const char* kStarts[] = {"0.0f", "1.0f", "-infinity()", "infinity()"};
  static constexpr const char* kFunctions[] = {"x + y", "x * y", "larger(x, y)", "smaller(x, y)"};

  void write(const std::string& steps) {
    std::string combines, shared, begin, loads, stores;
    // Blocks that exchange nothing leave together, so that none reads a state that another has written back.
    if (reductions_.empty() && tiling_.blocks() > 1) reductions_.push_back({region_.stages.size(), 1, "", 1});
    for (const Reduction& r : reductions_) {
      combines += fmt::format(
          "struct Combine{0} {{\n  GRAPHRUN_TILE_FN static float apply(int v, float x, float y) {{\n    (void)v;\n{1}  "
          "  return x "
          "+ y;\n  }}\n}};\nusing Reduce{0} = AllReduce<{2}, {3}, {4}, {5}, Combine{0}, {6}>;\n",
          r.stage + 1, r.combines, r.sums, tiling_.threads, tiling_.cluster, tiling_.clusters, r.groups);
      shared += fmt::format("  Reduce{0}::Shared reduce{0};\n", r.stage + 1);
      const std::string scratch =
          region_.accumulators == kNoBuffer
              ? "nullptr"
              : fmt::format("static_cast<char*>(a.at[{}]){}", scratch_pointer(), scratch_before(r.stage));
      begin += fmt::format("  Reduce{0} reduce{0}(s.reduce{0}, {1}, a.fault);\n", r.stage + 1, scratch);
    }
    if (!reductions_.empty())
      combines += fmt::format("static_assert(0{} <= {}, \"scratch\");\n", scratch_before(region_.stages.size() + 1),
                              tiling_.scratch_bytes);
    for (const Places::Array& array : places_.arrays()) {
      shared += fmt::format("  alignas(16) {} {}[{}];  // {}\n", type_name(array.dtype), array.name,
                            std::max<std::int64_t>(array.elements, 1), printable_name(buffer(array.root).name));
    }
    if (once_.folds()) shared += fmt::format("  float fold[{}];\n", tiling_.threads / 32);
    for (const BufferId root : once_.read_first()) {
      const Buffer& b = buffer(root);
      if (places_.is_number(root))
        begin += fmt::format("  {} {} = {}[0];  // {}\n", type_name(b.type.dtype), places_.name(root),
                             pointer(root, "const "), printable_name(b.name));
      else
        loads += fmt::format("  copy<{}, {}>(s.{}, {});\n", b.type.shape.elements(), tiling_.threads,
                             places_.name(root), pointer(root, "const "));
    }
    for (const BufferId root : once_.carried_numbers())
      begin += fmt::format("  {} {} = 0;  // {}\n", type_name(buffer(root).type.dtype), places_.name(root),
                           printable_name(buffer(root).name));
    for (const BufferId root : once_.written_back()) {
      const Buffer& b = buffer(root);
      if (places_.is_number(root))
        stores += fmt::format("    if (thread_index() == 0) {}[0] = {};  // {}\n", pointer(root, ""),
                              places_.name(root), printable_name(b.name));
      else
        stores += fmt::format("    copy<{}, {}>({}, {});  // {}\n", b.type.shape.elements(), tiling_.threads,
                              pointer(root, ""), once_.array(root), printable_name(b.name));
    }
    std::string body = begin + loads;
    const std::string all = fmt::format("{}u", rows_at_once());
    body += fmt::format(
        "  const u32 group = thread_index() / {0}u, first_row = block_index() * {0}u + thread_index() % {0}u;\n"
        "  const bool first_thread = block_index() == 0 && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)group, (void)i;\n",
        tiling_.threads / tiling_.groups);
    if (!kept_.empty()) {
      body +=
          kept_ +
          fmt::format(
              "  GRAPHRUN_TILE_UNROLL\n  for (int turn = 0; turn < {}; ++turn) {{\n    u32 r = first_row + turn * {};\n"
              "    if (r >= {}u) r = {}u;\n{}  }}\n",
              turns_, all, phase_.capacity, phase_.capacity - 1, kept_loads_);
    }
    body += "  barrier();\n  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {\n";
    if (!reductions_.empty()) body += fmt::format("    if (reduce{}.failed()) break;\n", reductions_.front().stage + 1);
    body += steps + "  }\n";
    if (!reductions_.empty() && reductions_.front().stage == region_.stages.size())
      body += fmt::format("  float together[1] = {{0.0f}};\n  reduce{}.run(together, 1);\n", region_.stages.size() + 1);
    body += "  barrier();\n";
    if (!stores.empty()) body += fmt::format("  if (block_index() == 0) {{\n{}  }}\n", stores);
    for (const Reduction& r : reductions_) body += fmt::format("  reduce{}.end();\n", r.stage + 1);
    kernel_.source = fmt::format(
        "namespace {0} {{\nusing Arguments = StepArguments<{1}>;\n{2}struct Shared "
        "{{\n{3}}};\n\nGRAPHRUN_STEP_KERNEL({0}, "
        "{4}, Arguments, a, Shared, s) {{\n{5}}}\n}}  // namespace {0}\n",
        kernel_.name, std::max<std::size_t>(kernel_.pointers.size(), 1), combines,
        shared.empty() ? "  int nothing;\n" : shared, tiling_.threads, body);
  }

  std::size_t scratch_pointer() {
    (void)pointer(region_.accumulators, "");
    return pointers_.at(region_.accumulators);
  }
  std::string scratch_before(std::size_t stage) const {
    std::string text;
    for (const Reduction& r : reductions_)
      if (r.stage < stage) text += fmt::format(" + Reduce{}::kScratchBytes", r.stage + 1);
    return text;
  }

  static std::string printable_name(std::string_view name) {
    std::string text(name);
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~' || c == '\\'; }, '?');
    return text;
  }

  const Program& program_;
  const Phase& phase_;
  const Region& region_;
  const StepTiling tiling_;
  Places places_;
  OnceText once_;
  StepKernel kernel_;
  std::map<BufferId, std::size_t> pointers_;
  std::vector<Reduction> reductions_;
  BufferId count_ = kNoBuffer;
  std::int64_t turns_ = 1;
  std::string kept_, kept_loads_;
  std::set<BufferId> kept_now_;  // by the groups of a stage: once
};

}  // namespace

StepKernel step_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region) {
  return Writer(name, program, phase, region).run();
}

std::string step_kernel_name(const Program& program, const Phase& phase, const Region& region) {
  return fmt::format("steps_{}_{}", &phase - program.phases.data(), region.first() + 1);
}

}  // namespace graphrun::cuda
