// byte_size.h: sizes as people write them: "4096", "512M", "512MiB", "4G".
// Contract: bytes, or K, M, G, T with or without iB behind it, which are powers of 1024. Nothing where it is no size, 0
// or more than 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace graphrun {

std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace graphrun
