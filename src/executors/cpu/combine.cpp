#include "executors/cpu/combine.h"

#include <bit>
#include <limits>
#include <stdexcept>

#include "graphrun/op.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun {
namespace {

template <class Real>
cpu::ElementFn function_of(const cpu::IsaTableOf<Real>& table, CombineOp op) {
  constexpr Op kFunctions[] = {Op::add, Op::mul, Op::maximum, Op::minimum};
  return cpu::scalar_loop(table, kFunctions[static_cast<std::size_t>(op)]);
}

template <class Real>
struct Tree {
  cpu::ElementFn combine;
  const PartitionResults<Real>& results;
  std::int64_t n;

  // Combines the existing partitions of [first, first + span), where span is a power of two. Intermediate results are
  // in blocks on the stack, one per level, and thus in the L1 cache.
  const Real* run(int first, int span, Real* to) const {
    if (span == 1) return results.first + static_cast<std::size_t>(first) * results.apart;
    const int half = span / 2;
    if (first + half >= results.partitions) return run(first, half, to);
    Real other[kCombineBlock];
    const Real* const x = run(first, half, to);
    const Real* const y = run(first + half, half, other);
    cpu::apply(combine, to, n, {{x, 0, 1}, {y, 0, 1}});
    return to;
  }
};

}  // namespace

float identity(CombineOp op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (op) {
    case CombineOp::sum:
      return 0;
    case CombineOp::product:
      return 1;
    case CombineOp::max:
      return -kInfinity;
    case CombineOp::min:
      return kInfinity;
  }
  throw std::logic_error("identity: no such operator");
}

template <class Real>
const Real* combined(const cpu::IsaTableOf<Real>& table, CombineOp op, const PartitionResults<Real>& results,
                     std::int64_t n, Real* block) {
  const Tree<Real> tree{function_of(table, op), results, n};
  const int span = static_cast<int>(std::bit_ceil(static_cast<unsigned>(results.partitions)));
  return tree.run(0, span, block);
}

template <class Real>
const Real* combine_two(const cpu::IsaTableOf<Real>& table, CombineOp op, const Real* x, const Real* y, std::int64_t n,
                        Real* to) {
  cpu::apply(function_of(table, op), to, n, {{x, 0, 1}, {y, 0, 1}});
  return to;
}

#define GRAPHRUN_COMBINE(Real)                                                                                        \
  template const Real* combined(const cpu::IsaTableOf<Real>&, CombineOp, const PartitionResults<Real>&, std::int64_t, \
                                Real*);                                                                               \
  template const Real* combine_two(const cpu::IsaTableOf<Real>&, CombineOp, const Real*, const Real*, std::int64_t,   \
                                   Real*);
GRAPHRUN_COMBINE(float)
GRAPHRUN_COMBINE(double)
#undef GRAPHRUN_COMBINE

}  // namespace graphrun
