#include "kernels/ref.h"

#include <algorithm>
#include <cstring>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/params.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

namespace graphrun {
namespace {

using namespace ref;

void broadcast_to(const KernelArgs& args) {
  elementwise(args, [](double x, double, double) { return x; });
}

void cast(const KernelArgs& args) {
  if (args.in_type[0].dtype != args.out_type.dtype) return broadcast_to(args);
  const i64 bytes = static_cast<i64>(size_of(args.out_type.dtype));  // preserves all bits of 64-bit integers
  for_elements(merged<2>({view_in(args, 0), view_out(args)}), [&](i64, const Offsets<2>& at) {
    std::memmove(args.output<std::byte>() + at[1] * bytes, args.input<std::byte>(0) + at[0] * bytes,
                 static_cast<std::size_t>(bytes));
  });
  clear_invalid_rows(args);
}

// A matrix in any layout.
template <class T>
struct Matrix {
  const T* data;
  i64 row, column;  // strides
  double at(i64 i, i64 j) const { return static_cast<double>(data[i * row + j * column]); }
};

// c = a @ b in blocks of columns, so that b is read along its rows. Each sum still adds its terms in order.
template <class T>
void product(Matrix<T> a, Matrix<T> b, T* c, i64 m, i64 n, i64 k) {
  constexpr i64 kBlock = 128;
  for (i64 first = 0; first < n; first += kBlock) {
    const i64 columns = std::min(kBlock, n - first);
    for (i64 i = 0; i < m; ++i) {
      double sums[kBlock] = {};
      for (i64 l = 0; l < k; ++l) {
        const double x = a.at(i, l);
        if (b.column == 1) {
          const T* row = b.data + l * b.row + first;
          for (i64 j = 0; j < columns; ++j) sums[j] += x * static_cast<double>(row[j]);
        } else {
          for (i64 j = 0; j < columns; ++j) sums[j] += x * b.at(l, first + j);
        }
      }
      for (i64 j = 0; j < columns; ++j) c[i * n + first + j] = static_cast<T>(sums[j]);
    }
  }
}

template <class T>
void matmul_of(const KernelArgs& args) {
  const auto [transpose_a, transpose_b, precision] = args.params.as<MatmulParams>();  // always exact
  const View a = transpose_a ? transposed(view_in(args, 0)) : view_in(args, 0);
  const View b = transpose_b ? transposed(view_in(args, 1)) : view_in(args, 1);
  const View c = view_out(args);
  const int row_a = a.extents.rank() - 2, row_b = b.extents.rank() - 2;
  const i64 m = c.extents[c.extents.rank() - 2], n = c.extents[c.extents.rank() - 1];
  const i64 k = std::min(a.extents[row_a + 1], b.extents[row_b]);
  for_elements(matrices_of(a, b), [&](i64 matrix, const Offsets<2>& at) {
    product<T>({args.input<T>(0) + at[0], a.strides[row_a], a.strides[row_a + 1]},
               {args.input<T>(1) + at[1], b.strides[row_b], b.strides[row_b + 1]}, args.output<T>() + matrix * m * n, m,
               n, k);
  });
  clear_invalid_rows(args);
}

void matmul(const KernelArgs& args) {
  args.out_type.dtype == DType::f64 ? matmul_of<double>(args) : matmul_of<float>(args);
}

// ---- batches, counters, states ------------------------------------------------------------------------------------

i64 first_row(const MinibatchParams& p, std::uint64_t step) {
  return static_cast<i64>(step % static_cast<std::uint64_t>(p.batches())) * p.capacity;
}
i64 rows_from(const MinibatchParams& p, i64 first) {
  return std::min(p.capacity, p.total - first);
}

void minibatch(const KernelArgs& args) {
  const MinibatchParams params = batch_params(args, 2);
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
  const MinibatchParams params = batch_params(args, 1);
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

constexpr ref::Entry kKernels[] = {
    {Op::broadcast_to, broadcast_to},
    {Op::cast, cast},
    {Op::matmul, matmul},
    {Op::minibatch, minibatch},
    {Op::row_count, row_count},
    {Op::increment, increment},
    {Op::record, record},
    {Op::assign, assign},
    {family_op::varying_minibatch, minibatch},
    {family_op::varying_row_count, row_count},
};

}  // namespace

KernelFn ref_kernel(Op op) {
  for (const std::span<const ref::Entry> family :
       {std::span<const ref::Entry>(kKernels), ref::scalar_ops(), ref::reductions(), ref::movement(), ref::random()}) {
    for (const ref::Entry& entry : family) {
      if (entry.op == op) return entry.kernel;
    }
  }
  return nullptr;
}

bool ref_takes_views(Op op) {
  return op != Op::minibatch && op != Op::assign;  // these two copy bytes
}

std::uint64_t ref_workspace(Op op, const TensorType& output) {
  return op == Op::scatter_add ? static_cast<std::uint64_t>(output.shape.elements()) * sizeof(double) : 0;
}

}  // namespace graphrun
