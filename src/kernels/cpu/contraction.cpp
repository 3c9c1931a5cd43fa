#include <algorithm>

#include "kernels/cpu/families.h"

namespace graphrun::cpu {
namespace {

// Which matrix of an operand belongs to matrix `index` of the result, whose leading extents are `c`'s.
std::int64_t matrix_of(const Shape& operand, const Shape& c, std::int64_t index) {
  std::int64_t result = 0;
  std::int64_t stride = 1;
  for (int d = c.rank() - 3; d >= 0; --d) {
    const int own = d - (c.rank() - operand.rank());
    if (own < 0) break;
    if (operand[own] != 1) result += index % c[d] * stride;
    stride *= operand[own];
    index /= c[d];
  }
  return result;
}

void run_matrices(const KernelArgs& args, const IsaTable& table) {
  const auto& params = std::get<MatmulParams>(args.params);
  const Shape& a = args.in_type[0].shape;
  const Shape& b = args.in_type[1].shape;
  const Shape& c = args.out_type.shape;
  const auto rows = [](const Shape& s) { return s[s.rank() - 2]; };
  const auto columns = [](const Shape& s) { return s[s.rank() - 1]; };
  MatmulProblem p{};
  p.a_row = params.transpose_a ? 1 : columns(a);
  p.a_k = params.transpose_a ? columns(a) : 1;
  p.b_k = params.transpose_b ? 1 : columns(b);
  p.b_column = params.transpose_b ? columns(b) : 1;
  p.c_row = columns(c);
  p.c_column = 1;
  p.m = rows(c);
  p.n = columns(c);
  p.k = params.transpose_a ? rows(a) : columns(a);
  std::int64_t matrices = args.rows_of(args.out_type);
  for (int d = 1; d < c.rank() - 2; ++d) matrices *= c[d];
  for (std::int64_t i = 0; i < matrices; ++i) {
    p.a = args.input<float>(0) + matrix_of(a, c, i) * rows(a) * columns(a);
    p.b = args.input<float>(1) + matrix_of(b, c, i) * rows(b) * columns(b);
    p.c = args.output<float>() + i * p.m * p.n;
    table.matmul(p);
  }
  clear_invalid_rows(args);
}

void run_matmul(const KernelArgs& args, const IsaTable& table) {
  if (args.out_type.shape.rank() > 2) return run_matrices(args, table);
  const auto& params = std::get<MatmulParams>(args.params);
  const TensorType& a = args.in_type[0];
  const TensorType& b = args.in_type[1];
  MatmulProblem p;
  p.a = args.input<float>(0);
  p.a_row = params.transpose_a ? 1 : a.shape[1];
  p.a_k = params.transpose_a ? a.shape[1] : 1;
  p.b = args.input<float>(1);
  p.b_k = params.transpose_b ? 1 : b.shape[1];
  p.b_column = params.transpose_b ? b.shape[1] : 1;
  p.c = args.output<float>();
  p.c_row = args.out_type.shape[1];
  p.c_column = 1;
  p.m = params.transpose_a ? a.shape[1] : args.rows_of(a);
  p.n = params.transpose_b ? args.rows_of(b) : b.shape[1];
  p.k = std::min(params.transpose_a ? args.rows_of(a) : a.shape[1], params.transpose_b ? b.shape[1] : args.rows_of(b));
  if (p.k == 0)
    std::fill(p.c, p.c + p.m * p.n, 0.0f);
  else if (p.m > 0 && p.n > 0)
    table.matmul(p);
  clear_invalid_rows(args);
}

// One sum by the rule of isa.h, for axes that do not merge: `at(j)` is element j.
template <class At>
float sum_of(std::int64_t n, At&& at) {
  float total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kSumChunk) {
    float sum[16] = {};
    const std::int64_t end = std::min<std::int64_t>(begin + kSumChunk, n);
    for (std::int64_t j = begin; j < end; ++j) sum[(j - begin) % 16] += at(j);
    for (int apart = 8; apart > 0; apart /= 2)
      for (int i = 0; i < apart; ++i) sum[i] += sum[i + apart];
    total += sum[0];
  }
  return total;
}

struct Dim {
  std::int64_t extent, stride;
};
// Offset of element `index` of the row-major space of `dims`.
std::int64_t offset_of(const Dim* dims, int count, std::int64_t index) {
  std::int64_t offset = 0;
  for (int d = count - 1; d >= 0; --d) {
    offset += index % dims[d].extent * dims[d].stride;
    index /= dims[d].extent;
  }
  return offset;
}

void run_sum(const KernelArgs& args, const IsaTable& table) {
  const auto& params = std::get<ReduceParams>(args.params);
  const TensorType& in = args.in_type[0];
  const float* x = args.input<float>(0);
  float* out = args.output<float>();

  // Neighbouring axes of one fate are one axis: kept and reduced ones alternate in `runs`.
  Dim runs[kMaxRank];
  bool reduced[kMaxRank];
  int count = 0;
  std::int64_t stride = 1;
  for (int d = in.shape.rank() - 1; d >= 0; --d) stride *= in.shape[d];
  std::int64_t outputs = 1;
  std::int64_t terms = 1;
  for (int d = 0; d < in.shape.rank(); ++d) {
    const std::int64_t n = d == 0 ? args.rows_of(in) : in.shape[d];
    stride = in.shape[d] == 0 ? 0 : stride / in.shape[d];
    const bool gone = (params.axes >> d & 1u) != 0;
    (gone ? terms : outputs) *= n;
    if (in.shape[d] == 1) continue;
    if (count > 0 && reduced[count - 1] == gone) {
      runs[count - 1] = {runs[count - 1].extent * n, stride};
    } else {
      runs[count] = {n, stride};
      reduced[count++] = gone;
    }
  }

  if (outputs > 0) {
    if (terms == 0) {
      std::fill(out, out + outputs, 0.0f);
    } else if (count == 0 || (count <= 2 && reduced[count - 1])) {
      table.sum_rows(out, x, outputs, terms);
    } else if (count <= 3 && !reduced[count - 1] && (count == 1 || reduced[count - 2])) {
      const std::int64_t columns = runs[count - 1].extent;
      for (std::int64_t i = 0; i < outputs / columns; ++i)
        table.sum_columns(out + i * columns, x + i * terms * columns, terms, columns);
    } else {
      Dim kept[kMaxRank];
      Dim gone[kMaxRank];
      int kept_count = 0;
      int gone_count = 0;
      for (int r = 0; r < count; ++r) (reduced[r] ? gone[gone_count++] : kept[kept_count++]) = runs[r];
      for (std::int64_t i = 0; i < outputs; ++i) {
        const float* p = x + offset_of(kept, kept_count, i);
        out[i] = sum_of(terms, [&](std::int64_t j) { return p[offset_of(gone, gone_count, j)]; });
      }
    }
  }
  clear_invalid_rows(args);
}

template <Isa isa>
void matmul_kernel(const KernelArgs& args) {
  run_matmul(args, table_of<isa>());
}
template <Isa isa>
void sum_kernel(const KernelArgs& args) {
  run_sum(args, table_of<isa>());
}

}  // namespace

KernelFn contraction_kernel(std::string_view op, Isa isa) {
  static constexpr std::array kEntries = {
      KernelEntry{"matmul", {matmul_kernel<Isa::plain>, matmul_kernel<Isa::avx2>, matmul_kernel<Isa::avx512>}},
      KernelEntry{"sum", {sum_kernel<Isa::plain>, sum_kernel<Isa::avx2>, sum_kernel<Isa::avx512>}}};
  return find_kernel(kEntries, op, isa);
}

}  // namespace graphrun::cpu
