// isa.h: the inner loops that exist once for each instruction set, as a table of plain functions.
// Contract: nothing but pointers, sizes and element strides crosses this line, so the files that are compiled for an
// instruction set share no inline function with the rest (the linker would keep one copy, maybe the wrong one). All
// tables give the same bits. No function allocates, and an output may be the same address as an input of its shape.
// Leaves to others: types, broadcasting and rows (elementwise.cpp, sums.cpp, products.cpp), the choice (dispatch.cpp).
#pragma once

#include <cstdint>

namespace graphrun::cpu {

// Numbers of a vector, whatever the machine's registers hold: the accumulators of a sum, the rows of a tile side by
// side.
inline constexpr int kLanes = 16;

// An operand of an elementwise loop: element (r, c) of a (rows, columns) slab lies at data[r * row + c * column];
// column is 0 or 1; of an op of one operand it is 1, casts apart.
template <class T>
struct Strided {
  const T* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
};
using Operand = Strided<void>;

// c(m, n) = a(m, k) b(k, n) by strides, or c += with `add`. Each element is a chain of fma over k in blocks of 256,
// each block from zero, the blocks added in order: neither tiles nor lanes can change it. No extent is 0. Where many
// parts read the same b, pack_panel() has copied it before: `panels` then holds the columns of a whole product, to
// whole vectors (panel_columns), and first_column, a multiple of kPanelColumns, is where b's begin among them.
// Likewise pack_left() and the rows of a: first_row is a multiple of tile_rows.
inline constexpr int kProductBlock = 256;
inline constexpr int kPanelColumns = 32;
inline constexpr int kMostTileRows = 14;
struct MatmulProblem {
  const float* a;
  std::int64_t a_row, a_k;
  const float* b;
  std::int64_t b_k, b_column;
  float* c;
  std::int64_t c_row, c_column;
  std::int64_t m, n, k;
  bool add = false;
  const float* panels = nullptr;
  std::int64_t panel_columns = 0, first_column = 0;
  const float* packed = nullptr;
  std::int64_t packed_rows = 0, first_row = 0;
};

// Sums: element j of those that make one output goes to accumulator j mod kLanes, in order; every kSumChunk the
// accumulators are added as a tree (8, 4, 2, 1 apart) and their total to the result.
inline constexpr int kSumChunk = 1024;
// Sums along the line of a softmax and its kin: up to so many terms are added one after the other, more as above.
inline constexpr int kShortLine = 16;

// out(rows, columns), one row after the other, of the op's operands; a and b are its attributes.
using ElementFn = void (*)(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, float a, float b);

// Those of scalar ops of f32 in the order of scalar_op_list.h: scalar_loops.h looks them up.
struct ElementLoops {
  const ElementFn* first;
  std::int64_t count;
};

// Random words of base/random_bits.h, or what becomes of each: of `rows` elements from `first`, a multiple of 4, on;
// or, with a stride, of a tile (tiles/tile_isa.h) whose row 0 is row `first`, in every lane. x may be `out`.
struct RandomDraw {
  enum { words, units, dropout } what = words;  // [0, 1); 0 where word >> 8 is below `dropped`, else x / kept
  std::uint64_t key = 0, step = 0;
  float* out = nullptr;
  const float* x = nullptr;
  std::int32_t dropped = 0;
  float kept = 1;
  std::uint8_t* mask = nullptr;  // dropout in a tile: 255 where an element is kept, indexed as `out`
  bool mask_known = false;       // true: the mask is read instead of drawn; false: it is written
  std::int64_t first = 0, rows = 0, width = 1, stride = 0;
};

struct IsaTable {
  const ElementLoops* elementwise;
  ElementFn where;                                                                  // of f32
  void (*sum_rows)(float* out, const float* x, std::int64_t rows, std::int64_t n);  // (rows, n) to (rows)
  // (n, columns) to (columns); a row of x is `stride` long
  void (*sum_columns)(float* out, const float* x, std::int64_t n, std::int64_t columns, std::int64_t stride);
  void (*matmul)(const MatmulProblem& problem);
  // Packs columns [column, column + kPanelColumns) of b, of the block of steps from k on, into the panels of all of b;
  // how they lie is the machine's. Disjoint calls write disjoint memory.
  void (*pack_panel)(const MatmulProblem& problem, float* panels, std::int64_t k, std::int64_t column);
  // Likewise rows [row, row + rows), whole tiles but for the last, of a, of steps [k, k + steps) of one block: rows
  // that lie side by side (a_row == 1), or whose steps do (a_k == 1).
  void (*pack_left)(const MatmulProblem& problem, float* packed, std::int64_t k, std::int64_t steps, std::int64_t row,
                    std::int64_t rows);
  int tile_rows;
  // The largest of n elements; NaN if there is one, -inf of nothing. Columns as in sum_columns.
  float (*largest)(const float* x, std::int64_t n);
  void (*largest_columns)(float* out, const float* x, std::int64_t n, std::int64_t columns, std::int64_t stride);
  // The sum of exp(x - top) as of more than kShortLine terms; what is added goes to `out`, too, if it is not null: it
  // lies as x, and may be x. `sum` may be `top`.
  float (*sum_exp)(float* out, const float* x, std::int64_t n, float top);
  void (*sum_exp_columns)(float* sum, float* out, const float* x, const float* top, std::int64_t n,
                          std::int64_t columns, std::int64_t stride);
  // The sum of target * (log_sum - (x - top)) where a target is not 0, likewise.
  float (*loss_of_targets)(const float* targets, const float* x, std::int64_t n, float top, float log_sum);
  // (rows, columns) to (columns, rows); strides are those from a row to the next.
  void (*transpose)(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride, std::int64_t rows,
                    std::int64_t columns);
  void (*draw)(const RandomDraw& draw);
};

// One table for each instruction set; the elementwise loops, which a new scalar op changes, are in a file of their own.
#define GRAPHRUN_ISA_TABLE(isa)                                                                    \
  namespace isa {                                                                                  \
  extern const ElementLoops element_loops;                                                         \
  void where(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, float, float); \
  void draw(const RandomDraw& d);                                                                  \
  extern const IsaTable table;                                                                     \
  }
GRAPHRUN_ISA_TABLE(plain)
#if defined(__x86_64__)
GRAPHRUN_ISA_TABLE(avx2)
GRAPHRUN_ISA_TABLE(avx512)
#endif
#undef GRAPHRUN_ISA_TABLE

}  // namespace graphrun::cpu
