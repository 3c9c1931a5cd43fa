// elements.h: parallel loops over large tensors, with one dtype dispatch per loop.
// Contract: in_parts() returns once all ranges are processed. Ranges run in any order, so their results are combined by
// maximum or minimum. Results never depend on the number of threads. Not here: the computation.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>

#include "graphrun/elements.h"

namespace graphrun {

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;  // NOLINT(bugprone-suspicious-memory-comparison): bits are meant
}

inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Calls part(first, last) for ranges that cover [0, elements). A range starts at a multiple of kPartElements. For large
// tensors, several threads call `part` concurrently. It must not throw.
inline constexpr std::size_t kPartElements = std::size_t{1} << 17;
void in_parts(std::size_t elements, const std::function<void(std::size_t first, std::size_t last)>& part);

}  // namespace graphrun
