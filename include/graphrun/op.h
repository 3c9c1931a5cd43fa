// op.h: what an op is below the graph: a number with a name (types.h) and traits (op_traits.h). Here the numbers.
// Contract: the enumerators are those of op_list.h. They change from build to build: texts and files hold names, and
// plug-ins are compared by the whole list. Every new op changes this header: include it in files that name ops, not in
// headers.
// Leaves to others: attributes, inference and gradients (src/graph/ops/op_def.h), what an op computes (src/kernels).
#pragma once

#include <cstddef>
#include <cstdint>

#include "graphrun/op_list.h"
#include "graphrun/op_traits.h"

namespace graphrun {

#define GRAPHRUN_NAME(name, ...) name,
enum class Op : std::uint16_t { GRAPHRUN_OPS(GRAPHRUN_NAME) };
#undef GRAPHRUN_NAME
#define GRAPHRUN_ONE(...) +1
inline constexpr std::size_t kOps = 0 GRAPHRUN_OPS(GRAPHRUN_ONE);
#undef GRAPHRUN_ONE

}  // namespace graphrun
