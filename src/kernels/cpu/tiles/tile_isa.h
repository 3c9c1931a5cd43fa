// tile_isa.h: per-ISA loops over tiles; the elementwise ones are in isa.h.
// Contract: as isa.h: only pointers, sizes and strides; the same bits in every table; no allocation. Tiles are
// feature-major with `stride` floats per feature, a multiple of 16; `rows` of them are valid.
// Leaves to others: the meaning of an op and the location of its operands (tile_*.cpp).
#pragma once

#include <cstdint>

namespace graphrun::cpu {

// Rows to read: element (feature f, row r) is at data[f * feature + r / 16 * vector + r % 16]. In a tile, `feature` is
// the stride and `vector` 16; in vectors of a data set they are 16 and 16 times the number of features.
struct TileRows {
  const float* data;
  std::int64_t feature, vector;
};

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
// element is a chain of fma over k in blocks of 256, as in isa.h. `bias` (n), if any, is added last, then the epilogue
// is applied. `with` (n features) may alias `out` if k fits in one block. Processes `stride` rows.
struct DenseTile {
  TileRows in;
  const float* w;
  const float* bias;
  Epilogue epilogue;
  const float* with;
  float* out;
  std::int64_t w_k, w_n;
  std::int64_t k, n, stride;
};

// out(m, n) += a(m features) times b(n features), summed over rows.
struct DenseGradientTile {
  TileRows a, b;
  float* out;
  std::int64_t m, n, rows;
  bool lanes;
  float* sums_of_b = nullptr;  // requires lanes: those of b's sums over rows, added as by sum_rows
};

// Lines along features: line i consists of features lines[i] + terms[0], lines[i] + terms[1], ... of x.
struct FeatureLines {
  const std::int32_t* lines;
  const std::int32_t* terms;
  std::int64_t line_count, term_count, stride;
};

struct TileTable {
  // Copy `rows` contiguous rows of `width` floats to and from the tile. `load` zeroes the lanes from `rows` on.
  void (*load)(float* tile, const float* from, std::int64_t width, std::int64_t rows, std::int64_t stride);
  void (*store)(float* to, const float* tile, std::int64_t width, std::int64_t rows, std::int64_t stride);
  void (*dense)(const DenseTile& call);
  // 16 partial sums, each over every 16th row. With `lanes` they are added to the 16 lanes of each element of `out`,
  // otherwise tree-reduced into the element.
  void (*dense_gradient)(const DenseGradientTile& call);
  // Not for `lanes`. A chain of fma per 32 rows, added to the element; faster from about 8 outputs n on.
  void (*wide_gradient)(const DenseGradientTile& call);
  // out[f] += sum over rows of x's feature f; `lanes` as in DenseGradientTile
  void (*sum_rows)(float* out, bool lanes, const TileRows& x, std::int64_t features, std::int64_t rows);
  // out[i] += tree sum of element i's 16 lanes; reads lanes up to a multiple of 16 elements
  void (*add_lanes)(float* out, const float* lanes, std::int64_t n);
  // feature i of out = reduction of line i; sums in the order of isa.h
  void (*sum_features)(float* out, const float* x, const FeatureLines& lines);
  void (*log_sum_exp)(float* out, const float* x, const FeatureLines& lines);
  // out has the shape of x
  void (*softmax)(float* out, const float* x, const FeatureLines& lines);
  void (*log_softmax)(float* out, const float* x, const FeatureLines& lines);
  // feature i of out = loss of line i; targets have the shape of x, class indices the shape of out
  void (*cross_entropy)(float* out, const float* x, const float* targets, const FeatureLines& lines);
  void (*cross_entropy_classes)(float* out, const float* x, const std::int32_t* classes, const FeatureLines& lines);
  void (*argmax)(std::int32_t* out, const float* x, const FeatureLines& lines);
  void (*argmin)(std::int32_t* out, const float* x, const FeatureLines& lines);
  void (*one_hot)(float* out, const std::int32_t* x, std::int64_t features, std::int64_t classes, std::int64_t stride);
};

// One table per instruction set; products and sums over rows are in separate source files.
#define GRAPHRUN_TILE_TABLE(isa)                                                                              \
  namespace isa {                                                                                             \
  void dense(const DenseTile& call);                                                                          \
  void dense_gradient(const DenseGradientTile& call);                                                         \
  void wide_gradient(const DenseGradientTile& call);                                                          \
  void sum_rows_of_tile(float* out, bool lanes, const TileRows& x, std::int64_t features, std::int64_t rows); \
  void add_lanes_to(float* out, const float* lanes, std::int64_t n);                                          \
  extern const TileTable tile_table;                                                                          \
  }
GRAPHRUN_TILE_TABLE(plain)
#if defined(__x86_64__)
GRAPHRUN_TILE_TABLE(avx2)
GRAPHRUN_TILE_TABLE(avx512)
#endif
#undef GRAPHRUN_TILE_TABLE

}  // namespace graphrun::cpu
