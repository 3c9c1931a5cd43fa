// math_mode.h: how exact scalar functions are (exp, tanh, division, ...) in kernels that do a whole step on a device.
// Contract: the order is that of the names. Leaves to others: the functions and the bounds of their errors
// (src/kernels/scalar_ops.h; of `fast` src/kernels/cuda/tile/functions.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace graphrun {

// exact: the bits of the CPU. fast: what the device is quick at, within bounds of its own. Adding, multiplying and
// comparing are the same in both.
enum class MathMode : std::uint8_t { exact, fast };
constexpr std::string_view name_of(MathMode mode) {
  return mode == MathMode::fast ? "fast" : "exact";
}

}  // namespace graphrun
