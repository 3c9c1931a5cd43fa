// isa.h: the per-ISA inner loops, as a table of plain functions.
// Contract: only pointers, sizes and element strides cross this interface, so files compiled for one instruction set
// share no inline function with the rest (the linker might keep the wrong copy). All tables give the same bits. No
// function allocates; an output may alias an input of its shape. Leaves to others: types, broadcasting and rows
// (elementwise.cpp, lines.cpp, products.cpp, tiles/tile*.cpp), the choice of table (dispatch.cpp).
#pragma once

#include <cstdint>

namespace graphrun::cpu {

// Numbers per vector, independent of the register width: the accumulators of a sum, the rows of a tile's vector. Loops
// for f64 are the same source, compiled with vectors of half as many numbers.
inline constexpr int kVectorBytes = 64;
template <class Real>
inline constexpr int kLanesOf = kVectorBytes / sizeof(Real);
inline constexpr int kLanes = kLanesOf<float>;

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
template <class Real>
struct MatmulProblemOf {
  const Real* a;
  std::int64_t a_row, a_k;
  const Real* b;
  std::int64_t b_k, b_column;
  Real* c;
  std::int64_t c_row, c_column;
  std::int64_t m, n, k;
  bool add = false;
  const Real* panels = nullptr;
  std::int64_t panel_columns = 0, first_column = 0;
  const Real* packed = nullptr;
  std::int64_t packed_rows = 0, first_row = 0;
};

using MatmulProblem = MatmulProblemOf<float>;

// Sums: element j of an output goes to accumulator j mod kLanes, in order. After every kSumChunk elements the
// accumulators are added as a tree (half of them, ..., 2, 1 apart) and the total is added to the result.
inline constexpr int kSumChunk = 1024;
// Sums along a softmax line (and related ops): up to kShortLine terms (half as many of f64) are added in order, more
// terms as above.
inline constexpr int kShortLine = 16;

// Writes out(rows, columns), contiguous rows, from the op's operands; a and b are the op's attributes.
using ElementFn = void (*)(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, double a, double b);

// Random words of base/random_bits.h, or values derived from them, for `rows` elements from `first` (a multiple of 4).
// With a stride: for every lane of a tile whose row 0 is row `first`. x may alias `out`.
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

// Positions of numbers first to first + rows - 1 in a shuffled epoch, by bits::permuted(); half:
// bits::half_bits(total).
struct Permutation {
  std::uint64_t key = 0, epoch = 0, total = 0;
  std::uint32_t half = 0;
  std::int64_t first = 0, rows = 0;
  std::int64_t* out = nullptr;
};

// Adjacent lines of `terms` numbers, for ops along lines. Across: element j of line i is at x[at(j) * stride + i], and
// adjacent lines are the lanes of a vector. Along: it is at x[i * terms + j], and adjacent terms are.
template <class Real>
struct LinesOf {
  const Real* x;
  Real* out;          // laid out as x, which it may alias; or one number per line (an index is an i32)
  const Real* other;  // targets, laid out as x; or classes (i32) or maxima, one per line
  std::int64_t count, terms, stride;
  const std::int32_t* term_at = nullptr;  // at(j); null: j
};
template <class Real>
struct LineLoopOf {
  void (*across)(const LinesOf<Real>& lines);
  void (*along)(const LinesOf<Real>& lines);
};
using Lines = LinesOf<float>;
using LineLoop = LineLoopOf<float>;

// ---- tiles: feature-major with `stride` numbers per feature, a multiple of 16; `rows` of them are valid -------------

// Rows to read: element (feature f, row r) is at data[f * feature + r / kLanes * vector + r % kLanes]. In a tile,
// `feature` is the stride and `vector` kLanes; in vectors of a data set (f32) they are 16 and 16 times the number of
// features.
template <class Real>
struct TileRowsOf {
  const Real* data;
  std::int64_t feature, vector;
};
using TileRows = TileRowsOf<float>;

// Ops fused into a product, applied to its sums before they are stored. They use the functors of scalar_ops.h, so
// results are bitwise equal to a separate step. X(name of the op, index of the input that is the product, expression of
// `sum`, an element of the product with its bias; with() is the element of the other operand).
#define GRAPHRUN_EPILOGUES(X)                                 \
  X(relu, 0, Relu::apply(sum, Floats(0.0f), Floats(0.0f)))    \
  X(relu_gradient, 1, ReluGradient::apply(with(), sum))       \
  X(tanh_gradient, 1, TanhGradient::apply(with(), sum))       \
  X(sigmoid_gradient, 1, SigmoidGradient::apply(with(), sum)) \
  X(add, 0, Add::apply(sum, with()))                          \
  X(sub, 0, Sub::apply(sum, with()))                          \
  X(mul, 0, Mul::apply(sum, with()))
#define GRAPHRUN_EPILOGUE(name, input, expression) name,
enum class Epilogue : std::int32_t { GRAPHRUN_EPILOGUES(GRAPHRUN_EPILOGUE) none };
#undef GRAPHRUN_EPILOGUE

// out(n features) = in(k features) times w, the same for all rows: element (k, n) of w is at k * w_k + n * w_n. Each
// element is a chain of fma over k in blocks of 256, as above. `bias` (n), if any, is added last, then the epilogue
// is applied. `with` (n features) may alias `out` if k fits in one block. Processes `stride` rows.
template <class Real>
struct DenseTileOf {
  TileRowsOf<Real> in;
  const Real* w;
  const Real* bias;
  Epilogue epilogue;
  const Real* with;
  Real* out;
  std::int64_t w_k, w_n;
  std::int64_t k, n, stride;
};

// out(m, n) += a(m features) times b(n features), summed over rows.
template <class Real>
struct DenseGradientTileOf {
  TileRowsOf<Real> a, b;
  Real* out;
  std::int64_t m, n, rows;
  bool lanes;
  Real* sums_of_b = nullptr;  // requires lanes: those of b's sums over rows, added as by sum_rows
};
using DenseGradientTile = DenseGradientTileOf<float>;

// ---- the table ----------------------------------------------------------------------------------------------------

// For f64, argmax, argmin, one_hot, draw and permute are null.
template <class Real>
struct IsaTableOf {
  using Lines = LinesOf<Real>;
  using LineLoop = LineLoopOf<Real>;
  using MatmulProblem = MatmulProblemOf<Real>;
  const IsaTableOf<double>* wide;
  const ElementFn* elementwise;  // for scalar ops, in the order of scalar_op_list.h; null: none (batch/families.h)
  ElementFn where;               // null for f64
  void (*matmul)(const MatmulProblem& problem);
  // Packs columns [column, column + kPanelColumns) of b, of the k block that starts at k, into the panels of all of b;
  // the layout depends on the ISA. Disjoint calls write disjoint memory.
  void (*pack_panel)(const MatmulProblem& problem, Real* panels, std::int64_t k, std::int64_t column);
  // Packs rows [row, row + rows) of a, whole tiles except for the last, and k steps [k, k + steps) of one block. Either
  // rows (a_row == 1) or steps (a_k == 1) must be contiguous.
  void (*pack_left)(const MatmulProblem& problem, Real* packed, std::int64_t k, std::int64_t steps, std::int64_t row,
                    std::int64_t rows);
  int tile_rows;
  LineLoop sum, max, min, prod, argmax, argmin;  // without terms: the identity, index 0; prod: in order
  // top: a maximum (either zero of both); NaN if any term is NaN. sum_exp: sum of exp(x - maximum), like `sum` always
  // by the rule for more than kShortLine terms.
  LineLoop top, sum_exp;
  LineLoop logsumexp, softmax, log_softmax, cross_entropy, class_entropy;
  // Each feature of a tile, a class index, to `classes` features.
  void (*one_hot)(float* out, const std::int32_t* x, std::int64_t features, std::int64_t classes, std::int64_t stride);
  // (rows, columns) to (columns, rows); strides are those between rows.
  void (*transpose)(Real* to, std::int64_t to_stride, const Real* from, std::int64_t from_stride, std::int64_t rows,
                    std::int64_t columns);
  void (*draw)(const RandomDraw& draw);
  void (*permute)(const Permutation& permutation);
  // Products of tiles and sums over their rows.
  void (*dense)(const DenseTileOf<Real>& call);
  // kLanes partial sums, each over every kLanes-th row. With `lanes` they are added to the lanes of each element of
  // `out`, otherwise tree-reduced into the element.
  void (*dense_gradient)(const DenseGradientTileOf<Real>& call);
  // Not for `lanes`. A chain of fma per 32 rows, added to the element; faster from about 8 outputs n on.
  void (*wide_gradient)(const DenseGradientTileOf<Real>& call);
  // out[f] += sum over rows of x's feature f; `lanes` as in DenseGradientTileOf
  void (*sum_rows)(Real* out, bool lanes, const TileRowsOf<Real>& x, std::int64_t features, std::int64_t rows);
  // out[i] += tree sum of element i's lanes; reads lanes up to a multiple of kLanes elements
  void (*add_lanes)(Real* out, const Real* lanes, std::int64_t n);
};
using IsaTable = IsaTableOf<float>;

// One table per instruction set and type. Loops that take long to compile, or that every new scalar op changes, have
// their own files. where(), draw() and permute() exist for f32 only.
#define GRAPHRUN_ISA_LOOPS(isa, Real)                                                                                \
  namespace isa {                                                                                                    \
  extern const ElementFn element_loops[];                                                                            \
  void where(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, double, double);                 \
  void draw(const RandomDraw& d);                                                                                    \
  void permute(const Permutation& p);                                                                                \
  void dense(const DenseTileOf<Real>& call);                                                                         \
  void dense_gradient(const DenseGradientTileOf<Real>& call);                                                        \
  void wide_gradient(const DenseGradientTileOf<Real>& call);                                                         \
  void sum_rows_of_tile(Real* out, bool lanes, const TileRowsOf<Real>& x, std::int64_t features, std::int64_t rows); \
  void add_lanes_to(Real* out, const Real* lanes, std::int64_t n);                                                   \
  extern const IsaTableOf<Real> table;                                                                               \
  }
#define GRAPHRUN_ISA_TABLE(isa) GRAPHRUN_ISA_LOOPS(isa, float) GRAPHRUN_ISA_LOOPS(isa##_f64, double)
GRAPHRUN_ISA_TABLE(plain)
#if defined(__x86_64__)
GRAPHRUN_ISA_TABLE(avx2)
GRAPHRUN_ISA_TABLE(avx512)
#endif
#undef GRAPHRUN_ISA_LOOPS
#undef GRAPHRUN_ISA_TABLE

}  // namespace graphrun::cpu
