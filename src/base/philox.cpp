#include "base/philox.h"

#include "base/random_bits.h"

namespace graphrun {

Stream Stream::named(std::uint64_t seed, std::string_view name) {
  const std::uint64_t hash = fnv1a(std::as_bytes(std::span(name.data(), name.size())));
  // One cipher pass: seeds and names that differ in one bit give keys that differ in half of their bits.
  const bits::Words mixed = bits::words(seed, 0, hash);
  return {mixed.w[0] | std::uint64_t{mixed.w[1]} << 32};
}

std::array<std::uint32_t, 4> Stream::block(std::uint64_t step, std::uint64_t block) const {
  return std::to_array(bits::words(key, step, block).w);
}

std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (const std::byte byte : bytes) {
    hash ^= std::to_integer<std::uint64_t>(byte);
    hash *= 1099511628211ull;
  }
  return hash;
}

void fill_uniform(const Stream& stream, std::uint64_t step, double low, double high, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bits::uniform(bits::word(stream.key, step, i), low, high);
}

void fill_normal(const Stream& stream, std::uint64_t step, double mean, double std_dev, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bits::normal(bits::word(stream.key, step, i), mean, std_dev);
}

}  // namespace graphrun
