#include "executors/cuda_planner/plan/split_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

constexpr std::int64_t kMaxSplitShared = 150 * 1024;        // bytes of shared memory, without values shared by all rows
constexpr std::int64_t kMaxOwn = 32;                        // rows per block
constexpr std::int64_t kMaxValues = std::int64_t{1} << 14;  // elements summed over clusters by each rank

class SplitPlanner {
 public:
  SplitPlanner(const std::vector<BlockStep>& steps, std::int64_t capacity, const StepTiling& tiling,
               const GpuCosts& costs)
      : steps_(steps), capacity_(capacity), tiling_(tiling), costs_(costs) {}

  SplitPlan run() {
    for (const auto find : {&SplitPlanner::find_data, &SplitPlanner::find_sizes, &SplitPlanner::find_rows,
                            &SplitPlanner::find_sums, &SplitPlanner::find_turns, &SplitPlanner::find_costs})
      if (plan_.fault.empty()) (this->*find)();
    return std::move(plan_);
  }

 private:
  int count() const { return static_cast<int>(steps_.size()); }
  const TextCall& call(int i) const { return steps_[static_cast<std::size_t>(i)].call; }
  const std::vector<int>& makers(int i) const { return steps_[static_cast<std::size_t>(i)].makers; }
  void no(int step, std::string_view why) {
    plan_.fault = fault_text(call(step), "a step kernel with split tiles", why);
  }

  void no(std::string_view why) { plan_.fault = fmt::format("split tiles: {}", why); }

  // Whether the input is rows selected by step `data`, or, if that is -1, rows from outside with this many features.
  bool is_factor(int i, std::size_t input, int data, std::int64_t features) const {
    const TextOperand& x = call(i).inputs[input];
    return x.has_rows() && makers(i)[input] == data && (data >= 0 || feature_count(x.type) == features);
  }
  // Whether step i multiplies those rows by weights, or sums their products with other values over rows.
  bool slices(int i, int data, std::int64_t features) const {
    const TextCall& c = call(i);
    if (c.op != Op::matmul || !is_factor(i, 0, data, features) || is_factor(i, 1, data, features)) return false;
    if (c.inputs[0].type.dtype != DType::f32 || c.inputs[0].type.rows != 1) return false;
    if (c.output.rows == 0) return is_product_over_rows(c);
    const TextOperand& w = c.inputs[1];
    return !w.has_rows() && !w.number && !c.params->as<MatmulParams>().transpose_b && is_dense(w.view) &&
           w.view.offset == 0;
  }
  bool is_sliced(int data, std::int64_t features) const {
    int products = 0, sums = 0;
    for (int i = 0; i < count(); ++i) {
      bool reads = false;
      for (std::size_t k = 0; k < makers(i).size(); ++k) reads = reads || is_factor(i, k, data, features);
      if (!reads || (call(i).op == Op::minibatch)) continue;
      if (!slices(i, data, features)) return false;
      ++(call(i).output.rows == 0 ? sums : products);
    }
    // The signature does not identify values from outside, so there may be only one product and one sum.
    return products > 0 && (data >= 0 || (products == 1 && sums <= 1));
  }
  void find_data() {
    for (int i = 0; i < count(); ++i) {
      const TextCall& c = call(i);
      const bool selected = c.op == Op::minibatch && c.output.rows == 1;
      if (!selected && (c.op != Op::matmul || !c.inputs[0].has_rows() || makers(i)[0] >= 0)) continue;
      const std::int64_t features = feature_count(selected ? c.output : c.inputs[0].type);
      if (features <= plan_.features || !is_sliced(selected ? i : -1, features)) continue;
      plan_.features = features;
      plan_.data = selected ? i : -1;
    }
    if (plan_.features == 0) no("they are for data that are only multiplied by weights, and there are none");
  }
  bool reads_data(int i) const { return slices(i, plan_.data, plan_.features); }

  void find_sizes() {
    for (int i = 0; i < count(); ++i) {
      if (!reads_data(i)) continue;
      const bool is_sum = call(i).output.rows == 0;
      const std::int64_t columns = feature_count(is_sum ? call(i).inputs[1].type : call(i).output);
      if (columns > kMaxSplitColumns)
        return no(i, fmt::format(fmt::runtime(is_sum ? "{} columns of wide data, of at most {}"
                                                     : "wide data times {} columns, of at most {}"),
                                 columns, kMaxSplitColumns));
      if (is_sum) continue;
      plan_.products.push_back({i, plan_.parts, columns});
      plan_.parts += columns;
    }
    plan_.parts = tile::multiple_of_4(plan_.parts);
    plan_.slice = tile::multiple_of_4(divide_up(plan_.features, tiling_.cluster));
    plan_.group = divide_up(capacity_, tiling_.clusters);
  }

  void find_rows() {
    for (int i = 0; i < count(); ++i) {
      const TextCall& c = call(i);
      plan_.fault = block_fault(c);
      if (!plan_.fault.empty()) return;
      if (i == plan_.data || c.output.rows == 0) continue;
      if (feature_count(c.output) > kMaxFeatures)
        return no(i, fmt::format("it has {} numbers a row, of at most {}", feature_count(c.output), kMaxFeatures));
      for (std::size_t k = 0; k < c.inputs.size(); ++k)
        if (c.inputs[k].has_rows() && makers(i)[k] < 0 && !reads_data(i) &&
            feature_count(c.inputs[k].type) > kMaxFeatures)
          return no(i, fmt::format("it reads {} numbers a row, of at most {}", feature_count(c.inputs[k].type),
                                   kMaxFeatures));
    }
    plan_.block = row_phase(steps_, capacity_, costs_);
    plan_.gathered = tile::multiple_of_4(static_cast<std::int64_t>(plan_.block.bytes / sizeof(float)));
    if (plan_.gathered == 0) return no("nothing is summed over rows");
  }

  void find_sums() {
    for (const bool wide : {true, false}) {
      for (int i = 0; i < count(); ++i) {
        const TextCall& c = call(i);
        if (c.output.rows > 0 || reads_data(i) != wide) continue;
        if (c.op != Op::matmul && c.op != Op::sum) return no(i, "it is not a sum over rows");
        if (wide && (makers(i)[1] < 0 || plan_.block.value(makers(i)[1]).place != BlockPlace::arena))
          return no(i, "it sums products of data");
        const std::int64_t numbers = wide ? plan_.slice * feature_count(c.inputs[1].type) : c.output.shape.elements();
        plan_.sums.push_back({i, wide, plan_.values, numbers});
        plan_.values += numbers;
      }
    }
    if (plan_.values > kMaxValues) return no(fmt::format("{} sums over rows in each block", plan_.values));
  }

  // Uses as few turns as shared memory allows.
  void find_turns() {
    const std::int64_t cluster = tiling_.cluster;
    plan_.own = std::min(kMaxOwn, divide_up(plan_.group, cluster));
    while (plan_.own > 1 && shared_bytes() > kMaxSplitShared) --plan_.own;
    plan_.turns = divide_up(plan_.group, plan_.own * cluster);
    plan_.own = divide_up(plan_.group, plan_.turns * cluster);  // balances the turns
    plan_.shared_bytes = static_cast<std::uint64_t>(shared_bytes()) + lookup_bytes(steps_, capacity_);
    plan_.scratch_bytes = static_cast<std::uint64_t>(tile::slice_sums_bytes(plan_.values, cluster, tiling_.clusters));
  }
  // Same layout as in kernels/cuda/tile/split.h and slice_sums.h.
  std::int64_t shared_bytes() const {
    const std::int64_t rows = plan_.turn_rows(tiling_), rows8 = tile::multiple_of_8(rows), clusters = tiling_.clusters;
    const std::int64_t share = tile::share_packets(plan_.values, clusters);
    const std::int64_t shares = tile::shares_of(tiling_.threads, rows, plan_.slice);
    std::int64_t floats = 2 * rows8 * tile::slice_stride(plan_.slice) + shares * rows8 * plan_.parts;
    floats += 2 * rows * plan_.parts + plan_.own * plan_.gathered + 2 * rows8 * plan_.gathered;
    floats += 3 * share * clusters + (clusters > 1 ? 4 * share * clusters : 4) + 64;
    for (int i = 0; i < count(); ++i) {
      const std::int64_t features = feature_count(call(i).output);
      if (call(i).op == Op::minibatch && i != plan_.data) floats += 2 * plan_.own * features + 4;
      if (plan_.block.value(i).shared) floats += plan_.own * shared_stride(features);
    }
    return floats * static_cast<std::int64_t>(sizeof(float));
  }

  void find_costs() {
    const std::int64_t rows = plan_.turn_rows(tiling_), clusters = tiling_.clusters,
                       packets = divide_up(plan_.values, 3);
    std::int64_t instructions = 0, narrow = 0, items = 0;
    const auto add_product = [&](std::int64_t columns) {
      instructions += divide_up(rows, 8) * divide_up(plan_.slice, 8) * costs_.split_product(divide_up(columns, 16));
    };
    for (const SplitProduct& product : plan_.products) add_product(product.columns);
    for (const SplitSum& sum : plan_.sums) {
      if (sum.wide) {
        add_product(feature_count(call(sum.step).inputs[1].type));
      } else {  // at least four lanes per element, four terms at a time
        const std::int64_t lanes = std::clamp<std::int64_t>(tiling_.threads / 2 / sum.numbers, 4, 32);
        narrow += costs_.narrow_sum(divide_up(sum.numbers * lanes, tiling_.threads) * divide_up(rows, 4 * lanes));
      }
    }
    for (const BlockItem& item : plan_.block.phases[0].rows) {
      items += costs_.split_item;
      for (const int i : item.steps) {
        const bool product = call(i).op == Op::matmul && !plan_.is_wide(i);
        const std::int64_t terms = product ? feature_count(call(i).inputs[0].type) : 0;
        items += divide_up(plan_.own * feature_count(call(i).output), tiling_.threads) * costs_.split_element(terms);
      }
    }
    // A turn includes messages within a cluster and data requests; `exchange` is the messages between clusters.
    const std::int64_t issue = tiling_.threads < 512 ? costs_.split_issue : costs_.wide_split_issue;
    const std::int64_t turn = costs_.split_turn + instructions / 4 * issue / 100 + narrow + items;
    const std::int64_t exchange = clusters > 1
                                      ? costs_.split_grid(clusters) + costs_.split_message * divide_up(3 * packets, 32)
                                      : costs_.split_alone;
    plan_.cycles = plan_.turns * turn + exchange + costs_.split_end(divide_up(plan_.values, tiling_.threads));
  }

  const std::vector<BlockStep>& steps_;
  std::int64_t capacity_;
  StepTiling tiling_;
  const GpuCosts& costs_;
  SplitPlan plan_;
};

}  // namespace

bool SplitPlan::is_wide(int product) const {
  return std::ranges::find(products, product, &SplitProduct::step) != products.end();
}

SplitPlan split_plan(const std::vector<BlockStep>& steps, std::int64_t capacity, const StepTiling& tiling,
                     const GpuCosts& costs) {
  return SplitPlanner(steps, capacity, tiling, costs).run();
}

}  // namespace graphrun::cuda
