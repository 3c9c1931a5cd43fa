// params.h: what a kernel needs to know in addition to its operands: a plain struct for each family of ops with
// attributes.
// Contract: a Params holds one of the structs and knows which. `describe` visits the fields of a struct in order, for
// printing, JSON and plug-ins in C. Shapes and dtypes of operands are not repeated here; a kernel gets them as
// TensorType.
// Out of scope: the checks that parameters fit the operands (src/types/op_rules.cpp), the distribution of samples over
// batches (batches.h), random bits (src/base/random_bits.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>

#include "graphrun/batches.h"
#include "graphrun/export.h"
#include "graphrun/types.h"

namespace graphrun {

// Ops without attributes.
struct NoParams {
  constexpr void describe(auto&&) const {}
  friend bool operator==(const NoParams&, const NoParams&) = default;
};

// Scalar ops with attributes: up to two numbers, in the order of the op's schema (leaky_relu: slope; clip: low, high).
struct ScalarParams {
  double a = 0;
  double b = 0;
  constexpr void describe(auto&& f) const { f("a", a), f("b", b); }
  friend bool operator==(const ScalarParams&, const ScalarParams&) = default;
};

// matmul: out(m, n) = op(a) @ op(b), where op() transposes the last two axes if the flag is set.
struct MatmulParams {
  bool transpose_a = false;
  bool transpose_b = false;
  Precision precision = Precision::fp32;
  constexpr void describe(auto&& f) const {
    f("transpose_a", transpose_a), f("transpose_b", transpose_b);
    if (precision == Precision::tf32) f("tf32", true);
  }
  friend bool operator==(const MatmulParams&, const MatmulParams&) = default;
};

// Reductions. Bit i of `axes` is set if the op reduces axis i of the input.
struct ReduceParams {
  std::uint32_t axes = 0;
  bool keepdims = false;
  constexpr void describe(auto&& f) const { f("axes", axes), f("keepdims", keepdims); }
  friend bool operator==(const ReduceParams&, const ReduceParams&) = default;
};

// Ops along one axis, counted from 0: softmax, log_softmax, argmax, argmin, concat.
struct AxisParams {
  std::int32_t axis = 0;
  constexpr void describe(auto&& f) const { f("axis", axis); }
  friend bool operator==(const AxisParams&, const AxisParams&) = default;
};

inline constexpr std::int64_t kMaxShards = 256;

// Value of an element in Layout::codes, with the arithmetic of the data set's transforms.
inline float decoded(std::uint8_t code, double divisor) {
  return static_cast<float>(code / divisor);
}

// minibatch(data, step) and row_count(step): batch b = step mod batches has rows [b*capacity, b*capacity + count), with
// count = min(capacity, total - b*capacity). With S > 1 shards, step is that of shard_step: shard step mod S has rows
// [shard*rows(), (shard+1)*rows()) of batch (step / S) mod batches, as far as the batch has them.
struct MinibatchParams {
  std::int64_t total = 0;     // rows of the data set
  std::int64_t capacity = 0;  // rows of a batch
  bool shuffle = false;
  std::uint64_t key = 0;
  bool drop_last = false;  // omits an incomplete last batch
  std::int32_t shards = 1;
  double divisor = 0;  // positive: the data are in Layout::codes, and the batch is decoded
  constexpr void describe(auto&& f) const {
    f("total", total);
    f("capacity", capacity);
    f("shuffle", shuffle);
    f("key", key);
    f("drop_last", drop_last);
    if (shards > 1) f("shards", shards);
    if (divisor > 0) f("divisor", divisor);
  }
  std::int64_t batches() const { return Batches{total, capacity, drop_last}.count(); }
  // Rows of a shard; without shards, of the batch.
  std::int64_t rows() const { return shards == 1 ? capacity : (capacity + shards - 1) / shards; }
  struct Rows {
    std::int64_t first, count;
    std::uint64_t epoch;
  };
  Rows at(std::uint64_t step) const {
    const auto parts = static_cast<std::uint64_t>(shards), count = static_cast<std::uint64_t>(batches());
    const std::uint64_t batch = shards == 1 ? step : step / parts, shard = shards == 1 ? 0 : step % parts;
    const std::int64_t begin = static_cast<std::int64_t>(batch % count) * capacity;
    const std::int64_t end = std::min(begin + capacity, total);
    const std::int64_t first = std::min(begin + static_cast<std::int64_t>(shard) * rows(), end);
    return {first, std::min(rows(), end - first), batch / count};
  }
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

// transpose: axis i of the output is axis axes[i] of the input; entries beyond the rank are 0.
struct PermuteParams {
  std::int32_t axes[kMaxRank] = {};
  constexpr void describe(auto&& f) const { f("axes", std::span<const std::int32_t>(axes)); }
  friend bool operator==(const PermuteParams&, const PermuteParams&) = default;
};

// slice: the output starts at index `start` of the input along the axis.
struct SliceParams {
  std::int32_t axis = 0;
  std::int64_t start = 0;
  constexpr void describe(auto&& f) const { f("axis", axis), f("start", start); }
  friend bool operator==(const SliceParams&, const SliceParams&) = default;
};

// pad: the input starts at index `before` of the output along the axis; all other elements are `value`.
struct PadParams {
  std::int32_t axis = 0;
  std::int64_t before = 0;
  double value = 0;
  constexpr void describe(auto&& f) const { f("axis", axis), f("before", before), f("value", value); }
  friend bool operator==(const PadParams&, const PadParams&) = default;
};

// windows and fold. Spatial axis i < axes, outermost first, has windows of size[i] elements that are dilation[i] apart;
// consecutive windows start stride[i] apart. Entries from `axes` on are 1.
inline constexpr int kMaxWindowAxes = 3;
struct WindowParams {
  std::int32_t axes = 1;
  std::int32_t size[kMaxWindowAxes] = {1, 1, 1};
  std::int32_t stride[kMaxWindowAxes] = {1, 1, 1};
  std::int32_t dilation[kMaxWindowAxes] = {1, 1, 1};
  constexpr void describe(auto&& f) const {
    f("axes", axes);
    f("size", std::span<const std::int32_t>(size));
    f("stride", std::span<const std::int32_t>(stride));
    f("dilation", std::span<const std::int32_t>(dilation));
  }
  // Number of windows along an axis of `extent` elements; 0 or less if none fits.
  constexpr std::int64_t windows(int axis, std::int64_t extent) const {
    const std::int64_t rest = extent - 1 - std::int64_t{dilation[axis]} * (size[axis] - 1);
    return rest < 0 ? 0 : rest / stride[axis] + 1;
  }
  friend bool operator==(const WindowParams&, const WindowParams&) = default;
};

// Random ops: element i at a step comes from word (key, step, i) of base/random_bits.h. random_uniform: range [a, b);
// random_normal: mean a, standard deviation b; dropout: rate a; permutation: neither a nor b.
struct RandomParams {
  std::uint64_t key = 0;
  double a = 0;
  double b = 0;
  constexpr void describe(auto&& f) const { f("key", key), f("a", a), f("b", b); }
  friend bool operator==(const RandomParams&, const RandomParams&) = default;
};

// shard_step: step * shards + shard. combine_shards: `combine` is a CombineOp (program.h).
struct ShardParams {
  std::int32_t shards = 1;
  std::int32_t combine = 0;
  constexpr void describe(auto&& f) const { f("shards", shards), f("combine", combine); }
  friend bool operator==(const ShardParams&, const ShardParams&) = default;
};

enum class ParamsKind : std::uint32_t {};  // index of a struct in Params; 0: NoParams

struct Params : std::variant<NoParams, ScalarParams, MatmulParams, ReduceParams, AxisParams, MinibatchParams,
                             PermuteParams, SliceParams, PadParams, RandomParams, WindowParams, ShardParams> {
  using variant::variant;

  constexpr ParamsKind kind() const { return static_cast<ParamsKind>(index()); }
  // Returns the struct inside; null, or std::logic_error, if it has another type.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(this);
  }
  template <class T>
  const T& as() const {
    if (const T* const held = get_if<T>()) return *held;
    throw std::logic_error("a step has parameters of another op");
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(this);
  }
  template <class T>
  T& as() {
    return const_cast<T&>(static_cast<const Params*>(this)->as<T>());
  }
  // Calls f(name, value) for each field.
  void describe(auto&& f) const {
    std::visit([&f](const auto& held) { held.describe(f); }, static_cast<const variant&>(*this));
  }
};
template <class T>
inline constexpr ParamsKind params_kind = Params(T()).kind();

GRAPHRUN_API std::string to_string(const Params& params);  // " transpose_a=true transpose_b=false", "" for none

}  // namespace graphrun
