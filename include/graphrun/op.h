// op.h: what an op is below the graph: a number with a name (types.h) and traits (op_traits.h). Here the numbers of
// sources, structured ops and arithmetic; those of all scalar ops are in scalar_op.h, so that a new one rebuilds few
// files. Contract: numbers change from build to build: texts and files hold names, and plug-ins are compared by the
// whole list. A new structured op changes this header: include it in files that name ops, not in headers. Leaves to
// others: attributes, inference and gradients (src/graph/ops/op_def.h), what an op computes (src/kernels).
#pragma once

#include <cstdint>

#include "graphrun/op_traits.h"

namespace graphrun {

// X(name of the op): sources and states, which no step computes; then those that run.
// clang-format off
#define GRAPHRUN_SOURCE_OPS(X) X(input) X(parameter) X(state) X(constant)
#define GRAPHRUN_STRUCTURED_OPS(X)                                                  \
  X(minibatch) X(row_count) X(increment) X(record) X(assign)                        \
  X(where) X(matmul)                                                                \
  X(sum) X(max) X(min) X(prod) X(logsumexp) X(argmax) X(argmin)                     \
  X(softmax) X(log_softmax) X(softmax_cross_entropy)                                \
  X(reshape) X(broadcast_to) X(cast) X(transpose) X(slice) X(pad) X(concat)         \
  X(one_hot) X(gather) X(scatter_add)                                               \
  X(random_uniform) X(random_normal) X(permutation) X(dropout)
// clang-format on

#define GRAPHRUN_NAME(name) name,
enum class Op : std::uint16_t {
  GRAPHRUN_SOURCE_OPS(GRAPHRUN_NAME) GRAPHRUN_STRUCTURED_OPS(GRAPHRUN_NAME)
  // The first scalar ops, in the order of scalar_op_list.h.
  add,
  sub,
  mul,
  div,
  minimum,
  maximum,
};
#undef GRAPHRUN_NAME

}  // namespace graphrun
