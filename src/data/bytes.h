// bytes.h: reads numbers of either byte order, and 16-bit floats, from a buffer.
// Contract: the caller checks that the bytes exist.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

namespace graphrun::data {

template <class T>
T number_at(std::string_view bytes, std::size_t at, std::endian order) {
  char raw[sizeof(T)];
  std::memcpy(raw, bytes.data() + at, sizeof(T));
  if (order != std::endian::native) std::reverse(raw, raw + sizeof(T));
  T value;
  std::memcpy(&value, raw, sizeof(T));
  return value;
}

// 16-bit floats; f32 holds all their values.
struct F16 {
  std::uint16_t bits;
  explicit operator float() const {
    using Limits = std::numeric_limits<float>;
    float size = std::bit_cast<float>((bits & 0x7FFFu) << 13) * 0x1p112f;  // exact, subnormal numbers too
    if (size >= 0x1p16f) size = (bits & 0x3FFu) != 0 ? Limits::quiet_NaN() : Limits::infinity();
    return (bits & 0x8000u) != 0 ? -size : size;
  }
};
struct BF16 {
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

// Converts `count` numbers of type From to a vector of To.
template <class To, class From>
std::vector<To> numbers_at(std::string_view bytes, std::size_t at, std::size_t count, std::endian order) {
  std::vector<To> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<To>(number_at<From>(bytes, at + i * sizeof(From), order));
  return values;
}

}  // namespace graphrun::data
