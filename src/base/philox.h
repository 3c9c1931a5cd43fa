// philox.h: counter-based random numbers: the same bits for the same (seed, name, step, element), on any machine.
// Contract: pure functions. Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2,
// 3"). The seed and the FNV-1a hash of a name key a stream, so a new layer does not change others' samples.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace graphrun {

struct Stream {
  std::uint64_t key;  // two words, the first in the low half, as in random_bits.h
  static Stream named(std::uint64_t seed, std::string_view name);
  // Four words for (step, block): element i of a tensor is word i % 4 of block i / 4.
  std::array<std::uint32_t, 4> block(std::uint64_t step, std::uint64_t block) const;
};

std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = 14695981039346656037ull);

// Element i gets word i; uniform in [low, high), 24 bits. Normal samples use the inverse of the normal CDF.
void fill_uniform(const Stream& stream, std::uint64_t step, double low, double high, std::span<float> out);
void fill_normal(const Stream& stream, std::uint64_t step, double mean, double std_dev, std::span<float> out);

}  // namespace graphrun
