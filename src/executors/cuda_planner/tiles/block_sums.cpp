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
    int sum = -1;                      // row step that sums over rows; -1 if none
    std::set<BufferId> reads, writes;  // roots
    std::vector<std::uint32_t> steps;
  };

 public:
  SumsWriter(BlockKernel& values, BlockOrder& order) : v_(values), order_(order) {}

  void run() {
    v_.current_phase = static_cast<int>(v_.plan.phases.size());
    if (!v_.plan.sums.empty() || std::ranges::any_of(order_.steps, [](const auto& of) {
          return of.second.is_by_element;
        })) {  // operands of rows may be overwritten from here on
      v_.text += kBlockSync;
      v_.waits = true;
    }
    find_kept();
    for (std::size_t level = 0; level < order_.sums.size(); ++level) start_sums(level);
    number_sums();
    for (std::size_t level = 0; level < order_.sums.size(); ++level) {
      if (level > 0) finish_sums(level - 1);
      order_.run_scalars(v_.once, level > 0 ? v_.stage.first : v_.stage.last, v_.region.last, level);
      v_.run_once();
      if (!prefetches_) prefetches();
      find_groups(level);
      if (level == 0) jobs();
      for (const Group& group : groups_)
        if (group.sum < 0) loop(group, level);
    }
  }

 private:
  bool is_number(const BlockSum& sum) const { return v_.call(sum.step).output.shape.elements() == 1; }
  bool is_row(std::uint32_t i) const { return i >= v_.stage.rows && i < v_.stage.last; }

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
    // Each product is a part by itself, other sums are together.
    const std::string_view job = v_.has_parts ? "at" : "all";
    const auto end = std::ranges::find(v_.plan.sums, 0, &BlockSum::jobs);
    std::int64_t before = 0;
    for (auto sum = v_.plan.sums.begin(); sum != end;) {
      const BlockSum& first = *sum;
      const std::string_view otherwise = before == 0 ? "" : "else ";
      v_.begin_part();
      std::string text;
      do {
        const auto [begin, finish] = element_sums(group_of(*sum), "        ");
        text += fmt::format(
            "      {}if ({} < {}u) {{{}        const int job = static_cast<int>({}) - {};\n{}{}{}      }}\n",
            text.empty() ? "" : "else ", job, before + sum->jobs, v_.comment(sum->step), job, before, begin,
            sum->product ? sum_of_products(*sum) : sum_of_rows(*sum), finish);
        before += sum->jobs;
      } while (++sum != end && !(v_.has_parts && (first.product || sum->product)));
      v_.text += !v_.has_parts ? text
                               : fmt::format("      {}if (all < {}u) {{{}{}      }}\n", otherwise, before,
                                             v_.comment(first.step), v_.part(text, "all", "        "));
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
    const std::string parts = scratch(DType::f32, static_cast<std::int64_t>(sums.size()) * v_.tiling.blocks());
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
      const BlockOrder::OnceStep& step = order_.steps.at(i);
      if (!step.sums_elements) continue;
      const std::vector<std::uint32_t>& sums = order_.sums[step.level];
      begin += fmt::format("{}float p{} = 0.0f;\n", indent, i);
      end +=
          fmt::format("{}s.sums{}.add({}, p{});\n", indent, step.level, std::ranges::find(sums, i) - sums.begin(), i);
    }
    return {begin, end};
  }
  std::string scratch(DType dtype, std::int64_t elements) {
    const std::uint64_t at = std::exchange(v_.plan.bytes, v_.plan.bytes + scratch_bytes(elements, dtype));
    return fmt::format("reinterpret_cast<{}*>(scratch + {})", type_name(dtype), at);
  }

  // Finds the producer of each value that is read element by element, and the values that a later level reads. Values
  // that are written back at the end of the step are read from their arrays.
  void find_kept() {
    std::map<Value, std::uint32_t> makers;
    for (std::uint32_t i = v_.stage.first; i < v_.region.last; ++i) {
      const Step& step = v_.step(i);
      const auto once = order_.steps.find(i);
      for (std::size_t k = 0; k < step.inputs.size() && once != order_.steps.end(); ++k) {
        const auto found = makers.find(value_of(step.inputs[k]));
        if (!once->second.is_by_element || found == makers.end() || v_.places.is_number(v_.root(step.inputs[k])))
          continue;
        makers_[{i, k}] = found->second;
        if (is_of_earlier_level(i, k)) kept_.insert(found->second);
      }
      if (!is_row(i) || v_.buffer(step.output).type.rows == 0) makers[value_of(step.output)] = i;
    }
    const std::vector<BufferId>& states = v_.once.written_back();
    for (const auto& [value, maker] : makers) {
      if (std::ranges::find(states, value.first) == states.end()) continue;
      written_.insert(maker);
      kept_.erase(maker);
    }
    for (const std::uint32_t i : kept_) {
      const TensorType& type = v_.buffer(v_.step(i).output).type;
      v_.define({kept(i),
                 fmt::format("    {}* const {} = {};{}", type_name(type.dtype), kept(i),
                             scratch(type.dtype, type.shape.elements()), step_comment(v_.step(i))),
                 {"scratch"}});
    }
  }
  static std::string kept(std::uint32_t i) { return fmt::format("k{}", i); }
  std::size_t level_of(std::uint32_t i) const { return is_row(i) ? 0 : order_.steps.at(i).level; }
  bool is_of_earlier_level(std::uint32_t i, std::size_t input) const {
    const auto maker = makers_.find({i, input});
    return maker != makers_.end() && level_of(maker->second) < level_of(i);
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
                             v_.comment(sum.step), text);
      define_total(value, fmt::format("t{}", value), fmt::format("s.total{}", value), "\n");
    }
  }
  // Whether a non-scalar step reads such a sum, directly or through other scalars and states.
  bool numbers_are_read() const {
    std::set<BufferId> from;
    for (const BlockSum& sum : v_.plan.sums)
      if (is_number(sum)) from.insert(v_.root(v_.output(sum.step)));
    for (std::size_t before = 0; before != from.size();) {
      before = from.size();
      for (std::uint32_t i = v_.region.first(); i < v_.region.last; ++i) {
        const Step& step = v_.step(i);
        const bool reads = std::ranges::any_of(step.inputs, [&](BufferId id) { return from.contains(v_.root(id)); });
        if (!reads || step.op == Op::record || (is_row(i) && v_.buffer(step.output).type.rows == 0)) continue;
        if (is_row(i) || !v_.places.is_number(v_.root(step.output))) return true;
        from.insert(v_.root(step.output));
      }
    }
    return false;
  }

  std::string fold(const BlockSum& sum, const std::string& result, std::string_view first) {
    BlockContext context;
    const TextCall c = v_.named(sum.step, context);
    const bool product = c.op == Op::matmul;  // one feature times one feature
    const Fold& fold = *fold_of(product ? Op::sum : c.op);
    RowTerms t{1, 1, {}};
    if (product) {
      t.text = fmt::format("[&](int r, int, int) {{ return {}[0] * {}[0]; }}", c.inputs[0].name, c.inputs[1].name);
    } else {
      t = row_terms(c.inputs[0], c.params->as<ReduceParams>().axes);
      t.text = fmt::format("[&](int r, int n, int m) {{ return float(({})(n, m)); }}", t.text);
    }
    return fmt::format("        by_block::fold_rows<{}, {}, {}>(s.parts, {}, count, {}, {}, {}, {});\n",
                       v_.tiling.threads, t.kept, t.reduced, first, fold.start, t.text, fold.function, result);
  }
  std::string sum_of_rows(const BlockSum& sum) {
    const Group& group = group_of(sum);
    return fold(
        sum, fmt::format("[&](int i, float t{}) {{\n{}        }}", v_.root(v_.output(sum.step)), elements_text(group)),
        "32 * job");
  }

  std::string sum_of_products(const BlockSum& sum) {
    const int k = sum.step;
    const Group& group = group_of(sum);
    const std::int64_t sides[] = {v_.terms(k, 0), v_.terms(k, 1)};
    const bool turned = sum.tile.turned;
    const std::size_t left = turned ? 1 : 0, right = 1 - left;
    const std::int64_t columns = (sides[right] + 8 * sum.tile.n - 1) / (8 * sum.tile.n);
    const auto factor = [&](std::size_t input, std::int64_t octets, const std::string& first) {
      const int from = v_.maker(k, input);
      const std::int64_t stride = from < 0 ? sides[input] : v_.plan.value(from).stride;
      return fmt::format("by_block::across<{}, {}>({}, {}, count, {})", octets,
                         width_of({octets, stride, v_.data_offset(from)}), first, sides[input],
                         v_.factor(k, input, false));
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

  const Group& group_of(const BlockSum& sum) const { return *std::ranges::find(groups_, sum.step, &Group::sum); }

  void find_groups(std::size_t level) {
    groups_.clear();
    for (const BlockSum& sum : v_.plan.sums)
      if (level == 0 && !is_number(sum))
        groups_.push_back(
            {v_.call(sum.step).output.shape.elements(), sum.step, {}, {v_.root(v_.output(sum.step))}, {}});
    for (const auto& [i, once] : order_.steps) {
      if (once.level != level || !once.is_by_element) continue;
      const Step& step = v_.step(i);
      Group mine{space(i).elements(), -1, {}, {}, {i}};
      if (mine.elements == 0) continue;
      if (!once.sums_elements) mine.writes.insert(v_.root(step.output));
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (v_.places.is_read(step, k) && !v_.places.is_number(v_.root(step.inputs[k])) && !is_of_earlier_level(i, k))
          mine.reads.insert(v_.root(step.inputs[k]));
      std::erase_if(groups_, [&](const Group& other) {
        if (!meets(mine.writes, other.writes) && !meets(mine.reads, other.writes) && !meets(mine.writes, other.reads))
          return false;
        if (other.elements != mine.elements || (other.sum >= 0 && mine.sum >= 0))
          throw std::logic_error("arrays of different sums over rows meet");
        mine.sum = std::max(mine.sum, other.sum);
        mine.reads.insert(other.reads.begin(), other.reads.end());
        mine.writes.insert(other.writes.begin(), other.writes.end());
        mine.steps.insert(mine.steps.end(), other.steps.begin(), other.steps.end());
        return true;
      });
      std::ranges::sort(mine.steps);
      groups_.push_back(std::move(mine));
    }
  }
  static bool meets(const std::set<BufferId>& a, const std::set<BufferId>& b) {
    return std::ranges::any_of(a, [&](BufferId id) { return b.contains(id); });
  }
  // Elements that a step by element goes through.
  const Shape& space(std::uint32_t i) const {
    const Step& step = v_.step(i);
    return v_.buffer(order_.steps.at(i).sums_elements ? step.inputs[0] : step.output).type.shape;
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
    if (group.sum >= 0) {
      const BufferId total = v_.root(v_.output(group.sum));
      live[{total, 0}] = {fmt::format("t{}", total), v_.row_index(group.sum)};
    }
    for (const std::uint32_t i : group.steps) {
      const Step& step = v_.step(i);
      TextCall c = order_.steps.at(i).call;
      for (std::size_t k = 0; k < step.inputs.size(); ++k) {
        TextOperand& x = c.inputs[k];
        if (x.number) v_.use(x.name);
        if (x.number || x.name.empty()) continue;
        const Value value{v_.root(step.inputs[k]), x.view.offset};
        auto found = live.find(value);
        if (found == live.end()) {
          if (is_of_earlier_level(i, k) && kept_.contains(makers_.at({i, k}))) {
            x.name = kept(makers_.at({i, k}));
            x.view = dense(x.view.extents);
          }
          v_.use(x.name);
          if (fetches == nullptr || !is_elementwise(step.op)) continue;
          found = live.emplace(value, Live{fetches->fetch(x.type.dtype, element(x, space(i))), i, true}).first;
        }
        x.number = true;
        x.name = found->second.name;
      }
      if (order_.steps.at(i).sums_elements) {
        text += fmt::format("          p{} += {};{}", i, element(c.inputs[0], space(i)), step_comment(step));
        continue;
      }
      const std::string name = fmt::format("e{}_{}", step.output, i);
      text += fmt::format("          const {} {} = {};{}", type_name(c.output.dtype), name, element_text(c),
                          step_comment(step));
      live[value_of(step.output)] = {name, i};
      if (kept_.contains(i)) text += fmt::format("          {}[i] = {};\n", v_.use(kept(i)), name);
    }
    for (const auto& [value, is] : live) {
      if (is.fetched) continue;
      if (written_.contains(is.maker))
        text += fmt::format("          {}[{} + i] = {};\n", v_.use(v_.once.array(value.first)), value.second, is.name);
      if (is_row(is.maker) && kept_.contains(is.maker))
        text += fmt::format("          {}[i] = {};\n", v_.use(kept(is.maker)), is.name);
    }
    return text;
  }

  BlockKernel& v_;
  BlockOrder& order_;
  bool prefetches_ = false;
  std::vector<Group> groups_;                                              // groups of the current level
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> makers_;  // producer by step and input
  std::set<std::uint32_t> written_;                                        // producers of values written back
  std::set<std::uint32_t> kept_;  // producers of values in scratch for a later level
};

}  // namespace

void add_sums(BlockKernel& kernel, BlockOrder& order) {
  SumsWriter(kernel, order).run();
}

}  // namespace graphrun::cuda
