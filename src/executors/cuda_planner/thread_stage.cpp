#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "executors/cuda_planner/pair_text.h"
#include "executors/cuda_planner/row_stage.h"
#include "executors/cuda_planner/row_text.h"
#include "executors/cuda_planner/tile_costs.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

// Limit on the weights and sums that fit a thread's registers together with the values of a row. Above it, each row
// reads the weights again.
constexpr std::int64_t kMaxHeld = 112;

constexpr const char* kStarts[] = {"0.0f", "1.0f", "-infinity()", "infinity()"};

class ThreadStage {
 public:
  explicit ThreadStage(const StageCall& call) : call_(call) {}

  RowStage run() {
    rows_ = std::uint64_t{call_.tiling.block_rows()} * call_.tiling.blocks();
    turns_ = row_turns(call_.tiling, call_.frame.phase.capacity, products(), same_numbers());
    find_halves();
    groups_ = sum_groups();
    const std::int64_t sums = std::ranges::max(groups_, {}, &SumGroup::sums).sums;  // per thread
    std::string& text = out_.text;
    if (sums > 0) text += fmt::format("    float sums[{}];\n", sums);
    if (sums > 0 && groups_.size() > 1) text += fmt::format("    start<0, {}>(sums, 0.0f);\n", sums);
    for (const SumGroup& group : groups_) {
      for (const RowStage::Value& value : group.values) {
        if (value.numbers > 0 && (groups_.size() == 1 || value.combine->op != CombineOp::sum))
          text += fmt::format("    {}start<{}, {}>(sums, {});\n", if_group(group), value.at, value.numbers,
                              kStarts[static_cast<std::size_t>(value.combine->op)]);
        out_.values.push_back({value.combine, group.first + value.at, value.numbers, value.place});
      }
    }
    text +=
        "    const auto row = [&](int turn, u32 r, bool live) GRAPHRUN_TILE_INLINE {\n      (void)turn, (void)r, "
        "(void)live;\n";
    if (weights() + sums > kMaxHeld) text += "      forget();\n";
    text += rows();
    text += fmt::format("    }};\n    for_rows<{}u, {}u, {}, {}, {}>(first_row, {}, row);\n",
                        call_.frame.phase.capacity, rows_, turns_.straight ? turns_.count : 1,
                        call_.frame.count != kNoBuffer, call_.tiling.threads <= 128, call_.frame.count_text());
    if (is_pair() && sums > 0) {
      out_.second = (sums + 3) / 4 * 4;
      text += fmt::format("    by_pair::combine_lanes<Combine{}, {}>(sums, {}.row());\n", call_.number, out_.second,
                          call_.reduce());
    } else if (sums > 0 && groups_.size() == 1) {
      text += fmt::format("    {}.add(sums);\n", call_.reduce());
    } else if (sums > 0) {
      text += fmt::format("    {}.add(sums, {}, {});\n", call_.reduce(), of_each(&SumGroup::first),
                          of_each(&SumGroup::sums));
    }
    out_.sums = out_.second + groups_.back().first + groups_.back().sums;
    return std::move(out_);
  }

 private:
  const Buffer& buffer(BufferId id) const { return call_.buffer(id); }
  bool is_pair() const { return call_.tiling.tile == RowTile::pair; }

  // Whether the lanes of a pair split each input.
  std::vector<bool> halves_of(const Step& step) const {
    std::vector<bool> halves;
    for (const BufferId input : step.inputs) halves.push_back(halves_.contains(call_.root(input)));
    return halves;
  }
  void find_halves() {
    if (!is_pair()) return;
    for (const Step& step : call_.rows()) {
      const TextCall call = call_.once.call(step);
      if (PairText(call, halves_of(step)).makes_half()) halves_.insert(call_.root(step.output));
    }
  }
  RowStage::Value summed(const Combine& combine) const {
    const std::int64_t elements = buffer(combine.value).type.shape.elements();
    if (!is_pair() || elements == 0) return {&combine, 0, elements};
    const Step& step = *std::ranges::find(call_.rows(), combine.value, &Step::output);
    const TextCall call = call_.once.call(step);
    const PairSums sums = PairText(call, halves_of(step)).sums();
    return {&combine, 0, sums.numbers, sums.place};
  }

  std::int64_t products() const {
    std::int64_t products = 0;
    for (const Step& step : call_.rows())
      if (step.op == Op::matmul) products += products_of(step);
    return products;
  }
  std::int64_t products_of(const Step& step) const {
    const TensorType &a = buffer(step.inputs[0]).type, &b = buffer(step.inputs[1]).type,
                     &out = buffer(step.output).type;
    const std::int64_t k = a.rows > 0 ? feature_count(a) : 1;
    return out.rows > 0 ? k * feature_count(out) / std::max<std::int64_t>(a.rows, 1) : k * feature_count(b);
  }

  // Number of elements that a row reads of values shared by all rows.
  std::int64_t weights() const {
    std::map<BufferId, std::int64_t> read;
    for (const Step& step : call_.rows()) {
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (!call_.is_tile(step.inputs[k]) && !call_.frame.places.stays_in_arena(step, k))
          read[step.inputs[k]] = buffer(step.inputs[k]).type.shape.elements();
    }
    std::int64_t numbers = 0;
    for (const auto& [id, elements] : read) numbers += elements;
    return numbers;
  }

  // Reduced values of a group of warps: offset of their elements, and the position of each value among them.
  struct SumGroup {
    std::int64_t first = 0, sums = 0;
    std::vector<RowStage::Value> values;
  };
  // Condition for code that one of several groups runs.
  std::string if_group(const SumGroup& group) const {
    return groups_.size() > 1 ? fmt::format("if (group == {}) ", &group - groups_.data()) : std::string();
  }
  std::string of_each(std::int64_t SumGroup::*number) const {
    std::string choice;
    for (std::size_t g = 0; g + 1 < groups_.size(); ++g)
      choice += fmt::format("group == {} ? {} : ", g, groups_[g].*number);
    return choice + fmt::format("{}", groups_.back().*number);
  }
  // Assigns the largest value first, each to the group with the fewest sums.
  std::vector<SumGroup> sum_groups() const {
    std::vector<SumGroup> groups(call_.tiling.groups);
    std::vector<RowStage::Value> order;
    for (const Combine& combine : call_.stage.combines) order.push_back(summed(combine));
    if (groups.size() > 1) std::ranges::stable_sort(order, std::greater<>(), &RowStage::Value::numbers);
    for (RowStage::Value& value : order) {
      SumGroup& group = *std::ranges::min_element(groups, {}, &SumGroup::sums);
      value.at = group.sums;
      group.sums += value.numbers;
      group.values.push_back(std::move(value));
    }
    for (std::size_t g = 1; g < groups.size(); ++g)
      groups[g].first = (groups[g - 1].first + groups[g - 1].sums + 3) / 4 * 4;
    return groups;
  }

  // Group that sums a value, and the value's offset in the group.
  std::pair<const SumGroup*, std::int64_t> place_of(BufferId id) const {
    for (const SumGroup& group : groups_)
      for (const RowStage::Value& value : group.values)
        if (value.combine->value == id) return {&group, value.at};
    throw std::logic_error("a sum over rows that its stage does not combine");
  }

  // Elements per row of data that are the same in each run of the region.
  std::int64_t same_numbers() const {
    std::int64_t numbers = 0;
    if (call_.frame.count != kNoBuffer) return numbers;
    for (const TileMove& move : call_.stage.loads)
      if (is_same(call_, move.arena)) numbers += feature_count(buffer(move.tile).type);
    for (const Step& step : call_.rows())
      if (is_same(call_, step)) numbers += feature_count(buffer(step.output).type);
    return numbers;
  }

  // All groups of warps compute all values of their rows with the same instructions. Each adds up its own sums, and the
  // first one stores rows.
  std::string rows() {
    std::string text;
    std::map<BufferId, std::string> values;  // names by root of the tile's storage
    std::set<std::string> there;             // pair tiles: values already converted to a half or a whole row
    const auto load = [&](BufferId out, std::string_view from, std::string_view comment, bool same) {
      const std::string name = fmt::format("v{}", out);
      values[call_.root(out)] = name;
      if (same && turns_.kept) {
        const TensorType& type = buffer(out).type;
        out_.kept +=
            fmt::format("  Row<{}, {}> {}_kept[{}];\n", type_name(type.dtype), feature_count(type), name, turns_.count);
        out_.kept_loads += fmt::format("      {}_kept[turn] = {};\n", name, from);
        text += fmt::format("      const auto {} = {}_kept[turn];  // {}\n", name, name, comment);
      } else {
        text += fmt::format("      const auto {} = {};  // {}\n", name, from, comment);
      }
    };
    for (const TileMove& move : call_.stage.loads) {
      const std::int64_t n = feature_count(buffer(move.tile).type);
      load(move.tile, fmt::format("load<{}>({} + u64(r) * {})", n, call_.pointer(move.arena, "const "), n),
           printable_name(buffer(move.tile).name), is_same(call_, move.arena));
    }
    for (const Step& step : call_.rows()) {
      const TextCall call = row_call(call_, step, values);
      const bool reduces = !call_.is_tile(step.output);
      const SumGroup* group = nullptr;
      std::int64_t at = 0;
      if (reduces) {
        if (buffer(step.output).type.shape.elements() == 0) continue;
        std::tie(group, at) = place_of(step.output);
      }
      const PairText pair(call, halves_of(step));
      if (is_pair()) text += pair.before(there);
      const std::string made = is_pair() ? pair.text(at) : row_text(call, at);
      if (reduces)
        text += fmt::format("      {}{}  // {}\n", if_group(*group), made, comment_of(step));
      else
        load(step.output, made, comment_of(step), is_same(call_, step));
      text += stores(&step, values, there);
    }
    return text + stores(nullptr, values, there);
  }

  // Stores rows that are complete after `step`, so that they free registers early. Null: rows that no step of the stage
  // computes.
  std::string stores(const Step* step, const std::map<BufferId, std::string>& values,
                     std::set<std::string>& there) const {
    std::string text;
    for (const TileMove& move : call_.stage.stores) {
      const BufferId root = call_.root(move.tile);
      if (last_maker(root) != step) continue;
      const std::int64_t n = feature_count(buffer(move.arena).type);
      std::string row = values.at(root);
      if (halves_.contains(root)) {
        if (there.insert(row + "_whole").second) text += fmt::format("      const auto {0}_whole = whole({0});\n", row);
        row += "_whole";
      }
      text += fmt::format("      {}if (live{}) store({} + u64(r) * {}, {});\n", if_group(groups_.front()),
                          is_pair() ? " && !is_second()" : "", call_.pointer(move.arena, ""), n, row);
    }
    return text;
  }
  const Step* last_maker(BufferId root) const {
    const Step* last = nullptr;
    for (const Step& step : call_.rows())
      if (call_.root(step.output) == root) last = &step;
    return last;
  }

  const StageCall& call_;
  RowStage out_;
  std::uint64_t rows_ = 1;  // rows of all blocks per turn
  RowTurns turns_;
  std::vector<SumGroup> groups_;
  std::set<BufferId> halves_;  // roots of tiles that the lanes of a pair split
};

}  // namespace

RowStage thread_stage(const StageCall& call) {
  return ThreadStage(call).run();
}

}  // namespace graphrun::cuda
