#include "graphrun/types.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::string_view kDTypeNames[] = {"f32", "f64", "i32", "u64", "bool"};  // indexed by DType
static_assert(std::size(kDTypeNames) == static_cast<std::size_t>(DType::boolean) + 1);
constexpr std::size_t kDTypeBytes[] = {4, 8, 4, 8, 1};
static_assert(std::size(kDTypeBytes) == static_cast<std::size_t>(DType::boolean) + 1);

[[noreturn]] void too_many_dimensions(std::size_t count) {
  throw Error(ErrorKind::input, "shape.rank",
              fmt::format("a tensor has at most {} dimensions, got {}", kMaxRank, count));
}

}  // namespace

std::size_t size_of(DType dtype) {
  return kDTypeBytes[static_cast<std::size_t>(dtype)];
}

std::string_view name_of(DType dtype) {
  return kDTypeNames[static_cast<std::size_t>(dtype)];
}

bool parse_dtype(std::string_view name, DType& out) {
  const auto found = std::ranges::find(kDTypeNames, name);
  if (found == std::end(kDTypeNames)) return false;
  out = static_cast<DType>(found - kDTypeNames);
  return true;
}

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank) too_many_dimensions(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int>(dims.size());
}

void Shape::push_back(std::int64_t extent) {
  if (rank_ == kMaxRank) too_many_dimensions(kMaxRank + 1);
  dims_[static_cast<std::size_t>(rank_++)] = extent;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : dims()) {
    if (batch_rows(extent) > 0) {
      throw Error(ErrorKind::input, "shape.batch",
                  fmt::format("how many elements {} has depends on the batch", to_string(*this)),
                  "with_batch() gives it a number");
    }
    if (extent < 0) {
      throw Error(ErrorKind::input, "shape.extent",
                  fmt::format("an extent must be >= 0, the shape is {}", to_string(*this)));
    }
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product) || product > kMaxElements) {
      throw Error(ErrorKind::input, "shape.size",
                  fmt::format("a tensor of shape {} has too many elements", to_string(*this)),
                  fmt::format("the limit is {} elements, and an extent of 0 counts as 1 there", kMaxElements));
    }
  }
  return empty ? 0 : product;
}

Shape Shape::with_batch(std::int64_t samples) const {
  Shape result = *this;
  for (int axis = 0; axis < rank_; ++axis) {
    const std::int64_t rows = batch_rows(result[axis]);
    if (rows > 0 && __builtin_mul_overflow(rows, samples, &result[axis])) result[axis] = kMaxElements + 1;
  }
  return result;
}

bool operator==(const Shape& a, const Shape& b) {
  return std::ranges::equal(a.dims(), b.dims());
}

std::string extent_text(std::int64_t extent) {
  const std::int64_t rows = batch_rows(extent);
  return rows == 0 ? std::to_string(extent) : rows == 1 ? "batch" : fmt::format("{}*batch", rows);
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape.dims()) text += (text.empty() ? "" : ", ") + extent_text(extent);
  return "(" + text + ")";
}

std::string to_string(const TensorType& type) {
  std::string text = fmt::format("{}(", name_of(type.dtype));
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += extent_text(axis == 0 && type.rows > 0 ? batch_extent(type.rows) : type.shape[axis]);
  }
  return text + ")";
}

}  // namespace graphrun
