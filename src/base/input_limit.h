// input_limit.h: how much memory one thing that is read may take: a file, what inflates from it, an array or a table
// made of it, the tree of a JSON text.
// Contract: GRAPHRUN_MAX_INPUT in bytes, or with K, M, G or T behind it (powers of 1024); without it half of what the
// host has left at that moment, for what is read is held twice on its way: as a file and as an array, as an array and
// as a tensor. Whoever reads asks before it allocates; where no limit is set, a MiB and less is within
// it unasked. Errors: Error of kind input, code input.limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace graphrun {

std::uint64_t input_limit();  // throws Error for a value of the variable that is no size

// Throws Error unless `bytes` are within the limit: "WHAT takes 12 GiB of memory; the limit is 1 GiB". `known` is the
// limit where it was asked for before.
void require_within_input_limit(std::uint64_t bytes, std::string_view what, std::optional<std::uint64_t> known = {});

// The limit at the moment when it is first needed: of one thing that grows as it is read.
class InputLimit {
 public:
  std::uint64_t bytes() {
    if (!known_) known_ = input_limit();
    return *known_;
  }
  void require(std::uint64_t bytes, std::string_view what);

 private:
  std::optional<std::uint64_t> known_;
};

// count * size, or the greatest number there is when that is more.
std::uint64_t saturating_product(std::uint64_t count, std::uint64_t size);

}  // namespace graphrun
