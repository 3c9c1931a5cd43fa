#include "base/philox.h"

#include "base/random_bits.h"

namespace graphrun {
namespace {

std::uint32_t low_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const bits::Words words = bits::philox4x32({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
  return {words.w[0], words.w[1], words.w[2], words.w[3]};
}

Stream Stream::named(std::uint64_t seed, std::string_view name) {
  const std::uint64_t hash = fnv1a(std::as_bytes(std::span(name.data(), name.size())));
  // One pass of the cipher: seeds and names that differ in one bit give keys that differ in half of theirs.
  const auto mixed = philox4x32({low_word(hash), high_word(hash), 0, 0}, {low_word(seed), high_word(seed)});
  return {{mixed[0], mixed[1]}};
}

std::uint64_t Stream::packed() const {
  return key[0] | std::uint64_t{key[1]} << 32;
}

std::array<std::uint32_t, 4> Stream::block(std::uint64_t step, std::uint64_t block) const {
  return philox4x32({low_word(block), high_word(block), low_word(step), high_word(step)}, key);
}

std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (const std::byte byte : bytes) {
    hash ^= std::to_integer<std::uint64_t>(byte);
    hash *= 1099511628211ull;
  }
  return hash;
}

void fill_uniform(const Stream& stream, std::uint64_t step, double low, double high, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bits::uniform(bits::word(stream.packed(), step, i), low, high);
}

void fill_normal(const Stream& stream, std::uint64_t step, double mean, double deviation, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = bits::normal(bits::word(stream.packed(), step, i), mean, deviation);
}

}  // namespace graphrun
