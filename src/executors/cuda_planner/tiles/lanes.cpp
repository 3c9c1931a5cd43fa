// The layout with a row in the registers of one lane (thread tiles) or of two (pair tiles).

#include "executors/cuda_planner/tiles/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/tiles/row_stage.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

// Limit on the weights and sums that fit a thread's registers together with the values of a row. Above it, each row
// reads the weights again.
constexpr std::int64_t kMaxHeld = 112;
constexpr std::int64_t kMaxHeldTogether = 72;  // sums and kept rows of a thread in a block of up to 12 warps

using tile::half_of;

// Name of the half or whole row of a value, which is defined once.
std::string converted(const std::string& name, bool half, std::set<std::string>& there, std::string& text) {
  const std::string form = half ? "half" : "whole", made = name + "_" + form;
  if (there.insert(made).second) text += fmt::format("      const auto {} = {}({});\n", made, form, name);
  return made;
}

}  // namespace

// ---- a step

bool LaneStep::is_product() const {
  return lanes == 2 && call.op == Op::matmul && call.output.rows == 1 &&
         feature_count(call.inputs[0].type) == last_extent(features_of(call.inputs[0].type));
}

// Whether each lane multiplies its half of a row and the lanes add their results. Otherwise the row is made whole
// first, where that takes at most as many messages between lanes: sums over rows often need it, too.
bool LaneStep::sums_halves() const {
  return is_product() && halves[0] && feature_count(call.inputs[0].type) > feature_count(call.output);
}

bool LaneStep::is_mapped() const {
  if (call.output.rows == 0 || !is_scalar(call.op) || feature_count(call.output) < 2) return false;
  if (call.output.dtype != DType::f32 && call.output.dtype != DType::boolean) return false;
  const Shape space = features_of(call.output);
  // Result i reads feature i of x, or x has only one feature.
  return std::ranges::all_of(call.inputs, [&](const TextOperand& x) {
    const std::int64_t n = feature_count(x.type);
    return !x.has_rows() || n == 1 || (n == space.elements() && index_in(x, space).is_variable());
  });
}

bool LaneStep::makes_half() const {
  if (is_product()) return feature_count(call.output) >= 2;
  return std::ranges::find(halves, true) != halves.end() && is_mapped();
}

bool LaneStep::fits() const {
  return lanes == 1 || !is_product_over_rows(call) || (call.inputs[0].type.rows == 1 && call.inputs[1].type.rows == 1);
}

// Splits the operand that is already a half, or the longer one if both or neither are.
bool LaneStep::sums_columns() const {
  if (halves[0] != halves[1]) return halves[1];
  return call.inputs[1].type.shape[1] >= call.inputs[0].type.shape[1];
}

LaneSums LaneStep::sums() const {
  const std::int64_t elements = call.output.shape.elements();
  if (lanes == 1 || elements == 0) return {elements};
  if (call.op != Op::matmul) return {half_of(elements), fmt::format("of_rows<{}, 1>", elements)};
  const std::int64_t k = call.inputs[0].type.shape[1], n = call.inputs[1].type.shape[1];
  if (sums_columns()) return {k * half_of(n), fmt::format("of_columns<{}>", n)};
  return {half_of(k) * n, fmt::format("of_rows<{}, {}>", k, n)};
}

// Whether the code reads the half of an operand with rows.
bool LaneStep::reads_half(std::size_t input) const {
  if (lanes == 1) return false;
  if (is_product()) return sums_halves();
  if (is_product_over_rows(call)) return (input == 1) == sums_columns();
  if (call.output.rows == 0)  // sum over rows, feature by feature
    return call.op != Op::scatter_add && halves[input] &&
           row_terms(call.inputs[input], call.params->as<ReduceParams>().axes).reduced == 1;
  return makes_half() && feature_count(call.inputs[input].type) > 1;
}

std::string LaneStep::text(std::int64_t at, std::set<std::string>& there, std::string& before) const {
  TextCall named = call;
  for (std::size_t i = 0; i < named.inputs.size(); ++i) {
    TextOperand& x = named.inputs[i];
    if (x.has_rows() && reads_half(i) != halves[i]) x.name = converted(x.name, !halves[i], there, before);
  }
  const TextOperand &x = named.inputs[0], &y = named.inputs.back();
  const std::int64_t n = feature_count(call.output);
  if (is_product() && makes_half() && !sums_halves())
    return fmt::format("matmul{}_halves<{}, {}>({}, {} + {})",
                       call.params->as<MatmulParams>().transpose_b ? "_transposed" : "", feature_count(x.type), n,
                       x.name, y.name, y.view.offset);
  if (!is_product() && makes_half())
    return fmt::format("halves<{0}>([&](const At<{0}>& i) {{ return {1}; }})", n, feature_text(named));
  const Fold* const fold = fold_of(call.op);
  if (call.output.rows == 0 && fold != nullptr && reads_half(0))
    return fmt::format("combine<{}, {}>(sums, {}, {}, {}, live);", at, call.output.shape.elements(), fold->start,
                       x.name, fold->function);
  return row_text(named, at);
}

// ---- a stage

namespace {

class LaneStage : public RowStage {
 public:
  explicit LaneStage(RowStage of) : RowStage(std::move(of)) {}

  void run() {
    const std::uint64_t at_once = std::uint64_t{tiling().block_rows()} * tiling().blocks();
    turns_ = row_turns(tiling(), frame.phase.capacity, products(), same_numbers());
    for (const Step& step : rows())
      if (lane_step(step, frame.once.call(step)).makes_half()) halves_.insert(root(step.output));
    find_groups();
    const std::int64_t own = std::ranges::max(groups_, {}, &SumGroup::sums).sums;  // sums per thread
    if (frame.together > 0)  // a warp may have rows of several, and has fewer registers
      turns_.kept = turns_.kept && warps_with_rows(frame.phase, tiling()) <= joined() * frame.together &&
                    own + same_numbers() * joined() <= kMaxHeldTogether;
    if (joined() > 1) {
      if (own > 0) text += fmt::format("    float joined[{}];\n", own);
      text += fmt::format("    GRAPHRUN_TILE_UNROLL\n    for (u32 of = 0; of < {}u; ++of) {{\n", joined());
    }
    if (own > 0) text += fmt::format("    float sums[{}];\n", own);
    if (own > 0 && groups_.size() > 1) text += fmt::format("    start<0, {}>(sums, 0.0f);\n", own);
    for (const Value& value : values)
      if (value.numbers > 0 && (groups_.size() == 1 || value.combine->op != CombineOp::sum))
        text += fmt::format("    {}start<{}, {}>(sums, {});\n", if_group(value.group), value.at, value.numbers,
                            fold_of(value.combine->op).start);
    text +=
        "    const auto row = [&](int turn, u32 r, bool live) GRAPHRUN_TILE_INLINE {\n      (void)turn, (void)r, "
        "(void)live;\n";
    if (weights() + own > kMaxHeld) text += "      forget();\n";
    write_rows();
    text += fmt::format("    }};\n    for_rows<{}u, {}u, {}, {}, {}{}>(first_row{}, {}, row);\n", frame.phase.capacity,
                        at_once, turns_.straight ? turns_.count : 1, frame.count != kNoBuffer, tiling().threads <= 128,
                        joined() > 1 && lanes() == 2 ? fmt::format(", {}", 16 * joined()) : "",
                        joined() > 1 ? " + of" : "", frame.count_text());
    if (joined() > 1) text += (own > 0 ? fmt::format("    {}.join(joined, sums, of);\n", reduce()) : "") + "    }\n";
    const std::string_view sums_name = joined() > 1 ? "joined" : "sums";
    if (lanes() == 2 && own > 0) {
      second = tile::multiple_of_4(own);
      text += fmt::format("    by_pair::combine_lanes<Combine{}, {}>({}, {}.row());\n", number, second, sums_name,
                          reduce());
    } else if (own > 0 && groups_.size() == 1) {
      text += fmt::format("    {}.add({});\n", reduce(), sums_name);
    } else if (own > 0) {
      text += fmt::format("    {}.add({}, {}, {});\n", reduce(), sums_name, of_each(&SumGroup::first),
                          of_each(&SumGroup::sums));
    }
    for (Value& value : values) value.at += groups_[value.group].first;
    sums = second + groups_.back().first + groups_.back().sums;
  }

 private:
  int lanes() const { return tiling().tile == RowTile::pair ? 2 : 1; }
  std::int64_t joined() const { return frame.joined; }
  LaneStep lane_step(const Step& step, TextCall call) const {
    std::vector<bool> halves;
    for (const BufferId input : step.inputs) halves.push_back(halves_.contains(root(input)));
    return {lanes(), std::move(call), std::move(halves)};
  }

  std::int64_t products() const {
    std::int64_t products = 0;
    for (const Step& step : rows()) products += row_products(frame.once.call(step));
    return products;
  }

  // Number of elements that a row reads of values shared by all rows.
  std::int64_t weights() const {
    std::set<BufferId> read;
    for (const Step& step : rows())
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (frame.places.is_read(step, k)) read.insert(step.inputs[k]);
    std::int64_t numbers = 0;
    for (const BufferId id : read) numbers += elements(id);
    return numbers;
  }

  // Whether data are the same in each run of the region.
  bool is_same(const TileMove& load) const { return buffer(root(load.arena)).kind == BufferKind::data; }
  bool is_same(const Step& step) const {
    if (step.op != Op::minibatch || !frame.places.stays_in_arena(step, 0)) return false;
    const auto& p = step.params.as<MinibatchParams>();
    return !p.shuffle && p.batches() == 1;
  }
  // Elements of such data per row.
  std::int64_t same_numbers() const {
    std::int64_t numbers = 0;
    if (frame.count != kNoBuffer) return numbers;
    for (const TileMove& move : stage.loads)
      if (is_same(move)) numbers += features(move.tile);
    for (const Step& step : rows())
      if (is_same(step)) numbers += features(step.output);
    return numbers;
  }

  // Warps that add up the same reduced values: number of their sums, and offset among those of all groups.
  struct SumGroup {
    std::int64_t first = 0, sums = 0;
  };
  // Condition for code that one of several groups runs.
  std::string if_group(std::size_t group) const {
    return groups_.size() > 1 ? fmt::format("if (group == {}) ", group) : std::string();
  }
  std::string of_each(std::int64_t SumGroup::*member) const {
    std::string choice;
    for (std::size_t g = 0; g + 1 < groups_.size(); ++g)
      choice += fmt::format("group == {} ? {} : ", g, groups_[g].*member);
    return choice + fmt::format("{}", groups_.back().*member);
  }
  // Assigns the largest value first, each to the group with the fewest sums.
  void find_groups() {
    groups_.resize(tiling().groups);
    for (const Combine& combine : stage.combines) {
      const Step* const step = maker(combine.value);
      LaneSums of =
          step == nullptr ? LaneSums{elements(combine.value)} : lane_step(*step, frame.once.call(*step)).sums();
      values.push_back({&combine, 0, of.numbers, std::move(of.place)});
    }
    if (groups_.size() > 1) std::ranges::stable_sort(values, std::greater<>(), &Value::numbers);
    for (Value& value : values) {
      const auto group = std::ranges::min_element(groups_, {}, &SumGroup::sums);
      value.group = static_cast<std::size_t>(group - groups_.begin());
      value.at = group->sums;
      group->sums += value.numbers;
    }
    std::ranges::stable_sort(values, {}, &Value::group);
    for (std::size_t g = 1; g < groups_.size(); ++g)
      groups_[g].first = tile::multiple_of_4(groups_[g - 1].first + groups_[g - 1].sums);
  }

  // All groups of warps compute all values of their rows with the same instructions. Each adds up its own sums, and the
  // first one stores rows.
  void write_rows() {
    for (const TileMove& move : stage.loads)
      define(move.tile,
             fmt::format("load<{0}>({1} + u64(r) * {0})", features(move.tile), pointer(move.arena, "const ")),
             printable_name(buffer(move.tile).name), is_same(move));
    for (const Step& step : rows()) {
      if (is_tile(step.output)) {
        define(step.output, code_of(step, 0), comment_of(step), is_same(step));
      } else if (elements(step.output) > 0) {
        const Value& value = value_of(step);
        const std::string code = code_of(step, value.at);
        text += fmt::format("      {}{}{}", if_group(value.group), code, step_comment(step));
      }
      store(&step);
    }
    store(nullptr);
  }
  std::string code_of(const Step& step, std::int64_t at) {
    return lane_step(step, row_call(step)).text(at, there_, text);
  }
  // Defines a tile, or loads it into registers once for the whole launch if its rows are the same in each run.
  void define(BufferId tile, const std::string& code, std::string_view comment, bool same) {
    if (!same || !turns_.kept) return let(tile, code, comment);
    kept += fmt::format("  Row<{}, {}> v{}_kept[{}];\n", type_name(buffer(tile).type.dtype), features(tile), tile,
                        turns_.count * joined());
    kept_loads += fmt::format("      v{}_kept[turn] = {};\n", tile, code);
    let(tile, fmt::format("v{}_kept[turn{}]", tile, joined() > 1 ? fmt::format(" * {} + int(of)", joined()) : ""),
        comment);
  }

  // Stores rows that are complete after `step`, so that they free registers early. Null: rows that no step of the stage
  // computes.
  void store(const Step* step) {
    for (const TileMove& move : stage.stores) {
      const BufferId tile = root(move.tile);
      const Step* last = nullptr;
      for (const Step& maker : rows())
        if (root(maker.output) == tile) last = &maker;
      if (last != step) continue;
      const std::string row = halves_.contains(tile) ? converted(names.at(tile), false, there_, text) : names.at(tile);
      text += fmt::format("      {}if (live{}) store({} + u64(r) * {}, {});\n", if_group(0),
                          lanes() == 2 ? " && !is_second()" : "", pointer(move.arena, ""), features(move.arena), row);
    }
  }

  RowTurns turns_;
  std::vector<SumGroup> groups_;
  std::set<BufferId> halves_;    // roots of tiles that two lanes split
  std::set<std::string> there_;  // values already converted to a half or a whole row
};

}  // namespace

RowStage lanes_stage(RowStage stage) {
  LaneStage lanes(std::move(stage));
  lanes.run();
  return lanes;
}

}  // namespace graphrun::cuda
