// params/minibatch.h: parameters of what goes through a data set batch by batch.
// Contract: that of params.h. Leaves to others: how samples fall into batches (graphrun/batches.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/batches.h"
#include "graphrun/params.h"

namespace graphrun {

// minibatch(data, step) and row_count(step): batch number b = step mod batches holds rows [b*capacity, b*capacity +
// count), count = min(capacity, total - b*capacity).
struct MinibatchParams {
  static constexpr ParamsKind kKind = params_kind("minibatch");
  std::int64_t total = 0;     // rows of the data set
  std::int64_t capacity = 0;  // rows of a batch
  bool shuffle = false;
  std::uint64_t key = 0;
  bool drop_last = false;  // a last batch that is not full is left out
  constexpr void describe(auto&& f) const {
    f("total", total);
    f("capacity", capacity);
    f("shuffle", shuffle);
    f("key", key);
    f("drop_last", drop_last);
  }
  std::int64_t batches() const { return Batches{total, capacity, drop_last}.count(); }
  // Of varying_minibatch(data, step, rows) and varying_row_count(step, rows): the same of the first `rows` rows. A
  // batch at least, whatever stands there: a kernel that reads them stays within its data.
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
