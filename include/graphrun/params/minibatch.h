// params/minibatch.h: parameters of ops that read a data set batch by batch.
// Contract: see params.h. Not here: the distribution of samples over batches (graphrun/batches.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/batches.h"
#include "graphrun/params.h"

namespace graphrun {

// minibatch(data, step) and row_count(step): batch b = step mod batches has rows [b*capacity, b*capacity + count), with
// count = min(capacity, total - b*capacity).
struct MinibatchParams {
  static constexpr ParamsKind kKind = params_kind("minibatch");
  std::int64_t total = 0;     // rows of the data set
  std::int64_t capacity = 0;  // rows of a batch
  bool shuffle = false;
  std::uint64_t key = 0;
  bool drop_last = false;  // omits an incomplete last batch
  constexpr void describe(auto&& f) const {
    f("total", total);
    f("capacity", capacity);
    f("shuffle", shuffle);
    f("key", key);
    f("drop_last", drop_last);
  }
  std::int64_t batches() const { return Batches{total, capacity, drop_last}.count(); }
  // Parameters for varying_minibatch(data, step, rows) and varying_row_count(step, rows), which use only the first
  // `rows` rows. The result always has at least one batch and at most `total` rows, so that a kernel stays within its
  // data whatever number `rows` contains.
  MinibatchParams of_rows(std::uint64_t rows) const {
    MinibatchParams some = *this;
    const std::int64_t least = drop_last ? std::min(capacity, total) : 1;
    some.total = rows < static_cast<std::uint64_t>(total) ? std::max(static_cast<std::int64_t>(rows), least) : total;
    return some;
  }
  friend bool operator==(const MinibatchParams&, const MinibatchParams&) = default;
};

using MinibatchParamsList = ParamsList<MinibatchParams>;

}  // namespace graphrun
