#include "data/idx.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/input_limit.h"
#include "data/bytes.h"
#include "data/inflate.h"
#include "data/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

struct Header {
  std::uint8_t type = 0;
  Shape shape;
  std::uint64_t begin = 0;  // of the values
  std::uint64_t end = 0;
  std::uint64_t memory = 0;  // of the values once read
};

std::uint64_t size_of_type(std::uint8_t type) {
  switch (type) {
    case 0x08:
    case 0x09:
      return 1;
    case 0x0B:
      return 2;
    case 0x0C:
    case 0x0D:
      return 4;
    case 0x0E:
      return 8;
    default:
      return 0;
  }
}

[[noreturn]] void fail_idx(const std::string& path, std::string what, std::string hint = {}) {
  throw Error(ErrorKind::input, "data.idx", fmt::format("'{}': {}", path, what), std::move(hint));
}

Header read_header(const std::string& path, std::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    fail_idx(path, "not an IDX file: it does not begin with two zero bytes");
  Header header;
  header.type = static_cast<std::uint8_t>(bytes[2]);
  const std::uint64_t width = size_of_type(header.type);
  if (width == 0) fail_idx(path, fmt::format("IDX type 0x{:02x} is not known", header.type));
  const auto rank = static_cast<std::uint8_t>(bytes[3]);
  if (rank < 1 || rank > kMaxRank) fail_idx(path, fmt::format("IDX rank must be from 1 to {}, got {}", kMaxRank, rank));
  header.begin = 4 + 4 * std::uint64_t{rank};
  if (bytes.size() < header.begin) fail_idx(path, "the IDX header is cut short");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  std::uint64_t count = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto extent = number_at<std::uint32_t>(bytes, 4 + 4 * axis, std::endian::big);
    if (extent != 0 && count > kMost / extent) fail_idx(path, "the extents of the IDX header are not credible");
    if (extent != 0) count *= extent;  // an extent of 0 hides no overflow
    header.shape.push_back(extent);
  }
  const auto extents = header.shape.dims();
  if (std::find(extents.begin(), extents.end(), 0) != extents.end())
    fail_idx(path, "the IDX header says that there are no values");
  header.end = header.begin + count * width;
  header.memory = count * (header.type == 0x08 ? 1 : std::max<std::uint64_t>(width, 4));
  return header;
}

}  // namespace

Array read_idx_file(const std::string& path) {
  std::string bytes = read_file(path);
  Header header;
  if (is_gzip(bytes)) {
    header = read_header(path, inflate(path, bytes, Wrapper::gzip, 4 + 4 * kMaxRank));
    require_within_input_limit(std::min(header.end, most_inflated(bytes.size())), fmt::format("what '{}' holds", path));
    bytes = inflate(path, bytes, Wrapper::gzip, header.end + 1);
  } else {
    header = read_header(path, bytes);
  }
  if (bytes.size() != header.end) {
    fail_idx(
        path,
        fmt::format("the IDX header says {} and {} bytes, but the file {}", to_string(header.shape), header.end,
                    bytes.size() > header.end ? std::string("has more") : fmt::format("ends after {}", bytes.size())));
  }
  require_within_input_limit(header.memory, fmt::format("the array of '{}'", path));
  Array array;
  array.shape = header.shape;
  const auto count = static_cast<std::size_t>(header.shape.elements());
  const auto at = static_cast<std::size_t>(header.begin);
  constexpr std::endian kBig = std::endian::big;
  switch (header.type) {
    case 0x08:
      array.values = numbers_at<std::uint8_t, std::uint8_t>(bytes, at, count, kBig);
      break;
    case 0x09:
      array.values = numbers_at<std::int32_t, std::int8_t>(bytes, at, count, kBig);
      break;
    case 0x0B:
      array.values = numbers_at<std::int32_t, std::int16_t>(bytes, at, count, kBig);
      break;
    case 0x0C:
      array.values = numbers_at<std::int32_t, std::int32_t>(bytes, at, count, kBig);
      break;
    case 0x0D:
      array.values = numbers_at<float, float>(bytes, at, count, kBig);
      break;
    default:
      array.values = numbers_at<double, double>(bytes, at, count, kBig);
      break;
  }
  return array;
}

Loaded read_idx(SourceContext& context) {
  return read_files_by_key(context, read_idx_file);
}

}  // namespace graphrun::data
