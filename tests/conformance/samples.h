// samples.h: the explicit list of sample families; an op without samples fails coverage_test.cpp.
// Contract: the same list on every call; (op, name) is unique.
#pragma once

#include <cstdint>
#include <limits>

#include "conformance/sample.h"

namespace graphrun::test {

namespace samples {
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kBeyond32Bits = 4294967297.0;  // 2^32 + 1: modulo 3 it differs from its low 32 bits
inline constexpr std::int64_t kKey = 0x0123456789abcdef;

// The step counter, as an operand.
inline Operand step(double value) {
  return {typed(DType::u64, {}), 0, 0, {value}, "counter"};
}

std::vector<Sample> unary();
std::vector<Sample> binary();
std::vector<Sample> comparisons();
std::vector<Sample> matmul();
std::vector<Sample> reductions();
std::vector<Sample> movement();
std::vector<Sample> rowwise();
std::vector<Sample> random();
std::vector<Sample> sources();
}  // namespace samples

const std::vector<Sample>& all_samples();

// Maximum distance in floats between a scalar op's result and the rounded reference, from its row in scalar_op_list.h.
double scalar_ulps(std::string_view op);

}  // namespace graphrun::test
