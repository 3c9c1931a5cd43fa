// picks.h: maps the rows of a step's batch to rows of the data.
// Contract: rows of a shuffled batch are found by walking a permutation (base/random_bits.h), which takes one round for
// most rows and many for some, so the slowest lane would stall its warp in every step. Instead all threads of a block
// find the rows of several steps at once, and take the next row when a walk ends. Leaves to others: reading the rows.
#pragma once

#include "base/random_bits.h"
#include "kernels/cuda/tile/ptx.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda::tile {

// Row `r` of the batch of step `step`.
struct Batches {
  unsigned long long total, capacity, batches;
  bool shuffle;
  unsigned long long key;
  GRAPHRUN_TILE_FN unsigned long long place(unsigned long long step, unsigned r) const {
    return step % batches * capacity + r;
  }
  GRAPHRUN_TILE_FN unsigned long long row(unsigned long long step, unsigned r) const {
    return shuffle ? bits::permuted(place(step, r), total, key, step / batches) : place(step, r);
  }
  // End of the valid rows of a batch, at most `end`.
  GRAPHRUN_TILE_FN int rows_until(unsigned long long step, int end) const {
    const unsigned long long left = total - place(step, 0), all = left < capacity ? left : capacity;
    return static_cast<unsigned long long>(end) < all ? end : static_cast<int>(all);
  }
};

// Number of steps in a table: more steps keep more threads busy.
GRAPHRUN_TILE_CONSTEXPR int steps_ahead(int rows) {
  int steps = 1;
  while (steps < 64 && 2 * steps * rows <= kPickedRows) steps *= 2;
  return steps;
}

// Table in a block's shared memory: data rows of the block's rows in the next steps. The block has kChunk rows of every
// kChunk * kBlocks; kBlocks blocks share a batch.
template <int kCapacity, int kThreads, int kBlocks, int kChunk>
class PickedRows {
  static constexpr unsigned kEvery = static_cast<unsigned>(kChunk) * kBlocks;

 public:
  static constexpr unsigned kRows = (kCapacity + kEvery - 1) / kEvery * kChunk;
  static constexpr unsigned kAhead = static_cast<unsigned>(steps_ahead(static_cast<int>(kRows)));

  // Called by all threads of the block in each epoch (1, 2, ... to `steps`); `step` is the model's step number. Begins
  // and ends with a barrier() if it finds rows.
  GRAPHRUN_TILE_FN void look_ahead(const Batches& batches, unsigned long long step, unsigned epoch, unsigned steps) {
    if ((epoch - 1) % kAhead != 0) return;
    barrier();
    const unsigned left = steps - epoch + 1, items = (left < kAhead ? left : kAhead) * kRows;
    const unsigned half = bits::half_bits(batches.total);
    constexpr int kWalks = 2;  // per thread: a single walk would wait for its own results
    Walk walks[kWalks];
    unsigned next = thread_index();
    const auto take = [&](Walk& walk) {
      walk.item = kNone;
      for (; next < items && walk.item == kNone; next += kThreads) {
        const unsigned long long at = step + next / kRows;
        const unsigned r = row_of(next % kRows);
        walk.place = batches.place(at, r);
        walk.epoch = at / batches.batches;
        if (r < kCapacity && walk.place < batches.total)
          walk.item = next;
        else
          rows_[next] = 0;  // lanes without a row may still read it
      }
    };
    GRAPHRUN_TILE_FOR (k, kWalks) take(walks[k]);
    for (bool walking = true; walking;) {
      GRAPHRUN_TILE_FOR (k, kWalks)
        walks[k].place = bits::permuted_once(walks[k].place, half, batches.key, walks[k].epoch);
      walking = false;
      GRAPHRUN_TILE_FOR (k, kWalks) {
        if (walks[k].item != kNone && walks[k].place < batches.total) {
          rows_[walks[k].item] = static_cast<unsigned>(walks[k].place);
          take(walks[k]);
        }
        walking = walking || walks[k].item != kNone;
      }
    }
    barrier();
  }

  GRAPHRUN_TILE_FN unsigned long long row(unsigned epoch, unsigned r) const {
    return rows_[(epoch - 1) % kAhead * kRows + (kBlocks == 1 ? r : r / kEvery * kChunk + r % kChunk)];
  }
  // All rows of an epoch, if one block has them.
  GRAPHRUN_TILE_FN const unsigned* rows(unsigned epoch) const {
    static_assert(kBlocks == 1);
    return rows_ + (epoch - 1) % kAhead * kRows;
  }
  // Returns whether the next epoch's rows are also known.
  GRAPHRUN_TILE_FN static bool knows_next(unsigned epoch, unsigned steps) {
    return epoch % kAhead != 0 && epoch < steps;
  }

 private:
  static constexpr unsigned kNone = ~0u;
  struct Walk {
    unsigned long long place = 0, epoch = 0;
    unsigned item = kNone;  // index in the table
  };
  GRAPHRUN_TILE_FN static unsigned row_of(unsigned local) {
    return kBlocks == 1 ? local : local / kChunk * kEvery + block_index() * kChunk + local % kChunk;
  }

  unsigned rows_[kAhead * kRows];  // (kAhead, kRows)
};

}  // namespace graphrun::cuda::tile
