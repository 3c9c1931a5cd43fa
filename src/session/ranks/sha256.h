// sha256.h: SHA-256 (FIPS 180-4) and HMAC (RFC 2104): proof of a secret without sending it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace graphrun {

using Digest = std::array<std::uint8_t, 32>;
Digest sha256(std::string_view message);
Digest hmac_sha256(std::string_view key, std::string_view message);
bool is_same(const Digest& a, const Digest& b);  // in constant time

}  // namespace graphrun
