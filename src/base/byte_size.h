// byte_size.h: parses human-readable sizes: "4096", "512M", "512MiB", "4G".
// Contract: bytes, or powers of 1024 with K, M, G, T, optionally followed by iB. A unit that overflows 64 bits gives
// the largest 64-bit number. Returns nothing for an invalid size, or 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace graphrun {

std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace graphrun
