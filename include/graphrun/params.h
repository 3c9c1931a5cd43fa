// params.h: what a kernel needs to know beside its operands: one plain struct for each op that has attributes.
// Contract: PODs only, so that a Program prints, compares and travels to a device unchanged. `describe` visits the
// fields in order: printing follows from it. Shapes and dtypes of operands are not repeated here; a kernel gets them as
// TensorType. To add a structured op: declare its struct, give it describe(), list it in Params.
#pragma once

#include <cstdint>
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

// matmul: out(m, n) = op(a) @ op(b), where op() transposes the last two axes when the flag is set.
struct MatmulParams {
  bool transpose_a = false;
  bool transpose_b = false;
  template <class F>
  void describe(F&& f) const {
    f("transpose_a", transpose_a);
    f("transpose_b", transpose_b);
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

// minibatch(data, step) and row_count(step): batch number b = step mod batches holds rows [b*capacity, b*capacity +
// count), count = min(capacity, total - b*capacity).
struct MinibatchParams {
  std::int64_t total = 0;     // rows of the data set
  std::int64_t capacity = 0;  // rows of a batch
  template <class F>
  void describe(F&& f) const {
    f("total", total);
    f("capacity", capacity);
  }
  std::int64_t batches() const { return (total + capacity - 1) / capacity; }
  friend bool operator==(const MinibatchParams&, const MinibatchParams&) = default;
};

using Params = std::variant<NoParams, ScalarParams, MatmulParams, ReduceParams, MinibatchParams>;

GRAPHRUN_API std::string to_string(const Params& params);  // " transpose_a=true transpose_b=false", "" for none

}  // namespace graphrun
