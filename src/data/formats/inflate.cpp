#include "data/formats/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include "base/input_limit.h"
#include "graphrun/error.h"

namespace graphrun::data {

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

// Deflate's longest match is 258 bytes and takes at least two bits.
std::uint64_t max_inflated(std::uint64_t compressed) {
  return saturating_product(compressed, 1032);
}

std::string inflate(const std::string& file, std::string_view bytes, Wrapper wrapper, std::uint64_t limit,
                    std::size_t* end) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorKind::input, "data.compressed", fmt::format("'{}': the compressed data {}", file, what),
                "the file may have been cut short when it was copied");
  };
  z_stream stream{};
  const int window = wrapper == Wrapper::gzip ? 15 + 16 : -15;
  if (inflateInit2(&stream, window) != Z_OK) throw std::runtime_error("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);

  std::string out;
  // Unused capacity costs nothing, but growing copies the data.
  out.reserve(static_cast<std::size_t>(std::min(limit, max_inflated(bytes.size()))));
  std::size_t used = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END && out.size() < limit) {
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 22;
    const std::size_t begin = out.size();
    out.resize(begin + static_cast<std::size_t>(std::min(kPiece, limit - begin)));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + begin);
    stream.avail_out = static_cast<uInt>(out.size() - begin);
    const std::size_t chunk = std::min<std::size_t>(bytes.size() - used, std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + used));
    stream.avail_in = static_cast<uInt>(chunk);
    state = ::inflate(&stream, Z_NO_FLUSH);
    used += chunk - stream.avail_in;
    out.resize(out.size() - stream.avail_out);
    if (state == Z_BUF_ERROR || (state == Z_OK && used == bytes.size() && stream.avail_out > 0)) fail("end too early");
    if (state != Z_OK && state != Z_STREAM_END) fail("are damaged");
  }
  if (end != nullptr) *end = used;
  return out;
}

std::string inflated_text(const std::string& file, std::string bytes) {
  if (!is_gzip(bytes)) return bytes;
  const std::uint64_t limit = input_limit();
  std::string text;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    if (!is_gzip(rest))
      throw Error(ErrorKind::input, "data.compressed",
                  fmt::format("'{}': {} bytes follow the compressed data", file, rest.size()));
    std::size_t used = 0;
    std::string part = inflate(file, rest, Wrapper::gzip, limit - text.size() + 1, &used);
    require_within_input_limit(text.size() + part.size(), fmt::format("what '{}' holds", file), limit);
    text = text.empty() ? std::move(part) : text + part;
    rest.remove_prefix(used);
  }
  return text;
}

}  // namespace graphrun::data
