// Greedy packings in several orders (block.h, pack_greedily).

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "packing/block.h"

namespace graphrun::plan {
namespace {

// Places each block in turn in the lowest gap that it fits in.
Packing place_in_order(std::span<const Block> blocks, std::span<const Index> order, Meter& meter) {
  struct Placed {
    Bytes offset, end;
    std::uint32_t first, last;
  };
  std::vector<Placed> placed;  // sorted by offset
  placed.reserve(blocks.size());
  Packing packing;
  packing.offsets.resize(blocks.size());
  for (const Index i : order) {
    const Block& block = blocks[i];
    Bytes offset = 0;
    std::size_t at = 0;
    for (; at < placed.size(); ++at) {
      const Placed& p = placed[at];
      const bool live = p.first <= block.last && block.first <= p.last;
      if (live && p.offset >= offset + block.size) break;
      if (live) offset = std::max(offset, aligned(p.end, block.alignment));
    }
    meter.spend(at + 1);
    packing.offsets[i] = offset;
    packing.height = std::max(packing.height, offset + block.size);
    const auto by_offset = [](Bytes value, const Placed& p) { return value < p.offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, by_offset),
                  {offset, offset + block.size, block.first, block.last});
  }
  return packing;
}

// Stable sort by descending key; ties keep the order of first use, then the caller's order.
template <class Key>
std::vector<Index> order_by(std::span<const Block> blocks, Key key) {
  std::vector<Index> order(blocks.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key(blocks[a]) > key(blocks[b]); });
  return order;
}

double width(const Block& b) {
  return static_cast<double>(b.last - b.first) + 1;
}
double size(const Block& b) {
  return static_cast<double>(b.size);
}
double area(const Block& b) {
  return width(b) * size(b);
}

// Every second block by time of first use, then the others: alternates between the two ends of a chain's memory.
std::vector<Index> order_by_turns(std::span<const Block> blocks) {
  const std::vector<Index> in_time = order_by(blocks, [](const Block& b) { return -static_cast<double>(b.first); });
  std::vector<Index> order;
  for (std::size_t turn : {0u, 1u}) {
    for (std::size_t i = turn; i < in_time.size(); i += 2) order.push_back(in_time[i]);
  }
  return order;
}

std::vector<std::vector<Index>> greedy_orders(std::span<const Block> blocks) {
  return {order_by(blocks, size),
          order_by(blocks, area),
          order_by(blocks, width),
          order_by(blocks, [](const Block& b) { return -static_cast<double>(b.first); }),
          order_by_turns(blocks),
          order_by(blocks, [](const Block& b) { return static_cast<double>(b.last); }),
          order_by(blocks, [](const Block& b) { return -width(b); })};
}

// Repeatedly moves the blocks that stick out above the goal half the way forward in the order, which brings hard blocks
// to the front. Keeps the best packing found.
void improve(std::span<const Block> blocks, std::vector<Index> order, Bytes goal, Meter& meter, Packing& best) {
  Packing now = best;
  std::uint64_t since_best = 0;
  while (best.height > goal && since_best < 200) {
    const Bytes line = std::max(goal, now.height - (now.height - goal + 1) / 2);
    bool moved = false;
    for (std::size_t place = 0; place < order.size(); ++place) {
      const Index i = order[place];
      if (now.offsets[i] + blocks[i].size <= line || place == 0) continue;
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(place);
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(place / 2), from, from + 1);
      moved = true;
    }
    if (!moved || meter.ended() || meter.left() < blocks.size() * blocks.size() / 2) return;
    now = place_in_order(blocks, order, meter);
    ++since_best;
    if (now.height < best.height) {
      best = now;
      since_best = 0;
    }
  }
}

}  // namespace

Packing pack_greedily(std::span<const Block> blocks, Bytes goal, Meter& meter) {
  const std::vector<std::vector<Index>> orders = greedy_orders(blocks);
  Packing best;
  const std::vector<Index>* best_order = nullptr;
  for (const std::vector<Index>& order : orders) {
    Packing packing = place_in_order(blocks, order, meter);
    if (best_order == nullptr || packing.height < best.height) {
      best = std::move(packing);
      best_order = &order;
    }
    if (best.height <= goal || meter.ended()) return best;
  }
  improve(blocks, *best_order, goal, meter, best);
  return best;
}

}  // namespace graphrun::plan
