// checksum.h: 64-bit checksum that detects changed bytes, at several GB/s.
// Contract: depends only on the bytes and their number, not on how they are divided into add() calls. Each step is a
// bijection of the sum so far, so a change within one eight-byte word always changes the result. Not cryptographic:
// collisions are easy to construct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace graphrun {

class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    length_ += bytes.size();
    while (filled_ > 0 && !bytes.empty()) {
      pending_[filled_++] = bytes.front();
      bytes = bytes.subspan(1);
      if (filled_ == sizeof(std::uint64_t)) mix(pending_), filled_ = 0;
    }
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) mix(bytes.data());
    for (const std::byte byte : bytes) pending_[filled_++] = byte;
  }

  std::uint64_t value() const {
    Checksum whole = *this;
    std::memset(whole.pending_ + filled_, 0, sizeof pending_ - filled_);
    whole.mix(whole.pending_);
    whole.mix_word(length_);
    return whole.sum_;
  }

 private:
  void mix(const std::byte* word) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, word, sizeof bits);
    mix_word(bits);
  }
  void mix_word(std::uint64_t word) {
    sum_ = (sum_ ^ word) * 0x9e3779b97f4a7c15u;
    sum_ ^= sum_ >> 32;
  }

  std::uint64_t sum_ = 14695981039346656037u, length_ = 0;
  std::byte pending_[sizeof(std::uint64_t)] = {};
  std::size_t filled_ = 0;
};

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace graphrun
