// input_limit.h: memory limit for each object that is read: a file, its decompressed contents, an array or a table
// built from it, the tree of a JSON text.
// Contract: GRAPHRUN_MAX_INPUT in bytes, or with suffix K, M, G or T (powers of 1024). The default is half of the
// currently available host memory, because data is briefly stored twice: as file and array, or as array and tensor.
// Readers check before they allocate; without a set limit, up to 1 MiB is always allowed. Throws Error of kind input,
// code input.limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace graphrun {

std::uint64_t input_limit();  // throws Error for an invalid value of the variable

// Throws Error if `bytes` exceed the limit: "WHAT takes 12 GiB of memory; the limit is 1 GiB". `known`: the limit, if
// already queried.
void require_within_input_limit(std::uint64_t bytes, std::string_view what, std::optional<std::uint64_t> known = {});

// Limit for one object that grows as it is read; queried on first use.
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

// Returns count * size, or the largest number on overflow.
std::uint64_t saturating_product(std::uint64_t count, std::uint64_t size);

}  // namespace graphrun
