// Writes the last phase of a kernel with block tiles: sums over rows, and the steps that run once, level by level
// (block_levels.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/print/row_text.h"
#include "executors/cuda_planner/tiles/block_values.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {
namespace {

using namespace fmt::literals;

class SumsWriter {
  using Value = std::pair<BufferId, std::int64_t>;  // root and offset
  // Connected steps over elements of arrays of one size. The owner of an element runs all of them.
  struct Group {
    std::int64_t elements = 0;
    BufferId total = kNoBuffer;  // sum over rows, if any, and its step
    std::uint32_t maker = 0;
    std::set<BufferId> reads, writes;  // roots
    std::vector<std::uint32_t> steps;
  };

 public:
  SumsWriter(BlockKernel& values, const BlockOrder& order) : v_(values), order_(order), array_calls_(order.before) {}

  void run() {
    v_.current_phase = static_cast<int>(v_.plan.phases.size());
    if (!v_.plan.sums.empty() || std::ranges::any_of(order_.levels, [&](const auto& of) {
          return is_array_step(of.first);
        })) {  // operands of rows may be overwritten from here on
      v_.text += kBlockSync;
      v_.waits = true;
    }
    find_kept();
    for (std::size_t level = 0; level < order_.sums.size(); ++level) start_sums(level);
    if (!v_.plan.sums.empty()) number_sums();
    for (std::size_t level = 0; level < order_.sums.size(); ++level) {
      if (level > 0) {
        finish_sums(level - 1);
        run_numbers(v_.stage.first, v_.stage.rows, level);
      }
      run_numbers(v_.stage.last, v_.region.last, level);
      v_.run_once();
      if (!prefetches_) prefetches();
      find_groups(level);
      if (level == 0) jobs();
      for (const Group& group : groups_)
        if (group.total == kNoBuffer) loop(group, level);
    }
  }

 private:
  bool is_number_step(std::uint32_t i) const {
    return v_.step(i).op == Op::record || v_.places.is_number(v_.root(v_.step(i).output));
  }
  bool is_number(const BlockSum& sum) const { return v_.call(sum.step).output.shape.elements() == 1; }
  // Whether the step runs once per element of an array.
  bool is_array_step(std::uint32_t i) const { return !is_number_step(i) || order_.sums_elements(i); }

  // Resolves operand names of array steps here, because the next step may overwrite a scalar that they read.
  void run_numbers(std::uint32_t first, std::uint32_t last, std::size_t level) {
    for (std::uint32_t i = first; i < last; ++i) {
      if (order_.levels.at(i) != level) continue;
      if (is_array_step(i))
        array_calls_.emplace(i, v_.once.call(v_.step(i)));
      else
        v_.once.run(i, i + 1);
    }
  }

  void jobs() {
    std::int64_t jobs = 0;
    for (const BlockSum& sum : v_.plan.sums) jobs += sum.jobs;
    if (jobs == 0) return;
    const std::uint32_t blocks = v_.tiling.blocks();
    v_.text += fmt::format(
        "    for (u32 turn = 0; turn * {0}u < {1}u; ++turn) {{  // sums over rows\n"
        "      const u32 all = turn * {0}u + (turn % 2 == 0 ? block_index() : {0}u - 1u - block_index());\n      if "
        "(all >= {1}u) continue;\n",
        blocks, jobs);
    std::int64_t before = 0;
    // Code of the sums [first, last); `of` is the variable with the job number.
    const auto chain = [&](std::size_t first, std::size_t last, std::string_view of) {
      std::string text;
      for (std::size_t k = first; k < last; ++k) {
        const BlockSum& sum = v_.plan.sums[k];
        if (sum.jobs == 0) continue;
        const Group& group = group_of(v_.output(sum.step));
        const auto [begin, end] = element_sums(group, "        ");
        text += fmt::format("      {}if ({} < {}u) {{{}        const int job = static_cast<int>({}) - {};\n",
                            text.empty() ? "" : "else ", of, before + sum.jobs, step_comment(v_.row_step(sum.step)), of,
                            before);
        text += begin + (sum.product ? sum_of_products(sum) : sum_of_rows(sum)) + end + "      }\n";
        before += sum.jobs;
      }
      return text;
    };
    const std::size_t all = v_.plan.sums.size();
    if (!v_.has_parts) v_.text += chain(0, all, "all");
    for (std::size_t k = 0, last = 0; v_.has_parts && k < all; k = last) {
      last = k + 1;  // each product by itself, other sums together
      while (!v_.plan.sums[k].product && last < all && !v_.plan.sums[last].product) ++last;
      const std::int64_t first_job = before;
      v_.begin_part();
      const std::string text = chain(k, last, "at");
      if (text.empty()) continue;
      v_.text += fmt::format("      {}if (all < {}u) {{{}{}      }}\n", first_job == 0 ? "" : "else ", before,
                             step_comment(v_.row_step(v_.plan.sums[k].step)), v_.part(text, "all", "        "));
    }
    v_.text += "    }\n";
  }
  // Loop over a group without a sum over rows.
  void loop(const Group& group, std::size_t level) {
    const auto [begin, end] = element_sums(group, "    ");
    if (level == 0) {
      v_.text += fmt::format(
          "{begin}    for (int i = static_cast<int>(block_index() * {threads}u + thread_index()); i < {elements}; "
          "i += {all}) {{\n{body}    }}\n{end}",
          "begin"_a = begin, "threads"_a = v_.tiling.threads, "elements"_a = group.elements,
          "all"_a = v_.tiling.threads * v_.tiling.blocks(), "body"_a = elements_text(group), "end"_a = end);
      return;
    }
    BlockContext fetches;
    fetches.fetches_first = true;
    const std::string body = elements_text(group, &fetches);
    v_.text += fmt::format(
        "{}    by_block::each_element<{}, {}, {}>({},\n        [&](int i, const auto& f) {{\n        (void)f;\n{}    "
        "}});\n{}",
        begin, v_.tiling.threads, v_.tiling.blocks(), group.elements,
        fetches.fetch_function("int i", "        (void)i;\n", "        "), body, end);
  }

  // ---- sums of elements, and values that later levels read

  void start_sums(std::size_t level) {
    const std::vector<std::uint32_t>& sums = order_.sums[level];
    if (sums.empty()) return;
    v_.shared += fmt::format("  by_block::ElementSums<{}, {}> sums{};\n", v_.tiling.threads, sums.size(), level);
    v_.text += fmt::format("    s.sums{}.start();\n", level);
  }
  void finish_sums(std::size_t level) {
    const std::vector<std::uint32_t>& sums = order_.sums[level];
    const std::string parts = scratch("float", level_parts_bytes(sums.size(), v_.tiling.blocks()));
    v_.text += fmt::format("    s.sums{0}.send<{1}>({2});\n{3}    s.sums{0}.receive<{1}>({2});\n", level,
                           v_.tiling.blocks(), parts, kBlockSync);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const BufferId value = v_.step(sums[k]).output;
      define_total(value, fmt::format("t{}_{}", value, sums[k]), fmt::format("s.sums{}.totals[{}]", level, k),
                   step_comment(v_.step(sums[k])));
    }
  }
  void define_total(BufferId value, const std::string& name, std::string_view total, std::string_view end) {
    v_.define({name, fmt::format("    const float {} = {};{}", name, total, end), {}});
    v_.once.found(value, name);
  }
  // Code before and after the elements of a group: each thread has a partial sum of its own.
  std::pair<std::string, std::string> element_sums(const Group& group, std::string_view indent) const {
    std::string begin, end;
    for (const std::uint32_t i : group.steps) {
      if (!order_.sums_elements(i)) continue;
      const std::size_t level = order_.levels.at(i);
      const std::vector<std::uint32_t>& sums = order_.sums[level];
      begin += fmt::format("{}float p{} = 0.0f;\n", indent, i);
      end += fmt::format("{}s.sums{}.add({}, p{});\n", indent, level, std::ranges::find(sums, i) - sums.begin(), i);
    }
    return {begin, end};
  }
  std::string scratch(std::string_view type, std::uint64_t bytes) {
    const std::uint64_t at = kBlockFlagBytes + v_.plan.bytes + v_.scratch_bytes;
    v_.scratch_bytes += bytes;
    return fmt::format("reinterpret_cast<{}*>(scratch + {})", type, at);
  }

  // Finds the producer of each value that is read element by element, and the values that a later level reads. Values
  // that are written back at the end of the step are read from their arrays.
  void find_kept() {
    std::map<Value, std::uint32_t> makers;
    std::set<std::uint32_t> later;
    const auto steps = [&](std::uint32_t first, std::uint32_t last) {
      for (std::uint32_t i = first; i < last; ++i) {
        for (std::size_t k = 0; k < v_.step(i).inputs.size() && is_array_step(i); ++k) {
          if (v_.places.is_number(v_.root(v_.step(i).inputs[k]))) continue;
          const auto found = makers.find(value_of(v_.step(i).inputs[k]));
          if (found == makers.end()) continue;
          makers_[{i, k}] = found->second;
          if (level_of(found->second) < order_.levels.at(i)) later.insert(found->second);
        }
        makers[value_of(v_.step(i).output)] = i;
      }
    };
    steps(v_.stage.first, v_.stage.rows);
    for (int k = 0; k < v_.count_steps(); ++k)
      if (v_.call(k).output.rows == 0) makers[value_of(v_.output(k))] = v_.row_index(k);
    steps(v_.stage.last, v_.region.last);
    for (const auto& [value, maker] : makers) {
      if (!is_written_back(value)) continue;
      written_.insert(maker);
      later.erase(maker);
    }
    for (const std::uint32_t i : later) {
      const Buffer& of = v_.buffer(v_.step(i).output);
      kept_[i] = fmt::format("k{}", i);
      const std::string_view type = type_name(of.type.dtype);
      v_.define(
          {kept_.at(i),
           fmt::format("    {}* const {} = {};{}", type, kept_.at(i),
                       scratch(type, kept_bytes(of.type.shape.elements(), of.type.dtype)), step_comment(v_.step(i))),
           {"scratch"}});
    }
  }
  std::size_t level_of(std::uint32_t i) const {
    const auto found = order_.levels.find(i);
    return found == order_.levels.end() ? 0 : found->second;
  }
  bool is_written_back(const Value& value) const {
    const std::vector<BufferId>& states = v_.once.written_back();
    return std::ranges::find(states, value.first) != states.end();
  }
  Value value_of(BufferId id) const {
    const Buffer &of = v_.buffer(id), &in = v_.buffer(v_.root(id));
    return {v_.root(id), static_cast<std::int64_t>((of.offset - in.offset) / size_of(of.type.dtype))};
  }

  // Prefetches the next step's data as soon as its step number is known. Not for batches that may be partial.
  void prefetches() {
    if (v_.count != kNoBuffer) return;
    // With several levels, the loop-invariant addresses of cache lines would stay in registers and others would spill.
    const std::string_view thread = order_.sums.size() > 1 ? ", opaque(static_cast<int>(thread_index()))" : "";
    for (int k = 0; k < v_.count_steps(); ++k) {
      if (v_.place(k) != BlockPlace::data) continue;
      const Step& of = v_.row_step(k);
      const TextCall next = v_.once.call(of);
      const std::int64_t bytes = v_.features(k) * static_cast<std::int64_t>(size_of(next.output.dtype));
      if (next.inputs[1].name == v_.call(k).inputs[1].name) continue;  // unchanged, or unknown at this level
      prefetches_ = true;
      std::string row = batch_row_text(next, "r"), when;
      if (of.params.as<MinibatchParams>().shuffle && !v_.table_of(k).empty()) {
        row = fmt::format("{}.row(epoch + 1, r)", v_.table_of(k));
        when = fmt::format("    if ({}.knows_next(epoch, a.steps))\n  ", v_.table_of(k));
      }
      v_.text += fmt::format(
          "{}    by_block::prefetch_rows<{}, {}, {}>({}, [&](int r) {{ return {} + {} + {} * {}; }}{});{}", when,
          v_.tiling.threads, v_.tiling.blocks(), bytes, v_.phase.capacity, v_.pointer(of.inputs[0], "const "),
          next.inputs[0].view.offset, row, v_.features(k), thread, step_comment(of));
    }
  }

  // Scalar sums: computed by the last block, which has the smallest jobs, or by all if rows or arrays need them.
  void number_sums() {
    const bool all = numbers_are_read();
    for (const BlockSum& sum : v_.plan.sums) {
      if (!is_number(sum)) continue;
      const BufferId value = v_.output(sum.step);
      v_.shared += fmt::format("  float total{};\n", value);
      const std::string text = fold(sum, fmt::format("[&](int, float x) {{ s.total{} = x; }}", value), "0");
      v_.text += fmt::format("    if ({}) {{{}{}      barrier();\n    }}\n", all ? "true" : "is_last",
                             step_comment(v_.row_step(sum.step)), text);
      define_total(value, fmt::format("t{}", value), fmt::format("s.total{}", value), "\n");
    }
  }
  // Whether a non-scalar step reads such a sum, directly or through other scalars and states.
  bool numbers_are_read() const {
    std::set<BufferId> from;
    std::set<std::uint32_t> sums;
    for (const BlockSum& sum : v_.plan.sums) {
      sums.insert(v_.row_index(sum.step));
      if (is_number(sum)) from.insert(v_.root(v_.output(sum.step)));
    }
    for (std::size_t before = 0; before != from.size();) {
      before = from.size();
      for (std::uint32_t i = v_.region.first(); i < v_.region.last; ++i) {
        const bool reads =
            std::ranges::any_of(v_.step(i).inputs, [&](BufferId id) { return from.contains(v_.root(id)); });
        if (!reads || v_.step(i).op == Op::record || sums.contains(i)) continue;
        if ((i >= v_.stage.rows && i < v_.stage.last) || !is_number_step(i)) return true;
        from.insert(v_.root(v_.step(i).output));
      }
    }
    return false;
  }

  std::string fold(const BlockSum& sum, const std::string& result, const std::string& first) {
    v_.parts_bytes = std::max<std::uint64_t>(v_.parts_bytes, v_.tiling.threads * sizeof(float));
    BlockContext context;
    const TextCall c = v_.named(sum.step, context, false);
    if (c.op == Op::matmul)
      return fmt::format(
          "        by_block::fold_rows<{}, 1, 1>(s.parts, 0, count, 0.0f, [&](int r, int, int) {{ return {}[0] * "
          "{}[0]; "
          "}}, {}, {});\n",
          v_.tiling.threads, c.inputs[0].name, c.inputs[1].name, fold_of(Op::sum)->function, result);
    const Fold* const fold = fold_of(c.op);
    if (fold == nullptr) throw std::logic_error("no fold over rows");
    const RowTerms t = row_terms(c.inputs[0], c.params->as<ReduceParams>().axes);
    return fmt::format(
        "        by_block::fold_rows<{}, {}, {}>(s.parts, {}, count, {}, [&](int r, int n, int m) {{ return float(({})("
        "n, m)); }}, {}, {});\n",
        v_.tiling.threads, t.kept, t.reduced, first, fold->start, t.text, fold->function, result);
  }
  std::string sum_of_rows(const BlockSum& sum) {
    const Group& group = group_of(v_.output(sum.step));
    return fold(
        sum, fmt::format("[&](int i, float t{}) {{\n{}        }}", v_.root(v_.output(sum.step)), elements_text(group)),
        "32 * job");
  }

  std::string sum_of_products(const BlockSum& sum) {
    const int k = sum.step;
    const Group& group = group_of(v_.output(k));
    v_.parts_bytes = std::max(v_.parts_bytes, product_bytes(sum.tile, v_.tiling.threads));
    const std::int64_t sides[] = {v_.terms(k, 0), v_.terms(k, 1)};
    const bool turned = sum.tile.turned;
    const std::size_t left = turned ? 1 : 0, right = 1 - left;
    const std::int64_t columns = (sides[right] + 8 * sum.tile.n - 1) / (8 * sum.tile.n);
    const auto factor = [&](std::size_t input, std::int64_t octets, const std::string& first) {
      const int from = v_.maker(k, input);
      const std::int64_t width = from < 0 ? width_of({octets, sides[input]})
                                 : v_.place(from) == BlockPlace::data
                                     ? width_of({octets, sides[input], v_.call(from).inputs[0].view.offset})
                                     : width_of({octets, v_.plan.value(from).stride});
      return fmt::format("by_block::across<{}, {}>({}, {}, count, {})", octets, width, first, sides[input],
                         v_.factor(k, input, false, "0"));
    };
    BlockContext fetches;
    fetches.fetches_first = true;
    const std::string elements = elements_text(group, &fetches);
    const std::string a = factor(left, 2 * sum.tile.m, fmt::format("job / {} * {}", columns, 16 * sum.tile.m));
    const std::string b = factor(right, sum.tile.n, fmt::format("job % {} * {}", columns, 8 * sum.tile.n));
    const std::string index = fmt::format("        const int i = {} * {} + {};\n        (void)i", turned ? "n" : "m",
                                          sides[1], turned ? "m" : "n");
    return fmt::format(
        "        by_block::product<{threads}, {m}, {n}, {rows}>(s.parts,\n            {left},\n            {right},\n"
        "            {fetches},\n            [&](int m, int n, float t{total}, const auto& f) {{\n{index}, (void)f;\n"
        "{body}        }});\n",
        "threads"_a = v_.tiling.threads, "m"_a = sum.tile.m, "n"_a = sum.tile.n, "rows"_a = v_.phase.capacity,
        "left"_a = a, "right"_a = b, "fetches"_a = fetches.fetch_function("int m, int n", index + ";\n", "        "),
        "total"_a = v_.root(v_.output(k)), "index"_a = index, "body"_a = elements);
  }

  const Group& group_of(BufferId total) const {
    for (const Group& group : groups_)
      if (group.total == v_.root(total)) return group;
    throw std::logic_error("a reduced value without a group");
  }

  void find_groups(std::size_t level) {
    groups_.clear();
    for (const Combine& combine : v_.stage.combines) {
      const BufferId of = v_.root(combine.value);
      if (level > 0 || v_.places.is_number(of)) continue;
      const auto sum =
          std::ranges::find(v_.plan.sums, of, [&](const BlockSum& s) { return v_.root(v_.output(s.step)); });
      if (sum == v_.plan.sums.end()) throw std::logic_error("a reduced value that nothing sums");
      groups_.push_back({v_.buffer(combine.value).type.shape.elements(), of, v_.row_index(sum->step), {}, {of}, {}});
    }
    for (const auto& [i, its_level] : order_.levels) {
      if (its_level != level || !is_array_step(i)) continue;
      const Step& step = v_.step(i);
      const bool sums = order_.sums_elements(i);
      Group mine{v_.buffer(sums ? step.inputs[0] : step.output).type.shape.elements(), kNoBuffer, 0, {}, {}, {i}};
      if (mine.elements == 0) continue;
      if (!sums) mine.writes.insert(v_.root(step.output));
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (!v_.places.is_number(v_.root(step.inputs[k])) && !(step.op == Op::assign && k == 0) &&
            !is_of_earlier_level(i, k))
          mine.reads.insert(v_.root(step.inputs[k]));
      for (auto other = groups_.begin(); other != groups_.end();) {
        if (!meets(mine.writes, other->writes) && !meets(mine.reads, other->writes) &&
            !meets(mine.writes, other->reads)) {
          ++other;
          continue;
        }
        if (other->elements != mine.elements || (other->total != kNoBuffer && mine.total != kNoBuffer))
          throw std::logic_error("arrays of different sums over rows meet");
        if (other->total != kNoBuffer) {
          mine.total = other->total;
          mine.maker = other->maker;
        }
        mine.reads.insert(other->reads.begin(), other->reads.end());
        mine.writes.insert(other->writes.begin(), other->writes.end());
        mine.steps.insert(mine.steps.end(), other->steps.begin(), other->steps.end());
        other = groups_.erase(other);
      }
      std::ranges::sort(mine.steps);
      groups_.push_back(std::move(mine));
    }
  }

  static bool meets(const std::set<BufferId>& a, const std::set<BufferId>& b) {
    return std::ranges::any_of(a, [&](BufferId id) { return b.contains(id); });
  }
  bool is_of_earlier_level(std::uint32_t i, std::size_t input) const {
    const auto maker = makers_.find({i, input});
    return maker != makers_.end() && level_of(maker->second) < order_.levels.at(i);
  }

  // Code for element i. Its sum over rows, if any, is in t.
  std::string elements_text(const Group& group, BlockContext* fetches = nullptr) {
    struct Live {
      std::string name;
      std::uint32_t maker;
      bool fetched = false;  // loaded and not overwritten
    };
    std::string text;
    std::map<Value, Live> live;
    if (group.total != kNoBuffer) live[{group.total, 0}] = {fmt::format("t{}", group.total), group.maker};
    for (const std::uint32_t i : group.steps) {
      const Step& step = v_.step(i);
      const bool sums = order_.sums_elements(i);
      TextCall c = array_calls_.at(i);
      const Shape& space = v_.buffer(sums ? step.inputs[0] : step.output).type.shape;
      for (std::size_t k = 0; k < step.inputs.size(); ++k) {
        if (c.inputs[k].number) v_.use(c.inputs[k].name);
        if (c.inputs[k].number || c.inputs[k].name.empty()) continue;
        const Value value{v_.root(step.inputs[k]), c.inputs[k].view.offset};
        const auto found = live.find(value);
        if (found == live.end()) {
          if (is_of_earlier_level(i, k) && kept_.contains(makers_.at({i, k}))) {
            c.inputs[k].name = kept_.at(makers_.at({i, k}));
            c.inputs[k].view = dense(c.inputs[k].view.extents);
          }
          v_.use(c.inputs[k].name);
          if (fetches != nullptr && is_elementwise(step.op)) {
            const std::string name = fetches->fetch(c.inputs[k].type.dtype, element(c.inputs[k], space));
            live[value] = {name, i, true};
            c.inputs[k].number = true;
            c.inputs[k].name = name;
          }
          continue;
        }
        c.inputs[k].number = true;
        c.inputs[k].name = found->second.name;
      }
      if (sums) {
        text += fmt::format("          p{} += {};{}", i, element(c.inputs[0], space), step_comment(step));
        continue;
      }
      const std::string made = element_text(c);
      const std::string name = fmt::format("e{}_{}", step.output, i);
      text += fmt::format("          const {} {} = {};{}", type_name(v_.buffer(step.output).type.dtype), name, made,
                          step_comment(step));
      live[value_of(step.output)] = {name, i};
      if (kept_.contains(i)) text += fmt::format("          {}[i] = {};\n", v_.use(kept_.at(i)), name);
    }
    for (const auto& [value, is] : live) {
      if (is.fetched) continue;
      if (written_.contains(is.maker) && is_written_back(value))
        text += fmt::format("          {}[{} + i] = {};\n", v_.use(v_.once.array(value.first)), value.second, is.name);
      if (group.total != kNoBuffer && is.maker == group.maker && kept_.contains(is.maker))
        text += fmt::format("          {}[i] = {};\n", v_.use(kept_.at(is.maker)), is.name);
    }
    return text;
  }

  BlockKernel& v_;
  const BlockOrder& order_;
  bool prefetches_ = false;
  std::vector<Group> groups_;  // groups of the current level
  std::map<std::uint32_t, TextCall> array_calls_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> makers_;  // producer by step and input
  std::set<std::uint32_t> written_;                                        // producers of values written back
  std::map<std::uint32_t, std::string> kept_;  // values in scratch for a later level, by producer
};

}  // namespace

void add_sums(BlockKernel& kernel, const BlockOrder& order) {
  SumsWriter(kernel, order).run();
}

}  // namespace graphrun::cuda
