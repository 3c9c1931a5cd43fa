#include "executors/cuda_planner/block_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "executors/cuda_planner/block_rows.h"
#include "executors/cuda_planner/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {
namespace {

class SumsWriter {
  // Steps over elements of arrays of one size that touch each other: whoever has an element runs them all.
  struct Group {
    std::int64_t elements = 0;
    BufferId total = kNoBuffer;
    std::set<BufferId> reads, writes;  // roots
    std::vector<std::uint32_t> steps;
  };

 public:
  explicit SumsWriter(BlockValues& values) : v_(values) {}

  BlockText run() {
    v_.begin_phase(static_cast<int>(v_.plan.phases.size()));
    if (!v_.plan.sums.empty() || has_arrays()) {  // what rows read may be written now
      out_.text += kBlockSync;
      out_.waits = true;
    }
    if (!v_.plan.sums.empty()) number_sums();
    for (std::uint32_t i = v_.stage.last; i < v_.region.last; ++i) {
      if (is_number_step(i))
        v_.once.run(i, i + 1);
      else
        array_calls_.emplace(i,
                             v_.once.call(v_.step(i)));  // a number that it reads may be written over by the next one
    }
    out_.text += v_.once.before_rows();
    prefetches();
    find_groups();
    std::int64_t jobs = 0;
    for (const BlockSum& sum : v_.plan.sums) jobs += sum.jobs;
    if (jobs > 0) {
      const std::uint32_t blocks = v_.tiling.blocks();
      out_.text += fmt::format(
          "    for (u32 turn = 0; turn * {0}u < {1}u; ++turn) {{  // sums over rows\n      const u32 all = turn * {0}u "
          "+ "
          "(turn % 2 == 0 ? block_index() : {0}u - 1u - block_index());\n      if (all >= {1}u) continue;\n",
          blocks, jobs);
      std::int64_t before = 0;
      for (const BlockSum& sum : v_.plan.sums) {
        if (sum.jobs == 0) continue;
        out_.text +=
            fmt::format("      {}if (all < {}u) {{{}        const int job = static_cast<int>(all) - {};\n",
                        before == 0 ? "" : "else ", before + sum.jobs, step_comment(v_.row_step(sum.step)), before);
        out_.text += sum.product ? sum_of_products(sum) : sum_of_rows(sum);
        out_.text += "      }\n";
        before += sum.jobs;
      }
      out_.text += "    }\n";
    }
    for (const Group& group : groups_) {
      if (group.total != kNoBuffer) continue;
      out_.text += fmt::format(
          "    for (int i = static_cast<int>(block_index() * {0}u + thread_index()); i < {1}; i += {2}) {{\n{3}    "
          "}}\n",
          v_.threads(), group.elements, v_.threads() * v_.tiling.blocks(), elements_text(group));
    }
    return std::move(out_);
  }

 private:
  bool has_arrays() const {
    for (std::uint32_t i = v_.stage.last; i < v_.region.last; ++i)
      if (!is_number_step(i)) return true;
    return false;
  }
  // The next step's data: its number is known now. (Not of a batch that may end beyond them.)
  void prefetches() {
    if (v_.count != kNoBuffer) return;
    for (int k = 0; k < static_cast<int>(v_.steps.size()); ++k) {
      if (v_.place(k) != BlockPlace::data) continue;
      const Step& of = v_.row_step(k);
      const TextCall next = v_.once.call(of);
      const std::int64_t bytes = v_.features(k) * static_cast<std::int64_t>(size_of(next.output.dtype));
      if (next.inputs[1].name == v_.call(k).inputs[1].name) continue;  // the same
      std::string row = batch_row_text(next, "r"), when;
      if (of.params.as<MinibatchParams>().shuffle && !v_.table_of(k).empty()) {
        row = fmt::format("{}.row(epoch + 1, r)", v_.table_of(k));
        when = fmt::format("    if ({}.knows_next(epoch, a.steps))\n  ", v_.table_of(k));
      }
      out_.text += fmt::format(
          "{}    by_block::prefetch_rows<{}, {}, {}>({}, [&](int r) {{ return {} + {} + {} * {}; }});{}", when,
          v_.threads(), v_.tiling.blocks(), bytes, v_.phase.capacity, v_.pointer(of.inputs[0], "const "),
          next.inputs[0].view.offset, row, v_.features(k), step_comment(of));
    }
  }
  bool is_number_step(std::uint32_t i) const {
    return v_.step(i).op == Op::record || v_.places.is_number(v_.root(v_.step(i).output));
  }

  // By the last block, which has the smallest jobs; by each, where rows or arrays need them.
  void number_sums() {
    const bool all = numbers_are_read();
    for (const BlockSum& sum : v_.plan.sums) {
      if (v_.call(sum.step).output.shape.elements() != 1) continue;
      const BufferId value = v_.row_step(sum.step).output;
      out_.shared += fmt::format("  float total{};\n", value);
      const std::string text = fold(sum, fmt::format("[&](int, float x) {{ s.total{} = x; }}", value), "0");
      out_.text += fmt::format("    if ({}) {{{}{}      barrier();\n    }}\n    const float t{} = s.total{};\n",
                               all ? "true" : "is_last", step_comment(v_.row_step(sum.step)), text, value, value);
      v_.once.found(value, fmt::format("t{}", value));
    }
  }
  // By a step that is no number's, through others and through states.
  bool numbers_are_read() const {
    std::set<BufferId> from;
    for (const BlockSum& sum : v_.plan.sums)
      if (v_.call(sum.step).output.shape.elements() == 1) from.insert(v_.root(v_.row_step(sum.step).output));
    for (std::size_t before = 0; before != from.size();) {
      before = from.size();
      for (std::uint32_t i = v_.region.first(); i < v_.region.last; ++i) {
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

  void find_groups() {
    for (const Combine& combine : v_.stage.combines) {
      const BufferId of = v_.root(combine.value);
      const std::int64_t n = v_.buffer(combine.value).type.shape.elements();
      if (!v_.places.is_number(of)) groups_.push_back({n, of, {}, {of}, {}});
    }
    for (std::uint32_t i = v_.stage.last; i < v_.region.last; ++i) {
      if (is_number_step(i) || v_.buffer(v_.step(i).output).type.shape.elements() == 0) continue;
      Group mine{v_.buffer(v_.step(i).output).type.shape.elements(), kNoBuffer, {}, {v_.root(v_.step(i).output)}, {i}};
      for (std::size_t k = 0; k < v_.step(i).inputs.size(); ++k)
        if (!v_.places.is_number(v_.root(v_.step(i).inputs[k])) && !(v_.step(i).op == Op::assign && k == 0))
          mine.reads.insert(v_.root(v_.step(i).inputs[k]));
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
  std::string elements_text(const Group& group, BlockContext* fetches = nullptr) {
    std::string text;
    std::map<std::pair<BufferId, std::int64_t>, std::string> held;  // by root and offset
    std::set<std::pair<BufferId, std::int64_t>> fetched;            // and not written
    if (group.total != kNoBuffer) held[{group.total, 0}] = fmt::format("t{}", group.total);
    for (const std::uint32_t i : group.steps) {
      TextCall c = array_calls_.at(i);
      for (std::size_t k = 0; k < v_.step(i).inputs.size(); ++k) {
        if (c.inputs[k].number || c.inputs[k].name.empty()) continue;
        const auto found = held.find({v_.root(v_.step(i).inputs[k]), c.inputs[k].view.offset});
        if (found == held.end()) {
          if (fetches != nullptr && is_elementwise(v_.step(i).op)) {
            const std::string name =
                fetches->fetch(c.inputs[k].type.dtype, element(c.inputs[k], v_.buffer(v_.step(i).output).type.shape));
            held[{v_.root(v_.step(i).inputs[k]), c.inputs[k].view.offset}] = name;
            fetched.insert({v_.root(v_.step(i).inputs[k]), c.inputs[k].view.offset});
            c.inputs[k].number = true;
            c.inputs[k].name = name;
          }
          continue;
        }
        c.inputs[k].number = true;
        c.inputs[k].name = found->second;
      }
      std::string reason;
      const std::string made = element_text(c, reason);
      if (made.empty()) throw std::logic_error(fmt::format("{}: {}", v_.step(i).name, reason));
      const std::string name = fmt::format("e{}_{}", v_.step(i).output, i);
      text += fmt::format("          const {} {} = {};{}", type_name(v_.buffer(v_.step(i).output).type.dtype), name,
                          made, step_comment(v_.step(i)));
      const BufferId of = v_.root(v_.step(i).output);
      const auto offset = static_cast<std::int64_t>((v_.buffer(v_.step(i).output).offset - v_.buffer(of).offset) /
                                                    size_of(v_.buffer(v_.step(i).output).type.dtype));
      held[{of, offset}] = name;
      fetched.erase({of, offset});
    }
    const std::vector<BufferId> there = v_.once.written_back();
    for (const auto& [place, name] : held)
      if (!fetched.contains(place) && std::ranges::find(there, place.first) != there.end())
        text += fmt::format("          {}[{} + i] = {};\n", v_.once.array(place.first), place.second, name);
    return text;
  }

  BlockValues& v_;
  BlockText out_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, TextCall> array_calls_;
};

}  // namespace

BlockText block_sums(BlockValues& values) {
  return SumsWriter(values).run();
}

}  // namespace graphrun::cuda
