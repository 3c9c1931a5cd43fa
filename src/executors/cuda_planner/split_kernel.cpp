#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/block_rows.h"
#include "executors/cuda_planner/kernel_frame.h"
#include "executors/cuda_planner/picked_tables.h"
#include "executors/cuda_planner/row_text.h"
#include "executors/cuda_planner/split_plan.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {
namespace {

class SplitWriter : KernelFrame {
 public:
  SplitWriter(std::string_view name, const Program& in, const Phase& in_phase, const Region& of)
      : KernelFrame(name, in, in_phase, of),
        before_rows_(once_before(of.stages.at(0))),
        values_(*this),
        split_(values_.split.value()) {
    if (of.stages.size() != 1) throw std::logic_error("a kernel with split tiles has one stage");
  }

  StepKernel run() {
    find_slices();
    find_unread();
    for (const BlockStep& step : values_.steps)
      once.rows_read(values_.row_step(static_cast<int>(&step - values_.steps.data())));
    text_ = before_rows_ + fmt::format("    const int count = static_cast<int>({});\n", count_text());
    const BlockText selections = values_.selections();
    shared_ += selections.shared;
    text_ += selections.text;
    turns();
    text_ += "    if (cluster.failed() || sums.failed()) break;\n    sums.run(epoch);\n    barrier();\n";
    text_ += "    const bool leaves = epoch == a.steps && cluster_index() == 0;\n    (void)leaves;\n";
    text_ += after_rows(once);
    write();
    return std::move(kernel);
  }

 private:
  std::string once_before(const Stage& stage) {
    once.run(stage.first, stage.rows);
    return once.before_rows();
  }

  // Finds the sliced arrays: wide weights, their gradients, and all arrays that steps combine with them.
  void find_slices() {
    if (split_.data < 0)
      for (const SplitSum& sum : split_.sums)
        if (sum.wide && values_.outside(values_.row_step(sum.step).inputs[0]) != outside())
          throw std::logic_error("two data of the same size");
    std::map<BufferId, std::int64_t> slices;
    for (const SplitProduct& product : split_.products)
      slices[root(values_.row_step(product.step).inputs[1])] = split_.slice * product.columns;
    for (const SplitSum& sum : split_.sums)
      if (sum.wide) slices[root(values_.row_step(sum.step).output)] = sum.numbers;
    for (std::size_t before = 0; before != slices.size();) {
      before = slices.size();
      for (std::uint32_t i = region.stages[0].last; i < region.last; ++i) {
        const Step& step = phase.steps[i];
        std::set<BufferId> arrays;
        std::int64_t slice = 0;
        const auto add = [&](BufferId id) {
          if (places.is_number(root(id))) return;
          arrays.insert(root(id));
          if (slices.contains(root(id))) slice = slices.at(root(id));
        };
        for (std::size_t k = 0; k < step.inputs.size(); ++k)
          if (!places.stays_in_arena(step, k)) add(step.inputs[k]);
        if (step.op != Op::record) add(step.output);
        if (slice == 0) continue;
        if (step.op == Op::record || places.is_number(root(step.output)))
          throw std::logic_error(step.name + ": a number is made of an array that blocks share out");
        for (const BufferId of : arrays)
          if (!slices.try_emplace(of, slice).second && slices.at(of) != slice)
            throw std::logic_error(step.name + ": arrays of different slices meet");
      }
    }
    for (const auto& [of, slice] : slices) {
      if (buffer(of).type.dtype != DType::f32) throw std::logic_error("a slice that is not f32");
      places.slice(of, slice, capacity_of(of, slice));
    }
  }
  // Code of the sums over rows and of the steps after them.
  std::string after_rows(OnceText& steps) const {
    steps.after_barrier();
    for (const SplitSum& sum : split_.sums) steps.combined(values_.row_step(sum.step).output, "sums.total", sum.at);
    steps.run(region.stages[0].last, region.last);
    return steps.end_of_step();
  }
  // Finds the sliced arrays that only the loops computing them read, in a trial run of the steps that run once.
  void find_unread() {
    OnceText trial(program, phase, region, places, tiling.threads, [](BufferId) { return std::string(); });
    trial.run(region.stages[0].first, region.stages[0].rows);
    (void)trial.before_rows();
    (void)after_rows(trial);
    const std::vector<BufferId>& states = trial.read_first();
    for (const Places::Array& array : places.arrays())
      if (places.is_sliced(array.root) && !trial.read_arrays().contains(array.root) &&
          std::ranges::find(states, array.root) == states.end())
        places.pass(array.root, pointer(array.root));
  }

  // Number of elements in shared memory. For weights, features are padded to a multiple of 8.
  std::int64_t capacity_of(BufferId of, std::int64_t slice) const {
    for (const SplitProduct& product : split_.products)
      if (root(values_.row_step(product.step).inputs[1]) == of) return (split_.slice + 7) / 8 * 8 * product.columns;
    return slice;
  }
  std::int64_t turn_rows() const { return split_.turn_rows(tiling); }

  // Finds data that own rows read, with elements of 4 bytes.
  void find_fetched() {
    for (const BlockItem& item : values_.plan.phases.at(0).rows)
      for (const int k : item.steps)
        for (const int from : values_.steps[static_cast<std::size_t>(k)].makers) find_fetched(from);
    for (const int k : values_.fetched)
      shared_ += fmt::format("  alignas(16) {} d{}[2][{}][{}];  // {}\n", type_name(values_.call(k).output.dtype),
                             values_.row_step(k).output, split_.own, values_.features(k),
                             printable_name(values_.row_step(k).name));
  }
  void find_fetched(int k) {
    if (k < 0 || k == split_.data) return;
    if (values_.place(k) == BlockPlace::remade)
      for (const int from : values_.steps[static_cast<std::size_t>(k)].makers) find_fetched(from);
    if (values_.place(k) == BlockPlace::data && size_of(values_.call(k).output.dtype) == 4) values_.fetched.insert(k);
  }

  // Vector width for reading rows of data from their start and from the start of each slice.
  std::int64_t data_width(int k) const {
    return k < 0 ? width_of({split_.features}) : width_of({values_.features(k), values_.call(k).inputs[0].view.offset});
  }
  // Address of wide data from outside, the same in each step.
  std::string outside() const { return values_.outside(values_.row_step(split_.products.front().step).inputs[0]); }
  // First warp with nothing to send when the next data are requested.
  std::int64_t idle_warp() const {
    return std::min<std::int64_t>((turn_rows() * split_.parts / 4 + 31) / 32, tiling.threads / 64);
  }
  // Expressions for the first row of data, and for row r relative to `from`.
  struct Rows {
    std::string from, row;
  };
  Rows rows_now(int k) const { return {"0", k < 0 ? outside() : values_.row_of(k, false)}; }
  // Requests all data of a turn that begins at row `first`; rows_of(k) locates the rows of data k.
  template <class RowsOf>
  std::string fetches(std::string_view turn, std::string_view first, std::string_view rows, const RowsOf& rows_of) {
    const auto functions = [&](const Rows& of, std::string_view r, std::string_view slice) {
      return fmt::format(
          "[&] {{ return {}; }}, [&](auto from, int l) {{ const u32 r = {} + l; (void)from; return {}{}; }}", of.from,
          r, of.row, slice);
    };
    std::string text = fmt::format("        s.data.fetch<{}>({}, {}, features, {});{}", idle_warp(), turn, rows,
                                   functions(rows_of(split_.data), first, " + slice"),
                                   split_.data < 0 ? "\n" : step_comment(values_.row_step(split_.data)));
    std::int64_t warp = tiling.threads / 32 - 1;
    for (const int k : values_.fetched)
      text += fmt::format(
          "        by_split::fetch_rows<{}, {}, {}>(s.d{}[({}) % 2], by_split::rows_between(rank * {}, {}, {}), {});{}",
          tiling.threads, (warp > idle_warp() ? warp-- : warp) * 32, data_width(k), values_.row_step(k).output, turn,
          split_.own, rows, split_.own, functions(rows_of(k), fmt::format("{} + rank * {}", first, split_.own), ""),
          step_comment(values_.row_step(k)));
    return text;
  }

  void turns() {
    find_fetched();
    const std::int64_t rows = turn_rows();
    text_ += fmt::format(
        "    const int begin = static_cast<int>(cluster_index()) * {0}, end = begin + {0} < count ? begin + {0} : "
        "count;\n"
        "    GRAPHRUN_TILE_LOOP\n    for (int part = 0; part < {1}; ++part) {{\n      ++turn;\n"
        "      const int turn_first = begin + part * {2}, turn_rows = by_split::rows_between(turn_first, end, {2});\n",
        split_.group, split_.turns, rows);
    const auto now = [&](int k) { return rows_now(k); };
    text_ += fmt::format("      if (!ahead) {{\n{}      }}\n", fetches("turn", "turn_first", "turn_rows", now));
    text_ += "      s.data.await(turn);\n      ahead = false;\n";
    if (!values_.fetched.empty() && data_width(split_.data) == 4) text_ += "      await_copies();\n";
    products();
    if (split_.turns > 1)
      text_ += fmt::format(
          "      if (part + 1 < {}) {{\n        const int next_first = turn_first + {}, next_rows = "
          "by_split::rows_between(next_first, end, {});\n{}        ahead = true;\n      }}\n",
          split_.turns, rows, rows, fetches("turn + 1", "next_first", "next_rows", now));
    text_ += next_step();
    text_ += fmt::format(
        "      cluster.send_parts(s.parts, turn);\n      {{  // own rows\n      const u32 first = turn_first + rank * "
        "{0};\n      const int rows = by_split::rows_between(rank * {0}, turn_rows, {0});\n      "
        "cluster.clear_from(rows);\n",
        split_.own);
    const BlockText own = split_rows(values_);
    text_ += own.text +
             "      barrier();\n      }\n      cluster.gather(turn);\n      const float* const all = "
             "cluster.all(turn);\n      (void)all;\n";
    shared_ += own.shared;
    values_.begin_phase(1);
    std::int64_t warp = 0;
    for (const SplitSum& sum : split_.sums) text_ += sum.wide ? wide_sum(sum, warp) : narrow_sum(sum, warp);
    text_ += "      barrier();\n    }\n";
    text_ += values_.clear_rows();
  }

  void products() {
    for (const SplitProduct& product : split_.products)
      text_ += fmt::format("      by_split::multiply_rows<{}, {}, {}, {}, {}>(s.parts, s.data.x[turn % 2], {});{}",
                           tiling.threads, product.at, product.columns, turn_rows(), split_.slice,
                           values_.call(product.step).inputs[1].name, step_comment(values_.row_step(product.step)));
    text_ += "      barrier();\n";
  }

  // Requests the first rows of the next step, if its number is known before this step ends.
  std::string next_step() {
    std::set<int> all = values_.fetched;
    if (split_.data >= 0) all.insert(split_.data);
    std::vector<std::string> tables;
    const auto number = [&](int k) { return fmt::format("({} + 1)", values_.call(k).inputs[1].name); };
    const auto shuffles = [&](int k) { return values_.row_step(k).params.template as<MinibatchParams>().shuffle; };
    for (const int k : all) {
      if (!counts_steps(program, phase, values_.row_step(k).inputs[1])) return {};
      if (!shuffles(k)) continue;
      if (values_.table_of(k).empty()) return {};
      if (std::ranges::find(tables, values_.table_of(k)) == tables.end()) tables.push_back(values_.table_of(k));
    }
    std::string when = fmt::format("part + 1 == {} && epoch < a.steps", split_.turns);
    for (const std::string& table : tables) when += fmt::format(" && {}.knows_next(epoch, a.steps)", table);
    const auto rows = [&](int k) -> Rows {
      if (k < 0) return rows_now(k);
      const std::string data = fmt::format("{} + {}", pointer(values_.row_step(k).inputs[0], "const "),
                                           values_.call(k).inputs[0].view.offset);
      if (shuffles(k))
        return {"0", fmt::format("({} + {}.row(epoch + 1, r) * {})", data, values_.table_of(k), values_.features(k))};
      return {
          fmt::format("{} + {}.row({}, 0) * {}", data, batches_text(values_.call(k)), number(k), values_.features(k)),
          fmt::format("(from + u64(r) * {})", values_.features(k))};
    };
    const std::string last = fmt::format("(begin + {0} < {1} ? begin + {0} : {1})", split_.group, phase.capacity);
    bool whole = split_.data < 0 || shuffles(split_.data);
    if (!whole) {
      const auto& p = values_.row_step(split_.data).params.template as<MinibatchParams>();
      whole = p.total % p.capacity == 0;
    }
    return fmt::format(
        "      if ({}) {{\n        const int next_rows = by_split::rows_between(begin, {}, {});\n{}        ahead = "
        "true;\n      }}\n",
        when,
        whole
            ? last
            : fmt::format("{}.rows_until({}, {})", batches_text(values_.call(split_.data)), number(split_.data), last),
        turn_rows(), fetches("turn + 1", "begin", "next_rows", rows));
  }

  std::string wide_sum(const SplitSum& sum, std::int64_t& warp) const {
    const int narrow = values_.maker(sum.step, 1);
    warp += (split_.slice + 15) / 16;
    const std::uint64_t at = values_.plan.offsets.at(static_cast<std::size_t>(narrow));
    return fmt::format(
        "      by_split::add_product<{}, {}, {}, {}>(s.sums.sum + {}, part == 0, s.data.x[turn % 2], all + {}, {});{}",
        tiling.threads, feature_count(values_.call(sum.step).inputs[1].type), turn_rows(), split_.slice, sum.at, at,
        split_.gathered, step_comment(values_.row_step(sum.step)));
  }
  std::string narrow_sum(const SplitSum& sum, std::int64_t& warp) {
    BlockContext context;
    const TextCall c = values_.named(sum.step, context, false);
    std::string term;
    if (c.op == Op::matmul) {
      const std::int64_t n = feature_count(c.inputs[1].type);
      term = fmt::format("return {}[n / {}] * {}[n % {}];", c.inputs[0].name, n, c.inputs[1].name, n);
    } else {
      const RowTerms t = row_terms(c.inputs[0], c.params->as<ReduceParams>().axes);
      term = fmt::format("return fold<{}>(0.0f, [&](int m) {{ return float(({})(n, m)); }}, {});", t.reduced, t.text,
                         fold_of(Op::sum)->function);
    }
    const std::int64_t first = warp * 32 % tiling.threads;
    warp += std::max<std::int64_t>(1, std::min<std::int64_t>(sum.numbers, tiling.threads / 64));
    return fmt::format(
        "      by_split::add_rows<{}, {}, {}, {}>(s.sums.sum + {}, part == 0, turn_rows, [&](int l, int n) {{\n      "
        "const u32 r = u32(turn_first + l);\n      (void)r;\n{}      {}\n      }});{}",
        tiling.threads, first, sum.numbers, turn_rows(), sum.at, context.text, term,
        step_comment(values_.row_step(sum.step)));
  }

  void write() {
    const States states = this->states();
    const std::string body = fmt::format(
        "  s.data.begin();\n  Cluster cluster(s.cluster, a.fault);\n  Sums sums(s.sums, {0}, a.fault);\n{1}{2}"
        "  const int rank = static_cast<int>(cluster_rank()), slice = rank * {3}, features = "
        "by_split::rows_between(slice, {4}, {3});\n"
        "  const bool first_thread = block_index() == 0 && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n"
        "  u32 turn = 0;\n  bool ahead = false;  // data of the turn are on their way\n  barrier();\n"
        "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{5}  }}\n  await_copies();\n  barrier();\n{6}{7}  "
        "cluster.end();\n",
        scratch(), states.numbers, states.loads, split_.slice, split_.features, text_,
        states.slices.empty() ? "" : fmt::format("  if (cluster_index() == 0) {{\n{}  }}\n", states.slices),
        states.stores.empty() ? "" : fmt::format("  if (block_index() == 0) {{\n{}  }}\n", states.stores));
    const std::string definitions = fmt::format(
        "using Cluster = by_split::RowExchange<{0}, {1}, {2}, {3}, {4}>;\n"
        "using Sums = by_split::SliceSums<{5}, {0}, {1}, {6}>;\n"
        "static_assert(Sums::kScratchBytes <= {7}, \"scratch\");\n",
        tiling.threads, tiling.cluster, split_.own, split_.parts, split_.gathered, split_.values, tiling.clusters,
        tiling.scratch_bytes);
    const std::string members = fmt::format(
        "  by_split::SliceRows<{0}, {1}, {2}, {3}> data;\n  by_split::RowParts<{0}, {1}, {2}, {4}> parts;\n"
        "  Cluster::Shared cluster;\n  Sums::Shared sums;\n",
        tiling.threads, turn_rows(), split_.slice, data_width(split_.data), split_.parts);
    kernel.source =
        begin(definitions, members + values_.shared_rows() + shared_ + states.members) + definition(body) + end();
  }

  std::string before_rows_;
  BlockValues values_;
  const SplitPlan& split_;
  std::string text_, shared_;
};

}  // namespace

StepKernel split_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region) {
  return SplitWriter(name, program, phase, region).run();
}

}  // namespace graphrun::cuda
