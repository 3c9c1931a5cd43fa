// products.cpp: matmul over batches: cuts a product into parts for the threads, chooses what is packed and shared
// between them, and adds partitions of long inner extents. Leaves to others: the product of a part (product_loops.h).
#include <algorithm>

#include "base/checked.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

// Extents by the full shapes, independent of the number of valid rows.
struct Extents {
  std::int64_t matrices = 1, m, n, k;
  bool a_by_columns;

  Extents(const Params& params, const TensorType& a, const TensorType& c)
      : m(c.shape[c.shape.rank() - 2]),
        n(c.shape[c.shape.rank() - 1]),
        a_by_columns(params.as<MatmulParams>().transpose_a) {
    k = a.shape[a.shape.rank() - (a_by_columns ? 2 : 1)];
    for (int d = 0; d < c.shape.rank() - 2; ++d) matrices *= c.shape[d];
  }
};

// Strategy for products that read their operands many times. All threads pack b into panels (and a, where its layout is
// slow to read), a group of k steps at a time, then multiply parts of the result. A part covers as many columns as fit
// their panels in the L2 cache. Slow layouts of a: column-major, or rows a multiple of a page apart, since the rows of
// a tile then map to one set of the L1 cache.
template <class Real>
struct SharedPanels {
  static constexpr std::int64_t kMinRows = 56, kMinColumns = 128, kMinDepth = 64;
  static constexpr std::int64_t kPage = 4096 / sizeof(Real);
  static constexpr std::int64_t kNumbers = std::int64_t{1} << 20;  // packed at a time
  static constexpr std::int64_t kMaxDepth = 4 * kProductBlock;
  static constexpr std::int64_t kSteps = 16;  // k steps packed at a time from a column-major a
  static constexpr std::int64_t kTiles = 4;   // row tiles packed at a time from a row-major a
  bool pays = false;
  bool packs_a = false;
  std::int64_t depth = 0;  // k steps of a group

  explicit SharedPanels(const Extents& e) : packs_a(e.a_by_columns || e.k % kPage == 0) {
    pays = e.m >= kMinRows && e.n >= kMinColumns && e.k >= kMinDepth;
    if (!pays) return;
    const std::int64_t blocks = divide_up(e.k, kProductBlock);
    const std::int64_t groups =
        std::min(std::max(divide_up(e.k * width(e.m, e.n), kNumbers), divide_up(e.k, kMaxDepth)), blocks);
    depth = divide_up(blocks, groups) * kProductBlock;
  }
  static std::int64_t padded(std::int64_t n) { return divide_up(n, kLanesOf<Real>) * kLanesOf<Real>; }
  std::int64_t width(std::int64_t m, std::int64_t n) const { return padded(n) + (packs_a ? m + kMaxTileRows : 0); }
  std::int64_t numbers(const Extents& e) const { return std::min(depth, e.k) * width(e.m, e.n); }
  // Limits groups to the k steps that fit in `bytes`, which does not affect results. Depth 0: no step fits.
  void fit(std::uint64_t bytes, const Extents& e) {
    const std::int64_t steps = static_cast<std::int64_t>(bytes / sizeof(Real)) / width(e.m, e.n);
    if (steps < std::min(depth, e.k)) depth = steps / kProductBlock * kProductBlock;
  }
};

// Parts of a product by panels: whole tiles and panels, chosen to balance the load of 2, 4, 8 or 16 threads. They
// differ between machines, which does not affect results.
struct PanelParts {
  static constexpr std::int64_t kMaxColumns = 1024;  // maximum per part: 1 MiB of panels
  static constexpr std::int64_t kMaxRows = 336;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_blocks = 0, column_blocks = 0;

  PanelParts(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t tile_rows) {
    const std::int64_t tiles = divide_up(m, tile_rows), strips = divide_up(n, kPanelColumns);
    const std::int64_t most = std::max(parts_for(m * n * k / 16), 2);
    const std::int64_t first = divide_up(n, kMaxColumns);
    double least = 0;
    for (std::int64_t across = first; across == first || across <= strips; across *= 2) {
      const std::int64_t wide = divide_up(strips, across);
      for (const int wanted : {2, 4, 8, 16, 32, 48, kMaxParts}) {
        if (wanted > most) break;
        const std::int64_t high = std::clamp<std::int64_t>(divide_up(tiles * across, wanted), 1, kMaxRows / tile_rows);
        const std::int64_t parts = divide_up(tiles, high) * divide_up(strips, wide);
        if (parts > kMaxParts && across > first) continue;
        double shares = 0;  // the last part leaves threads idle for about a quarter of its time
        for (const int threads : {2, 4, 8, 16})
          shares += threads * (static_cast<double>(divide_up(parts, threads)) + 0.25);
        // The first tile loads a panel into the L1 cache.
        const double time = shares * static_cast<double>(wide) * (static_cast<double>(high) + 0.1);
        if (rows > 0 && time >= least) continue;
        least = time;
        rows = high * tile_rows;
        columns = wide * kPanelColumns;
      }
    }
    row_blocks = divide_up(m, rows);
    column_blocks = divide_up(n, columns);
  }
};

// Parts of a product: blocks of the result and, if those are few, partitions of k whose partial results are added as a
// tree. A part has at least 84 rows (whole tiles of 14, 6 or 4), 32 columns or 1024 k steps.
struct Cut {
  int parts = 1;                      // number of worthwhile parts
  std::int64_t rows, columns, depth;  // block size; the last block of rows has up to half as many more
  std::int64_t row_blocks = 1, column_blocks = 1, partitions = 1;

  explicit Cut(const Extents& e) : rows(e.m), columns(e.n), depth(e.k) {
    const auto& [matrices, m, n, k, a_by_columns] = e;
    parts = parts_for(matrices * std::max(m * n * k / 16, m * n + m * k + n * k));
    if (parts == 1 || m == 0 || n == 0) return;
    const std::int64_t wanted = divide_up(parts, matrices);
    rows = 84 * divide_up(m, 84 * wanted);
    row_blocks = std::max<std::int64_t>((m + rows / 2) / rows, 1);
    columns = 32 * divide_up(n, 32 * divide_up(wanted, row_blocks));
    column_blocks = divide_up(n, columns);
    const std::int64_t most = matrices > 1 ? 1 : std::min(wanted / (row_blocks * column_blocks), k / 1024);
    if (most < 2) return;
    depth = 256 * divide_up(k, 256 * most);
    partitions = divide_up(k, depth);
  }
};

template <class Real>
void multiply_block(const Cut& cut, MatmulProblemOf<Real> p, std::int64_t block, const IsaTableOf<Real>& table) {
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

// Each partition's result goes to the workspace, where they are added as a tree: 1, 2, 4, … apart.
template <class Real>
void multiply_partitions(const KernelArgs& args, const Cut& cut, const MatmulProblemOf<Real>& p,
                         const IsaTableOf<Real>& table) {
  Real* const partial = static_cast<Real*>(args.workspace);
  const std::int64_t size = p.m * p.n;
  const std::int64_t partitions = divide_up(p.k, cut.depth);  // in the valid rows
  const std::int64_t blocks = cut.row_blocks * cut.column_blocks;
  for_ranges(args.pool, cut.parts, partitions * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t partition = item / blocks;
      MatmulProblemOf<Real> one = p;
      one.a += partition * cut.depth * p.a_k;
      one.b += partition * cut.depth * p.b_k;
      one.c = partial + partition * size;
      one.c_row = p.n;
      one.k = std::min(cut.depth, p.k - partition * cut.depth);
      multiply_block(cut, one, item % blocks, table);
    }
  });
  const ElementFn add = scalar_loop(table, Op::add);
  for_ranges(args.pool, parts_for(partitions * size), size, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t apart = 1; apart < partitions; apart *= 2) {
      for (std::int64_t s = 0; s + apart < partitions; s += 2 * apart) {
        Real* const x = partial + s * size + first;
        apply(add, x, last - first, {{x, 0, 1}, {x + apart * size, 0, 1}});
      }
    }
  });
  for (std::int64_t r = 0; r < p.m; ++r) std::copy_n(partial + r * p.n, p.n, p.c + r * p.c_row);
}

template <class Real>
void multiply_by_panels(const KernelArgs& args, const SharedPanels<Real>& shared, const MatmulProblemOf<Real>& p,
                        const IsaTableOf<Real>& table) {
  Real* const panels = static_cast<Real*>(args.workspace);
  Real* const packed = panels + std::min(shared.depth, p.k) * shared.padded(p.n);
  const PanelParts cut(p.m, p.n, p.k, table.tile_rows);
  const std::int64_t strips = divide_up(p.n, kPanelColumns);
  for (std::int64_t k = 0; k < p.k; k += shared.depth) {
    MatmulProblemOf<Real> group = p;
    group.a += k * p.a_k;
    group.b += k * p.b_k;
    group.k = std::min(shared.depth, p.k - k);
    group.add = k > 0;
    const std::int64_t of_b = strips * divide_up(group.k, kProductBlock);
    // A column-major a is packed by a few k steps of all rows, a row-major one by all k steps of a few rows.
    const bool by_columns = p.a_row == 1;
    const std::int64_t steps = by_columns ? SharedPanels<Real>::kSteps : kProductBlock;
    const std::int64_t rows = by_columns ? p.m : SharedPanels<Real>::kTiles * table.tile_rows;
    const std::int64_t row_blocks = divide_up(p.m, rows);
    const std::int64_t of_a = shared.packs_a ? divide_up(group.k, steps) * row_blocks : 0;
    const int parts = parts_for(group.k * shared.width(p.m, p.n));
    for_ranges(args.pool, parts, of_a + of_b, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t step = (i - of_b) / row_blocks * steps;
        const std::int64_t row = (i - of_b) % row_blocks * rows;
        if (i < of_b)
          table.pack_panel(group, panels, i / strips * kProductBlock, i % strips * kPanelColumns);
        else
          table.pack_left(group, packed, step, std::min(steps, group.k - step), row, std::min(rows, p.m - row));
      }
    });
    group.panels = panels;
    group.panel_columns = shared.padded(p.n);
    if (shared.packs_a) {
      group.packed = packed;
      group.packed_rows = divide_up(p.m, table.tile_rows) * table.tile_rows;
    }
    for_ranges(args.pool, kMaxParts, cut.row_blocks * cut.column_blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        MatmulProblemOf<Real> one = group;
        one.first_row = i / cut.column_blocks * cut.rows;
        one.first_column = i % cut.column_blocks * cut.columns;
        one.m = std::min(cut.rows, p.m - one.first_row);
        one.n = std::min(cut.columns, p.n - one.first_column);
        one.a += one.first_row * p.a_row;
        one.b += one.first_column * p.b_column;
        one.c += one.first_row * p.c_row + one.first_column;
        table.matmul(one);
      }
    });
  }
}

template <class Real>
void multiply(const KernelArgs& args, const IsaTableOf<Real>& table) {
  const auto& params = args.params.as<MatmulParams>();
  const Extents extents(args.params, args.in_type[0], args.out_type);
  const View a = params.transpose_a ? transposed(args.input_view(0)) : args.input_view(0);
  const View b = params.transpose_b ? transposed(args.input_view(1)) : args.input_view(1);
  const int row_a = a.extents.rank() - 2, row_b = b.extents.rank() - 2;
  MatmulProblemOf<Real> p{};
  p.a_row = a.strides[row_a];
  p.a_k = a.strides[row_a + 1];
  p.b_k = b.strides[row_b];
  p.b_column = b.strides[row_b + 1];
  p.c_row = extents.n;
  p.c_column = 1;
  p.m = a.extents[row_a];
  p.n = b.extents[row_b + 1];
  p.k = std::min(a.extents[row_a + 1], b.extents[row_b]);
  if (p.m == 0 || p.n == 0 || p.k == 0) {
    std::fill_n(args.output<Real>(), args.out_type.shape.elements(), Real{0});
    return;
  }
  const Dims<2> matrices = matrices_of(a, b);
  const auto matrix = [&](std::int64_t i) {
    const Offsets<2> at = matrices.offsets(i);
    MatmulProblemOf<Real> one = p;
    one.a = args.input<Real>(0) + at[0];
    one.b = args.input<Real>(1) + at[1];
    one.c = args.output<Real>() + i * extents.m * extents.n;
    return one;
  };
  const Cut cut(extents);
  SharedPanels<Real> shared(extents);
  if (shared.pays) shared.fit(args.workspace_bytes, extents);
  if (shared.pays && shared.depth > 0) {
    for (std::int64_t i = 0; i < matrices.count; ++i) multiply_by_panels(args, shared, matrix(i), table);
  } else if (!shared.pays && args.workspace != nullptr && cut.partitions > 1) {
    multiply_partitions(args, cut, matrix(0), table);
  } else {
    const std::int64_t blocks = cut.row_blocks * cut.column_blocks;
    for_ranges(args.pool, cut.parts, matrices.count * blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t item = first; item < last; ++item)
        multiply_block(cut, matrix(item / blocks), item % blocks, table);
    });
  }
}

template <class Real>
std::uint64_t bytes_of(const Params& params, std::span<const TensorType> inputs, const TensorType& c) {
  const Extents extents(params, inputs[0], c);
  // Small or numerous matrices are parts by themselves.
  constexpr std::int64_t kMaxMatrices = 8, kMinRowsOfEach = 168;
  const bool one = c.shape.rank() == 2, few = extents.matrices <= kMaxMatrices && extents.m >= kMinRowsOfEach;
  const Cut cut(extents);
  const SharedPanels<Real> shared(extents);
  std::int64_t numbers = 0;
  if (shared.pays && (one || few))
    numbers = shared.numbers(extents);
  else if (one && cut.partitions > 1)
    numbers = cut.partitions * c.shape.elements();
  return static_cast<std::uint64_t>(numbers) * sizeof(Real);
}

std::uint64_t product_bytes(const Params& params, std::span<const TensorType> inputs, const TensorType& c) {
  return (c.dtype == DType::f64 ? bytes_of<double> : bytes_of<float>)(params, inputs, c);
}

constexpr Entry kProductsKernels[] = {entry<for_floats<multiply<float>, multiply<double>>>(Op::matmul, product_bytes)};

}  // namespace

constinit const std::span<const Entry> product_kernels = kProductsKernels;

}  // namespace graphrun::cpu

namespace graphrun {

bool cpu_spares_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output) {
  return op == Op::matmul && cpu::SharedPanels<float>(cpu::Extents(params, inputs[0], output)).pays;  // or of double
}

}  // namespace graphrun
