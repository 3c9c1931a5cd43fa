// bytes.h: reads numbers of either byte order from a buffer.
// Contract: the caller checks that the bytes exist.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
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

// Converts `count` numbers of type From to a vector of To.
template <class To, class From>
std::vector<To> numbers_at(std::string_view bytes, std::size_t at, std::size_t count, std::endian order) {
  std::vector<To> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<To>(number_at<From>(bytes, at + i * sizeof(From), order));
  return values;
}

}  // namespace graphrun::data
