// inflate.h: bounded zlib decompression: returns at most `limit` bytes.
// Contract: memory grows with the actual output, whatever a header claims. A caller that takes `limit` from a header
// must check it against input_limit.h. Throws Error that names the file if the stream is corrupt or truncated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace graphrun::data {

enum class Wrapper { gzip, raw };  // raw: streams inside a zip file

bool is_gzip(std::string_view bytes);

// Upper bound of the output size; a larger claim is invalid.
std::uint64_t max_inflated(std::uint64_t compressed);

// Decompresses up to `limit` bytes; a longer stream is truncated without an error. `used`, if set, receives the number
// of consumed input bytes.
std::string inflate(const std::string& file, std::string_view bytes, Wrapper wrapper, std::uint64_t limit,
                    std::size_t* used = nullptr);

// Contents of a text file, decompressed if it is gzip (one or more members). Throws Error beyond the limit of
// input_limit.h.
std::string inflated_text(const std::string& file, std::string bytes);

}  // namespace graphrun::data
