// Writes the loops over rows of a kernel with block or split tiles: products of several blocks with the steps on their
// results, and steps on the rows of a block.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executors/cuda_planner/print/row_text.h"
#include "executors/cuda_planner/tiles/block_values.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {
namespace {

using namespace fmt::literals;

class RowsWriter {
 public:
  explicit RowsWriter(BlockKernel& values) : v_(values) {}

  void run() {
    stores_of_data();
    for (std::size_t p = 0; p < v_.plan.phases.size(); ++p) {
      if (p > 0) v_.text += kBlockSync;
      v_.waits = v_.waits || p > 0;
      v_.current_phase = static_cast<int>(p);
      const BlockPhase& phase = v_.plan.phases[p];
      if (phase.products.empty()) {
        rows_text(phase, p + 1);
        continue;
      }
      v_.text += fmt::format("    // phase {}: products\n", p + 1);
      std::int64_t before = 0;
      for (const BlockProduct& product : phase.products) before = product_text(product, before);
    }
    v_.clear_rows();
  }

  void run_split() {
    for (const BlockItem& item : v_.plan.phases.at(0).rows) {
      if (!rows_.empty()) rows_ += "      barrier();\n";
      item.loop ? loop(item) : along_rows(item);
    }
    v_.text += rows_;
  }

 private:
  // Stores values that no phase computes: data, and values recomputed from them.
  void stores_of_data() {
    for (int k = 0; k < v_.count_steps(); ++k) {
      if (v_.stores_of(k).empty() || !v_.is_data(k)) continue;
      BlockContext context;
      if (v_.place(k) == BlockPlace::recomputed) v_.define(k, context);
      v_.text += fmt::format(
          "    by_block::each_feature<{0}, {1}>(count - static_cast<int>(block_index()) <= 0 ? 0 : (count - 1 - "
          "static_cast<int>(block_index())) / {2} + 1, [](int, int) {{ return 0; }}, [&](int b, int i, int) {{\n"
          "      const u32 r = block_index() + b * {2}u;\n{3}      const auto x = {4}[i];{5}",
          v_.tiling.threads, v_.features(k), v_.tiling.blocks(), context.text, v_.row_of(k, false), v_.comment(k));
      for (const BufferId arena : v_.stores_of(k))
        v_.text += fmt::format("      {}[u64(r) * {} + i] = x;\n", v_.pointer(arena), v_.features(k));
      v_.text += "    });\n";
    }
  }

  std::string weights(int k, std::int64_t octets, std::string_view first) {
    const TextOperand& w = v_.call(k).inputs[1];
    const std::int64_t n = v_.features(k), terms = v_.terms(k);
    const bool along = v_.call(k).params->as<MatmulParams>().transpose_b;
    return fmt::format("by_block::{}<{}, {}>({}, {}, {}, by_block::Rows{{{} + {}, {}}})", along ? "along" : "across",
                       octets, along ? width_of({terms, w.view.offset}) : width_of({n, w.view.offset, octets}), first,
                       n, terms, v_.use(w.name), w.view.offset, along ? terms : n);
  }
  // Vector width for reading along the rows of the left factor of product k.
  std::int64_t row_width(int k) { return width_of({v_.terms(k), v_.data_offset(v_.maker(k, 0))}); }
  // Emits jobs [before, before + product.jobs); returns their end.
  std::int64_t product_text(const BlockProduct& product, std::int64_t before) {
    const int k = product.step;
    const Step& of = v_.row_step(k);
    const std::int64_t n = v_.features(k), terms = v_.terms(k);
    const std::int64_t columns = (n + 8 * product.tile.n - 1) / (8 * product.tile.n);
    v_.begin_part();
    BlockContext context;
    context.fetches_first = true;
    const std::string sample = "      const u32 r = sample;\n      (void)r, (void)i;\n";
    context.live.insert(k);
    std::string body = sample + v_.keep(k, false);
    for (const int next : product.epilogue) body += v_.statement(next, context);
    const std::string loop = fmt::format(
        "    for (u32 job = (block_index() + {blocks}u - {before}u % {blocks}u) % {blocks}u; job < {jobs}u; "
        "job += {blocks}u) {{{comment}"
        "      const int first = static_cast<int>(job) / {columns} * {height}, "
        "column = static_cast<int>(job) % {columns} * {width};\n"
        "      by_block::product<{threads}, {m}, {n}, {terms}>(s.parts,\n          {left},\n          {right},\n"
        "          {fetches},\n          [&](int sample, int i, float x{output}, const auto& f) {{\n      (void)f;\n"
        "{body}      }});\n    }}\n",
        "blocks"_a = v_.tiling.blocks(), "before"_a = before, "jobs"_a = product.jobs, "comment"_a = step_comment(of),
        "columns"_a = columns, "height"_a = 16 * product.tile.m, "width"_a = 8 * product.tile.n,
        "threads"_a = v_.tiling.threads, "m"_a = product.tile.m, "n"_a = product.tile.n, "terms"_a = terms,
        "left"_a = fmt::format("by_block::along<{}, {}>(first, count, {}, {})", 2 * product.tile.m, row_width(k), terms,
                               v_.factor(k, 0, false)),
        "right"_a = weights(k, product.tile.n, "column"),
        "fetches"_a = context.fetch_function("int sample, int i", sample, "      "), "output"_a = of.output,
        "body"_a = body);
    v_.text += v_.part(loop, "0", "    ");
    return before + product.jobs;
  }

  void rows_text(const BlockPhase& phase, std::size_t number) {
    const std::string rows = fmt::format(
        "      const int rows = count - static_cast<int>(first) < {0} ? count - static_cast<int>(first) : {0};\n",
        kBlockRows);
    std::string calls;
    const auto end_part = [&] {
      const std::string body = std::exchange(rows_, {});
      if (body.empty()) return;
      calls += v_.has_parts ? v_.part("      const u32 first = at;\n" + rows + body, "first", "      ") : body;
    };
    v_.begin_part();
    for (const BlockItem& item : phase.rows) {
      if (v_.has_parts && is_large(item)) end_part();
      rows_ += "      barrier();\n";
      item.loop ? loop(item) : along_rows(item);
    }
    end_part();
    v_.text += fmt::format(
        "    for (u32 first = block_index() * {}u; first < u32(count); first += {}u) {{  // phase {}: rows\n{}{}      "
        "barrier();\n    }}\n",
        kBlockRows, kBlockRows * v_.tiling.blocks(), number, v_.has_parts ? "" : rows, calls);
  }
  // Whether the item has a product of more than one tensor core fragment.
  bool is_large(const BlockItem& item) const {
    return std::ranges::any_of(item.steps, [&](int k) { return v_.call(k).op == Op::matmul && v_.features(k) > 16; });
  }

  void loop(const BlockItem& item) {
    BlockContext context;
    context.in_rows = context.fetches_first = true;
    const std::string sample = "      const u32 r = first + b;\n      (void)r, (void)i;\n";
    std::string body;
    for (const int k : item.steps) {
      if (v_.call(k).op != Op::matmul)
        body += v_.statement(k, context);
      else
        body += v_.let(k, context, v_.split ? split_product(k, context) : row_product(k));
    }
    rows_ += fmt::format(
        "      {}::each_feature<{}, {}{}>(rows, {}, [&](int b, int i, const auto& f) {{\n      (void)f;\n{}{}      "
        "}});\n",
        by(), v_.tiling.threads, v_.features(item.steps.front()),
        v_.split ? fmt::format(", {}", v_.rows_at_once()) : "",
        context.fetch_function("int b, int i", sample, "      "), sample, body);
  }
  std::string_view by() const { return v_.split ? "by_split" : "by_block"; }

  // Adds the product of a block's rows; returns result i of row b.
  std::string row_product(int k) {
    const std::int64_t n = v_.features(k), octets = 2 * tile::row_product_shape(n, v_.tiling.threads / 32).m;
    rows_ += fmt::format(
        "      const auto w{0} = [&](int first) {{ return {1}; }};{2}      "
        "by_block::multiply_rows<{3}, {4}, {6}>(s.parts, w{0}, by_block::along<1, {5}>(0, rows, {6}, {7}));\n      "
        "barrier();\n",
        v_.output(k), weights(k, octets, "first"), v_.comment(k), v_.tiling.threads, n, row_width(k), v_.terms(k),
        v_.factor(k, 0, true));
    return fmt::format("by_block::row_product<{}, {}>(s.parts, b, i)", v_.tiling.threads, n);
  }

  // Result i of row b: sum of parts sent by the cluster's blocks, or a dot product with a row in shared memory.
  std::string split_product(int k, BlockContext& context) {
    const auto wide = std::ranges::find(v_.split->products, k, &SplitProduct::step);
    if (wide != v_.split->products.end())
      return fmt::format("cluster.result(turn, b, {}i)", wide->at > 0 ? fmt::format("{} + ", wide->at) : "");
    const TextCall c = v_.named(k, context);
    const TextOperand& w = c.inputs[1];
    const std::int64_t terms = v_.terms(k);
    const std::string place = c.params->as<MatmulParams>().transpose_b ? fmt::format("i * {} + k", terms)
                                                                       : fmt::format("k * {} + i", v_.features(k));
    return fmt::format("dot<{}>([&](int k) {{ return {}[k]; }}, [&](int k) {{ return ({} + {})[{}]; }})", terms,
                       c.inputs[0].name, w.name, w.view.offset, place);
  }

  // Steps that read whole rows: one warp per row, or half a warp for short rows of a split tile.
  void along_rows(const BlockItem& item) {
    BlockContext context;
    context.in_rows = true;
    std::int64_t warp = 0;
    for (const int k : item.steps) {
      const TextCall c = v_.named(k, context);
      const int lanes = v_.split && feature_count(c.inputs[0].type) <= 16 ? 16 : 32;
      rows_ += fmt::format(
          "      {}::each_row<{}, {}{}>(rows, [&](int b) {{\n      const u32 r = first + b;\n      (void)r;\n{}      "
          "  by_block::Lanes<{}>::{};{}",
          by(), v_.tiling.threads, warp, v_.split ? fmt::format(", {}", lanes) : "", std::exchange(context.text, {}),
          lanes, axis_text(c, v_.row_of(k, true)), v_.comment(k));
      if (std::string to = v_.keep(k, false); !to.empty())
        rows_ += fmt::format(
            "      warp_barrier();\n      for (int i = by_block::Lanes<{4}>::lane(); i < {0}; i += {4}) {{\n      "
            "const auto x{1} = {3}[i];\n{2}      }}\n",
            v_.features(k), v_.output(k), to, v_.row_of(k, true), lanes);
      rows_ += "      });\n";
      context.made.clear();
      warp += (v_.rows_at_once() * lanes + 31) / 32;
    }
  }

  BlockKernel& v_;
  std::string rows_;  // code of the phase
};

}  // namespace

void add_rows(BlockKernel& kernel) {
  kernel.split ? RowsWriter(kernel).run_split() : RowsWriter(kernel).run();
}

}  // namespace graphrun::cuda
