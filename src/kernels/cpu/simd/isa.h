// isa.h: the per-ISA inner loops, as a table of plain functions.
// Contract: only pointers, sizes and element strides cross this interface, so files compiled for one instruction set
// share no inline function with the rest (the linker might keep the wrong copy). All tables give the same bits. No
// function allocates; an output may alias an input of its shape. Leaves to others: types, broadcasting and rows
// (elementwise.cpp, sums.cpp, products.cpp), the choice of table (dispatch.cpp).
#pragma once

#include <cstdint>

namespace graphrun::cpu {

// Numbers per vector, independent of the register width: the accumulators of a sum, the rows of a tile's vector.
inline constexpr int kLanes = 16;

// Operand of an elementwise loop: element (r, c) of a (rows, columns) slab is at data[r * row + c * column]. `column`
// is 0 or 1; it is 1 for unary ops other than casts.
template <class T>
struct Strided {
  const T* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
};
using Operand = Strided<void>;

// c(m, n) = a(m, k) b(k, n) by strides, or c += with `add`. Each element is a chain of fma over k in blocks of 256,
// each starting at zero, and the blocks are added in order: tiles and lanes cannot affect results. No extent is 0. If
// many parts read the same b, pack_panel() packs it first: `panels` then holds the columns of the whole product, padded
// to whole vectors (panel_columns), and this b starts at first_column, a multiple of kPanelColumns. Likewise
// pack_left() packs the rows of a; first_row is a multiple of tile_rows.
inline constexpr int kProductBlock = 256;
inline constexpr int kPanelColumns = 32;
inline constexpr int kMaxTileRows = 14;
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

// Sums: element j of an output goes to accumulator j mod kLanes, in order. After every kSumChunk elements the
// accumulators are added as a tree (8, 4, 2, 1 apart) and the total is added to the result.
inline constexpr int kSumChunk = 1024;
// Sums along a softmax line (and related ops): up to kShortLine terms are added in order, more terms as above.
inline constexpr int kShortLine = 16;

// Writes out(rows, columns), contiguous rows, from the op's operands; a and b are the op's attributes.
using ElementFn = void (*)(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, float a, float b);

// Loops of the f32 scalar ops, in the order of scalar_op_list.h; scalar_loops.h looks them up.
struct ElementLoops {
  const ElementFn* first;
  std::int64_t count;
};

// Random words of base/random_bits.h, or values derived from them, for `rows` elements from `first` (a multiple of 4).
// With a stride: for every lane of a tile (tiles/tile_isa.h) whose row 0 is row `first`. x may alias `out`.
struct RandomDraw {
  enum { words, units, dropout } what = words;  // units in [0, 1); dropout: word >> 8 below `dropped` ? 0 : x / kept
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
  ElementFn where;                                                                  // for f32
  void (*sum_rows)(float* out, const float* x, std::int64_t rows, std::int64_t n);  // (rows, n) to (rows)
  // (n, columns) to (columns); a row of x is `stride` long
  void (*sum_columns)(float* out, const float* x, std::int64_t n, std::int64_t columns, std::int64_t stride);
  void (*matmul)(const MatmulProblem& problem);
  // Packs columns [column, column + kPanelColumns) of b, of the k block that starts at k, into the panels of all of b;
  // the layout depends on the ISA. Disjoint calls write disjoint memory.
  void (*pack_panel)(const MatmulProblem& problem, float* panels, std::int64_t k, std::int64_t column);
  // Packs rows [row, row + rows) of a, whole tiles except for the last, and k steps [k, k + steps) of one block. Either
  // rows (a_row == 1) or steps (a_k == 1) must be contiguous.
  void (*pack_left)(const MatmulProblem& problem, float* packed, std::int64_t k, std::int64_t steps, std::int64_t row,
                    std::int64_t rows);
  int tile_rows;
  // Maximum of n elements; NaN if any is NaN, -inf if n is 0. Columns as in sum_columns.
  float (*largest)(const float* x, std::int64_t n);
  void (*largest_columns)(float* out, const float* x, std::int64_t n, std::int64_t columns, std::int64_t stride);
  // Sum of exp(x - top), by the rule for more than kShortLine terms. If `out` is not null, the exponentials are stored
  // there with the layout of x, which it may alias. `sum` may alias `top`.
  float (*sum_exp)(float* out, const float* x, std::int64_t n, float top);
  void (*sum_exp_columns)(float* sum, float* out, const float* x, const float* top, std::int64_t n,
                          std::int64_t columns, std::int64_t stride);
  // Sum of target * (log_sum - (x - top)) over nonzero targets, likewise.
  float (*loss_of_targets)(const float* targets, const float* x, std::int64_t n, float top, float log_sum);
  // (rows, columns) to (columns, rows); strides are those between rows.
  void (*transpose)(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride, std::int64_t rows,
                    std::int64_t columns);
  void (*draw)(const RandomDraw& draw);
};

// One table per instruction set; the elementwise loops, which every new scalar op changes, have their own file.
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
