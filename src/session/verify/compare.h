// compare.h: decides whether two executors' results of one step agree.
// Contract: pure functions of bytes. NaN matches NaN, and an infinity the same infinity; integers and booleans must be
// equal. Not here: reading the bytes (verify.cpp).
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "graph/ops/op_def.h"
#include "graphrun/program.h"
#include "session/verify/elements.h"

namespace graphrun {

// Tolerance rule for floats if both executors had the same inputs: declared by the op, else derived from its row rule.
Agreement agreement_of(Op op);

// One tensor from both executors.
struct Sides {
  TensorType type;
  std::span<const std::byte> got, expected;
  Agreement rule = Agreement::exact;
  std::span<const std::byte> scale = {};  // Agreement::scaled: result of the same step on absolute values
  Precision precision = Precision::fp32;  // precision of the step if it is a matrix product

  double tolerance(std::size_t i) const;
  double ratio(std::size_t i) const;  // |got - expected| / tolerance; 0 if equal, infinite if they cannot agree
  bool agrees(std::size_t i) const { return ratio(i) <= 1; }
  std::size_t elements() const { return static_cast<std::size_t>(type.shape.elements()); }
};

// A x of a solution x of A x = b, and |A| |x| + |b|: what Agreement::residual compares. `operands`: A, b and shift of
// solve_spd.
struct Residual {
  std::vector<std::byte> product, scale;
};
Residual residual_of(DType dtype, std::span<const std::vector<std::byte>> operands, std::span<const std::byte> x);

std::string element_text(DType dtype, std::span<const std::byte> bytes, std::size_t i);
double element(DType dtype, std::span<const std::byte> bytes, std::size_t i);

// Distance of two elements: 0 for equal bits, zeros of either sign, or two NaNs; infinite if they cannot agree.
inline constexpr double kNeverAgree = std::numeric_limits<double>::infinity();
template <class T>
double distance_of(T a, T b) {
  if (same_bits(a, b)) return 0;
  if constexpr (!std::is_floating_point_v<T>) {
    return kNeverAgree;
  } else {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
    return std::isfinite(x) && std::isfinite(y) ? std::fabs(x - y) : kNeverAgree;
  }
}

// Element-wise comparison: the first element that disagrees and its ratio, else the largest ratio.
struct Comparison {
  std::optional<std::size_t> wrong = {};
  double worst = 0;
};
Comparison compare(const Sides& sides);

// Prints the elements around element i as a matrix of the last two axes, `got` on the left. Brackets mark element i,
// stars mark others that disagree. Empty for a single element.
std::string neighbourhood(const Sides& sides, std::size_t i, std::string_view got_name, std::string_view expected_name);

}  // namespace graphrun
