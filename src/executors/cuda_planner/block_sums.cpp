#include "executors/cuda_planner/block_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "executors/cuda_planner/block_levels.h"
#include "executors/cuda_planner/block_rows.h"
#include "executors/cuda_planner/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {
namespace {

class SumsWriter {
  using Value = std::pair<BufferId, std::int64_t>;  // root and offset
  // Connected steps over elements of arrays of one size. The owner of an element runs all of them.
  struct Group {
    std::int64_t elements = 0;
    BufferId total = kNoBuffer;
    std::set<BufferId> reads, writes;  // roots
    std::vector<std::uint32_t> steps;
  };

 public:
  SumsWriter(BlockValues& values, const BlockOrder& order) : v_(values), order_(order), array_calls_(order.before) {}

  BlockText run() {
    v_.begin_phase(static_cast<int>(v_.plan.phases.size()));
    if (!v_.plan.sums.empty() || has_arrays()) {  // operands of rows may be overwritten from here on
      out_.text += kBlockSync;
      out_.waits = true;
    }
    find_kept();
    for (int level = 0; level < order_.count; ++level) start_sums(level);
    if (!v_.plan.sums.empty()) number_sums();
    for (int level = 0; level < order_.count; ++level) {
      if (level > 0) {
        finish_sums(level - 1);
        run_numbers(v_.stage.first, v_.stage.rows, level);
      }
      run_numbers(v_.stage.last, v_.frame.region.last, level);
      out_.text += v_.once_text();
      if (!prefetches_) prefetches();
      find_groups(level);
      if (level == 0) jobs();
      for (const Group& group : groups_)
        if (group.total == kNoBuffer) loop(group, level);
    }
    return std::move(out_);
  }

 private:
  bool has_arrays() const {
    return std::ranges::any_of(order_.levels, [&](const auto& of) { return goes_by_element(of.first); });
  }
  bool goes_by_element(std::uint32_t i) const { return !is_number_step(i) || order_.sums_elements(i); }

  // Resolves operand names of array steps here, because the next step may overwrite a scalar that they read.
  void run_numbers(std::uint32_t first, std::uint32_t last, int level) {
    for (std::uint32_t i = first; i < last; ++i) {
      if (order_.levels.at(i) != level) continue;
      if (goes_by_element(i))
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
    out_.text += fmt::format(
        "    for (u32 turn = 0; turn * {0}u < {1}u; ++turn) {{  // sums over rows\n      const u32 all = turn * {0}u "
        "+ "
        "(turn % 2 == 0 ? block_index() : {0}u - 1u - block_index());\n      if (all >= {1}u) continue;\n",
        blocks, jobs);
    std::int64_t before = 0;
    // Code of the sums [first, last); `of` is the variable with the job number.
    const auto chain = [&](std::size_t first, std::size_t last, std::string_view of) {
      std::string text;
      for (std::size_t k = first; k < last; ++k) {
        const BlockSum& sum = v_.plan.sums[k];
        if (sum.jobs == 0) continue;
        const Group& group = group_of(v_.row_step(sum.step).output);
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
    if (!v_.has_parts) out_.text += chain(0, all, "all");
    for (std::size_t k = 0, last = 0; v_.has_parts && k < all; k = last) {
      last = k + 1;  // each product by itself, other sums together
      while (!v_.plan.sums[k].product && last < all && !v_.plan.sums[last].product) ++last;
      const std::int64_t first_job = before;
      v_.begin_part();
      const std::string text = chain(k, last, "at");
      if (text.empty()) continue;
      out_.text += fmt::format("      {}if (all < {}u) {{{}{}      }}\n", first_job == 0 ? "" : "else ", before,
                               step_comment(v_.row_step(v_.plan.sums[k].step)), v_.part(text, "all", "        "));
    }
    out_.text += "    }\n";
  }
  // Loop over a group without a sum over rows.
  void loop(const Group& group, int level) {
    const auto [begin, end] = element_sums(group, "    ");
    if (level == 0) {
      out_.text += fmt::format(
          "{4}    for (int i = static_cast<int>(block_index() * {0}u + thread_index()); i < {1}; i += {2}) {{\n{3}    "
          "}}\n{5}",
          v_.threads(), group.elements, v_.threads() * v_.tiling.blocks(), elements_text(group), begin, end);
      return;
    }
    BlockContext fetches;
    fetches.fetches_first = true;
    const std::string elements = elements_text(group, &fetches);
    out_.text += fmt::format(
        "{0}    by_block::each_element<{1}, {2}, {3}>([&](int i) {{\n        (void)i;\n        struct Fetched {{ "
        "{4}}};\n        return Fetched{{{5}}};\n        }},\n        [&](int i, const auto& f) {{\n        (void)f;\n"
        "{6}    }});\n{7}",
        begin, v_.threads(), v_.tiling.blocks(), group.elements, fetches.members, fetches.fetched, elements, end);
  }

  // ---- sums of elements, and values that later levels read

  void start_sums(int level) {
    const std::vector<std::uint32_t> sums = order_.sums_of(level);
    if (sums.empty()) return;
    out_.shared += fmt::format("  by_block::ElementSums<{}, {}> sums{};\n", v_.threads(), sums.size(), level);
    out_.text += fmt::format("    s.sums{}.start();\n", level);
  }
  void finish_sums(int level) {
    const std::vector<std::uint32_t> sums = order_.sums_of(level);
    const std::string parts = scratch("float", level_parts_bytes(static_cast<int>(sums.size()), v_.tiling.blocks()));
    out_.text += fmt::format("    s.sums{0}.send<{1}>({2});\n{3}    s.sums{0}.receive<{1}>({2});\n", level,
                             v_.tiling.blocks(), parts, kBlockSync);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const BufferId value = v_.step(sums[k]).output;
      const std::string name = fmt::format("t{}_{}", value, sums[k]);
      out_.text += v_.define(
          {name,
           fmt::format("    const float {} = s.sums{}.totals[{}];{}", name, level, k, step_comment(v_.step(sums[k]))),
           {}});
      v_.once.found(value, name);
    }
  }
  // Code before and after the elements of a group: each thread has a partial sum of its own.
  std::pair<std::string, std::string> element_sums(const Group& group, std::string_view indent) const {
    std::string begin, end;
    for (const std::uint32_t i : group.steps) {
      if (!order_.sums_elements(i)) continue;
      const int level = order_.levels.at(i);
      const std::vector<std::uint32_t> sums = order_.sums_of(level);
      begin += fmt::format("{}float p{} = 0.0f;\n", indent, i);
      end += fmt::format("{}s.sums{}.add({}, p{});\n", indent, level, std::ranges::find(sums, i) - sums.begin(), i);
    }
    return {begin, end};
  }
  std::string scratch(std::string_view type, std::uint64_t bytes) {
    const std::uint64_t at = kBlockFlagBytes + v_.plan.bytes + out_.scratch_bytes;
    out_.scratch_bytes += bytes;
    return fmt::format("reinterpret_cast<{}*>(scratch + {})", type, at);
  }

  // Finds the producer of each value that is read element by element, and the values that a later level reads. Values
  // that are written back at the end of the step are read from their arrays.
  void find_kept() {
    std::map<Value, std::uint32_t> makers;
    std::set<std::uint32_t> later;
    const auto steps = [&](std::uint32_t first, std::uint32_t last) {
      for (std::uint32_t i = first; i < last; ++i) {
        for (std::size_t k = 0; k < v_.step(i).inputs.size() && goes_by_element(i); ++k) {
          if (v_.frame.places.is_number(v_.root(v_.step(i).inputs[k]))) continue;
          const auto found = makers.find(value_of(v_.step(i).inputs[k]));
          if (found == makers.end()) continue;
          makers_[{i, k}] = found->second;
          if (level_of(found->second) < order_.levels.at(i)) later.insert(found->second);
        }
        makers[value_of(v_.step(i).output)] = i;
      }
    };
    steps(v_.stage.first, v_.stage.rows);
    for (int k = 0; k < static_cast<int>(v_.steps.size()); ++k)
      if (v_.call(k).output.rows == 0)
        makers[value_of(v_.row_step(k).output)] = v_.stage.rows + static_cast<std::uint32_t>(k);
    steps(v_.stage.last, v_.frame.region.last);
    const std::vector<BufferId> there = v_.once.written_back();
    for (const auto& [value, maker] : makers) {
      last_.insert(maker);
      if (std::ranges::find(there, value.first) != there.end()) later.erase(maker);
    }
    for (const std::uint32_t i : later) {
      const Buffer& of = v_.buffer(v_.step(i).output);
      kept_[i] = fmt::format("k{}", i);
      const std::string_view type = type_name(of.type.dtype);
      out_.text += v_.define(
          {kept_.at(i),
           fmt::format("    {}* const {} = {};{}", type, kept_.at(i),
                       scratch(type, kept_bytes(of.type.shape.elements(), of.type.dtype)), step_comment(v_.step(i))),
           {"scratch"}});
    }
  }
  int level_of(std::uint32_t i) const {
    const auto found = order_.levels.find(i);
    return found == order_.levels.end() ? 0 : found->second;
  }
  Value value_of(BufferId id) const {
    const Buffer &of = v_.buffer(id), &in = v_.buffer(v_.root(id));
    return {v_.root(id), static_cast<std::int64_t>((of.offset - in.offset) / size_of(of.type.dtype))};
  }

  // Prefetches the next step's data as soon as its step number is known. Not for batches that may be partial.
  void prefetches() {
    if (v_.frame.count != kNoBuffer) return;
    // With several levels, the loop-invariant addresses of cache lines would stay in registers and others would spill.
    const std::string_view thread = order_.count > 1 ? ", opaque(static_cast<int>(thread_index()))" : "";
    for (int k = 0; k < static_cast<int>(v_.steps.size()); ++k) {
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
      out_.text += fmt::format(
          "{}    by_block::prefetch_rows<{}, {}, {}>({}, [&](int r) {{ return {} + {} + {} * {}; }}{});{}", when,
          v_.threads(), v_.tiling.blocks(), bytes, v_.phase.capacity, v_.pointer(of.inputs[0], "const "),
          next.inputs[0].view.offset, row, v_.features(k), thread, step_comment(of));
    }
  }
  bool is_number_step(std::uint32_t i) const {
    return v_.step(i).op == Op::record || v_.frame.places.is_number(v_.root(v_.step(i).output));
  }

  // Scalar sums: computed by the last block, which has the smallest jobs, or by all if rows or arrays need them.
  void number_sums() {
    const bool all = numbers_are_read();
    for (const BlockSum& sum : v_.plan.sums) {
      if (v_.call(sum.step).output.shape.elements() != 1) continue;
      const BufferId value = v_.row_step(sum.step).output;
      out_.shared += fmt::format("  float total{};\n", value);
      const std::string text = fold(sum, fmt::format("[&](int, float x) {{ s.total{} = x; }}", value), "0");
      out_.text += fmt::format("    if ({}) {{{}{}      barrier();\n    }}\n", all ? "true" : "is_last",
                               step_comment(v_.row_step(sum.step)), text);
      const std::string name = fmt::format("t{}", value);
      out_.text += v_.define({name, fmt::format("    const float {} = s.total{};\n", name, value), {}});
      v_.once.found(value, name);
    }
  }
  // Whether a non-scalar step reads such a sum, directly or through other scalars and states.
  bool numbers_are_read() const {
    std::set<BufferId> from;
    for (const BlockSum& sum : v_.plan.sums)
      if (v_.call(sum.step).output.shape.elements() == 1) from.insert(v_.root(v_.row_step(sum.step).output));
    for (std::size_t before = 0; before != from.size();) {
      before = from.size();
      for (std::uint32_t i = v_.frame.region.first(); i < v_.frame.region.last; ++i) {
        const bool reads =
            std::ranges::any_of(v_.step(i).inputs, [&](BufferId id) { return from.contains(v_.root(id)); });
        if (!reads || v_.step(i).op == Op::record) continue;
        const bool row = i >= v_.stage.rows && i < v_.stage.last;
        if (row && std::ranges::any_of(v_.plan.sums,
                                       [&](const BlockSum& sum) { return &v_.row_step(sum.step) == &v_.step(i); }))
          continue;
        if (row || !is_number_step(i)) return true;
        from.insert(v_.root(v_.step(i).output));
      }
    }
    return false;
  }

  std::string fold(const BlockSum& sum, const std::string& result, const std::string& first) {
    out_.parts_bytes = std::max<std::uint64_t>(out_.parts_bytes, v_.threads() * sizeof(float));
    BlockContext context;
    const TextCall c = v_.named(sum.step, context, false);
    if (c.op == Op::matmul)
      return fmt::format(
          "        by_block::fold_rows<{}, 1, 1>(s.parts, 0, count, 0.0f, [&](int r, int, "
          "int) {{ "
          "return {}[0] * {}[0]; }}, {}, {});\n",
          v_.threads(), c.inputs[0].name, c.inputs[1].name, fold_of(Op::sum)->function, result);
    const Fold* const fold = fold_of(c.op);
    if (fold == nullptr) throw std::logic_error("no fold over rows");
    const RowTerms t = row_terms(c.inputs[0], c.params->as<ReduceParams>().axes);
    return fmt::format(
        "        by_block::fold_rows<{}, {}, {}>(s.parts, {}, count, {}, [&](int r, int n, "
        "int "
        "m) {{ return float(({})(n, m)); }}, {}, {});\n",
        v_.threads(), t.kept, t.reduced, first, fold->start, t.text, fold->function, result);
  }
  std::string sum_of_rows(const BlockSum& sum) {
    const Group& group = group_of(v_.row_step(sum.step).output);
    return fold(sum,
                fmt::format("[&](int i, float t{}) {{\n{}        }}", v_.root(v_.row_step(sum.step).output),
                            elements_text(group)),
                "32 * job");
  }

  std::string sum_of_products(const BlockSum& sum) {
    const int k = sum.step;
    const Group& group = group_of(v_.row_step(k).output);
    out_.parts_bytes = std::max(out_.parts_bytes, product_bytes(sum.tile, v_.threads()));
    const std::int64_t sides[] = {feature_count(v_.call(k).inputs[0].type), feature_count(v_.call(k).inputs[1].type)};
    const std::size_t left = sum.tile.turned ? 1 : 0, right = 1 - left;
    const std::int64_t columns = (sides[right] + 8 * sum.tile.n - 1) / (8 * sum.tile.n);
    const auto factor = [&](std::size_t input, std::int64_t octets, const std::string& first) {
      const int from = v_.maker(k, input);
      std::int64_t width = 0;
      if (from < 0) {
        width = width_of({octets, sides[input]});
      } else if (v_.place(from) == BlockPlace::data) {
        width = width_of({octets, sides[input], v_.call(from).inputs[0].view.offset});
      } else {
        width = width_of({octets, v_.stride(from)});
      }
      return fmt::format("by_block::across<{}, {}>({}, {}, count, {})", octets, width, first, sides[input],
                         v_.factor(k, input, false, "0"));
    };
    BlockContext fetches;
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
        v_.threads(), sum.tile.m, sum.tile.n, a, b, v_.root(v_.row_step(k).output), sum.tile.turned ? "n" : "m",
        sides[1], sum.tile.turned ? "m" : "n", elements, fetches.members, fetches.fetched, v_.phase.capacity);
  }

  const Group& group_of(BufferId total) const {
    for (const Group& group : groups_)
      if (group.total == v_.root(total)) return group;
    throw std::logic_error("a reduced value without a group");
  }

  void find_groups(int level) {
    groups_.clear();
    for (const Combine& combine : v_.stage.combines) {
      if (level > 0) break;
      const BufferId of = v_.root(combine.value);
      const std::int64_t n = v_.buffer(combine.value).type.shape.elements();
      if (!v_.frame.places.is_number(of)) groups_.push_back({n, of, {}, {of}, {}});
    }
    for (const auto& [i, its_level] : order_.levels) {
      if (its_level != level || !goes_by_element(i)) continue;
      const Step& step = v_.step(i);
      const bool sums = order_.sums_elements(i);
      Group mine{v_.buffer(sums ? step.inputs[0] : step.output).type.shape.elements(), kNoBuffer, {}, {}, {i}};
      if (mine.elements == 0) continue;
      if (!sums) mine.writes.insert(v_.root(step.output));
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (!v_.frame.places.is_number(v_.root(step.inputs[k])) && !(step.op == Op::assign && k == 0) &&
            !is_of_earlier_level(i, k))
          mine.reads.insert(v_.root(step.inputs[k]));
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

  bool is_of_earlier_level(std::uint32_t i, std::size_t input) const {
    const auto maker = makers_.find({i, input});
    return maker != makers_.end() && level_of(maker->second) < order_.levels.at(i);
  }

  // Code for element i. Its sum over rows, if any, is in t.
  std::string elements_text(const Group& group, BlockContext* fetches = nullptr) {
    struct Held {
      std::string name;
      std::uint32_t maker;
      bool fetched = false;  // loaded and not overwritten
    };
    std::string text;
    std::map<Value, Held> held;
    if (group.total != kNoBuffer)
      held[{group.total, 0}] = {fmt::format("t{}", group.total), maker_of_total(group.total)};
    for (const std::uint32_t i : group.steps) {
      const Step& step = v_.step(i);
      const bool sums = order_.sums_elements(i);
      TextCall c = array_calls_.at(i);
      const Shape& space = v_.buffer(sums ? step.inputs[0] : step.output).type.shape;
      for (std::size_t k = 0; k < step.inputs.size(); ++k) {
        if (c.inputs[k].number) v_.use(c.inputs[k].name);
        if (c.inputs[k].number || c.inputs[k].name.empty()) continue;
        const Value value{v_.root(step.inputs[k]), c.inputs[k].view.offset};
        const auto found = held.find(value);
        if (found == held.end()) {
          if (is_of_earlier_level(i, k) && kept_.contains(makers_.at({i, k}))) {
            c.inputs[k].name = kept_.at(makers_.at({i, k}));
            c.inputs[k].view = dense(c.inputs[k].view.extents);
          }
          v_.use(c.inputs[k].name);
          if (fetches != nullptr && is_elementwise(step.op)) {
            const std::string name = fetches->fetch(c.inputs[k].type.dtype, element(c.inputs[k], space));
            held[value] = {name, i, true};
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
      held[value_of(step.output)] = {name, i};
      if (kept_.contains(i)) text += fmt::format("          {}[i] = {};\n", v_.use(kept_.at(i)), name);
    }
    const std::vector<BufferId> there = v_.once.written_back();
    for (const auto& [value, is] : held) {
      if (is.fetched) continue;
      if (last_.contains(is.maker) && std::ranges::find(there, value.first) != there.end())
        text += fmt::format("          {}[{} + i] = {};\n", v_.use(v_.once.array(value.first)), value.second, is.name);
      if (group.total != kNoBuffer && is.maker == maker_of_total(group.total) && kept_.contains(is.maker))
        text += fmt::format("          {}[i] = {};\n", v_.use(kept_.at(is.maker)), is.name);
    }
    return text;
  }
  std::uint32_t maker_of_total(BufferId total) const {
    for (const BlockSum& sum : v_.plan.sums)
      if (v_.root(v_.row_step(sum.step).output) == total) return v_.stage.rows + static_cast<std::uint32_t>(sum.step);
    throw std::logic_error("a reduced value that nothing sums");
  }

  BlockValues& v_;
  const BlockOrder& order_;
  BlockText out_;
  bool prefetches_ = false;
  std::vector<Group> groups_;  // groups of the current level
  std::map<std::uint32_t, TextCall> array_calls_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> makers_;  // producer by step and input
  std::set<std::uint32_t> last_;                                           // producers of the final values
  std::map<std::uint32_t, std::string> kept_;  // values in scratch for a later level, by producer
};

}  // namespace

BlockText block_sums(BlockValues& values, const BlockOrder& order) {
  return SumsWriter(values, order).run();
}

}  // namespace graphrun::cuda
