// Writes the kernel of a region with thread, pair or warp tiles: the rows of each stage, a cross-block reduction, and
// the steps that run once.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/checked.h"
#include "executors/cuda_planner/print/kernel_frame.h"
#include "executors/cuda_planner/tiles/row_stage.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

using namespace fmt::literals;

// Using-declarations select between names that thread tiles define, too; using-directives import the others.
constexpr std::string_view kPairNames =
    "using by_pair::add_product, by_pair::combine, by_pair::for_rows, by_pair::matmul, by_pair::matmul_transposed;\n"
    "using namespace by_pair;\n";
constexpr std::string_view kWarpNames =
    "using by_warp::for_rows, by_warp::load, by_warp::log_softmax, by_warp::logsumexp, by_warp::map, by_warp::matmul;\n"
    "using by_warp::position, by_warp::reduce, by_warp::Row, by_warp::softmax, by_warp::softmax_cross_entropy;\n"
    "using by_warp::store;\nusing namespace by_warp;\n";

class RowWriter : KernelFrame {
 public:
  using KernelFrame::KernelFrame;

  StepKernel run() {
    std::string steps;
    for (std::size_t s = 0; s < region.stages.size(); ++s) steps += stage(s);
    run_deferred();
    once.run(region.stages.back().last, region.last);
    steps += once.end_of_step();
    write(steps);
    if (together > 0 && once.folds()) kernel.text.clear();  // a fold by all threads has another order with more of them
    return std::move(kernel);
  }

 private:
  // ---- stages

  // Marks the steps that run once before the rows: those that the rows need. The results of the others would occupy
  // registers during the rows.
  std::vector<bool> before_rows(const Stage& stage) const {
    std::set<BufferId> read, written;  // accesses of rows, and of steps before them
    const auto reads = [&](const Step& step) {
      for (const BufferId input : step.inputs) read.insert(root(input));
      if (step.row_count != kNoBuffer) read.insert(root(step.row_count));
    };
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      reads(phase.steps[i]);
      written.insert(root(phase.steps[i].output));
    }
    std::vector<bool> now(stage.rows - stage.first, stage.rows == stage.last);
    for (std::uint32_t i = stage.rows; i-- > stage.first;) {
      const Step& step = phase.steps[i];
      const auto is_written = [&](BufferId id) { return written.contains(root(id)); };
      const bool is_read = read.contains(root(step.output));
      if (!is_read && !is_written(step.output) && std::ranges::none_of(step.inputs, is_written)) continue;
      now[i - stage.first] = true;
      reads(step);
      written.insert(root(step.output));
    }
    return now;
  }
  void run_deferred() {
    for (const std::uint32_t i : std::exchange(deferred_, {})) once.run(i, i + 1);
  }

  std::string stage(std::size_t s) {
    const Stage& stage = region.stages[s];
    run_deferred();
    const std::vector<bool> now = before_rows(stage);
    for (std::uint32_t i = stage.first; i < stage.rows; ++i) {
      if (now[i - stage.first])
        once.run(i, i + 1);
      else
        deferred_.push_back(i);
    }
    std::string text = once.before_rows();
    if (stage.rows == stage.last) return text;
    const auto layout = tiling.tile == RowTile::warp ? warp_stage : lanes_stage;
    const RowStage rows = layout({*this, stage, fmt::format("{}", s + 1)});
    types_ += rows.types;
    shared_ += rows.shared;
    kept_ += rows.kept;
    kept_loads_ += rows.kept_loads;
    text += std::exchange(picked_statements, {});
    if (together > 0)
      text += warp_loop(s + 1, rows) + clear_rows(stage) + "    }\n";
    else
      text += fmt::format("    {{  // stage {}: rows\n{}    }}\n{}", s + 1, rows.text, clear_rows(stage));
    if (rows.sums == 0) return text;
    std::string combines;
    for (const RowStage::Value& value : rows.values) {
      if (value.combine->op == CombineOp::sum || value.numbers == 0) continue;
      const auto range = [&](std::int64_t at) {
        combines += fmt::format("    if (v >= {} && v < {}) return {};\n", at, at + value.numbers,
                                fold_of(value.combine->op).result);
      };
      range(value.at);
      if (rows.second > 0) range(rows.second + value.at);
    }
    reductions_.push_back({s, rows.sums, combines, tiling.groups});
    if (reductions_.size() == 1) text += "    if (failed) break;\n";
    text += fmt::format("    {}.run(epoch);\n", rows.reduce());
    once.after_barrier();
    for (const RowStage::Value& value : rows.values) {
      std::string total = rows.reduce() + ".total";
      if (!value.place.empty()) {
        const std::string name = fmt::format("total{}", value.combine->value);
        text += fmt::format("    const auto {} = [&](int e) {{ return {}({}({}, {}, e)); }};\n", name, total,
                            value.place, value.at, rows.second);
        total = name;
      }
      once.combined(value.combine->value, total, value.place.empty() ? value.at : 0);
    }
    return text;
  }

  // A loop over the warps of the cluster, without its end. The sums of warps without rows are those of the first step.
  std::string warp_loop(std::size_t number, const RowStage& rows) const {
    const std::uint32_t of_block = warps_of_block();
    const std::int64_t all = std::int64_t{tiling.cluster} * of_block,
                       with_rows = divide_up(warps_with_rows(phase, tiling), std::int64_t{joined});
    return fmt::format(
        "    GRAPHRUN_TILE_LOOP\n    for (u32 warp = part; warp < {warps}; warp += {together}u) {{  // stage {number}: "
        "rows\n"
        "    const u32 group = warp % {all}u / {of_group}u, first_row = {first_row};\n    (void)group;\n{begin}{text}",
        "warps"_a =
            count != kNoBuffer ? fmt::format("{}u", all) : fmt::format("(epoch == 1 ? {}u : {}u)", all, with_rows),
        "together"_a = together, "number"_a = number, "all"_a = of_block, "of_group"_a = of_block / tiling.groups,
        "first_row"_a = first_row_of("warp"),
        "begin"_a = rows.sums > 0 ? fmt::format("    {}.begin(warp);\n", rows.reduce()) : "", "text"_a = rows.text);
  }
  // Warps of the cluster that the warps of one block play; with `joined`, each plays several.
  std::uint32_t warps_of_block() const { return tiling.threads / 32 / joined; }
  std::string first_row_of(std::string_view warp) const {
    return fmt::format("{0} / {1}u * {2}u + ({0} % {3}u * 32u + thread_index() % 32u){4}{5}", warp, warps_of_block(),
                       tiling.block_rows(), warps_of_block() / tiling.groups, lanes(),
                       joined > 1 ? fmt::format(" * {}u", joined) : "");
  }
  std::string_view lanes() const { return tiling.tile == RowTile::pair ? " / 2" : ""; }
  std::int64_t rows_at_once() const { return std::int64_t{tiling.block_rows()} * tiling.blocks(); }
  // Zeroes stored rows past the end of a partial batch, one row per thread with every tile.
  std::string clear_rows(const Stage& stage) {
    if (count == kNoBuffer || stage.stores.empty()) return {};
    std::string text = joined > 1 ? fmt::format("    for (u32 of = 0; of < {}u; ++of)\n", joined) : "";
    text += fmt::format("    for (u32 r = first_row{}; r < {}u; r += {}u) {{\n      if (r < {}) continue;\n",
                        joined > 1 ? " + of" : "", phase.capacity, rows_at_once(), count_text());
    for (const TileMove& move : stage.stores)
      text += fmt::format("      clear<{0}>({1} + u64(r) * {0});\n", feature_count(buffer(move.arena).type),
                          pointer(move.arena));
    return text + "    }\n";
  }

  // ---- the kernel around the stages

  struct Reduction {
    std::size_t stage;
    std::int64_t sums;
    std::string combines;
    std::uint32_t groups;
  };

  void write(const std::string& steps) {
    // Blocks without a cross-block reduction finish together, so that none reads a state after another wrote it back.
    const bool leave_together = reductions_.empty() && tiling.blocks() > 1 && together == 0;
    if (leave_together) reductions_.push_back({region.stages.size(), 1, "", 1});
    std::string types(tiling.tile == RowTile::warp ? kWarpNames : tiling.tile == RowTile::pair ? kPairNames : "");
    std::string members = shared_ + picked_members, body, failed, ends, scratch_before;
    types += types_;
    for (const Reduction& r : reductions_) {
      types += fmt::format(
          "struct Combine{number} {{\n  GRAPHRUN_TILE_FN static float apply(int v, float x, float y) {{\n"
          "    (void)v;\n{combines}    return x + y;\n  }}\n}};\n"
          "using Reduce{number} = {kind}<{sums}, {threads}, {cluster}, {clusters}, Combine{number}, "
          "{groups}{joined}>;\n",
          "kind"_a = together > 0 ? "VirtualReduce" : "AllReduce", "number"_a = r.stage + 1, "combines"_a = r.combines,
          "sums"_a = r.sums, "threads"_a = tiling.threads, "cluster"_a = tiling.cluster,
          "clusters"_a = together > 0 ? threads : tiling.clusters, "groups"_a = r.groups,
          "joined"_a = joined > 1 ? fmt::format(", {}", joined) : "");
      members += fmt::format("  Reduce{0}::Shared reduce{0};\n", r.stage + 1);
      const std::string at = region.accumulators == kNoBuffer
                                 ? scratch()
                                 : fmt::format("static_cast<char*>({}){}", scratch(), scratch_before);
      body += fmt::format("  Reduce{0} reduce{0}(s.reduce{0}, {1}, a.fault);\n", r.stage + 1, at);
      scratch_before += fmt::format(" + Reduce{}::kScratchBytes", r.stage + 1);
      failed += fmt::format("{}reduce{}.failed()", failed.empty() ? "" : " || ", r.stage + 1);
      ends += fmt::format("  reduce{}.end();\n", r.stage + 1);
    }
    if (!reductions_.empty())
      types += fmt::format("static_assert(0{} <= {}, \"scratch\");\n", scratch_before, tiling.scratch_bytes);
    const States states = this->states();
    const std::uint32_t threads_of_group = tiling.threads / tiling.groups;
    const std::string group = fmt::format("thread_index() / {}u", threads_of_group);
    const std::string place = together > 0
                                  ? "part = same_in_warp(thread_index() / 32u)"
                                  : fmt::format("group = {}, first_row = block_index() * {}u + thread_index() % {}u{}",
                                                tiling.groups > 1 ? fmt::format("same_in_warp({})", group) : group,
                                                tiling.block_rows(), threads_of_group, lanes());
    body += fmt::format(
        "{numbers}{loads}  const u32 {place};\n"
        "  const bool first_thread = block_index() == 0 && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void){used}, (void)i;\n",
        "numbers"_a = states.numbers, "loads"_a = states.loads, "place"_a = place,
        "used"_a = together > 0 ? "part" : "group");
    if (!kept_.empty())
      body += kept_ + fmt::format(
                          "  GRAPHRUN_TILE_UNROLL\n  for (int turn = 0; turn < {}; ++turn) {{\n"
                          "    u32 r = {};\n    if (r >= {}u) r = {}u;\n{}  }}\n",
                          divide_up(phase.capacity, rows_at_once()) * joined,
                          joined > 1 ? fmt::format("{} + turn / {}u * {}u + turn % {}u", first_row_of("part"), joined,
                                                   rows_at_once(), joined)
                                     : fmt::format("{} + turn * {}u", together > 0 ? first_row_of("part") : "first_row",
                                                   rows_at_once()),
                          phase.capacity, phase.capacity - 1, kept_loads_);
    body += "  barrier();\n  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {\n";
    // Whether a wait of the previous step timed out. Read early, so that nothing waits for the result.
    if (!leave_together && !failed.empty()) body += fmt::format("    const bool failed = {};\n", failed);
    body += steps + "  }\n";
    if (leave_together)
      body += fmt::format("  float together[1] = {{0.0f}};\n  reduce{}.run(together, 1);\n", region.stages.size() + 1);
    body += "  barrier();\n";
    if (!states.stores.empty()) body += fmt::format("  if (block_index() == 0) {{\n{}  }}\n", states.stores);
    kernel.text = begin(types, members + states.members) + definition(body + ends) + end();
  }

  std::vector<Reduction> reductions_;
  std::vector<std::uint32_t> deferred_;             // steps deferred past the rows, which do not need them
  std::string types_, shared_, kept_, kept_loads_;  // collected from the stages
};

}  // namespace

const Step* RowStage::maker(BufferId reduced) const {
  const auto found = std::ranges::find(rows(), reduced, &Step::output);
  return found == rows().end() ? nullptr : &*found;
}

TextCall RowStage::row_call(const Step& step) const {
  TextCall call = frame.once.call(step);
  frame.once.rows_read(step);
  for (std::size_t k = 0; k < step.inputs.size(); ++k) {
    if (is_tile(step.inputs[k])) call.inputs[k].name = names.at(root(step.inputs[k]));
    if (frame.places.stays_in_arena(step, k)) call.inputs[k].name = pointer(step.inputs[k], "const ");
  }
  if (step.op == Op::minibatch) call.picked = frame.picked_table(call, step);
  return call;
}

void RowStage::let(BufferId tile, std::string_view code, std::string_view comment) {
  names[root(tile)] = fmt::format("v{}", tile);
  text += fmt::format("      const auto v{} = {};  // {}\n", tile, code, comment);
}

StepKernel row_kernel(const KernelRegion& of) {
  return RowWriter(of).run();
}

}  // namespace graphrun::cuda
