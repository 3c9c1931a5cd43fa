// op.h: what an op is below the graph: a number with a name (types.h) and traits (op_traits.h). Here the numbers of
// sources, of the structured ops that passes and executors distinguish, and of arithmetic. Those that only files of
// their family name are in family_op.h, all scalar ops in scalar_op.h: a new op of either rebuilds few files. Contract:
// numbers change from build to build: texts and files hold names, and plug-ins are compared by the whole lists. Not
// each number is an op. A new op here rebuilds most of the library: include it in files that name ops, not in headers.
// Leaves to others: attributes, inference and gradients (src/graph/ops/op_def.h), what an op computes (src/kernels).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "graphrun/op_traits.h"

namespace graphrun {

// First numbers of the other two lists; all are below kOps.
inline constexpr std::uint16_t kFirstFamilyOp = 64, kFirstScalarOp = 128;
inline constexpr std::size_t kOps = 256;

// X(name of the op): sources and states, which no step computes; then those that run.
// clang-format off
#define GRAPHRUN_SOURCE_OPS(X) X(input) X(parameter) X(state) X(constant)
#define GRAPHRUN_STRUCTURED_OPS(X)                                                  \
  X(minibatch) X(row_count) X(increment) X(record) X(assign)                        \
  X(where) X(matmul)                                                                \
  X(sum) X(max) X(min) X(prod) X(logsumexp) X(argmax) X(argmin)                     \
  X(reshape) X(broadcast_to) X(cast) X(transpose) X(slice) X(pad) X(concat)         \
  X(scatter_add) X(dropout)                                                         \
  X(shard_step) X(combine_shards)
// clang-format on

#define GRAPHRUN_NAME(name) name,
enum class Op : std::uint16_t {
  GRAPHRUN_SOURCE_OPS(GRAPHRUN_NAME) GRAPHRUN_STRUCTURED_OPS(GRAPHRUN_NAME)
  // The first scalar ops, in the order of scalar_op_list.h.
  add = kFirstScalarOp,
  sub,
  mul,
  div,
  minimum,
  maximum,
};
#undef GRAPHRUN_NAME
#define GRAPHRUN_OP(name) Op::name,
static_assert(std::initializer_list<Op>{GRAPHRUN_SOURCE_OPS(GRAPHRUN_OP) GRAPHRUN_STRUCTURED_OPS(GRAPHRUN_OP)}.size() <=
              kFirstFamilyOp);
#undef GRAPHRUN_OP

}  // namespace graphrun
