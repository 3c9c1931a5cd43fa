#include "base/philox.h"

#include <cmath>
#include <limits>

#include "base/normal_quantile.h"

namespace graphrun {
namespace {

std::uint32_t low_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

template <class F>
void fill(const Stream& stream, std::uint64_t step, std::span<float> out, F&& value) {
  for (std::size_t begin = 0; begin < out.size(); begin += 4) {
    const std::array<std::uint32_t, 4> words = stream.block(step, begin / 4);
    for (std::size_t i = begin; i < out.size() && i < begin + 4; ++i) out[i] = value(words[i - begin]);
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {high_word(b) ^ counter[1] ^ key[0], low_word(b), high_word(a) ^ counter[3] ^ key[1], low_word(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

Stream Stream::named(std::uint64_t seed, std::string_view name) {
  const std::uint64_t hash = fnv1a(std::as_bytes(std::span(name.data(), name.size())));
  // One pass of the cipher: seeds and names that differ in one bit give keys that differ in half of theirs.
  const auto mixed = philox4x32({low_word(hash), high_word(hash), 0, 0}, {low_word(seed), high_word(seed)});
  return {{mixed[0], mixed[1]}};
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
  fill(stream, step, out, [=](std::uint32_t word) {
    const double unit = (word >> 8) * 0x1p-24;  // [0, 1), exact
    float value = static_cast<float>(low + (high - low) * unit);
    // Rounding to float may step over an end of [low, high).
    if (value >= high) value = std::nextafter(value, -std::numeric_limits<float>::infinity());
    if (value < low) value = std::nextafter(value, std::numeric_limits<float>::infinity());
    return value;
  });
}

void fill_normal(const Stream& stream, std::uint64_t step, double mean, double deviation, std::span<float> out) {
  fill(stream, step, out, [=](std::uint32_t word) {
    const double p = (word + 0.5) * 0x1p-32;  // (0, 1), exact and symmetric about 1/2; reaches 6.3 deviations
    return static_cast<float>(mean + deviation * normal_quantile(p));
  });
}

}  // namespace graphrun
