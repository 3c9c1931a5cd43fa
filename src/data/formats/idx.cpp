#include "data/formats/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/input_limit.h"
#include "data/bytes.h"
#include "data/formats/inflate.h"
#include "data/formats/npy.h"
#include "data/sources/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// IDX types under NumPy's names.
constexpr std::pair<std::uint8_t, std::string_view> kIdxTypes[] = {{0x08, "u1"}, {0x09, "i1"}, {0x0B, "i2"},
                                                                   {0x0C, "i4"}, {0x0D, "f4"}, {0x0E, "f8"}};

[[noreturn]] void fail_idx(const std::string& path, std::string what, std::string hint = {}) {
  throw Error(ErrorKind::input, "data.idx", fmt::format("'{}': {}", path, what), std::move(hint));
}

NpyHeader read_header(const std::string& path, std::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    fail_idx(path, "not an IDX file: it does not begin with two zero bytes");
  const auto code = static_cast<std::uint8_t>(bytes[2]), rank = static_cast<std::uint8_t>(bytes[3]);
  const auto type =
      std::find_if(std::begin(kIdxTypes), std::end(kIdxTypes), [&](const auto& row) { return row.first == code; });
  if (type == std::end(kIdxTypes)) fail_idx(path, fmt::format("IDX type 0x{:02x} is not known", code));
  if (rank < 1 || rank > kMaxRank) fail_idx(path, fmt::format("IDX rank must be from 1 to {}, got {}", kMaxRank, rank));
  NpyHeader header{{}, std::string(type->second), std::endian::big, 4 + 4 * std::uint64_t{rank}, 0};
  if (bytes.size() < header.begin) fail_idx(path, "the IDX header is cut short");
  for (std::size_t axis = 0; axis < rank; ++axis)
    header.shape.push_back(number_at<std::uint32_t>(bytes, 4 + 4 * axis, std::endian::big));
  const std::optional<std::uint64_t> count = credible_elements(header.shape, std::uint64_t{1} << 50);
  if (!count) fail_idx(path, "the extents of the IDX header are not credible");
  if (*count == 0) fail_idx(path, "the IDX header declares no values");
  header.count = *count;
  return header;
}

std::uint64_t end_of(const NpyHeader& header) {
  return header.begin + header.count * static_cast<std::uint64_t>(header.type[1] - '0');
}

}  // namespace

Array read_idx_file(const std::string& path) {
  std::string bytes = read_file(path);
  NpyHeader header;
  if (is_gzip(bytes)) {
    header = read_header(path, inflate(path, bytes, Wrapper::gzip, 4 + 4 * kMaxRank));
    const std::uint64_t end = end_of(header);
    require_within_input_limit(std::min(end, max_inflated(bytes.size())), fmt::format("what '{}' holds", path));
    bytes = inflate(path, bytes, Wrapper::gzip, end + 1);
  } else {
    header = read_header(path, bytes);
  }
  if (bytes.size() != end_of(header)) {
    fail_idx(path,
             fmt::format(
                 "the IDX header says {} and {} bytes, but the file {}", to_string(header.shape), end_of(header),
                 bytes.size() > end_of(header) ? std::string("has more") : fmt::format("ends after {}", bytes.size())));
  }
  return read_values(path, fmt::format("the array of '{}'", path), bytes, header);
}

Loaded read_idx(SourceContext& context) {
  return read_files_by_key(context, read_idx_file);
}

}  // namespace graphrun::data
