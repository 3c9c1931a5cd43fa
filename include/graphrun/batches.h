// batches.h: how the samples of a split form batches; the basis of all counts of batches, steps and rows.
// Contract: integer arithmetic; capacity 0 means no batches. Not here: the order of shuffled rows (op minibatch).
#pragma once

#include <algorithm>
#include <cstdint>

namespace graphrun {

struct Batches {
  std::int64_t total = 0;     // samples
  std::int64_t capacity = 0;  // samples of a full batch
  bool drop_last = false;     // skip a last batch that is not full

  // Steps per epoch.
  constexpr std::int64_t count() const {
    if (capacity == 0) return 0;
    return total / capacity + (!drop_last && total % capacity != 0);
  }
  constexpr std::int64_t samples() const { return drop_last ? count() * capacity : total; }  // per epoch
  constexpr bool all_full() const { return count() > 0 && samples() == count() * capacity; }
  // Samples of the batch at a step.
  constexpr std::int64_t at(std::uint64_t step) const {
    const auto batch = static_cast<std::int64_t>(step % static_cast<std::uint64_t>(count()));
    return std::min(capacity, samples() - batch * capacity);
  }
};

}  // namespace graphrun
