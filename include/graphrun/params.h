// params.h: what a kernel needs to know beside its operands: one plain struct for each op that has attributes.
// Contract: PODs only, so that a Program prints, compares and travels to a device unchanged. `describe` visits the
// fields in order: printing follows from it. Shapes and dtypes of operands are not repeated here; a kernel gets them as
// TensorType. To add a structured op: declare its struct, give it describe(), list it in Params.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "graphrun/types.h"

namespace graphrun {

struct NoParams {
  template <class F>
  void describe(F&&) const {}
  friend bool operator==(const NoParams&, const NoParams&) = default;
};

// Scalar ops with attributes: up to two numbers, in the order of the op's schema (leaky_relu: slope; clip: low, high).
struct ScalarParams {
  double a = 0;
  double b = 0;
  template <class F>
  void describe(F&& f) const {
    f("a", a);
    f("b", b);
  }
  friend bool operator==(const ScalarParams&, const ScalarParams&) = default;
};

// How exact products of f32 have to be. tf32: an executor may round their operands to 10 bits after the point, which
// tensor cores multiply several times faster; sums stay f32. Those that have no such units compute as for fp32.
enum class Precision : std::uint8_t { fp32, tf32 };

// matmul: out(m, n) = op(a) @ op(b), where op() transposes the last two axes when the flag is set.
struct MatmulParams {
  bool transpose_a = false;
  bool transpose_b = false;
  Precision precision = Precision::fp32;
  template <class F>
  void describe(F&& f) const {
    f("transpose_a", transpose_a);
    f("transpose_b", transpose_b);
    if (precision == Precision::tf32) f("tf32", true);
  }
  friend bool operator==(const MatmulParams&, const MatmulParams&) = default;
};

// Reductions. Bit i of `axes` is set when axis i of the input is reduced.
struct ReduceParams {
  std::uint32_t axes = 0;
  bool keepdims = false;
  template <class F>
  void describe(F&& f) const {
    f("axes", axes);
    f("keepdims", keepdims);
  }
  friend bool operator==(const ReduceParams&, const ReduceParams&) = default;
};

// Ops that look along one axis: softmax, log_softmax, argmax, argmin, concat. Counted from 0.
struct AxisParams {
  std::int32_t axis = 0;
  template <class F>
  void describe(F&& f) const {
    f("axis", axis);
  }
  friend bool operator==(const AxisParams&, const AxisParams&) = default;
};

// transpose: axis i of the output is axis axes[i] of the input; entries past the rank are 0.
struct PermuteParams {
  std::int32_t axes[kMaxRank] = {};
  template <class F>
  void describe(F&& f) const {
    f("axes", std::span<const std::int32_t>(axes));
  }
  friend bool operator==(const PermuteParams&, const PermuteParams&) = default;
};

// slice: the output begins at `start` of the input along the axis.
struct SliceParams {
  std::int32_t axis = 0;
  std::int64_t start = 0;
  template <class F>
  void describe(F&& f) const {
    f("axis", axis);
    f("start", start);
  }
  friend bool operator==(const SliceParams&, const SliceParams&) = default;
};

// pad: the input begins at `before` of the output along the axis; around it stands `value`.
struct PadParams {
  std::int32_t axis = 0;
  std::int64_t before = 0;
  double value = 0;
  template <class F>
  void describe(F&& f) const {
    f("axis", axis);
    f("before", before);
    f("value", value);
  }
  friend bool operator==(const PadParams&, const PadParams&) = default;
};

// Draws: element i at a step is word (key, step, i) of base/random_bits.h. random_uniform: [a, b); random_normal: mean
// a, deviation b; dropout: rate a; permutation: none.
struct RandomParams {
  std::uint64_t key = 0;
  double a = 0;
  double b = 0;
  template <class F>
  void describe(F&& f) const {
    f("key", key);
    f("a", a);
    f("b", b);
  }
  friend bool operator==(const RandomParams&, const RandomParams&) = default;
};

// minibatch(data, step) and row_count(step): batch number b = step mod batches holds rows [b*capacity, b*capacity +
// count), count = min(capacity, total - b*capacity).
struct MinibatchParams {
  std::int64_t total = 0;     // rows of the data set
  std::int64_t capacity = 0;  // rows of a batch
  bool shuffle = false;
  std::uint64_t key = 0;
  bool drop_last = false;  // a last batch that is not full is left out
  template <class F>
  void describe(F&& f) const {
    f("total", total);
    f("capacity", capacity);
    f("shuffle", shuffle);
    f("key", key);
    f("drop_last", drop_last);
  }
  std::int64_t batches() const { return drop_last ? total / capacity : (total + capacity - 1) / capacity; }
  friend bool operator==(const MinibatchParams&, const MinibatchParams&) = default;
};

using Params = std::variant<NoParams, ScalarParams, MatmulParams, ReduceParams, MinibatchParams, AxisParams,
                            PermuteParams, SliceParams, PadParams, RandomParams>;

GRAPHRUN_API std::string to_string(const Params& params);  // " transpose_a=true transpose_b=false", "" for none

}  // namespace graphrun
