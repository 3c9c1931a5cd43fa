// ref.cpp: reference kernels of scalar ops, from the last column of scalar_op_list.h, of where(), matmul and solve_spd;
// look-ups.
#include "kernels/ref.h"

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/ref_access.h"

namespace graphrun {
namespace {

using namespace ref;

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
GRAPHRUN_LOGICAL_OPS(GRAPHRUN_REF_BINARY)  // logical_not ignores y

void where(const KernelArgs& args) {
  elementwise(args, [](double condition, double x, double y) { return condition != 0 ? x : y; });
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
  const View a = transpose_a ? transposed(args.input_view(0)) : args.input_view(0);
  const View b = transpose_b ? transposed(args.input_view(1)) : args.input_view(1);
  const View c = args.output_view();
  const int row_a = a.extents.rank() - 2, row_b = b.extents.rank() - 2;
  const i64 m = c.extents[c.extents.rank() - 2], n = c.extents[c.extents.rank() - 1];
  const i64 k = std::min(a.extents[row_a + 1], b.extents[row_b]);
  for_elements(matrices_of(a, b), [&](i64 matrix, const Offsets<2>& at) {
    product<T>({args.input<T>(0) + at[0], a.strides[row_a], a.strides[row_a + 1]},
               {args.input<T>(1) + at[1], b.strides[row_b], b.strides[row_b + 1]}, args.output<T>() + matrix * m * n, m,
               n, k);
  });
  args.clear_invalid_rows();
}

void matmul(const KernelArgs& args) {
  args.out_type.dtype == DType::f64 ? matmul_of<double>(args) : matmul_of<float>(args);
}

// The Cholesky factor L and L y = b, row by row; then L^T x = y.
void solve_spd(const KernelArgs& args) {
  const i64 n = args.out_type.shape[0];
  const View a = args.input_view(0), b = args.input_view(1);
  double* const L = static_cast<double*>(args.workspace);
  double* const y = L + n * n;
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = 0; j <= i; ++j) {
      double sum = in(args, 0, j * a.strides[0] + i * a.strides[1]) + (i == j ? in(args, 2, 0) : 0);
      for (i64 k = 0; k < j; ++k) sum -= L[i * n + k] * L[j * n + k];
      if (i == j && !(sum > 0 && std::isfinite(sum))) {
        for (i64 k = 0; k < n; ++k) out(args, k, std::numeric_limits<double>::quiet_NaN());
        return;
      }
      L[i * n + j] = i == j ? std::sqrt(sum) : sum / L[j * n + j];
    }
    double sum = in(args, 1, i * b.strides[0]);
    for (i64 k = 0; k < i; ++k) sum -= L[i * n + k] * y[k];
    y[i] = sum / L[i * n + i];
  }
  for (i64 i = n; i-- > 0;) {
    for (i64 k = i + 1; k < n; ++k) y[i] -= L[k * n + i] * y[k];
    y[i] /= L[i * n + i];
    out(args, i, y[i]);
  }
}

#define GRAPHRUN_REF_ENTRY(name, ...) {scalar_op::name, name##_kernel},
constexpr ref::Entry kKernels[] = {
    GRAPHRUN_SCALAR_OPS(GRAPHRUN_REF_ENTRY){Op::where, where}, {Op::matmul, matmul}, {family_op::solve_spd, solve_spd}};

}  // namespace

KernelFn ref_kernel(Op op) {
  for (const std::span<const ref::Entry> family :
       {std::span<const ref::Entry>(kKernels), ref::reductions(), ref::movement()}) {
    for (const ref::Entry& entry : family) {
      if (entry.op == op) return entry.kernel;
    }
  }
  return nullptr;
}

bool ref_takes_views(Op op) {
  return op != Op::minibatch && op != Op::assign && op != Op::combine_shards;  // these copy bytes
}

std::uint64_t ref_workspace(Op op, const TensorType& output) {
  const auto elements = static_cast<std::uint64_t>(output.shape.elements());
  if (op == family_op::solve_spd) return elements * (elements + 1) * sizeof(double);
  return op == Op::scatter_add || op == family_op::fold ? elements * sizeof(double) : 0;
}

}  // namespace graphrun
