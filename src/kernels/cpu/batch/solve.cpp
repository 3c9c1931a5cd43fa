// solve.cpp: solve_spd: Cholesky of the upper triangle in double, whatever the dtype, on one thread.
// Contract: U^T U = A + shift I. Row i of U is row i of A less multiples of the rows above, in order, so results depend
// neither on the instruction set nor on threads.
#include <cmath>
#include <limits>

#include "graphrun/family_op.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

// to(n) -= factor * from(n)
void subtract(double* to, const double* from, double factor, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) to[j] -= factor * from[j];
}

template <class T>
void solve(const KernelArgs& args) {
  const std::int64_t n = args.out_type.shape[0];
  const T *const a = args.input<T>(0), *const b = args.input<T>(1);
  T* const out = args.output<T>();
  double* const u = static_cast<double*>(args.workspace);
  double* const x = u + n * n;
  for (std::int64_t i = 0; i < n; ++i) {
    double* const row = u + i * n;
    for (std::int64_t j = i; j < n; ++j) row[j] = static_cast<double>(a[i * n + j]);
    row[i] += static_cast<double>(*args.input<T>(2));
    for (std::int64_t k = 0; k < i; ++k) subtract(row + i, u + k * n + i, u[k * n + i], n - i);
    if (!(row[i] > 0 && row[i] < std::numeric_limits<double>::infinity())) {
      std::fill(out, out + n, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const double root = std::sqrt(row[i]);
    for (std::int64_t j = i; j < n; ++j) row[j] /= root;
    x[i] = static_cast<double>(b[i]);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] /= u[i * n + i];
    subtract(x + i + 1, u + i * n + i + 1, x[i], n - i - 1);
  }
  for (std::int64_t i = n; i-- > 0;) {
    for (std::int64_t j = i + 1; j < n; ++j) x[i] -= u[i * n + j] * x[j];
    x[i] /= u[i * n + i];
    out[i] = static_cast<T>(x[i]);
  }
}

void solve_spd(const KernelArgs& args, const IsaTable&) {
  args.out_type.dtype == DType::f64 ? solve<double>(args) : solve<float>(args);
}

std::uint64_t factor_bytes(const Params&, std::span<const TensorType>, const TensorType& out) {
  const auto n = static_cast<std::uint64_t>(out.shape[0]);
  return n * (n + 1) * sizeof(double);
}

constexpr Entry kSolveKernels[] = {entry<solve_spd>(family_op::solve_spd, factor_bytes)};

}  // namespace

constinit const std::span<const Entry> solve_kernels = kSolveKernels;

}  // namespace graphrun::cpu
