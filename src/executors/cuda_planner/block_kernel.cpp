#include "executors/cuda_planner/block_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "executors/cuda_planner/block_phases.h"
#include "executors/cuda_planner/once_text.h"
#include "executors/cuda_planner/row_stage.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {
namespace {

// How many numbers side by side are read at once: what all of these are multiples of.
std::int64_t width_of(std::initializer_list<std::int64_t> sizes, std::int64_t most = 4) {
  std::int64_t width = most;
  for (const std::int64_t size : sizes) width = std::gcd(width, size);
  return width;
}

class BlockWriter {
 public:
  BlockWriter(std::string_view name, const Program& program, const Phase& phase, const Region& region)
      : program_(program),
        phase_(phase),
        region_(region),
        stage_(region.stages.front()),
        tiling_(std::get<StepTiling>(region.tiling)),
        places_(program, phase, region),
        once_(
            program, phase, region, places_, tiling_.threads, [this](BufferId id) { return pointer(id, ""); }, "") {
    kernel_.name = name;
    kernel_.tiling = tiling_;
    scratch_before_ = kBlockFlagBytes;
    if (region.stages.size() != 1) throw std::logic_error("a kernel with tiles of blocks has one stage");
  }

  StepKernel run() {
    for (std::uint32_t i = stage_.rows; i < stage_.last; ++i)
      if (step(i).row_count != kNoBuffer) count_ = step(i).row_count;
    once_.run(stage_.first, stage_.rows);
    text_ += once_.before_rows();
    find_steps();
    plan_ = block_phases(steps_, phase_.capacity, tiling_.blocks(), threads());
    find_values();
    text_ += fmt::format("    const int count = static_cast<int>({});\n    (void)count;\n", count_text());
    selections();
    for (const auto& [k, arenas] : stores_)
      for (const BufferId arena : arenas) stored_[arena] = pointer(arena, "");
    stores_of_data();
    for (std::size_t p = 0; p < plan_.phases.size(); ++p) {
      if (p > 0) sync();
      phase_text(static_cast<int>(p));
    }
    clear_rows();
    sums();
    text_ += once_.end_of_step();
    if (waits_) sync();
    write();
    return std::move(kernel_);
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  BufferId root(BufferId id) const { return storage_root(program_, id); }
  const Step& step(std::uint32_t i) const { return phase_.steps[i]; }
  const Step& row_step(int k) const { return step(stage_.rows + static_cast<std::uint32_t>(k)); }
  const TextCall& call(int k) const { return steps_[static_cast<std::size_t>(k)].call; }
  int maker(int k, std::size_t input) const { return steps_[static_cast<std::size_t>(k)].makers[input]; }
  BlockPlace place(int k) const { return plan_.places[static_cast<std::size_t>(k)]; }
  std::int64_t stride(int k) const { return plan_.strides[static_cast<std::size_t>(k)]; }
  std::int64_t features(int k) const { return feature_count(call(k).output); }
  static std::string comment(const Step& step) { return fmt::format("  // {}\n", comment_of(step)); }
  std::uint32_t threads() const { return tiling_.threads; }

  std::string count_text() const {
    return count_ == kNoBuffer ? fmt::format("{}u", phase_.capacity)
                               : fmt::format("rows_of<{}>({})", phase_.capacity, once_.value(count_));
  }
  void sync() {
    text_ += "    grid.sync();\n    if (grid.failed()) break;\n";
    waits_ = true;
  }

  // ---- what there is

  void find_steps() {
    std::map<BufferId, int> makers;  // by root: the last one
    for (std::uint32_t i = stage_.rows; i < stage_.last; ++i) {
      const Step& of = step(i);
      BlockStep& made = steps_.emplace_back(BlockStep{once_.call(of), {}});
      for (std::size_t k = 0; k < of.inputs.size(); ++k) {
        const auto found = makers.find(root(of.inputs[k]));
        const bool rows = made.call.inputs[k].has_rows();
        made.makers.push_back(!rows || found == makers.end() ? -1 : found->second);
      }
      makers[root(of.output)] = static_cast<int>(i - stage_.rows);
    }
    for (const TileMove& move : stage_.loads) loads_[root(move.tile)] = move.arena;
    for (const TileMove& move : stage_.stores) {
      const auto found = makers.find(root(move.tile));
      if (found == makers.end()) throw std::logic_error("a store of what no step makes");
      stores_[found->second].push_back(move.arena);
    }
  }

  // Where values of a row lie that are not only in registers.
  void find_values() {
    for (int k = 0; k < static_cast<int>(steps_.size()); ++k) {
      const std::string_view type = type_name(call(k).output.dtype);
      const std::string name = printable_name(row_step(k).name);
      if (in_shared(k))
        shared_ += fmt::format("  alignas(16) {} v{}[{}][{}];  // {}\n", type, row_step(k).output, kBlockRows,
                               shared_stride(features(k)), name);
      if (place(k) == BlockPlace::arena)
        begin_ += fmt::format("  {0}* const g{1} = reinterpret_cast<{0}*>(scratch + {2});  // {3}\n", type,
                              row_step(k).output, scratch_before_ + plan_.offsets[static_cast<std::size_t>(k)], name);
    }
  }
  bool in_shared(int k) const { return plan_.shared[static_cast<std::size_t>(k)]; }

  // Rows of data that a step takes.
  void selections() {
    std::map<std::string, std::string> tables;
    for (int k = 0; k < static_cast<int>(steps_.size()); ++k) {
      if (place(k) != BlockPlace::data) continue;
      const Step& of = row_step(k);
      const std::string_view type = type_name(call(k).output.dtype);
      const std::string data = fmt::format("{} + {}", pointer(of.inputs[0], "const "), call(k).inputs[0].view.offset);
      const auto& p = of.params.as<MinibatchParams>();
      if (!p.shuffle) {
        text_ += fmt::format("    const {}* const d{} = {} + {} * {};{}", type, of.output, data,
                             batch_row_text(call(k), "0"), features(k), comment(of));
        rows_of_[k] = "r";
        continue;
      }
      text_ += fmt::format("    const {}* const d{} = {};{}", type, of.output, data, comment(of));
      const std::string row = batch_row_text(call(k), "r");
      if (phase_.capacity > kMostLookedUp) {
        rows_of_[k] = row;
        continue;
      }
      const auto [found, fresh] = tables.try_emplace(row, fmt::format("s.rows{}", of.output));
      rows_of_[k] = found->second + "[int(r) < count ? r : 0]";
      if (!fresh) continue;
      shared_ += fmt::format("  u32 rows{}[{}];\n", of.output, phase_.capacity);
      text_ += fmt::format("    for (int r = thread_index(); r < count; r += {}) {}[r] = static_cast<u32>({});\n",
                           threads(), found->second, row);
    }
    if (!tables.empty()) text_ += "    barrier();\n";
  }

  // ---- operands

  // In which a step is: what it finds in registers, and where it may look.
  struct Context {
    std::set<int> held;  // made before in the same loop, for the same feature
    std::set<int> made;  // functions of a feature, defined before
    bool in_rows = false;
    std::string text;              // definitions that the next statement needs
    std::string members, fetched;  // what is asked for before: of a struct, its values
    int fetches = 0;
    bool fetches_first = false;  // there is such a struct
  };

  // The first number of sample r, or of row b of a block.
  std::string row_of(int k, bool in_rows) const {
    const BufferId id = row_step(k).output;
    switch (place(k)) {
      case BlockPlace::data:
        return fmt::format("(d{} + u64({}) * {})", id, rows_of_.at(k), features(k));
      case BlockPlace::remade:
        return fmt::format("x{}", id);
      default:
        if (in_rows && in_shared(k)) return fmt::format("s.v{}[b]", id);
        return fmt::format("(g{} + u64(r) * {})", id, stride(k));
    }
  }
  std::string outside(BufferId tile) {
    const BufferId arena = loads_.at(root(tile));
    return fmt::format("({} + u64(r) * {})", pointer(arena, "const "), feature_count(buffer(arena).type));
  }
  // With the names of its operands, whose definitions are in context.text.
  TextCall named(int k, Context& context, bool by_feature) {
    TextCall out = call(k);
    for (std::size_t i = 0; i < out.inputs.size(); ++i) {
      TextOperand& operand = out.inputs[i];
      if (!operand.has_rows()) continue;
      const int from = maker(k, i);
      if (from < 0) {
        operand.name = outside(row_step(k).inputs[i]);
        continue;
      }
      if (place(from) == BlockPlace::remade) define(from, context);
      const bool same = by_feature && is_scalar(out.op) && feature_count(operand.type) == feature_count(out.output);
      if (same && context.held.contains(from)) {
        operand.number = true;
        operand.name = fmt::format("x{}", row_step(from).output);
      } else {
        operand.name = row_of(from, context.in_rows && is_of_phase(from));
        const bool here = context.in_rows && is_of_phase(from) && in_shared(from);
        if (!here && place(from) != BlockPlace::remade && by_feature) fetch(operand, out, context);
      }
    }
    if (!by_feature) return out;
    for (TextOperand& operand : out.inputs)
      if (!operand.has_rows() && !operand.number && operand.type.shape.elements() > 1) fetch(operand, out, context);
    return out;
  }
  // An element in memory, which is asked for before anything is stored.
  void fetch(TextOperand& operand, const TextCall& by, Context& context) {
    if (!context.fetches_first || operand.number || !is_scalar(by.op)) return;
    const std::string name = fmt::format("f{}", ++context.fetches);
    context.members += fmt::format("{} {}; ", type_name(operand.type.dtype), name);
    context.fetched += fmt::format("{}{}", context.fetches == 1 ? "" : ", ", element(operand, features_of(by.output)));
    operand.name = "f." + name;
    operand.number = true;
  }
  // Of a loop: its first function.
  static std::string fetch_text(const Context& context, std::string_view parameters, std::string_view before) {
    return fmt::format("[&]({}) {{\n{}      struct Fetched {{ {}}};\n      return Fetched{{{}}};\n      }}", parameters,
                       before, context.members, context.fetched);
  }
  std::string feature(int k, Context& context) {
    std::string reason;
    std::string text = feature_text(named(k, context, true), reason);
    if (text.empty()) throw std::logic_error(fmt::format("{}: {}", row_step(k).name, reason));
    return text;
  }
  void define(int k, Context& context) {
    if (!context.made.insert(k).second) return;
    Context inner;
    inner.made = context.made;
    inner.in_rows = context.in_rows;
    const std::string text = feature(k, inner);
    context.made = inner.made;
    context.text += inner.text + fmt::format("      const auto x{} = by_block::made([&](int i) {{ return {}; }});{}",
                                             row_step(k).output, text, comment(row_step(k)));
  }

  // Its result x for feature i of sample r, to all places that it has.
  std::string keep(int k, bool in_rows) const {
    const BufferId id = row_step(k).output;
    std::string text;
    if (in_rows && in_shared(k)) text += fmt::format("      s.v{0}[b][i] = x{0};\n", id);
    if (place(k) == BlockPlace::arena) text += fmt::format("      g{0}[u64(r) * {1} + i] = x{0};\n", id, stride(k));
    const auto found = stores_.find(k);
    if (found != stores_.end())
      for (const BufferId arena : found->second)
        text += fmt::format("      {}[u64(r) * {} + i] = x{};\n", stored_.at(arena), features(k), id);
    return text;
  }

  // ---- phases

  void phase_text(int p) {
    const BlockPhase& phase = plan_.phases[static_cast<std::size_t>(p)];
    now_ = p;
    for (const BlockProduct& product : phase.products) {
      phase_of_[product.step] = p;
      for (const int k : product.epilogue) phase_of_[k] = p;
    }
    for (const BlockItem& item : phase.rows)
      for (const int k : item.steps) phase_of_[k] = p;
    if (!phase.products.empty()) {
      text_ += fmt::format("    // phase {}: products\n", p + 1);
      std::int64_t before = 0;
      for (const BlockProduct& product : phase.products) before = product_text(product, before);
      return;
    }
    rows_text(phase);
  }

  // What no phase makes.
  void stores_of_data() {
    for (const auto& [k, arenas] : stores_) {
      if (place(k) != BlockPlace::data && place(k) != BlockPlace::remade) continue;
      Context context;
      if (place(k) == BlockPlace::remade) define(k, context);
      text_ += fmt::format(
          "    by_block::each_feature<{0}, {1}>(count - static_cast<int>(block_index()) <= 0 ? 0 : (count - 1 - "
          "static_cast<int>(block_index())) / {2} + 1, [](int, int) {{ return 0; }}, [&](int b, int i, int) {{\n      "
          "const u32 r = block_index() + b * "
          "{2}u;\n{3}      const auto x = {4}[i];{5}",
          threads(), features(k), tiling_.blocks(), context.text, row_of(k, false), comment(row_step(k)));
      for (const BufferId arena : arenas)
        text_ += fmt::format("      {}[u64(r) * {} + i] = x;\n", stored_.at(arena), features(k));
      text_ += "    });\n";
    }
  }

  std::string weights(int k, std::int64_t octets, const std::string& first, std::string_view inner) const {
    const TextCall& c = call(k);
    const TextOperand& w = c.inputs[1];
    const bool transposed = c.params->as<MatmulParams>().transpose_b;
    const std::int64_t n = feature_count(c.output), terms = feature_count(c.inputs[0].type);
    const std::string from = fmt::format("{} + {}", w.name, w.view.offset);
    if (transposed)
      return fmt::format("by_block::along<{}, {}>({}, {}, {}, [&](int n) {{ return {} + n * {}; }})", octets,
                         width_of({terms, w.view.offset}), first, n, inner, from, terms);
    return fmt::format("by_block::across<{}, {}>({}, {}, {}, [&](int k) {{ return {} + k * {}; }})", octets,
                       width_of({n, w.view.offset, octets}), first, n, inner, from, n);
  }
  // How many numbers of a row of value k are read at once, along it; `outside` it is one of its phase.
  std::int64_t row_width(int k, int from, std::int64_t terms) {
    if (from < 0) return width_of({terms, feature_count(buffer(loads_.at(root(row_step(k).inputs[0]))).type)});
    if (place(from) == BlockPlace::data) return width_of({terms, features(from), call(from).inputs[0].view.offset});
    return width_of({terms});
  }
  bool is_of_phase(int k) const {
    const auto found = phase_of_.find(k);
    return found != phase_of_.end() && found->second == now_;
  }
  std::string factor_row(int k, std::size_t input, bool in_rows) {
    const int from = maker(k, input);
    if (from < 0) return outside(row_step(k).inputs[input]);
    return row_of(from, in_rows && is_of_phase(from));
  }

  // Jobs [before, before + its own).
  std::int64_t product_text(const BlockProduct& product, std::int64_t before) {
    const int k = product.step;
    const Step& of = row_step(k);
    const std::int64_t n = features(k), terms = feature_count(call(k).inputs[0].type);
    const std::int64_t columns = (n + 8 * product.tile.n - 1) / (8 * product.tile.n);
    parts_bytes_ = std::max(parts_bytes_, product_bytes(product.tile, threads()));
    Context context;
    context.fetches_first = true;
    const std::string sample = "      const u32 r = sample;\n      (void)r, (void)i;\n";
    std::string body = sample;
    context.held.insert(k);
    body += keep(k, false);
    for (const int next : product.epilogue) body += statement(next, context);
    text_ += fmt::format(
        "    for (u32 job = (block_index() + {0}u - {1}u % {0}u) % {0}u; job < {2}u; job += {0}u) {{{3}"
        "      const int first = static_cast<int>(job) / {4} * {5}, column = static_cast<int>(job) % {4} * {6};\n"
        "      by_block::product<{7}, {8}, {9}, {12}>(s.parts,\n          by_block::along<{10}, {11}>(first, count, "
        "{12}, "
        "[&](int r) {{ return {13}; }}),\n          {14},\n          {17},\n          [&](int sample, int i, float "
        "x{15}, const auto& f) {{\n      (void)f;\n{16}      "
        "}});\n    }}\n",
        tiling_.blocks(), before, product.jobs, comment(of), columns, 16 * product.tile.m, 8 * product.tile.n,
        threads(), product.tile.m, product.tile.n, 2 * product.tile.m, row_width(k, maker(k, 0), terms), terms,
        factor_row(k, 0, false), weights(k, product.tile.n, "column", fmt::format("{}", terms)), of.output, body,
        fetch_text(context, "int sample, int i", sample));
    return before + product.jobs;
  }

  // A step of a loop over features.
  std::string statement(int k, Context& context) {
    const std::string text = feature(k, context);
    std::string all = std::exchange(context.text, {});
    all += fmt::format("      const {} x{} = {};{}", type_name(call(k).output.dtype), row_step(k).output, text,
                       comment(row_step(k)));
    all += keep(k, context.in_rows);
    context.held.insert(k);
    return all;
  }

  void rows_text(const BlockPhase& phase) {
    rows_.clear();
    for (const BlockItem& item : phase.rows) {
      rows_ += "      barrier();\n";
      item.loop ? loop(item) : along_rows(item);
    }
    text_ += fmt::format(
        "    for (u32 first = block_index() * {0}u; first < u32(count); first += {1}u) {{  // phase {2}: rows\n      "
        "const int rows = count - static_cast<int>(first) < {0} ? count - static_cast<int>(first) : {0};\n{3}      "
        "barrier();\n    }}\n",
        kBlockRows, kBlockRows * tiling_.blocks(), now_ + 1, rows_);
  }

  void loop(const BlockItem& item) {
    Context context;
    context.in_rows = context.fetches_first = true;
    const std::string sample = "      const u32 r = first + b;\n      (void)r, (void)i;\n";
    std::string body;
    for (const int k : item.steps) {
      if (call(k).op != Op::matmul) {
        body += statement(k, context);
        continue;
      }
      row_product(k);
      body += fmt::format("      const float x{0} = by_block::row_product<{1}, {2}>(s.parts, b, i);\n{3}",
                          row_step(k).output, threads(), features(k), keep(k, true));
      context.held.insert(k);
    }
    rows_ += fmt::format(
        "      by_block::each_feature<{}, {}>(rows, {}, [&](int b, int i, const auto& f) {{\n      (void)f;\n{}{}      "
        "}});\n",
        threads(), features(item.steps.front()), fetch_text(context, "int b, int i", sample), sample, body);
  }

  void row_product(int k) {
    const Step& of = row_step(k);
    const std::int64_t n = features(k), terms = feature_count(call(k).inputs[0].type);
    const std::int64_t octets = 2 * (n >= 64 ? 4 : (n + 15) / 16);
    parts_bytes_ = std::max(parts_bytes_, row_product_bytes(n, threads()));
    rows_ += fmt::format(
        "      const auto w{0} = [&](int first) {{ return {1}; }};{2}      "
        "by_block::multiply_rows<{3}, {4}, {6}>(s.parts, w{0}, by_block::along<1, {5}>(0, rows, {6}, [&](int b) {{\n   "
        "     "
        "const u32 r = first + b;\n        (void)r;\n        return {7};\n      }}));\n      barrier();\n",
        of.output, weights(k, octets, "first", fmt::format("{}", terms)), comment(of), threads(), n,
        row_width(k, maker(k, 0), terms), terms, factor_row(k, 0, true));
  }

  // What reads whole rows: a warp for each.
  void along_rows(const BlockItem& item) {
    Context context;
    context.in_rows = true;
    std::int64_t warp = 0;
    for (const int k : item.steps) {
      const BufferId id = row_step(k).output;
      const TextCall c = named(k, context, false);
      rows_ += fmt::format(
          "      by_block::each_row<{}, {}>(rows, [&](int b) {{\n      const u32 r = first + b;\n      (void)r;\n{}    "
          "  "
          "by_block::{};{}",
          threads(), warp, std::exchange(context.text, {}), row_function(c, fmt::format("s.v{}[b]", id)),
          comment(row_step(k)));
      if (std::string to = keep(k, false); !to.empty())
        rows_ += fmt::format(
            "      warp_barrier();\n      for (int i = by_block::lane(); i < {0}; i += 32) {{\n      "
            "const auto x{1} = s.v{1}[b][i];\n{2}      }}\n",
            features(k), id, to);
      rows_ += "      });\n";
      context.made.clear();
      warp += kBlockRows;
    }
  }

  std::string row_function(const TextCall& c, const std::string& to) {
    const TextOperand& x = c.inputs[0];
    const Shape space = features_of(x.type);
    if (c.op == family_op::softmax || c.op == family_op::log_softmax) {
      const Around axis(space, c.params->as<AxisParams>().axis);
      return fmt::format("{}<Number, {}, {}, {}>({}, {})", name_of(c.op), axis.before, axis.along, axis.after, to,
                         x.name);
    }
    if (c.op == family_op::softmax_cross_entropy)
      return fmt::format("softmax_cross_entropy<Number, {}, {}>({}, {}, {})",
                         feature_count(x.type) / last_extent(space), last_extent(space), to, x.name, c.inputs[1].name);
    if (c.op == Op::argmax || c.op == Op::argmin) {
      const RowTerms t = row_terms(x, 1u << c.params->as<AxisParams>().axis);
      return fmt::format("position<{}, {}>({}, {}, {})", t.kept, t.reduced, to, c.op == Op::argmax ? "1.0f" : "-1.0f",
                         t.text);
    }
    const RowTerms t = row_terms(x, c.params->as<ReduceParams>().axes);
    if (c.op == Op::logsumexp) return fmt::format("logsumexp<Number, {}, {}>({}, {})", t.kept, t.reduced, to, t.text);
    const Fold* const fold = fold_of(c.op);
    if (fold == nullptr) throw std::logic_error(fmt::format("no function of a row: {}", name_of(c.op)));
    return fmt::format("reduce<{}, {}>({}, {}, {}, {})", t.kept, t.reduced, to, fold->start, t.text, fold->function);
  }

  // Stored rows past a batch that is not full are zero.
  void clear_rows() {
    if (count_ == kNoBuffer || stores_.empty()) return;
    std::string clears;
    for (const auto& [k, arenas] : stores_)
      for (const BufferId arena : arenas)
        clears += fmt::format(" clear<{0}>({1} + u64(r) * {0});", features(k), pointer(arena, ""));
    text_ += fmt::format(
        "    for (u32 r = u32(count) + block_index() * {0}u + thread_index(); r < {1}u; r += {2}u) {{{3} }}\n",
        threads(), phase_.capacity, threads() * tiling_.blocks(), clears);
  }

  // ---- sums over rows, and what runs once

  // Steps over elements of arrays of one size that touch each other: whoever has an element runs them all.
  struct Group {
    std::int64_t elements = 0;
    BufferId total = kNoBuffer;
    std::set<BufferId> reads, writes;  // roots
    std::vector<std::uint32_t> steps;
  };

  void sums() {
    now_ = static_cast<int>(plan_.phases.size());
    if (!plan_.sums.empty()) {
      sync();
      number_sums();
    }
    for (std::uint32_t i = stage_.last; i < region_.last; ++i) {
      if (is_number_step(i))
        once_.run(i, i + 1);
      else
        array_calls_.emplace(i, once_.call(step(i)));  // a number that it reads may be written over by the next one
    }
    text_ += once_.before_rows();
    prefetches();
    find_groups();
    std::int64_t jobs = 0;
    for (const BlockSum& sum : plan_.sums) jobs += sum.jobs;
    if (jobs > 0) {
      const std::uint32_t blocks = tiling_.blocks();
      text_ += fmt::format(
          "    for (u32 turn = 0; turn * {0}u < {1}u; ++turn) {{  // sums over rows\n      const u32 all = turn * {0}u "
          "+ "
          "(turn % 2 == 0 ? block_index() : {0}u - 1u - block_index());\n      if (all >= {1}u) continue;\n",
          blocks, jobs);
      std::int64_t before = 0;
      for (const BlockSum& sum : plan_.sums) {
        if (sum.jobs == 0) continue;
        text_ += fmt::format("      {}if (all < {}u) {{{}        const int job = static_cast<int>(all) - {};\n",
                             before == 0 ? "" : "else ", before + sum.jobs, comment(row_step(sum.step)), before);
        text_ += sum.product ? sum_of_products(sum) : sum_of_rows(sum);
        text_ += "      }\n";
        before += sum.jobs;
      }
      text_ += "    }\n";
    }
    for (const Group& group : groups_) {
      if (group.total != kNoBuffer) continue;
      waits_ = true;
      text_ += fmt::format(
          "    for (int i = static_cast<int>(block_index() * {0}u + thread_index()); i < {1}; i += {2}) {{\n{3}    "
          "}}\n",
          threads(), group.elements, threads() * tiling_.blocks(), elements_text(group));
    }
  }
  // The next step's data: its number is known now. (Not of a batch that may end beyond them.)
  void prefetches() {
    if (count_ != kNoBuffer) return;
    for (int k = 0; k < static_cast<int>(steps_.size()); ++k) {
      if (place(k) != BlockPlace::data) continue;
      const Step& of = row_step(k);
      const TextCall next = once_.call(of);
      const std::int64_t bytes = features(k) * static_cast<std::int64_t>(size_of(next.output.dtype));
      if (next.inputs[1].name == call(k).inputs[1].name) continue;  // the same
      text_ += fmt::format("    by_block::prefetch_rows<{}, {}, {}>({}, [&](int r) {{ return {} + {} + {} * {}; }});{}",
                           threads(), tiling_.blocks(), bytes, phase_.capacity, pointer(of.inputs[0], "const "),
                           next.inputs[0].view.offset, batch_row_text(next, "r"), features(k), comment(of));
    }
  }
  bool is_number_step(std::uint32_t i) const {
    return step(i).op == Op::record || places_.is_number(root(step(i).output));
  }

  // By the last block, which has the smallest jobs; by each, where rows or arrays need them.
  void number_sums() {
    const bool all = numbers_are_read();
    for (const BlockSum& sum : plan_.sums) {
      if (call(sum.step).output.shape.elements() != 1) continue;
      const BufferId value = row_step(sum.step).output;
      shared_ += fmt::format("  float total{};\n", value);
      const std::string text = fold(sum, fmt::format("[&](int, float x) {{ s.total{} = x; }}", value), "0");
      text_ += fmt::format("    if ({}) {{{}{}      barrier();\n    }}\n    const float t{} = s.total{};\n",
                           all ? "true" : "is_last", comment(row_step(sum.step)), text, value, value);
      once_.found(value, fmt::format("t{}", value));
    }
  }
  // By a step that is no number's, through others and through states.
  bool numbers_are_read() const {
    std::set<BufferId> from;
    for (const BlockSum& sum : plan_.sums)
      if (call(sum.step).output.shape.elements() == 1) from.insert(root(row_step(sum.step).output));
    for (std::size_t before = 0; before != from.size();) {
      before = from.size();
      for (std::uint32_t i = region_.first(); i < region_.last; ++i) {
        const bool reads = std::ranges::any_of(step(i).inputs, [&](BufferId id) { return from.contains(root(id)); });
        if (!reads || step(i).op == Op::record) continue;
        const bool row = i >= stage_.rows && i < stage_.last;
        if (row &&
            std::ranges::any_of(plan_.sums, [&](const BlockSum& sum) { return &row_step(sum.step) == &step(i); }))
          continue;
        if (row || !is_number_step(i)) return true;
        from.insert(root(step(i).output));
      }
    }
    return false;
  }

  std::string fold(const BlockSum& sum, const std::string& result, const std::string& first) {
    parts_bytes_ = std::max<std::uint64_t>(parts_bytes_, threads() * sizeof(float));
    Context context;
    const TextCall c = named(sum.step, context, false);
    if (c.op == Op::matmul)
      return fmt::format(
          "        by_block::fold_rows<{}, 1, 1>(reinterpret_cast<float*>(s.parts), 0, count, 0.0f, [&](int r, int, "
          "int) {{ "
          "return {}[0] * {}[0]; }}, {}, {});\n",
          threads(), c.inputs[0].name, c.inputs[1].name, fold_of(Op::sum)->function, result);
    const Fold* const fold = fold_of(c.op);
    if (fold == nullptr) throw std::logic_error("no fold over rows");
    const RowTerms t = row_terms(c.inputs[0], c.params->as<ReduceParams>().axes);
    return fmt::format(
        "        by_block::fold_rows<{}, {}, {}>(reinterpret_cast<float*>(s.parts), {}, count, {}, [&](int r, int n, "
        "int "
        "m) {{ return float(({})(n, m)); }}, {}, {});\n",
        threads(), t.kept, t.reduced, first, fold->start, t.text, fold->function, result);
  }
  std::string sum_of_rows(const BlockSum& sum) {
    const Group& group = group_of(row_step(sum.step).output);
    return fold(
        sum,
        fmt::format("[&](int i, float t{}) {{\n{}        }}", root(row_step(sum.step).output), elements_text(group)),
        "32 * job");
  }

  std::string sum_of_products(const BlockSum& sum) {
    const int k = sum.step;
    const Group& group = group_of(row_step(k).output);
    parts_bytes_ = std::max(parts_bytes_, product_bytes(sum.tile, threads()));
    const std::int64_t sides[] = {feature_count(call(k).inputs[0].type), feature_count(call(k).inputs[1].type)};
    const std::size_t left = sum.tile.turned ? 1 : 0, right = 1 - left;
    const std::int64_t columns = (sides[right] + 8 * sum.tile.n - 1) / (8 * sum.tile.n);
    const auto factor = [&](std::size_t input, std::int64_t octets, const std::string& first) {
      const int from = maker(k, input);
      std::int64_t width = 0;
      if (from < 0) {
        width = width_of({octets, sides[input]});
      } else if (place(from) == BlockPlace::data) {
        width = width_of({octets, sides[input], call(from).inputs[0].view.offset});
      } else {
        width = width_of({octets, stride(from)});
      }
      return fmt::format("by_block::across<{}, {}>({}, {}, count, [&](int r) {{ return {}; }})", octets, width, first,
                         sides[input], factor_row(k, input, false));
    };
    Context fetches;
    fetches.fetches_first = true;
    const std::string elements = elements_text(group, &fetches);
    const std::string a = factor(left, 2 * sum.tile.m, fmt::format("job / {} * {}", columns, 16 * sum.tile.m));
    const std::string b = factor(right, sum.tile.n, fmt::format("job % {} * {}", columns, 8 * sum.tile.n));
    return fmt::format(
        "        by_block::product<{0}, {1}, {2}, {12}>(s.parts,\n            {3},\n            {4},\n            "
        "[&](int m, int n) {{\n        const int i = {6} * {7} + {8};\n        (void)i;\n        struct Fetched {{ "
        "{10}}};\n        return Fetched{{{11}}};\n        }},\n            [&](int m, int "
        "n, float t{5}, const auto& f) {{\n        const int i = {6} * {7} + {8};\n        (void)i, (void)f;\n{9}      "
        "  }});\n",
        threads(), sum.tile.m, sum.tile.n, a, b, root(row_step(k).output), sum.tile.turned ? "n" : "m", sides[1],
        sum.tile.turned ? "m" : "n", elements, fetches.members, fetches.fetched, phase_.capacity);
  }

  const Group& group_of(BufferId total) const {
    for (const Group& group : groups_)
      if (group.total == root(total)) return group;
    throw std::logic_error("a reduced value without a group");
  }

  void find_groups() {
    for (const Combine& combine : stage_.combines) {
      const BufferId of = root(combine.value);
      const std::int64_t n = buffer(combine.value).type.shape.elements();
      if (!places_.is_number(of)) groups_.push_back({n, of, {}, {of}, {}});
    }
    for (std::uint32_t i = stage_.last; i < region_.last; ++i) {
      if (is_number_step(i) || buffer(step(i).output).type.shape.elements() == 0) continue;
      Group mine{buffer(step(i).output).type.shape.elements(), kNoBuffer, {}, {root(step(i).output)}, {i}};
      for (std::size_t k = 0; k < step(i).inputs.size(); ++k)
        if (!places_.is_number(root(step(i).inputs[k])) && !(step(i).op == Op::assign && k == 0))
          mine.reads.insert(root(step(i).inputs[k]));
      const auto meets = [](const std::set<BufferId>& a, const std::set<BufferId>& b) {
        return std::ranges::any_of(a, [&](BufferId id) { return b.contains(id); });
      };
      for (auto other = groups_.begin(); other != groups_.end();) {
        if (!meets(mine.writes, other->writes) && !meets(mine.reads, other->writes) &&
            !meets(mine.writes, other->reads)) {
          ++other;
          continue;
        }
        if (other->elements != mine.elements || (other->total != kNoBuffer && mine.total != kNoBuffer))
          throw std::logic_error("arrays of different sums over rows meet");
        mine.total = other->total != kNoBuffer ? other->total : mine.total;
        mine.reads.insert(other->reads.begin(), other->reads.end());
        mine.writes.insert(other->writes.begin(), other->writes.end());
        mine.steps.insert(mine.steps.end(), other->steps.begin(), other->steps.end());
        other = groups_.erase(other);
      }
      std::ranges::sort(mine.steps);
      groups_.push_back(std::move(mine));
    }
  }

  // Element i: its sum over rows is in t, if it has one.
  std::string elements_text(const Group& group, Context* fetches = nullptr) {
    std::string text;
    std::map<std::pair<BufferId, std::int64_t>, std::string> held;  // by root and offset
    std::set<std::pair<BufferId, std::int64_t>> fetched;            // and not written
    if (group.total != kNoBuffer) held[{group.total, 0}] = fmt::format("t{}", group.total);
    for (const std::uint32_t i : group.steps) {
      TextCall c = array_calls_.at(i);
      for (std::size_t k = 0; k < step(i).inputs.size(); ++k) {
        if (c.inputs[k].number || c.inputs[k].name.empty()) continue;
        const auto found = held.find({root(step(i).inputs[k]), c.inputs[k].view.offset});
        if (found == held.end()) {
          if (fetches != nullptr && is_elementwise(step(i).op)) {
            const std::string name = fmt::format("f{}", ++fetches->fetches);
            fetches->members += fmt::format("{} {}; ", type_name(c.inputs[k].type.dtype), name);
            fetches->fetched += fmt::format("{}{}", fetches->fetches == 1 ? "" : ", ",
                                            element(c.inputs[k], buffer(step(i).output).type.shape));
            held[{root(step(i).inputs[k]), c.inputs[k].view.offset}] = "f." + name;
            fetched.insert({root(step(i).inputs[k]), c.inputs[k].view.offset});
            c.inputs[k].number = true;
            c.inputs[k].name = "f." + name;
          }
          continue;
        }
        c.inputs[k].number = true;
        c.inputs[k].name = found->second;
      }
      std::string reason;
      const std::string made = element_text(c, reason);
      if (made.empty()) throw std::logic_error(fmt::format("{}: {}", step(i).name, reason));
      const std::string name = fmt::format("e{}_{}", step(i).output, i);
      text += fmt::format("          const {} {} = {};{}", type_name(buffer(step(i).output).type.dtype), name, made,
                          comment(step(i)));
      const BufferId of = root(step(i).output);
      const auto offset = static_cast<std::int64_t>((buffer(step(i).output).offset - buffer(of).offset) /
                                                    size_of(buffer(step(i).output).type.dtype));
      held[{of, offset}] = name;
      fetched.erase({of, offset});
    }
    const std::vector<BufferId> there = once_.written_back();
    for (const auto& [place, name] : held)
      if (!fetched.contains(place) && std::ranges::find(there, place.first) != there.end())
        text += fmt::format("          {}[{} + i] = {};\n", once_.array(place.first), place.second, name);
    return text;
  }

  // ---- the kernel around them

  std::string pointer(BufferId id, std::string_view qualifier) {
    const auto [entry, fresh] = pointers_.try_emplace(id, kernel_.pointers.size());
    if (fresh) kernel_.pointers.push_back(id);
    return fmt::format("static_cast<{}{}*>(a.at[{}])", qualifier, type_name(buffer(id).type.dtype), entry->second);
  }

  void write() {
    std::string begin, stores, shared = shared_;
    if (region_.accumulators != kNoBuffer)
      begin += fmt::format("  char* const scratch = static_cast<char*>({});\n  (void)scratch;\n",
                           fmt::format("a.at[{}]", pointer_index(region_.accumulators)));
    begin +=
        fmt::format("  Blocks grid(s.grid, {}, a.fault);\n", region_.accumulators != kNoBuffer ? "scratch" : "nullptr");
    for (const Places::Array& array : places_.arrays())
      begin += fmt::format("  {}* const {} = {};  // {}\n  (void){};\n", type_name(array.dtype), array.name,
                           pointer(array.root, ""), printable_name(buffer(array.root).name), array.name);
    for (const BufferId id : once_.read_first())
      if (places_.is_number(id))
        begin += fmt::format("  {} {} = {}[0];  // {}\n", type_name(buffer(id).type.dtype), places_.name(id),
                             pointer(id, "const "), printable_name(buffer(id).name));
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
    std::string body = begin + begin_ +
                       fmt::format(
                           "  const bool is_last = block_index() == {}u, first_thread = is_last && thread_index() == "
                           "0;\n  const int i = 0;  // of numbers\n  (void)first_thread, (void)i;\n  barrier();\n"
                           "  for (u32 epoch = 1; epoch <= a.steps; ++epoch) {{\n{}  }}\n",
                           tiling_.blocks() - 1, text_);
    // Who writes numbers back waits for those who read them at first.
    if (!waits_ && !stores.empty()) body += "  grid.sync();\n";
    if (!stores.empty()) body += fmt::format("  barrier();\n  if (first_thread) {{\n{}  }}\n", stores);
    kernel_.source = fmt::format(
        "namespace {0} {{\nusing Arguments = StepArguments<{1}>;\nusing Blocks = Grid<{5}>;\n"
        "static_assert(Blocks::kScratchBytes <= {6} && {6} + {7} <= {8}, \"scratch\");\nstruct Shared {{\n"
        "  alignas(16) unsigned char parts[{9}];\n  Blocks::Shared grid;\n{2}}};\n\nGRAPHRUN_STEP_KERNEL({0}, {4}, "
        "Arguments, a, Shared, s) {{\n{3}}}\n}}  // namespace {0}\n",
        kernel_.name, std::max<std::size_t>(kernel_.pointers.size(), 1), shared, body, threads(), tiling_.blocks(),
        scratch_before_, plan_.bytes, std::max<std::uint64_t>(tiling_.scratch_bytes, scratch_before_ + plan_.bytes),
        std::max<std::uint64_t>(parts_bytes_, 16));
    if (tiling_.blocks() > 1 && tiling_.scratch_bytes < scratch_before_ + plan_.bytes)
      throw std::logic_error("the scratch of a step kernel is too small");
  }
  std::size_t pointer_index(BufferId id) {
    (void)pointer(id, "");
    return pointers_.at(id);
  }

  const Program& program_;
  const Phase& phase_;
  const Region& region_;
  const Stage& stage_;
  const StepTiling tiling_;
  Places places_;
  OnceText once_;
  StepKernel kernel_;
  std::map<BufferId, std::size_t> pointers_;
  std::vector<BlockStep> steps_;  // row steps
  BlockPlan plan_;
  std::map<BufferId, BufferId> loads_;           // by the tile's root
  std::map<int, std::vector<BufferId>> stores_;  // by the step that makes it
  std::map<BufferId, std::string> stored_;       // pointers
  std::map<int, std::string> rows_of_;           // of data: the row of sample r
  std::map<int, int> phase_of_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, TextCall> array_calls_;
  BufferId count_ = kNoBuffer;
  int now_ = 0;  // the phase
  bool waits_ = false;
  std::uint64_t parts_bytes_ = 0;
  std::uint64_t scratch_before_ = 0;
  std::string text_, rows_, shared_, begin_;
};

}  // namespace

StepKernel block_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region) {
  return BlockWriter(name, program, phase, region).run();
}

}  // namespace graphrun::cuda
