// types.h: dtype, shape and tensor type, the vocabulary of every layer.
// Contract: plain values, no heap, no dependency but std; safe to copy and to use from any thread.
// Not here: memory layout (program.h), semantics of ops (graph/ops).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

enum class Op : std::uint16_t;                 // op.h
GRAPHRUN_API std::string_view name_of(Op op);  // "?" for an unknown number

enum class DType : std::uint8_t { f32, f64, i32, u64, boolean };

GRAPHRUN_API std::size_t size_of(DType dtype);  // bytes of one element
GRAPHRUN_API std::string_view name_of(DType dtype);
GRAPHRUN_API bool parse_dtype(std::string_view name, DType& out);  // false: unknown name
inline bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

// Precision of a model. tf32: an executor may round operands of products to 10 fraction bits, which tensor cores
// multiply several times faster; sums stay f32. Executors without such units compute as for fp32. fp64: every f32 of
// the model is f64; steps of a Program then have f64 types and fp32 as the precision of their products.
enum class Precision : std::uint8_t { fp32, tf32, fp64 };

// Upper bounds, so that later code need not check sums and products of extents for overflow. Readers of files and
// Programs reject larger values by name; model-format.md lists them.
inline constexpr int kMaxRank = 8;
inline constexpr int kMaxOperands = 8;                                  // per op
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;     // in a tensor; an extent of 0 counts as 1
inline constexpr std::int64_t kMaxBatch = (std::int64_t{1} << 31) - 1;  // samples: an i32 counts them

// The batch is symbolic until a graph is compiled: dimension 0 then has `rows` rows per sample. Such an extent is far
// below every real one, so it cannot pass for a number: Shape::elements() rejects it, and products with it
// overflow 64 bits.
inline constexpr std::int64_t kBatch = std::numeric_limits<std::int64_t>::min() + 1;
constexpr std::int64_t batch_extent(std::int64_t rows) {
  return kBatch - 1 + rows;
}
constexpr std::int64_t batch_rows(std::int64_t extent) {  // rows per sample; 0: the extent is a number
  return extent < kBatch / 2 ? extent - (kBatch - 1) : 0;
}
GRAPHRUN_API std::string extent_text(std::int64_t extent);  // "6", "batch", "2*batch"

// Extents in row-major order; rank 0 is a scalar with one element. An extent of 0 means no elements.
class GRAPHRUN_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);  // throws Error beyond kMaxRank

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  void push_back(std::int64_t extent);           // throws Error beyond kMaxRank
  std::int64_t elements() const;                 // product of the extents; 1 for a scalar. Throws Error if symbolic
  Shape with_batch(std::int64_t samples) const;  // replaces the symbol; 1: shape of one sample

  friend GRAPHRUN_API bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

GRAPHRUN_API std::string to_string(const Shape& shape);  // "(321, 6)", "()" for a scalar
inline std::int64_t last_extent(const Shape& shape) {    // 1 for a scalar
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

// `rows`: whether dimension 0 is the batch. 0: no; k: k rows per sample, so the extent of dimension 0 is
// batch_extent(k), and in a Program k times the row capacity of the phase. Declared on inputs and propagated by ops,
// never guessed from sizes.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t rows = 0;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// Shape of one sample of a value with rows; dimension 0 counts the sample's rows.
inline Shape features_of(const TensorType& type) {
  Shape shape = type.shape;
  shape[0] = type.rows;
  return shape;
}
inline std::int64_t feature_count(const TensorType& type) {  // per sample; all elements of a value without rows
  return type.rows > 0 ? features_of(type).elements() : type.shape.elements();
}

// Whether adding `bias` adds one number per feature, the same in all rows.
inline bool is_bias(const TensorType& bias, const TensorType& value) {
  const std::int64_t width = last_extent(value.shape);
  return bias.rows == 0 && bias.shape.rank() > 0 && last_extent(bias.shape) == width && bias.shape.elements() == width;
}

// "f32(batch, 6)" if dimension 0 is the batch, "f32(2*batch, 6)" for two rows per sample, else "f32(6)".
GRAPHRUN_API std::string to_string(const TensorType& type);

}  // namespace graphrun
