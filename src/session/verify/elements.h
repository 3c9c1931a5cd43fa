// elements.h: loops over the elements of large tensors: the dtype is chosen
// once a loop, and threads share the ranges. Contract: in_parts() returns when
// every range was seen; ranges are seen in any order, so what they find is
// combined by a maximum or a minimum. Results never depend on the number of
// threads. Leaves to others: what is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include "graphrun/elements.h"

namespace graphrun {

template <class T>
T load_element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;  // NOLINT(bugprone-suspicious-memory-comparison): bits are meant
}

inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Calls part(first, last) for ranges of [0, elements) that together are all of
// it. A range begins at a multiple of kPartElements. `part` is called from
// several threads at once where there are many elements, and must not throw.
inline constexpr std::size_t kPartElements = std::size_t{1} << 17;
void in_parts(std::size_t elements, const std::function<void(std::size_t first, std::size_t last)>& part);

}  // namespace graphrun
