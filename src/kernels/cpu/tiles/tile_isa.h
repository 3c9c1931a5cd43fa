// tile_isa.h: the loops over tiles that exist once for each instruction set, beside the elementwise ones of isa.h.
// Contract: as isa.h: pointers, sizes and strides only, the same bits in every table, no allocation. Tiles are
// feature-major with `stride` floats from one feature to the next, a multiple of 16; `rows` of them are valid.
// Leaves to others: what an op means and where operands lie (tile_*.cpp).
#pragma once

#include <cstdint>

namespace graphrun::cpu {

// Rows to read: element (feature f, row r) lies at data[f * feature + r / 16 * vector + r % 16]. In a tile `feature` is
// its stride and `vector` 16; a data set in vectors, read where it lies, has 16 and 16 times its number of features.
struct TileRows {
  const float* data;
  std::int64_t feature, vector;
};

// What a product does with its sums before it stores them, instead of a step that comes after it: by the functors of
// scalar_ops.h, so the bits are those of that step. X(name of the op, which of its inputs the product is, what becomes
// of `sum`, an element of the product with its bias; with() is that of the step's other operand).
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

// out(n features) = in(k features) times w, the same for all rows: element (k, n) of w at k * w_k + n * w_n. Each
// element is a chain of fma over k in blocks of 256, as in isa.h; `bias` (n), if any, is added last, and then comes the
// epilogue. `with` (n features) may be `out` itself where k is one block. `stride` rows.
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
  float* sums_of_b = nullptr;  // with lanes: these of each feature of b take b's sum over rows, as sum_rows adds it
};

// Lines along features: line i has the elements lines[i] + terms[0], lines[i] + terms[1], ... (features of x).
struct FeatureLines {
  const std::int32_t* lines;
  const std::int32_t* terms;
  std::int64_t line_count, term_count, stride;
};

struct TileTable {
  // `rows` rows of `width` floats one after the other, to and from the tile. Loads clear the lanes after `rows`.
  void (*load)(float* tile, const float* from, std::int64_t width, std::int64_t rows, std::int64_t stride);
  void (*store)(float* to, const float* tile, std::int64_t width, std::int64_t rows, std::int64_t stride);
  void (*dense)(const DenseTile& call);
  // 16 sums 16 rows apart; with `lanes` they are added to 16 lanes that `out` has for each element, else as a tree to
  // the element.
  void (*dense_gradient)(const DenseGradientTile& call);
  // Not for `lanes`. A chain of fma for each 32 rows, added to the element: the faster way from some 8 outputs n on.
  void (*wide_gradient)(const DenseGradientTile& call);
  // out[f] += sum over rows of x's feature f; `lanes` as in DenseGradientTile
  void (*sum_rows)(float* out, bool lanes, const TileRows& x, std::int64_t features, std::int64_t rows);
  // out[i] += the 16 lanes of element i, as a tree; reads lanes up to a multiple of 16 elements
  void (*add_lanes)(float* out, const float* lanes, std::int64_t n);
  // out's feature i = reduction of line i; sum in the order of isa.h
  void (*sum_features)(float* out, const float* x, const FeatureLines& lines);
  void (*log_sum_exp)(float* out, const float* x, const FeatureLines& lines);
  // out in the shape of x
  void (*softmax)(float* out, const float* x, const FeatureLines& lines);
  void (*log_softmax)(float* out, const float* x, const FeatureLines& lines);
  // out's feature i = loss of line i; targets in the shape of x, or class numbers in the shape of out
  void (*cross_entropy)(float* out, const float* x, const float* targets, const FeatureLines& lines);
  void (*cross_entropy_classes)(float* out, const float* x, const std::int32_t* classes, const FeatureLines& lines);
  void (*argmax)(std::int32_t* out, const float* x, const FeatureLines& lines);
  void (*argmin)(std::int32_t* out, const float* x, const FeatureLines& lines);
  void (*one_hot)(float* out, const std::int32_t* x, std::int64_t features, std::int64_t classes, std::int64_t stride);
};

// One table for each instruction set; products and sums over rows are in files of their own.
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
