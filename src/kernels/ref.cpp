#include "kernels/ref.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random_bits.h"
#include "graphrun/op.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/scalar.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

namespace graphrun {
namespace {

using namespace ref;

// ---- scalar ops: generated from the reference column of the tables ------------------------------------------------

#define GRAPHRUN_REF_UNARY(name, Functor, ulps, result, reference)                    \
  void name##_kernel(const KernelArgs& args) {                                        \
    const auto* scalars = args.params.get_if<ScalarParams>();                         \
    [[maybe_unused]] const double a = scalars != nullptr ? scalars->a : 0;            \
    [[maybe_unused]] const double b = scalars != nullptr ? scalars->b : 0;            \
    elementwise(args, [&](double x, double, double) -> double { return reference; }); \
  }
#define GRAPHRUN_REF_BINARY(name, Functor, ulps, result, reference)                                     \
  void name##_kernel(const KernelArgs& args) {                                                          \
    elementwise(args, [](double x, [[maybe_unused]] double y, double) -> double { return reference; }); \
  }
GRAPHRUN_UNARY_OPS(GRAPHRUN_REF_UNARY)
GRAPHRUN_BINARY_OPS(GRAPHRUN_REF_BINARY)
GRAPHRUN_COMPARE_OPS(GRAPHRUN_REF_BINARY)
GRAPHRUN_LOGICAL_OPS(GRAPHRUN_REF_BINARY)  // y of logical_not is 0

void where(const KernelArgs& args) {
  elementwise(args, [](double condition, double x, double y) { return condition != 0 ? x : y; });
}

// ---- structured ops -----------------------------------------------------------------------------------------------

void broadcast_to(const KernelArgs& args) {
  elementwise(args, [](double x, double, double) { return x; });
}

void cast(const KernelArgs& args) {
  if (args.in_type[0].dtype == args.out_type.dtype) {
    std::memcpy(args.out, args.in[0], args.out_type.bytes());  // 64-bit integers keep all their bits
  } else {
    elementwise(args, [](double x, double, double) { return x; });
  }
}

void matmul(const KernelArgs& args) {
  const auto [transpose_a, transpose_b, precision] = args.params.as<MatmulParams>();  // exact in any case
  const Shape a = valid_shape(args, args.in_type[0]);
  const Shape b = valid_shape(args, args.in_type[1]);
  const Shape c = valid_shape(args, args.out_type);
  const int ra = a.rank();
  const int rb = b.rank();
  const i64 a_width = a[ra - 1];
  const i64 b_width = b[rb - 1];
  const i64 m = c[c.rank() - 2];
  const i64 n = c[c.rank() - 1];
  const i64 k = std::min(a[ra - (transpose_a ? 2 : 1)], b[rb - (transpose_b ? 1 : 2)]);
  const Shape leading(c.dims().first(static_cast<std::size_t>(c.rank() - 2)));
  const i64 matrices = leading.elements();
  for (i64 matrix = 0; matrix < matrices; ++matrix) {
    const i64 in_a = broadcast_index(Shape(a.dims().first(static_cast<std::size_t>(ra - 2))), leading, matrix);
    const i64 in_b = broadcast_index(Shape(b.dims().first(static_cast<std::size_t>(rb - 2))), leading, matrix);
    const i64 a_first = in_a * a[ra - 2] * a_width;
    const i64 b_first = in_b * b[rb - 2] * b_width;
    for (i64 i = 0; i < m; ++i) {
      for (i64 j = 0; j < n; ++j) {
        double sum = 0;
        for (i64 l = 0; l < k; ++l)
          sum += in(args, 0, a_first + (transpose_a ? l * a_width + i : i * a_width + l)) *
                 in(args, 1, b_first + (transpose_b ? j * b_width + l : l * b_width + j));
        out(args, (matrix * m + i) * n + j, sum);
      }
    }
  }
  clear_invalid_rows(args);
}

// ---- batches, counters, states ------------------------------------------------------------------------------------

std::uint64_t counter(const KernelArgs& args, int input) {
  return *args.input<std::uint64_t>(input);
}

i64 first_row(const MinibatchParams& p, std::uint64_t step) {
  return static_cast<i64>(step % static_cast<std::uint64_t>(p.batches())) * p.capacity;
}
i64 rows_from(const MinibatchParams& p, i64 first) {
  return std::min(p.capacity, p.total - first);
}

void minibatch(const KernelArgs& args) {
  const auto& params = args.params.as<MinibatchParams>();
  const std::uint64_t step = counter(args, 1);
  const i64 first = first_row(params, step);
  const i64 count = rows_from(params, first);
  const std::uint64_t epoch = step / static_cast<std::uint64_t>(params.batches());
  const auto row = args.out_type.bytes() / static_cast<std::size_t>(params.capacity);
  for (i64 r = 0; r < count; ++r) {
    auto from = static_cast<std::size_t>(first + r);
    if (params.shuffle) from = bits::permuted(from, static_cast<std::uint64_t>(params.total), params.key, epoch);
    std::memcpy(args.output<std::byte>() + static_cast<std::size_t>(r) * row, args.input<std::byte>(0) + from * row,
                row);
  }
  const std::size_t used = static_cast<std::size_t>(count) * row;
  std::memset(args.output<std::byte>() + used, 0, args.out_type.bytes() - used);
}

void row_count(const KernelArgs& args) {
  const auto& params = args.params.as<MinibatchParams>();
  out(args, 0, static_cast<double>(rows_from(params, first_row(params, counter(args, 0)))));
}

void increment(const KernelArgs& args) {
  *args.output<std::uint64_t>() = counter(args, 0) + 1;
}

void record(const KernelArgs& args) {
  const auto length = static_cast<std::uint64_t>(args.out_type.shape.elements());
  out(args, static_cast<i64>(counter(args, 2) % length), in(args, 1, 0));
}

void assign(const KernelArgs& args) {
  std::memmove(args.out, args.in[1], args.out_type.bytes());
}

#define GRAPHRUN_REF_ENTRY(name, ...) {Op::name, name##_kernel},
constexpr ref::Entry kKernels[] = {
    GRAPHRUN_SCALAR_OPS(GRAPHRUN_REF_ENTRY){Op::where, where},
    {Op::broadcast_to, broadcast_to},
    {Op::cast, cast},
    {Op::matmul, matmul},
    {Op::minibatch, minibatch},
    {Op::row_count, row_count},
    {Op::increment, increment},
    {Op::record, record},
    {Op::assign, assign},
};

}  // namespace

KernelFn ref_kernel(Op op) {
  for (const std::span<const ref::Entry> family :
       {std::span<const ref::Entry>(kKernels), ref::reductions(), ref::movement(), ref::random()}) {
    for (const ref::Entry& entry : family) {
      if (entry.op == op) return entry.kernel;
    }
  }
  return nullptr;
}

std::uint64_t ref_workspace(Op op, const TensorType& output) {
  return op == Op::scatter_add ? static_cast<std::uint64_t>(output.shape.elements()) * sizeof(double) : 0;
}

}  // namespace graphrun
