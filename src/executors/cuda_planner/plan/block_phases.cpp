#include "executors/cuda_planner/plan/block_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/program.h"
#include "kernels/cuda/tile/shapes.h"

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
std::int64_t jobs_of(const ProductSize& size, const ProductTile& tile) {
  return divide_up(size.rows, 16 * tile.m) * divide_up(size.columns, 8 * tile.n);
}
// A 16x8x8 product runs three times on the tensor cores, spread over four schedulers.
std::int64_t job_cycles(const ProductSize& size, const ProductTile& tile, const Blocks& blocks) {
  const std::int64_t bytes = std::min(kMaxJobBytes, (16 * tile.m + 8 * tile.n) * size.inner * 4);
  const std::int64_t products = tile.m * tile.n * divide_up(size.inner, 8) * 3 * blocks.costs.tensor_product / 40;
  return blocks.job_start() + std::max(bytes / blocks.costs.l2_bytes, products);
}
// Tile with the shortest time; ties go to the least total work.
ProductTile tile_for(const ProductSize& size, const Blocks& blocks, std::int64_t most) {
  const auto fits = [&](const ProductTile& tile) { return blocks.threads <= 256 || tile.m * tile.n <= 4; };
  const auto cycles = [&](const ProductTile& tile) {
    const std::int64_t each = job_cycles(size, tile, blocks), jobs = jobs_of(size, tile);
    return std::tuple(!fits(tile), std::max(most, divide_up(jobs, blocks.count) * each), jobs * each);
  };
  return *std::ranges::min_element(kTiles, {}, cycles);
}
ProductTile tile_for_sum(const ProductSize& size, const Blocks& blocks, std::int64_t most) {
  const ProductSize turned{size.columns, size.rows, size.inner};
  const ProductTile as_is = tile_for(size, blocks, most);
  ProductTile other = tile_for(turned, blocks, most);
  other.turned = true;
  const auto cycles = [&](const ProductSize& of, const ProductTile& tile) {
    const std::int64_t jobs = jobs_of(of, tile), each = job_cycles(of, tile, blocks);
    return std::pair(std::max(most, divide_up(jobs, blocks.count) * each), jobs * each);
  };
  const auto other_cycles = cycles(turned, other), as_is_cycles = cycles(size, as_is);
  return other_cycles.first * blocks.costs.turned_writes / 100 < as_is_cycles.first ||
                 (jobs_of(turned, other) <= blocks.count && size.columns <= 16 && other_cycles < as_is_cycles)
             ? other
             : as_is;
}

std::int64_t results(const TextCall& product) {
  return feature_count(product.output);
}
std::int64_t terms(const TextCall& product) {
  return feature_count(product.inputs[0].type);
}

class Planner {
 public:
  Planner(const std::vector<BlockStep>& steps, std::int64_t capacity, const Blocks& blocks)
      : steps_(steps), capacity_(capacity), blocks_(blocks) {
    plan_.values.resize(steps.size());
  }

  BlockPlan run() {
    find_places();
    while (find_products() || find_rows()) {
    }
    find_sums();
    find_arena();
    plan_.shared_bytes += lookup_bytes(steps_, capacity_) + parts_bytes();
    plan_.cycles +=
        blocks_.costs.grid_barrier * static_cast<std::int64_t>(plan_.phases.size() + (plan_.sums.empty() ? 0 : 1));
    return std::move(plan_);
  }

  BlockPlan run_rows() {
    only_rows_ = true;
    find_places();
    find_rows();
    find_arena();
    std::uint64_t numbers = 0;
    for (int i = 0; i < count(); ++i) {
      if (place(i) != BlockPlace::arena) continue;
      value(i).shared = false;  // stored among the gathered values
      value(i).offset = numbers;
      numbers += static_cast<std::uint64_t>(feature_count(call(i).output));
    }
    plan_.bytes = numbers * sizeof(float);
    return std::move(plan_);
  }

 private:
  int count() const { return static_cast<int>(steps_.size()); }
  const TextCall& call(int i) const { return steps_[static_cast<std::size_t>(i)].call; }
  const std::vector<int>& makers(int i) const { return steps_[static_cast<std::size_t>(i)].makers; }
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
      if (place(i) == BlockPlace::row && is_mapped(call(i)) && has_mapped_readers(i) &&
          std::ranges::all_of(makers(i), [&](int from) { return is_data(from); }))
        place(i) = BlockPlace::recomputed;
  }
  // Whether the value has readers, and all of them are mapped.
  bool has_mapped_readers(int i) const {
    const auto reads = [&](const BlockStep& step) { return std::ranges::find(step.makers, i) != step.makers.end(); };
    return std::ranges::any_of(steps_, reads) &&
           std::ranges::none_of(steps_, [&](const BlockStep& step) { return reads(step) && !is_mapped(step.call); });
  }
  bool open(int i) { return place(i) == BlockPlace::row && phase_of(i) < 0; }
  bool is_there(int from, int phase) {  // computed before the phase, or data
    return is_data(from) || (phase_of(from) >= 0 && phase_of(from) < phase);
  }

  ProductSize product_size(int i) const { return {capacity_, results(call(i)), terms(call(i))}; }
  std::int64_t row_tiles() const { return divide_up(divide_up(capacity_, kBlockRows), blocks_.count); }
  // Cost if each block computes the product for its own rows, without a phase of products.
  std::int64_t row_product_cycles(int i) const {
    return row_tiles() * (blocks_.job_start() / 2 + results(call(i)) * terms(call(i)) * 4 / blocks_.costs.l2_bytes);
  }
  std::int64_t product_cycles(const ProductSize& size, const ProductTile& tile) const {
    return divide_up(jobs_of(size, tile), blocks_.count) * job_cycles(size, tile, blocks_);
  }
  bool is_large(int i) const {
    if (only_rows_ || call(i).op != Op::matmul) return false;
    const ProductSize size = product_size(i);
    return row_product_cycles(i) > product_cycles(size, tile_for(size, blocks_, 0)) + blocks_.costs.grid_barrier;
  }

  bool find_products() {
    const int phase = static_cast<int>(plan_.phases.size());
    BlockPhase made;
    for (int i = 0; i < count(); ++i) {
      if (!open(i) || !is_large(i)) continue;
      if (!std::ranges::all_of(makers(i), [&](int from) { return is_there(from, phase); })) continue;
      BlockProduct product{i, tile_for(product_size(i), blocks_, 0), {}, 0};
      product.jobs = jobs_of(product_size(i), product.tile);
      plan_.cycles += product_cycles(product_size(i), product.tile);
      std::set<int> in{i};
      for (int k = i + 1; k < count(); ++k) {
        const TextCall& next = call(k);
        if (!open(k) || !is_scalar(next.op) || feature_count(next.output) != results(call(i))) continue;
        bool follows = false, fits = true;
        for (std::size_t j = 0; j < makers(k).size(); ++j) {
          const int from = makers(k)[j];
          follows = follows || in.contains(from);
          fits = fits &&
                 (in.contains(from) ? feature_count(next.inputs[j].type) == results(call(i)) : is_there(from, phase));
        }
        if (!follows || !fits) continue;
        in.insert(k);
        product.epilogue.push_back(k);
      }
      made.products.push_back(std::move(product));
    }
    for (const BlockProduct& product : made.products) {
      phase_of(product.step) = phase;
      for (const int k : product.epilogue) phase_of(k) = phase;
    }
    if (made.products.empty()) return false;
    plan_.phases.push_back(std::move(made));
    return true;
  }

  bool find_rows() {
    const int phase = static_cast<int>(plan_.phases.size());
    BlockPhase made;
    for (int i = 0; i < count(); ++i) {
      if (!open(i) || is_large(i)) continue;
      if (!std::ranges::all_of(makers(i), [&](int from) { return is_there(from, phase) || phase_of(from) == phase; }))
        continue;
      phase_of(i) = phase;
      if (made.rows.empty() || !joins(i, made.rows.back()))
        made.rows.push_back({{}, call(i).op == Op::matmul || is_mapped(call(i))});
      made.rows.back().steps.push_back(i);
      const std::int64_t elements = feature_count(call(i).output) * kBlockRows;
      plan_.cycles +=
          call(i).op == Op::matmul
              ? row_product_cycles(i)
              : row_tiles() * (blocks_.costs.row_item / 3 + elements * kFunctionInstructions / blocks_.threads);
    }
    if (made.rows.empty()) return false;
    find_shared(made);
    plan_.cycles += blocks_.costs.row_item * row_tiles() * static_cast<std::int64_t>(made.rows.size());
    plan_.phases.push_back(std::move(made));
    return true;
  }

  static bool contains(const BlockItem& item, int i) { return std::ranges::find(item.steps, i) != item.steps.end(); }
  bool reads_item(int from, const BlockItem& item) const {
    bool reads = false;
    each_source(steps_, plan_, from, [&](int k) { reads = reads || contains(item, k); });
    return reads;
  }
  // Whether step i can join the item. Values of a loop are in registers, so only the same feature can be read.
  bool joins(int i, const BlockItem& item) {
    const std::int64_t features = feature_count(call(i).output);
    if (!item.loop)
      return call(i).op != Op::matmul && !is_mapped(call(i)) &&
             std::ranges::none_of(makers(i), [&](int from) { return reads_item(from, item); });
    if (!is_mapped(call(i)) || feature_count(call(item.steps.front()).output) != features) return false;
    for (std::size_t k = 0; k < makers(i).size(); ++k) {
      const int from = makers(i)[k];
      if (!reads_item(from, item)) continue;
      if (place(from) == BlockPlace::recomputed || !is_scalar(call(i).op) ||
          feature_count(call(i).inputs[k].type) != features)
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
            if (place(k) != BlockPlace::data && phase_of(k) == number && !contains(item, k)) share(k);
          });
      }
    }
  }
  void share(int i) {
    if (std::exchange(value(i).shared, true)) return;
    plan_.shared_bytes += static_cast<std::uint64_t>(kBlockRows * shared_stride(feature_count(call(i).output))) *
                          size_of(call(i).output.dtype);
  }

  void find_sums() {
    std::int64_t most = 0, largest = 0, all = 0;
    std::vector<BlockSum> numbers;
    const auto size = [&](int i, bool turned) {
      const std::int64_t left = terms(call(i)), right = feature_count(call(i).inputs[1].type);
      return turned ? ProductSize{right, left, capacity_} : ProductSize{left, right, capacity_};
    };
    for (int i = 0; i < count(); ++i) {
      if (call(i).output.rows > 0 || !is_product_over_rows(call(i))) continue;
      const ProductTile tile = tile_for_sum(size(i, false), blocks_, 0);
      most = std::max(most, product_cycles(size(i, tile.turned), tile));
    }
    std::vector<std::int64_t> each;
    for (int i = 0; i < count(); ++i) {
      if (call(i).output.rows > 0) continue;
      const bool number = call(i).output.shape.elements() == 1;
      BlockSum sum{i, !number && is_product_over_rows(call(i)), {}, 0};
      std::int64_t cost = blocks_.job_start() + capacity_ * 32 * 4 / blocks_.costs.l2_bytes;
      if (sum.product) {
        sum.tile = tile_for_sum(size(i, false), blocks_, most);
        sum.jobs = jobs_of(size(i, sum.tile.turned), sum.tile);
        cost = job_cycles(size(i, sum.tile.turned), sum.tile, blocks_);
      } else if (number) {
        // A single block adds all terms.
        const std::int64_t terms = capacity_ * feature_count(call(i).inputs[0].type);
        plan_.number_cycles += blocks_.costs.number_sum + terms * 4 / blocks_.costs.l2_bytes;
        numbers.push_back(sum);
        continue;
      } else {
        sum.jobs = divide_up(call(i).output.shape.elements(), 32);
      }
      all += sum.jobs * cost;
      largest = std::max(largest, cost);
      const auto at = std::ranges::lower_bound(each, cost, std::greater<>());
      plan_.sums.insert(plan_.sums.begin() + (at - each.begin()), sum);
      each.insert(at, cost);
    }
    plan_.sums.insert(plan_.sums.end(), numbers.begin(), numbers.end());
    plan_.cycles += std::max({most, largest, divide_up(all, blocks_.count), plan_.number_cycles});
  }

  std::uint64_t parts_bytes() const {
    std::uint64_t bytes = blocks_.threads * sizeof(float);
    for (const BlockPhase& phase : plan_.phases) {
      for (const BlockProduct& product : phase.products)
        bytes = std::max(bytes, product_bytes(product.tile, blocks_.threads));
      for (const BlockItem& item : phase.rows)
        if (call(item.steps.front()).op == Op::matmul)
          bytes = std::max(bytes, row_product_bytes(results(call(item.steps.front())), blocks_.threads));
    }
    for (const BlockSum& sum : plan_.sums)
      if (sum.product) bytes = std::max(bytes, product_bytes(sum.tile, blocks_.threads));
    return bytes;
  }

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
      const std::int64_t features = results(call(i));
      value(i).stride = place(i) == BlockPlace::data || features < 4 ? features : divide_up(features, 4) * 4;
      if (place(i) != BlockPlace::arena) continue;
      value(i).offset = plan_.bytes;
      plan_.bytes += kept_bytes(capacity_ * value(i).stride, call(i).output.dtype);
    }
  }
  const std::vector<BlockStep>& steps_;
  std::int64_t capacity_;
  Blocks blocks_;
  bool only_rows_ = false;
  BlockPlan plan_;
};

}  // namespace

bool is_mapped(const TextCall& call) {
  return is_by_feature(call);
}

std::int64_t shared_stride(std::int64_t features) {
  return features < 16 ? divide_up(features, 4) * 4 : divide_up(features, 32) * 32 + 16;
}

std::uint64_t product_bytes(const ProductTile& tile, std::uint32_t threads) {
  return threads / 32 * static_cast<std::uint64_t>(tile::multiple_of_4(tile::part_floats(tile.m, tile.n))) *
         sizeof(float);
}
std::uint64_t row_product_bytes(std::int64_t results, std::uint32_t threads) {
  const tile::RowProductShape shape = tile::row_product_shape(results, threads / 32);
  return static_cast<std::uint64_t>(shape.groups * shape.shares * tile::part_floats(shape.m, 1)) * sizeof(float);
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
  const auto no = [&](std::string_view why) {
    return fmt::format("'{}' is not part of a step kernel with tiles of blocks: {}", name_of(call.op), why);
  };
  if (call.op == Op::matmul && call.output.rows > 0 &&
      feature_count(call.inputs[0].type) != call.inputs[0].type.shape[1])
    return no("it multiplies several rows of a sample");
  if (call.op == Op::matmul && call.output.rows > 0 && call.inputs[1].number) return no("its weights are a number");
  if (call.op == Op::matmul && call.output.rows == 0 && call.inputs[0].type.rows != 1)
    return no("it sums products of several rows of a sample");
  if (call.output.shape.elements() == 0) return no("it has no elements");
  if (call.op == Op::scatter_add) return no("its rows determine where it adds");
  if (call.op == Op::matmul || call.op == Op::minibatch || call.output.rows == 0 || is_mapped(call)) return {};
  if (call.inputs[0].type.dtype != DType::f32) return no("its rows are not f32");
  return is_along_axis(call) ? std::string() : no("it has no text for a warp");
}

BlockPlan block_phases(const std::vector<BlockStep>& steps, std::int64_t capacity, std::uint32_t blocks,
                       std::uint32_t threads, const GpuCosts& costs) {
  return Planner(steps, capacity, {blocks, threads, costs}).run();
}
BlockPlan row_phase(const std::vector<BlockStep>& steps, std::int64_t capacity, const GpuCosts& costs) {
  return Planner(steps, capacity, {1, 32, costs}).run_rows();
}

}  // namespace graphrun::cuda
