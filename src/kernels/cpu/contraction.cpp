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

// Parts of a product: blocks of the result and, where those are few, strands of k whose partial results are added as a
// tree. A part has at least 96 rows (12, 6 and 4 divide it: whole tiles), 32 columns or 1024 steps of k.
struct Cut {
  int parts = 1;                      // that are worth it
  std::int64_t rows, columns, depth;  // of a block; the last block of rows has up to half as many more
  std::int64_t row_blocks = 1, column_blocks = 1, strands = 1;

  Cut(std::int64_t matrices, std::int64_t m, std::int64_t n, std::int64_t k) : rows(m), columns(n), depth(k) {
    parts = parts_for(matrices * std::max(m * n * k / 16, m * n + m * k + n * k));
    if (parts == 1 || m == 0 || n == 0) return;
    const std::int64_t wanted = divide_up(parts, matrices);
    rows = 96 * divide_up(m, 96 * wanted);
    row_blocks = std::max<std::int64_t>((m + rows / 2) / rows, 1);
    columns = 32 * divide_up(n, 32 * divide_up(wanted, row_blocks));
    column_blocks = divide_up(n, columns);
    const std::int64_t most = matrices > 1 ? 1 : std::min(wanted / (row_blocks * column_blocks), k / 1024);
    if (most < 2) return;
    depth = 256 * divide_up(k, 256 * most);
    strands = divide_up(k, depth);
  }
  static std::int64_t divide_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
};

std::int64_t rows_in(const Shape& s) {
  return s[s.rank() - 2];
}
std::int64_t columns_in(const Shape& s) {
  return s[s.rank() - 1];
}
// By the full shapes, whatever rows are valid.
Cut cut_of(const MatmulParams& params, const TensorType& a, const TensorType& c) {
  std::int64_t matrices = 1;
  for (int d = 0; d < c.shape.rank() - 2; ++d) matrices *= c.shape[d];
  return {matrices, rows_in(c.shape), columns_in(c.shape), params.transpose_a ? rows_in(a.shape) : columns_in(a.shape)};
}

void multiply_block(const Cut& cut, MatmulProblem p, std::int64_t block, const IsaTable& table) {
  const std::int64_t i = block / cut.column_blocks;
  const std::int64_t first_row = i * cut.rows;
  const std::int64_t first_column = block % cut.column_blocks * cut.columns;
  p.m = (i + 1 == cut.row_blocks ? p.m : std::min(first_row + cut.rows, p.m)) - first_row;
  p.n = std::min(cut.columns, p.n - first_column);
  p.a += first_row * p.a_row;
  p.b += first_column * p.b_column;
  p.c += first_row * p.c_row + first_column * p.c_column;
  if (p.m > 0 && p.n > 0) table.matmul(p);
}

void run_matrices(const KernelArgs& args, const IsaTable& table) {
  const auto& params = std::get<MatmulParams>(args.params);
  const Shape& a = args.in_type[0].shape;
  const Shape& b = args.in_type[1].shape;
  const Shape& c = args.out_type.shape;
  MatmulProblem p{};
  p.a_row = params.transpose_a ? 1 : columns_in(a);
  p.a_k = params.transpose_a ? columns_in(a) : 1;
  p.b_k = params.transpose_b ? 1 : columns_in(b);
  p.b_column = params.transpose_b ? columns_in(b) : 1;
  p.c_row = columns_in(c);
  p.c_column = 1;
  p.m = rows_in(c);
  p.n = columns_in(c);
  p.k = params.transpose_a ? rows_in(a) : columns_in(a);
  std::int64_t matrices = args.rows_of(args.out_type);
  for (int d = 1; d < c.rank() - 2; ++d) matrices *= c[d];
  if (p.k == 0) std::fill_n(args.output<float>(), matrices * p.m * p.n, 0.0f);
  const bool empty = p.m == 0 || p.n == 0 || p.k == 0;
  const Cut cut = cut_of(params, args.in_type[0], args.out_type);
  const std::int64_t blocks = empty ? 0 : cut.row_blocks * cut.column_blocks;
  for_ranges(args, cut.parts, matrices * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t i = item / blocks;
      MatmulProblem one = p;
      one.a = args.input<float>(0) + matrix_of(a, c, i) * rows_in(a) * columns_in(a);
      one.b = args.input<float>(1) + matrix_of(b, c, i) * rows_in(b) * columns_in(b);
      one.c = args.output<float>() + i * p.m * p.n;
      multiply_block(cut, one, item % blocks, table);
    }
  });
  clear_invalid_rows(args);
}

// Each strand's result goes to the workspace; there they are added as a tree: 1, 2, 4, … apart.
void multiply_strands(const KernelArgs& args, const Cut& cut, const MatmulProblem& p, const IsaTable& table) {
  float* const partial = static_cast<float*>(args.workspace);
  const std::int64_t size = p.m * p.n;
  const std::int64_t strands = Cut::divide_up(p.k, cut.depth);  // with valid rows
  const std::int64_t blocks = cut.row_blocks * cut.column_blocks;
  for_ranges(args, cut.parts, strands * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t strand = item / blocks;
      MatmulProblem one = p;
      one.a += strand * cut.depth * p.a_k;
      one.b += strand * cut.depth * p.b_k;
      one.c = partial + strand * size;
      one.c_row = p.n;
      one.k = std::min(cut.depth, p.k - strand * cut.depth);
      multiply_block(cut, one, item % blocks, table);
    }
  });
  for_ranges(args, parts_for(strands * size), size, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t apart = 1; apart < strands; apart *= 2) {
      for (std::int64_t s = 0; s + apart < strands; s += 2 * apart) {
        float* const x = partial + s * size + first;
        table.binary[binary_add](x, 1, last - first, {x, 0, 1}, {x + apart * size, 0, 1});
      }
    }
  });
  for (std::int64_t r = 0; r < p.m; ++r) std::copy_n(partial + r * p.n, p.n, p.c + r * p.c_row);
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
  if (p.k == 0) {
    std::fill(p.c, p.c + p.m * p.n, 0.0f);
  } else if (p.m > 0 && p.n > 0) {
    const Cut cut = cut_of(params, a, args.out_type);
    if (cut.strands > 1 && args.workspace != nullptr) {
      multiply_strands(args, cut, p, table);
    } else {
      for_ranges(args, cut.parts, cut.row_blocks * cut.column_blocks, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t block = first; block < last; ++block) multiply_block(cut, p, block, table);
      });
    }
  }
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

// A sum as runs of axes: neighbouring axes of one fate are one run, kept and summed ones alternate.
struct SumAxes {
  enum Form { rows, columns, other };  // the summed axes are the last; next to last, before `last`; anything else
  Dim runs[kMaxRank];
  bool summed[kMaxRank];
  int count = 0;
  std::int64_t outputs = 1, terms = 1, last = 1;
  Form form = other;

  SumAxes(const TensorType& in, std::uint32_t axes, std::int64_t first_extent) {
    std::int64_t stride = in.shape.elements();
    for (int d = 0; d < in.shape.rank(); ++d) {
      const std::int64_t n = d == 0 ? first_extent : in.shape[d];
      stride = in.shape[d] == 0 ? 0 : stride / in.shape[d];
      const bool gone = (axes >> d & 1u) != 0;
      (gone ? terms : outputs) *= n;
      if (in.shape[d] == 1) continue;
      if (count > 0 && summed[count - 1] == gone) {
        runs[count - 1] = {runs[count - 1].extent * n, stride};
      } else {
        runs[count] = {n, stride};
        summed[count++] = gone;
      }
    }
    if (count == 0 || (count <= 2 && summed[count - 1])) {
      form = rows;
    } else if (count <= 3 && !summed[count - 1] && (count == 1 || summed[count - 2])) {
      form = columns;
      last = runs[count - 1].extent;
    }
  }

  // Sums of 1024 terms are parts of their own where there are fewer outputs than threads could use; they are added in
  // the order in which they would be without: the bits are those of isa.h either way.
  std::int64_t chunks() const { return (terms + kSumChunk - 1) / kSumChunk; }
  bool wants_chunks() const {
    const std::int64_t independent = form == rows ? outputs : (outputs + kGrain - 1) / kGrain;
    return form != other && chunks() > 1 && parts_for(outputs * terms) > independent;
  }
};

void sum_chunks(const KernelArgs& args, const SumAxes& axes, const IsaTable& table) {
  const float* x = args.input<float>(0);
  float* const partial = static_cast<float*>(args.workspace);  // (outputs / last, chunks, last)
  float* out = args.output<float>();
  const std::int64_t chunks = axes.chunks();
  const std::int64_t last = axes.last;
  const std::int64_t groups = axes.outputs / last;
  for_ranges(args, parts_for(axes.outputs * axes.terms), groups * chunks, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t item = first; item < end; ++item) {
      const std::int64_t begin = item % chunks * kSumChunk;
      const std::int64_t n = std::min<std::int64_t>(kSumChunk, axes.terms - begin);
      const float* from = x + (item / chunks * axes.terms + begin) * last;
      if (axes.form == SumAxes::rows)
        table.sum_rows(partial + item, from, 1, n);
      else
        table.sum_columns(partial + item * last, from, n, last, last);
    }
  });
  const float* chunk = partial;
  for (std::int64_t g = 0; g < groups; ++g, out += last) {
    std::fill_n(out, last, 0.0f);
    for (std::int64_t c = 0; c < chunks; ++c, chunk += last)
      for (std::int64_t j = 0; j < last; ++j) out[j] += chunk[j];
  }
}

void sum_outputs(const KernelArgs& args, const SumAxes& axes, const IsaTable& table) {
  const float* x = args.input<float>(0);
  float* out = args.output<float>();
  const std::int64_t terms = axes.terms;
  const int parts = parts_for(axes.outputs * terms);
  if (axes.form == SumAxes::rows) {
    for_ranges(args, parts, axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
      table.sum_rows(out + first, x + first * terms, end - first, terms);
    });
  } else if (axes.form == SumAxes::columns) {
    const std::int64_t last = axes.last;
    const std::int64_t groups = axes.outputs / last;
    const std::int64_t cuts = std::max<std::int64_t>((parts + groups - 1) / groups, 1);
    const std::int64_t width = ((last + cuts - 1) / cuts + kGrain - 1) / kGrain * kGrain;
    const std::int64_t blocks = (last + width - 1) / width;
    for_ranges(args, parts, groups * blocks, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t item = first; item < end; ++item) {
        const std::int64_t group = item / blocks;
        const std::int64_t column = item % blocks * width;
        table.sum_columns(out + group * last + column, x + group * terms * last + column, terms,
                          std::min(width, last - column), last);
      }
    });
  } else {
    Dim kept[kMaxRank];
    Dim gone[kMaxRank];
    int kept_count = 0;
    int gone_count = 0;
    for (int r = 0; r < axes.count; ++r) (axes.summed[r] ? gone[gone_count++] : kept[kept_count++]) = axes.runs[r];
    for_ranges(args, parts, axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const float* p = x + offset_of(kept, kept_count, i);
        out[i] = sum_of(terms, [&](std::int64_t j) { return p[offset_of(gone, gone_count, j)]; });
      }
    });
  }
}

void run_sum(const KernelArgs& args, const IsaTable& table) {
  const TensorType& in = args.in_type[0];
  const SumAxes axes(in, std::get<ReduceParams>(args.params).axes, args.rows_of(in));
  if (axes.outputs > 0) {
    if (axes.terms == 0)
      std::fill_n(args.output<float>(), axes.outputs, 0.0f);
    else if (args.workspace != nullptr)
      sum_chunks(args, axes, table);
    else
      sum_outputs(args, axes, table);
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

std::uint64_t contraction_workspace(std::string_view op, const Params& params, std::span<const TensorType> inputs,
                                    const TensorType& output) {
  std::int64_t floats = 0;
  const auto* matmul = std::get_if<MatmulParams>(&params);
  const auto* reduce = std::get_if<ReduceParams>(&params);
  if (op == "matmul" && matmul != nullptr && output.shape.rank() == 2) {
    const Cut cut = cut_of(*matmul, inputs[0], output);
    if (cut.strands > 1) floats = cut.strands * output.shape.elements();
  } else if (op == "sum" && reduce != nullptr) {
    const TensorType& in = inputs[0];
    const SumAxes axes(in, reduce->axes, in.shape.rank() == 0 ? 1 : in.shape[0]);
    if (axes.wants_chunks()) floats = axes.outputs * axes.chunks();
  }
  return static_cast<std::uint64_t>(floats) * sizeof(float);
}

}  // namespace graphrun::cpu
