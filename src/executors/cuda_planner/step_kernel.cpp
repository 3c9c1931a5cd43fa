#include "executors/cuda_planner/step_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "executors/cuda_planner/block_kernel.h"
#include "executors/cuda_planner/once_text.h"
#include "executors/cuda_planner/picked_tables.h"
#include "executors/cuda_planner/row_stage.h"
#include "executors/cuda_planner/split_kernel.h"

namespace graphrun::cuda {
namespace {

// Those that rows of a thread have too, and the others.
constexpr std::string_view kPairNames =
    "using by_pair::add_product, by_pair::combine, by_pair::for_rows, by_pair::matmul, by_pair::matmul_transposed;\n"
    "using namespace by_pair;\n";
constexpr std::string_view kWarpNames =
    "using by_warp::for_rows, by_warp::load, by_warp::log_softmax, by_warp::logsumexp, by_warp::map, by_warp::matmul;\n"
    "using by_warp::position, by_warp::reduce, by_warp::Row, by_warp::softmax, by_warp::softmax_cross_entropy;\n"
    "using by_warp::store;\nusing namespace by_warp;\n";

class Writer {
 public:
  Writer(std::string_view name, const Program& program, const Phase& phase, const Region& region)
      : program_(program),
        phase_(phase),
        region_(region),
        tiling_(std::get<StepTiling>(region.tiling)),
        places_(program, phase, region),
        once_(program, phase, region, places_, tiling_.threads, [this](BufferId id) { return pointer(id, ""); }),
        picked_(program, phase,
                {tiling_.threads, tiling_.blocks(),
                 tiling_.tile == RowTile::warp ? 16 : std::int64_t{tiling_.block_rows()}}) {
    kernel_.name = name;
    kernel_.tiling = tiling_;
  }

  StepKernel run() {
    find_count();
    std::string steps;
    for (std::size_t s = 0; s < region_.stages.size(); ++s) steps += stage(s);
    run_deferred();
    once_.run(region_.stages.back().last, region_.last);
    steps += once_.end_of_step();
    write(steps);
    return std::move(kernel_);
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }

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

  // Which of the steps that run once come before the rows: those that the rows need. The results of the others would
  // take registers from the rows.
  std::vector<bool> before_rows(const Stage& stage) const {
    std::set<BufferId> read, written;  // by rows, and by steps before them
    const auto reads = [&](const Step& step) {
      for (const BufferId input : step.inputs) read.insert(storage_root(program_, input));
      if (step.row_count != kNoBuffer) read.insert(storage_root(program_, step.row_count));
    };
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      reads(phase_.steps[i]);
      written.insert(storage_root(program_, phase_.steps[i].output));
    }
    std::vector<bool> now(stage.rows - stage.first, stage.rows == stage.last);
    for (std::uint32_t i = stage.rows; i-- > stage.first;) {
      const Step& step = phase_.steps[i];
      const auto is_written = [&](BufferId id) { return written.contains(storage_root(program_, id)); };
      const bool is_read = read.contains(storage_root(program_, step.output));
      if (!is_read && !is_written(step.output) && std::ranges::none_of(step.inputs, is_written)) continue;
      now[i - stage.first] = true;
      reads(step);
      written.insert(storage_root(program_, step.output));
    }
    return now;
  }
  void run_deferred() {
    for (const std::uint32_t i : std::exchange(deferred_, {})) once_.run(i, i + 1);
  }

  std::string stage(std::size_t s) {
    const Stage& stage = region_.stages[s];
    run_deferred();
    const std::vector<bool> now = before_rows(stage);
    for (std::uint32_t i = stage.first; i < stage.rows; ++i) {
      if (now[i - stage.first])
        once_.run(i, i + 1);
      else
        deferred_.push_back(i);
    }
    std::string text = once_.before_rows();
    if (stage.rows == stage.last) return text;
    const StageCall call{program_,
                         phase_,
                         region_,
                         stage,
                         tiling_,
                         places_,
                         once_,
                         [this](BufferId id, std::string_view qualifier) { return pointer(id, qualifier); },
                         fmt::format("{}", s + 1),
                         count_,
                         [this](const TextCall& of, const Step& step) { return picked_.table_of(of, step); }};
    const RowStage rows = tiling_.tile == RowTile::warp ? warp_stage(call) : thread_stage(call);
    types_ += rows.types;
    shared_ += rows.shared;
    kept_ += rows.kept;
    kept_loads_ += rows.kept_loads;
    text += picked_.statements() + fmt::format("    {{  // stage {}: rows\n{}    }}\n", s + 1, rows.text);
    if (std::string clears = clear_rows(stage); !clears.empty() && count_ != kNoBuffer)
      text += fmt::format("    for (u32 r = first_row; r < {}u; r += {}u) {{\n      if (r < {}) continue;\n{}    }}\n",
                          phase_.capacity, rows_at_once(), count_text(call), clears);
    if (rows.sums == 0) return text;
    std::string combines;
    for (const RowStage::Value& value : rows.values) {
      if (value.combine->op == CombineOp::sum || value.numbers == 0) continue;
      const std::string_view function = kFunctions[static_cast<std::size_t>(value.combine->op)];
      const auto range = [&](std::int64_t at) {
        combines += fmt::format("    if (v >= {} && v < {}) return {};\n", at, at + value.numbers, function);
      };
      range(value.at);
      if (rows.second > 0) range(rows.second + value.at);
    }
    reductions_.push_back({s, rows.sums, combines, tiling_.groups});
    if (reductions_.size() == 1) text += "    if (failed) break;\n";
    text += fmt::format("    reduce{}.run(epoch);\n", s + 1);
    once_.after_barrier();
    for (const RowStage::Value& value : rows.values) {
      std::string total = fmt::format("reduce{}.total", s + 1);
      if (!value.place.empty()) {
        const std::string name = fmt::format("total{}", value.combine->value);
        text += fmt::format("    const auto {} = [&](int e) {{ return {}({}({}, {}, e)); }};\n", name, total,
                            value.place, value.at, rows.second);
        total = name;
      }
      once_.combined(value.combine->value, total, value.place.empty() ? value.at : 0);
    }
    return text;
  }

  std::uint64_t rows_at_once() const { return std::uint64_t{tiling_.block_rows()} * tiling_.blocks(); }
  // By rows of threads, whatever the tile: stored rows past the batch are zero.
  std::string clear_rows(const Stage& stage) {
    std::string text;
    for (const TileMove& move : stage.stores) {
      const std::int64_t n = feature_count(buffer(move.arena).type);
      text += fmt::format("      clear<{}>({} + u64(r) * {});\n", n, pointer(move.arena, ""), n);
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

  static constexpr const char* kFunctions[] = {"x + y", "x * y", "larger(x, y)", "smaller(x, y)"};

  void write(const std::string& steps) {
    std::string combines = std::string(tiling_.tile == RowTile::warp   ? kWarpNames
                                       : tiling_.tile == RowTile::pair ? kPairNames
                                                                       : "") +
                           types_,
                shared = shared_ + picked_.members(), begin, loads, stores;
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
    const std::vector<BufferId> unread = once_.unread_numbers();
    for (const BufferId root : unread)
      shared += fmt::format("  {} {};  // {}\n", type_name(buffer(root).type.dtype), places_.name(root),
                            printable_name(buffer(root).name));
    for (const BufferId root : once_.written_back()) {
      const Buffer& b = buffer(root);
      if (places_.is_number(root))
        stores += fmt::format("    if (thread_index() == 0) {}[0] = {}{};  // {}\n", pointer(root, ""),
                              std::ranges::find(unread, root) == unread.end() ? "" : "s.", places_.name(root),
                              printable_name(b.name));
      else
        stores += fmt::format("    copy<{}, {}>({}, {});  // {}\n", b.type.shape.elements(), tiling_.threads,
                              pointer(root, ""), once_.array(root), printable_name(b.name));
    }
    std::string body = begin + loads;
    const std::string all = fmt::format("{}u", rows_at_once()),
                      group = fmt::format("thread_index() / {}u", tiling_.threads / tiling_.groups);
    body += fmt::format(
        "  const u32 group = {3}, first_row = block_index() * {1}u + thread_index() % {0}u{2};\n"
        "  const bool first_thread = block_index() == 0 && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)group, (void)i;\n",
        tiling_.threads / tiling_.groups, tiling_.block_rows(), tiling_.tile == RowTile::pair ? " / 2" : "",
        tiling_.groups > 1 ? "same_in_warp(" + group + ")" : group);
    if (!kept_.empty()) {
      body +=
          kept_ +
          fmt::format(
              "  GRAPHRUN_TILE_UNROLL\n  for (int turn = 0; turn < {}; ++turn) {{\n    u32 r = first_row + turn * {};\n"
              "    if (r >= {}u) r = {}u;\n{}  }}\n",
              (phase_.capacity + static_cast<std::int64_t>(rows_at_once()) - 1) /
                  static_cast<std::int64_t>(rows_at_once()),
              all, phase_.capacity, phase_.capacity - 1, kept_loads_);
    }
    body += "  barrier();\n  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {\n";
    const bool leave_together = !reductions_.empty() && reductions_.front().stage == region_.stages.size();
    // Whether a wait of the step before gave up. Read long before it is needed, so that nothing waits for it.
    std::string failed;
    if (!leave_together)
      for (const Reduction& r : reductions_)
        failed += fmt::format("{}reduce{}.failed()", failed.empty() ? "" : " || ", r.stage + 1);
    if (!failed.empty()) body += fmt::format("    const bool failed = {};\n", failed);
    body += steps + "  }\n";
    if (leave_together)
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

  const Program& program_;
  const Phase& phase_;
  const Region& region_;
  const StepTiling tiling_;
  Places places_;
  OnceText once_;
  PickedTables picked_;
  StepKernel kernel_;
  std::map<BufferId, std::size_t> pointers_;
  std::vector<Reduction> reductions_;
  BufferId count_ = kNoBuffer;
  std::vector<std::uint32_t> deferred_;             // steps that the rows before them need not wait for
  std::string types_, shared_, kept_, kept_loads_;  // of the stages
};

}  // namespace

StepKernel step_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region) {
  if (std::get<StepTiling>(region.tiling).tile == RowTile::block) return block_kernel(name, program, phase, region);
  if (std::get<StepTiling>(region.tiling).tile == RowTile::split) return split_kernel(name, program, phase, region);
  return Writer(name, program, phase, region).run();
}

std::string step_kernel_name(const Program& program, const Phase& phase, const Region& region) {
  return fmt::format("steps_{}_{}", &phase - program.phases.data(), region.first() + 1);
}

}  // namespace graphrun::cuda
