// byte_size.h: sizes as people write them: "4096", "512M", "512MiB", "4G".
// Contract: bytes, or K, M, G, T with or without iB behind it, which are powers of 1024. What leaves 64 bits by its
// unit is the largest number of them. Nothing where it is no size, or 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace graphrun {

std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace graphrun
