// compare.h: when two executors' results of one step count as the same.
// Contract: pure functions of bytes. NaN must meet NaN and an infinity the same infinity; integers and booleans are
// equal or wrong. Leaves to others: getting the bytes (verify.cpp).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/program.h"

namespace graphrun {

// How far a float may be off, given that both executors had the same inputs.
enum class Rule {
  exact,     // the op moves or selects values, draws bits, or jumps: from equal inputs the same result follows
  relative,  // of the expected value: one rounding, or a function of known accuracy
  absolute,  // of the expected value or of 1, whichever is larger: the logarithm of a sum has errors of that size
  scaled,    // of the sum of absolute terms: an order of adding is each executor's own, and where terms cancel the
             // result says nothing about the rounding errors, which are as large as the terms
};
// Follows from the op's row rule, with exceptions by name; for an op that nobody told of, the sum of absolute terms.
Rule rule_of(std::string_view op);

// One tensor from both sides.
struct Sides {
  TensorType type;
  std::span<const std::byte> got, expected;
  Rule rule = Rule::exact;
  std::span<const std::byte> scale = {};  // Rule::scaled: the same step on absolute values

  double tolerance(std::size_t i) const;
  double ratio(std::size_t i) const;  // |got - expected| / tolerance; 0 when equal, infinite when they cannot agree
  bool agrees(std::size_t i) const { return ratio(i) <= 1; }
  std::size_t elements() const { return static_cast<std::size_t>(type.shape.elements()); }
};

std::string element_text(DType dtype, std::span<const std::byte> bytes, std::size_t i);
double element(DType dtype, std::span<const std::byte> bytes, std::size_t i);
std::vector<std::int64_t> index_of(const Shape& shape, std::size_t i);

// The elements around element i as a matrix of the last two axes, `got` on the left: element i in brackets, others that
// do not agree with a star. Empty for a single element.
std::string neighbourhood(const Sides& sides, std::size_t i, std::string_view got_name, std::string_view expected_name);

}  // namespace graphrun
