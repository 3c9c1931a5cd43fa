// scalar_ops.h: every float scalar op, as a functor over a value type T, generated from its row in scalar_op_list.h.
// Contract: as scalar_functions.h. kUlps of a functor is the maximum error that the tests allow.
// Leaves to others: loops and broadcasting (cpu/, cuda/); f64 and the definition of an op, a column of the list
// (scalar_op_list.h): plain std:: functions in double.
#pragma once

#include "graphrun/scalar_op_list.h"
#include "kernels/scalar_functions.h"

namespace graphrun::scalar {

#define GRAPHRUN_UNARY(name, Functor, ulps, result, reference) \
  struct Functor {                                             \
    static constexpr double kUlps = ulps;                      \
    template <class T>                                         \
    GRAPHRUN_FN static T apply(T x, T a, T b) {                \
      (void)a;                                                 \
      (void)b;                                                 \
      return result;                                           \
    }                                                          \
  };
#define GRAPHRUN_BINARY(name, Functor, ulps, result, reference) \
  struct Functor {                                              \
    static constexpr double kUlps = ulps;                       \
    template <class T>                                          \
    GRAPHRUN_FN static auto apply(T x, T y) {                   \
      (void)y;                                                  \
      return result;                                            \
    }                                                           \
  };
GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY)
GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY)
GRAPHRUN_COMPARE_OPS(GRAPHRUN_BINARY)
GRAPHRUN_LOGICAL_OPS(GRAPHRUN_BINARY)

#undef GRAPHRUN_UNARY
#undef GRAPHRUN_BINARY

}  // namespace graphrun::scalar
