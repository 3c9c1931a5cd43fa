#include "executors/cuda_planner/plan/block_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/program.h"

namespace graphrun::cuda {
namespace {

constexpr std::int64_t kMaxJobBytes = std::int64_t{1} << 28;

constexpr std::array<ProductTile, 7> kTiles = {{{4, 4}, {2, 4}, {4, 2}, {2, 2}, {1, 4}, {1, 2}, {1, 1}}};

struct Blocks {
  std::uint32_t count, threads;
  const GpuCosts& costs;

  std::int64_t job_start() const { return threads > 256 ? costs.wide_job_start : costs.job_start; }
};
// Matrix product: a (rows, columns) result with `inner` terms per element.
struct ProductSize {
  std::int64_t rows, columns, inner;
};
// Jobs of a product with a tile, and their cycles.
struct ProductJobs {
  ProductTile tile;
  std::int64_t jobs, each, all;  // `all`: those of the block with the most jobs

  // A 16x8x8 product runs three times on the tensor cores, spread over four schedulers.
  ProductJobs(const ProductSize& size, const ProductTile& of, const Blocks& blocks) : tile(of) {
    const std::int64_t bytes = std::min(kMaxJobBytes, (16 * tile.m + 8 * tile.n) * size.inner * 4);
    const std::int64_t products = tile.m * tile.n * divide_up(size.inner, 8) * 3 * blocks.costs.tensor_product / 40;
    jobs = divide_up(size.rows, 16 * tile.m) * divide_up(size.columns, 8 * tile.n);
    each = blocks.job_start() + std::max(bytes / blocks.costs.l2_bytes, products);
    all = divide_up(jobs, blocks.count) * each;
  }
  // Time next to jobs that take `most` cycles, then total work.
  std::pair<std::int64_t, std::int64_t> cost(std::int64_t most) const { return {std::max(most, all), jobs * each}; }
};
// Jobs with the shortest time; ties go to the least total work.
ProductJobs jobs_for(const ProductSize& size, const Blocks& blocks, std::int64_t most) {
  const auto cost = [&](const ProductTile& tile) {
    const bool fits = blocks.threads <= 256 || tile.m * tile.n <= 4;
    return std::pair(!fits, ProductJobs(size, tile, blocks).cost(most));
  };
  return {size, *std::ranges::min_element(kTiles, {}, cost), blocks};
}
ProductJobs jobs_for_sum(const ProductSize& size, const Blocks& blocks, std::int64_t most) {
  const ProductJobs as_is = jobs_for(size, blocks, most);
  ProductJobs turned = jobs_for({size.columns, size.rows, size.inner}, blocks, most);
  turned.tile.turned = true;
  const bool is_faster = turned.cost(most).first * blocks.costs.turned_writes / 100 < as_is.cost(most).first;
  const bool is_narrow = turned.jobs <= blocks.count && size.columns <= 16 && turned.cost(most) < as_is.cost(most);
  return is_faster || is_narrow ? turned : as_is;
}

std::int64_t terms(const TextCall& product) {
  return feature_count(product.inputs[0].type);
}
std::uint64_t product_bytes(const ProductTile& tile, std::uint32_t threads) {
  return threads / 32 * static_cast<std::uint64_t>(tile::multiple_of_4(tile::part_floats(tile.m, tile.n))) *
         sizeof(float);
}
std::uint64_t row_product_bytes(std::int64_t results, std::uint32_t threads) {
  const tile::RowProductShape shape = tile::row_product_shape(results, threads / 32);
  return static_cast<std::uint64_t>(shape.groups * shape.shares * tile::part_floats(shape.m, 1)) * sizeof(float);
}

class Planner {
 public:
  Planner(const std::vector<BlockStep>& steps, std::int64_t capacity, const Blocks& blocks)
      : steps_(steps), capacity_(capacity), blocks_(blocks) {
    plan_.values.resize(steps.size());
  }

  BlockPlan run() {
    plan_.bytes = kBlockFlagBytes;
    find_places();
    while (find_products() || find_rows()) {
    }
    find_sums();
    find_arena();
    plan_.shared_bytes += lookup_bytes(steps_, capacity_) + std::max(plan_.parts_bytes, number_bytes());
    plan_.cycles +=
        blocks_.costs.grid_barrier * static_cast<std::int64_t>(plan_.phases.size() + (plan_.sums.empty() ? 0 : 1));
    return std::move(plan_);
  }

  BlockPlan run_rows() {
    only_rows_ = true;
    find_places();
    find_rows();
    find_arena();
    return std::move(plan_);
  }

 private:
  int count() const { return static_cast<int>(steps_.size()); }
  const TextCall& call(int i) const { return steps_[static_cast<std::size_t>(i)].call; }
  const std::vector<int>& makers(int i) const { return steps_[static_cast<std::size_t>(i)].makers; }
  std::int64_t features(int i) const { return feature_count(call(i).output); }
  BlockValue& value(int i) { return plan_.values[static_cast<std::size_t>(i)]; }
  BlockPlace& place(int i) { return value(i).place; }
  int& phase_of(int i) { return value(i).phase; }
  // Whether readers take the value from data.
  bool is_data(int i) { return i < 0 || place(i) == BlockPlace::data || place(i) == BlockPlace::recomputed; }

  void find_places() {
    for (int i = 0; i < count(); ++i) {
      if (call(i).output.rows == 0) place(i) = BlockPlace::unplaced;
      if (call(i).op == Op::minibatch) place(i) = BlockPlace::data;
    }
    for (int i = 0; i < count(); ++i)
      if (place(i) == BlockPlace::row && is_by_feature(call(i)) && has_mapped_readers(i) &&
          std::ranges::all_of(makers(i), [&](int from) { return is_data(from); }))
        place(i) = BlockPlace::recomputed;
  }
  // Whether the value has readers, and all of them are mapped.
  bool has_mapped_readers(int i) const {
    const auto reads = [&](const BlockStep& step) { return std::ranges::find(step.makers, i) != step.makers.end(); };
    return std::ranges::any_of(steps_, reads) && std::ranges::none_of(steps_, [&](const BlockStep& step) {
             return reads(step) && !is_by_feature(step.call);
           });
  }
  bool open(int i) { return place(i) == BlockPlace::row && phase_of(i) < 0; }
  bool is_there(int from, int phase) {  // computed before the phase, or data
    return is_data(from) || (phase_of(from) >= 0 && phase_of(from) < phase);
  }
  bool is_ready(int i, int phase) {
    return open(i) && std::ranges::all_of(makers(i), [&](int from) { return is_there(from, phase); });
  }

  ProductJobs product_jobs(int i) const { return jobs_for({capacity_, features(i), terms(call(i))}, blocks_, 0); }
  std::int64_t row_tiles() const { return divide_up(divide_up(capacity_, kBlockRows), blocks_.count); }
  // Cost if each block computes the product for its own rows, without a phase of products.
  std::int64_t row_product_cycles(int i) const {
    return row_tiles() * (blocks_.job_start() / 2 + features(i) * terms(call(i)) * 4 / blocks_.costs.l2_bytes);
  }
  bool is_large(int i) const {
    return !only_rows_ && call(i).op == Op::matmul &&
           row_product_cycles(i) > product_jobs(i).all + blocks_.costs.grid_barrier;
  }

  bool find_products() {
    const int phase = static_cast<int>(plan_.phases.size());
    BlockPhase made;
    for (int i = 0; i < count(); ++i) {
      if (!is_ready(i, phase) || !is_large(i)) continue;
      const ProductJobs jobs = product_jobs(i);
      BlockProduct& product = made.products.emplace_back(BlockProduct{i, jobs.tile, {}, jobs.jobs});
      phase_of(i) = phase;
      plan_.cycles += jobs.all;
      add_parts(product_bytes(jobs.tile, blocks_.threads));
      const auto is_here = [&](int from) { return from == i || contains(product.epilogue, from); };
      for (int k = i + 1; k < count(); ++k) {
        if (!open(k) || !is_scalar(call(k).op) || features(k) != features(i)) continue;
        if (std::ranges::none_of(makers(k), is_here)) continue;
        bool fits = true;
        for (std::size_t j = 0; j < makers(k).size(); ++j) {
          const int from = makers(k)[j];
          fits = fits && (is_here(from) ? feature_count(call(k).inputs[j].type) == features(i) : is_there(from, phase));
        }
        if (!fits) continue;
        product.epilogue.push_back(k);
        phase_of(k) = phase;
      }
    }
    if (made.products.empty()) return false;
    plan_.phases.push_back(std::move(made));
    return true;
  }

  bool find_rows() {
    const int phase = static_cast<int>(plan_.phases.size());
    BlockPhase made;
    for (int i = 0; i < count(); ++i) {
      if (!is_ready(i, phase + 1) || is_large(i)) continue;
      phase_of(i) = phase;
      if (made.rows.empty() || !joins(i, made.rows.back()))
        made.rows.push_back({{}, call(i).op == Op::matmul || is_by_feature(call(i))});
      made.rows.back().steps.push_back(i);
      if (call(i).op == Op::matmul) {
        plan_.cycles += row_product_cycles(i);
        add_parts(row_product_bytes(features(i), blocks_.threads));
      } else {
        const std::int64_t instructions = features(i) * kBlockRows * kFunctionInstructions;
        plan_.cycles += row_tiles() * (blocks_.costs.row_item / 3 + instructions / blocks_.threads);
      }
    }
    if (made.rows.empty()) return false;
    find_shared(made);
    plan_.cycles += blocks_.costs.row_item * row_tiles() * static_cast<std::int64_t>(made.rows.size());
    plan_.phases.push_back(std::move(made));
    return true;
  }

  static bool contains(const std::vector<int>& steps, int i) { return std::ranges::find(steps, i) != steps.end(); }
  bool reads_item(int from, const BlockItem& item) const {
    bool reads = false;
    each_source(steps_, plan_, from, [&](int k) { reads = reads || contains(item.steps, k); });
    return reads;
  }
  // Whether step i can join the item. Values of a loop are in registers, so only the same feature can be read.
  bool joins(int i, const BlockItem& item) {
    if (!item.loop)
      return call(i).op != Op::matmul && !is_by_feature(call(i)) &&
             std::ranges::none_of(makers(i), [&](int from) { return reads_item(from, item); });
    if (!is_by_feature(call(i)) || features(item.steps.front()) != features(i)) return false;
    for (std::size_t k = 0; k < makers(i).size(); ++k) {
      const int from = makers(i)[k];
      if (!reads_item(from, item)) continue;
      if (place(from) == BlockPlace::recomputed || !is_scalar(call(i).op) ||
          feature_count(call(i).inputs[k].type) != features(i))
        return false;
    }
    return true;
  }
  // Values in shared memory: those that another item of the phase reads, and those not computed feature by feature.
  void find_shared(const BlockPhase& phase) {
    const int number = static_cast<int>(plan_.phases.size());
    for (const BlockItem& item : phase.rows) {
      for (const int i : item.steps) {
        if (!item.loop) share(i);
        for (const int from : makers(i))
          each_source(steps_, plan_, from, [&](int k) {
            if (place(k) != BlockPlace::data && phase_of(k) == number && !contains(item.steps, k)) share(k);
          });
      }
    }
  }
  void share(int i) {
    if (std::exchange(value(i).shared, true)) return;
    plan_.shared_bytes +=
        static_cast<std::uint64_t>(kBlockRows * shared_stride(features(i))) * size_of(call(i).output.dtype);
  }

  void find_sums() {
    std::int64_t most = 0, all = 0;
    std::vector<BlockSum> numbers;
    const auto jobs = [&](int i, std::int64_t others) {
      return jobs_for_sum({terms(call(i)), feature_count(call(i).inputs[1].type), capacity_}, blocks_, others);
    };
    for (int i = 0; i < count(); ++i)
      if (is_product_over_rows(call(i))) most = std::max(most, jobs(i, 0).all);
    for (int i = 0; i < count(); ++i) {
      const TextCall& c = call(i);
      if (c.output.rows > 0) continue;
      BlockSum sum{i};
      if (c.output.shape.elements() == 1) {
        // A single block adds all terms.
        plan_.number_cycles += blocks_.costs.number_sum + capacity_ * terms(c) * 4 / blocks_.costs.l2_bytes;
        add_parts(number_bytes());
        numbers.push_back(sum);
        continue;
      }
      if (is_product_over_rows(c)) {
        const ProductJobs product = jobs(i, most);
        sum = {i, true, product.tile, product.jobs, product.each};
        add_parts(product_bytes(product.tile, blocks_.threads));
      } else {
        add_parts(number_bytes());
        sum.jobs = divide_up(c.output.shape.elements(), 32);
        sum.cycles = blocks_.job_start() + capacity_ * 32 * 4 / blocks_.costs.l2_bytes;
      }
      all += sum.jobs * sum.cycles;
      plan_.sums.insert(std::ranges::lower_bound(plan_.sums, sum.cycles, std::greater<>(), &BlockSum::cycles), sum);
    }
    const std::int64_t largest = plan_.sums.empty() ? 0 : plan_.sums.front().cycles;
    plan_.sums.insert(plan_.sums.end(), numbers.begin(), numbers.end());
    plan_.cycles += std::max({most, largest, divide_up(all, blocks_.count), plan_.number_cycles});
  }

  std::uint64_t number_bytes() const { return blocks_.threads * sizeof(float); }
  void add_parts(std::uint64_t bytes) { plan_.parts_bytes = std::max(plan_.parts_bytes, bytes); }

  // Places values that another phase reads in the arena.
  void find_arena() {
    for (int i = 0; i < count(); ++i) {
      if (is_data(i)) continue;
      const int phase = call(i).output.rows == 0 ? count() : phase_of(i);
      for (const int from : makers(i))
        each_source(steps_, plan_, from, [&](int k) {
          if (place(k) == BlockPlace::row && phase_of(k) != phase) place(k) = BlockPlace::arena;
        });
    }
    // Rows of data, and rows of fewer than 4 features, are dense; others are padded for reads of 4 elements.
    for (int i = 0; i < count(); ++i) {
      const bool dense = place(i) == BlockPlace::data || features(i) < 4;
      value(i).stride = dense ? features(i) : tile::multiple_of_4(features(i));
      if (place(i) != BlockPlace::arena) continue;
      value(i).offset = plan_.bytes;
      value(i).shared = value(i).shared && !only_rows_;
      plan_.bytes += only_rows_ ? static_cast<std::uint64_t>(features(i)) * sizeof(float)
                                : scratch_bytes(capacity_ * value(i).stride, call(i).output.dtype);
    }
  }
  const std::vector<BlockStep>& steps_;
  std::int64_t capacity_;
  Blocks blocks_;
  bool only_rows_ = false;
  BlockPlan plan_;
};

}  // namespace

std::int64_t shared_stride(std::int64_t features) {
  return features < 16 ? divide_up(features, 4) * 4 : divide_up(features, 32) * 32 + 16;
}

std::uint64_t lookup_bytes(const std::vector<BlockStep>& steps, std::int64_t capacity) {
  const auto has_table = [&](const BlockStep& step) {
    return step.call.op == Op::minibatch && step.call.params->as<MinibatchParams>().shuffle && capacity <= kMaxLookedUp;
  };
  return static_cast<std::uint64_t>(std::ranges::count_if(steps, has_table) * std::max(capacity, kMinLookedUp)) *
         sizeof(std::uint32_t);
}

std::string block_fault(const TextCall& call) {
  if (std::string fault = row_fault(call); !fault.empty()) return fault;
  const auto fault = [&]() -> std::string_view {
    const TensorType& x = call.inputs[0].type;
    const bool product = call.op == Op::matmul;
    if (product && call.output.rows > 0 && feature_count(x) != x.shape[1])
      return "it multiplies several rows of a sample";
    if (product && call.output.rows > 0 && call.inputs[1].number) return "its weights are a number";
    if (product && call.output.rows == 0 && x.rows != 1) return "it sums products of several rows of a sample";
    if (call.output.shape.elements() == 0) return "it has no elements";
    if (call.op == Op::scatter_add) return "its rows determine where it adds";
    return call.output.rows > 0 && is_along_axis(call) && x.dtype != DType::f32 ? "its rows are not f32" : "";
  };
  return fault_text(call, "a step kernel with tiles of blocks", fault());
}

BlockPlan block_phases(const std::vector<BlockStep>& steps, std::int64_t capacity, std::uint32_t blocks,
                       std::uint32_t threads, const GpuCosts& costs) {
  return Planner(steps, capacity, {blocks, threads, costs}).run();
}
BlockPlan row_phase(const std::vector<BlockStep>& steps, std::int64_t capacity, const GpuCosts& costs) {
  return Planner(steps, capacity, {1, 32, costs}).run_rows();
}

}  // namespace graphrun::cuda
