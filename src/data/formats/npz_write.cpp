// Writes .npy and .npz: stored entries without timestamps, so equal arrays give equal bytes.
#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <initializer_list>
#include <limits>

#include "data/formats/npy.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// Appends little-endian numbers, given as (value, width in bytes).
void put(std::string& bytes, std::initializer_list<std::pair<std::uint64_t, int>> numbers) {
  for (const auto& [value, width] : numbers) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  }
}

// Fields shared by the local header and the directory, from "version needed" on.
std::string common(const std::string& file, const std::string& content) {
  const uLong crc = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(content.data()), content.size());
  std::string bytes;
  // Version 2.0, no flags, stored, 1980-01-01 00:00; then both sizes (stored, uncompressed), and no extra field.
  put(bytes, {{20, 2}, {0, 2}, {0, 2}, {0, 2}, {0x21, 2}, {crc, 4}});
  put(bytes, {{content.size(), 4}, {content.size(), 4}, {file.size(), 2}, {0, 2}});
  return bytes;
}

}  // namespace

std::string npy_header(const HostTensor& tensor) {
  static constexpr std::string_view kTypes[] = {"f4", "f8", "i4", "u8", "b1"};  // same order as DType
  static_assert(std::size(kTypes) == static_cast<std::size_t>(DType::boolean) + 1);
  const char order = std::endian::native == std::endian::little ? '<' : '>';
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  size_of(tensor.dtype()) == 1 ? '|' : order, kTypes[static_cast<std::size_t>(tensor.dtype())],
                  fmt::join(tensor.shape().dims(), ", "), tensor.shape().rank() == 1 ? "," : "");
  constexpr std::size_t kBefore = 10, kAligned = 64;
  while ((kBefore + header.size() + 1) % kAligned != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  put(bytes, {{header.size(), 2}});
  return bytes + header;
}

std::string npy_bytes(const HostTensor& tensor) {
  return npy_header(tensor).append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
}

std::string npz_bytes(std::span<const std::pair<std::string, HostTensor>> arrays) {
  std::string bytes, directory;
  for (const auto& [name, tensor] : arrays) {
    const std::string file = name + ".npy", content = npy_bytes(tensor);
    if (file.size() > std::numeric_limits<std::uint16_t>::max())
      throw Error(ErrorKind::input, "data.npz",
                  fmt::format("the name of an array has {} bytes: too many", name.size()));
    if (bytes.size() + content.size() > std::numeric_limits<std::uint32_t>::max() - 1024 || arrays.size() > 65534)
      throw Error(ErrorKind::input, "data.npz", fmt::format("array '{}' would make the NPZ larger than 4 GiB", name));
    const std::string both = common(file, content);
    directory += "PK\x01\x02";
    put(directory, {{20, 2}});  // made by version 2.0
    directory += both;
    put(directory, {{0, 2}, {0, 2}, {0, 2}, {0, 4}, {bytes.size(), 4}});  // no comment, disk 0, binary, no attributes
    directory += file;
    bytes += "PK\x03\x04" + both + file + content;
  }
  const std::size_t begin = bytes.size();
  bytes += directory;
  bytes += "PK\x05\x06";
  // Disk 0, also for the directory; entry counts (this disk, total); no comment.
  put(bytes, {{0, 4}, {arrays.size(), 2}, {arrays.size(), 2}, {directory.size(), 4}, {begin, 4}, {0, 2}});
  return bytes;
}

}  // namespace graphrun::data
