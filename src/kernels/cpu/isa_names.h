// isa_names.h: the elementwise loops of isa.h by the name of their op, and the table of an instruction set.
// Contract: pure look-ups; -1 for a name that is none.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"

namespace graphrun::cpu {

#define GRAPHRUN_NAME(name, Functor, reference) std::string_view(#name),
inline constexpr std::array kUnaryNames = {GRAPHRUN_UNARY_OPS(GRAPHRUN_NAME)};
inline constexpr std::array kBinaryNames = {GRAPHRUN_BINARY_OPS(GRAPHRUN_NAME)};
inline constexpr std::array kCompareNames = {GRAPHRUN_COMPARE_OPS(GRAPHRUN_NAME)};
#undef GRAPHRUN_NAME

// In the order of the table: UnaryOp, BinaryOp, CompareOp.
template <std::size_t kCount>
int index_of(const std::array<std::string_view, kCount>& names, std::string_view op) {
  const auto found = std::find(names.begin(), names.end(), op);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

const IsaTable& isa_table(Isa isa);

}  // namespace graphrun::cpu
