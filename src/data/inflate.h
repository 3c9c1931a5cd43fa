// inflate.h: zlib with a bound: compressed bytes in, at most `limit` bytes out.
// Contract: memory grows with what really comes out, whatever a header says: nobody has to ask input_limit.h about more
// than `limit`, and who gives a limit from a header has asked. Throws Error that names the file when the
// stream is damaged or ends early.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace graphrun::data {

enum class Wrapper { gzip, raw };  // raw: the streams inside a zip file

bool is_gzip(std::string_view bytes);

// The most that so many bytes of a stream can hold: what claims more lies.
std::uint64_t most_inflated(std::uint64_t compressed);

// Up to `limit` bytes; a stream that has more is cut there without an error.
// `used`, when set, gets how many of `bytes` the stream had.
std::string inflate(const std::string& file, std::string_view bytes, Wrapper wrapper, std::uint64_t limit,
                    std::size_t* used = nullptr);

// A text file's bytes or, where they are gzip, of one member or several, what they hold. Throws Error: more than the
// limit of input_limit.h.
std::string inflated_text(const std::string& file, std::string bytes);

}  // namespace graphrun::data
