// tile_isa.h: calls of the per-ISA loops for products of tiles and sums over their rows (isa.h).
// Contract: only pointers, sizes and strides. Tiles are feature-major with `stride` floats per feature, a multiple of
// 16; `rows` of them are valid.
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

}  // namespace graphrun::cpu
