// Writes the kernel of a region with split tiles: in each turn, products of wide data for the rows of a cluster, steps
// on the rows of each block, and sums over rows; then sums over clusters and the steps that run once.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/print/row_text.h"
#include "executors/cuda_planner/tiles/block_values.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {
namespace {

using namespace fmt::literals;

class SplitWriter : BlockKernel {
 public:
  using BlockKernel::BlockKernel;

  StepKernel run() {
    once.run(stage.first, stage.rows);
    run_once();
    plan_rows();
    find_slices();
    find_unread();
    for (int k = 0; k < count_steps(); ++k) once.rows_read(row_step(k));
    text += fmt::format("    const int count = static_cast<int>({});\n", count_text());
    add_selections();
    turns();
    text += "    if (cluster.failed() || sums.failed()) break;\n    sums.run(epoch);\n    barrier();\n";
    text += "    const bool leaves = epoch == a.steps && cluster_index() == 0;\n    (void)leaves;\n";
    text += after_rows(once);
    write();
    return std::move(kernel);
  }

 private:
  // Finds the sliced arrays: wide weights, their gradients, and all arrays that steps combine with them.
  void find_slices() {
    if (split->data < 0)
      for (const SplitSum& sum : split->sums)
        if (sum.wide && outside(sum.step, 0).at("r") != outside_data())
          throw std::logic_error("two data of the same size");
    struct Slice {
      std::int64_t elements, capacity;  // capacity: in shared memory
    };
    std::map<BufferId, Slice> slices;
    for (const SplitProduct& product : split->products)
      slices[root(row_step(product.step).inputs[1])] = {split->slice * product.columns,
                                                        tile::multiple_of_8(split->slice) * product.columns};
    for (const SplitSum& sum : split->sums)
      if (sum.wide) slices[root(output(sum.step))] = {sum.numbers, sum.numbers};
    for (std::size_t before = 0; before != slices.size();) {
      before = slices.size();
      for (std::uint32_t i = stage.last; i < region.last; ++i) {
        const Step& step = phase.steps[i];
        std::vector<BufferId> arrays;  // roots
        for (std::size_t k = 0; k < step.inputs.size(); ++k)
          if (!places.stays_in_arena(step, k)) arrays.push_back(root(step.inputs[k]));
        if (step.op != Op::record) arrays.push_back(root(step.output));
        std::erase_if(arrays, [&](BufferId id) { return places.is_number(id); });
        const auto sliced = std::ranges::find_if(arrays, [&](BufferId id) { return slices.contains(id); });
        if (sliced == arrays.end()) continue;
        const std::int64_t elements = slices.at(*sliced).elements;
        for (const BufferId of : arrays) slices.try_emplace(of, Slice{elements, elements});
      }
    }
    for (const auto& [of, slice] : slices) places.slice(of, slice.elements, slice.capacity);
  }
  // Code of the sums over rows and of the steps after them.
  std::string after_rows(OnceText& code) const {
    code.after_barrier();
    for (const SplitSum& sum : split->sums) code.combined(output(sum.step), "sums.total", sum.at);
    code.run(stage.last, region.last);
    return code.end_of_step();
  }
  // Finds the sliced arrays that only the loops computing them read, in a trial run of the steps that run once.
  void find_unread() {
    const std::vector<BufferId> pointers = kernel.pointers;  // the trial numbers more of them
    OnceText trial(*this, "s.");
    trial.run(stage.first, stage.rows);
    (void)trial.before_rows();
    (void)after_rows(trial);
    kernel.pointers = pointers;
    const std::vector<BufferId>& states = trial.read_first();
    for (const Places::Array& array : places.arrays())
      if (places.is_sliced(array.root) && !trial.read_arrays().contains(array.root) &&
          std::ranges::find(states, array.root) == states.end())
        places.pass(array.root, pointer(array.root));
  }

  std::int64_t turn_rows() const { return split->turn_rows(tiling); }

  // Finds data that own rows read, with elements of 4 bytes.
  void find_fetched() {
    for (int k = 0; k < count_steps(); ++k) {
      if (plan.value(k).phase != 0) continue;
      for (const int from : at(k).makers)
        each_source(steps, plan, from, [&](int source) {
          if (source != split->data && place(source) == BlockPlace::data && size_of(call(source).output.dtype) == 4)
            fetched.insert(source);
        });
    }
    for (const int k : fetched)
      shared += fmt::format("  alignas(16) {} d{}[2][{}][{}];  // {}\n", type_name(call(k).output.dtype), output(k),
                            split->own, features(k), printable_name(row_step(k).name));
  }

  // Vector width for reading rows of data from their start and from the start of each slice.
  std::int64_t data_width(int k) const { return width_of({k < 0 ? split->features : features(k), data_offset(k)}); }
  // Address of wide data from outside, the same in each step.
  std::string outside_data() { return outside(split->products.front().step, 0).at("r"); }
  // First warp with nothing to send when the next data are requested.
  std::int64_t idle_warp() const {
    return std::min<std::int64_t>((turn_rows() * split->parts / 4 + 31) / 32, tiling.threads / 64);
  }
  // Expressions for the first row of data, and for row r relative to `from`.
  struct Rows {
    std::string from, row;
  };
  Rows rows_now(int k) { return {"0", k < 0 ? outside_data() : row_of(k, false)}; }
  // Requests all data of a turn that begins at row `first`; rows_of(k) locates the rows of data k.
  template <class RowsOf>
  std::string fetches(std::string_view turn, std::string_view first, std::string_view rows, const RowsOf& rows_of) {
    const auto functions = [&](const Rows& of, std::string_view r, std::string_view slice) {
      return fmt::format(
          "[&] {{ return {}; }}, [&](auto from, int l) {{ const u32 r = {} + l; (void)from; return {}{}; }}", of.from,
          r, of.row, slice);
    };
    std::string requests =
        fmt::format("        s.data.fetch<{}>({}, {}, features, {});{}", idle_warp(), turn, rows,
                    functions(rows_of(split->data), first, " + slice"), split->data < 0 ? "\n" : comment(split->data));
    std::int64_t warp = tiling.threads / 32 - 1;
    for (const int k : fetched)
      requests += fmt::format(
          "        by_split::fetch_rows<{}, {}, {}>(s.d{}[({}) % 2], by_split::rows_between(rank * {}, {}, {}), {});{}",
          tiling.threads, (warp > idle_warp() ? warp-- : warp) * 32, data_width(k), output(k), turn, split->own, rows,
          split->own, functions(rows_of(k), fmt::format("{} + rank * {}", first, split->own), ""), comment(k));
    return requests;
  }

  void turns() {
    find_fetched();
    const std::int64_t rows = turn_rows();
    text += fmt::format(
        "    const int begin = static_cast<int>(cluster_index()) * {0}, end = begin + {0} < count ? begin + {0} : "
        "count;\n"
        "    GRAPHRUN_TILE_LOOP\n    for (int part = 0; part < {1}; ++part) {{\n      ++turn;\n"
        "      const int turn_first = begin + part * {2}, turn_rows = by_split::rows_between(turn_first, end, {2});\n",
        split->group, split->turns, rows);
    const auto now = [&](int k) { return rows_now(k); };
    text += fmt::format("      if (!ahead) {{\n{}      }}\n", fetches("turn", "turn_first", "turn_rows", now));
    text += "      s.data.await(turn);\n      ahead = false;\n";
    if (!fetched.empty() && data_width(split->data) == 4) text += "      await_copies();\n";
    for (const SplitProduct& product : split->products)
      text += fmt::format("      by_split::multiply_rows<{}, {}, {}, {}, {}>(s.parts, s.data.x[turn % 2], {});{}",
                          tiling.threads, product.at, product.columns, rows, split->slice,
                          call(product.step).inputs[1].name, comment(product.step));
    text += "      barrier();\n";
    if (split->turns > 1)
      text += fmt::format(
          "      if (part + 1 < {}) {{\n        const int next_first = turn_first + {}, next_rows = "
          "by_split::rows_between(next_first, end, {});\n{}        ahead = true;\n      }}\n",
          split->turns, rows, rows, fetches("turn + 1", "next_first", "next_rows", now));
    text += next_step();
    text += fmt::format(
        "      cluster.send_parts(s.parts, turn);\n      {{  // own rows\n      const u32 first = turn_first + rank * "
        "{0};\n      const int rows = by_split::rows_between(rank * {0}, turn_rows, {0});\n      "
        "cluster.clear_from(rows);\n",
        split->own);
    add_rows(*this);
    text +=
        "      barrier();\n      }\n      cluster.gather(turn);\n      const float* const all = "
        "cluster.all(turn);\n      (void)all;\n";
    current_phase = 1;
    std::int64_t warp = 0;
    for (const SplitSum& sum : split->sums) text += sum.wide ? wide_sum(sum, warp) : narrow_sum(sum, warp);
    text += "      barrier();\n    }\n";
    clear_rows();
  }

  // Requests the first rows of the next step, if its number is known before this step ends.
  std::string next_step() {
    std::set<int> all = fetched;
    if (split->data >= 0) all.insert(split->data);
    std::set<std::string> tables;
    const auto number = [&](int k) { return fmt::format("({} + 1)", call(k).inputs[1].name); };
    for (const int k : all) {
      if (!counts_steps(program, phase, row_step(k).inputs[1])) return {};
      if (!is_shuffled(k)) continue;
      if (table_of(k).empty()) return {};
      tables.insert(table_of(k));
    }
    std::string when = fmt::format("part + 1 == {} && epoch < a.steps", split->turns);
    for (const std::string& table : tables) when += fmt::format(" && {}.knows_next(epoch, a.steps)", table);
    const auto rows = [&](int k) -> Rows {
      if (k < 0) return rows_now(k);
      const std::string data =
          fmt::format("{} + {}", pointer(row_step(k).inputs[0], "const "), call(k).inputs[0].view.offset);
      if (is_shuffled(k)) return {"0", fmt::format("({} + {}.row(epoch + 1, r) * {})", data, table_of(k), features(k))};
      return {fmt::format("{} + {}.row({}, 0) * {}", data, batches_text(call(k)), number(k), features(k)),
              fmt::format("(from + u64(r) * {})", features(k))};
    };
    const std::string last = fmt::format("(begin + {0} < {1} ? begin + {0} : {1})", split->group, phase.capacity);
    const auto is_whole = [](const MinibatchParams& p) { return p.shuffle || p.total % p.capacity == 0; };
    const bool whole = split->data < 0 || is_whole(row_step(split->data).params.as<MinibatchParams>());
    return fmt::format(
        "      if ({}) {{\n        const int next_rows = by_split::rows_between(begin, {}, {});\n{}        ahead = "
        "true;\n      }}\n",
        when,
        whole ? last : fmt::format("{}.rows_until({}, {})", batches_text(call(split->data)), number(split->data), last),
        turn_rows(), fetches("turn + 1", "begin", "next_rows", rows));
  }

  std::string wide_sum(const SplitSum& sum, std::int64_t& warp) const {
    warp += (split->slice + 15) / 16;
    return fmt::format(
        "      by_split::add_product<{}, {}, {}, {}>(s.sums.sum + {}, part == 0, s.data.x[turn % 2], all + {}, {});{}",
        tiling.threads, terms(sum.step, 1), turn_rows(), split->slice, sum.at,
        plan.value(maker(sum.step, 1)).offset / sizeof(float), split->gathered, comment(sum.step));
  }
  std::string narrow_sum(const SplitSum& sum, std::int64_t& warp) {
    BlockContext context;
    const TextCall c = named(sum.step, context);
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
        tiling.threads, first, sum.numbers, turn_rows(), sum.at, context.text, term, comment(sum.step));
  }

  void write() {
    const States states = this->states();
    const std::string body = fmt::format(
        "  s.data.begin();\n  Cluster cluster(s.cluster, a.fault);\n  Sums sums(s.sums, {scratch}, a.fault);\n"
        "{numbers}{loads}  const int rank = static_cast<int>(cluster_rank()), slice = rank * {slice}, "
        "features = by_split::rows_between(slice, {features}, {slice});\n"
        "  const bool first_thread = block_index() == 0 && thread_index() == 0;\n"
        "  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n"
        "  u32 turn = 0;\n  bool ahead = false;  // data of the turn are on their way\n  barrier();\n"
        "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{text}  }}\n  await_copies();\n  barrier();\n"
        "{slices}{stores}  cluster.end();\n",
        "scratch"_a = scratch(), "numbers"_a = states.numbers, "loads"_a = states.loads, "slice"_a = split->slice,
        "features"_a = split->features, "text"_a = text,
        "slices"_a =
            states.slices.empty() ? "" : fmt::format("  if (cluster_index() == 0) {{\n{}  }}\n", states.slices),
        "stores"_a = states.stores.empty() ? "" : fmt::format("  if (block_index() == 0) {{\n{}  }}\n", states.stores));
    const std::string types = fmt::format(
        "using Cluster = by_split::RowExchange<{threads}, {cluster}, {own}, {parts}, {gathered}>;\n"
        "using Sums = by_split::SliceSums<{values}, {threads}, {cluster}, {clusters}>;\n"
        "static_assert(Sums::kScratchBytes <= {scratch}, \"scratch\");\n",
        "threads"_a = tiling.threads, "cluster"_a = tiling.cluster, "own"_a = split->own, "parts"_a = split->parts,
        "gathered"_a = split->gathered, "values"_a = split->values, "clusters"_a = tiling.clusters,
        "scratch"_a = tiling.scratch_bytes);
    const std::string members = fmt::format(
        "  by_split::SliceRows<{0}, {1}, {2}, {3}> data;\n  by_split::RowParts<{0}, {1}, {2}, {4}> parts;\n"
        "  Cluster::Shared cluster;\n  Sums::Shared sums;\n",
        tiling.threads, turn_rows(), split->slice, data_width(split->data), split->parts);
    kernel.text = begin(types, members + shared_rows() + shared + states.members) + definition(body) + end();
  }
};

}  // namespace

StepKernel split_kernel(const KernelRegion& of) {
  return SplitWriter(of).run();
}

}  // namespace graphrun::cuda
