// The zip container of an .npz: stored and deflated entries, no zip64 (arrays of more than 4 GiB), no encryption.
#include <fmt/format.h>
#include <zlib.h>

#include "base/file.h"
#include "data/bytes.h"
#include "data/inflate.h"
#include "data/npy.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

constexpr std::size_t kEndSize = 22, kDirectorySize = 46, kLocalSize = 30;

template <class T>
T little(std::string_view bytes, std::size_t at) {
  return number_at<T>(bytes, at, std::endian::little);
}

[[noreturn]] void fail(const std::string& path, std::string_view what) {
  throw Error(ErrorKind::input, "data.npz", fmt::format("'{}': {}", path, what),
              "the file may have been cut short when it was copied");
}

}  // namespace

Npz::Npz(std::string path) : path_(std::move(path)), bytes_(read_file(path_)) {
  // The end record stands last, but for a comment of at most 65,535 bytes.
  std::size_t end = bytes_.rfind("PK\x05\x06");
  if (end == std::string::npos || bytes_.size() - end < kEndSize || bytes_.size() - end > kEndSize + 65535)
    fail(path_, "not an NPZ file: the directory of the zip is missing");
  const std::size_t count = little<std::uint16_t>(bytes_, end + 10);
  std::size_t at = little<std::uint32_t>(bytes_, end + 16);
  for (std::size_t i = 0; i < count; ++i) {
    if (at > end || end - at < kDirectorySize || bytes_.compare(at, 4, "PK\x01\x02") != 0)
      fail(path_, "the directory of the zip is damaged");
    Entry entry;
    const auto flags = little<std::uint16_t>(bytes_, at + 8);
    entry.method = little<std::uint16_t>(bytes_, at + 10);
    entry.crc = little<std::uint32_t>(bytes_, at + 16);
    entry.compressed = little<std::uint32_t>(bytes_, at + 20);
    entry.size = little<std::uint32_t>(bytes_, at + 24);
    const std::size_t name = little<std::uint16_t>(bytes_, at + 28);
    const std::size_t rest =
        std::size_t{little<std::uint16_t>(bytes_, at + 30)} + little<std::uint16_t>(bytes_, at + 32);
    entry.header = little<std::uint32_t>(bytes_, at + 42);
    if (name + rest > end - at - kDirectorySize) fail(path_, "the directory of the zip is damaged");
    entry.file = bytes_.substr(at + kDirectorySize, name);
    if ((flags & 1u) != 0) fail(path_, fmt::format("'{}' is encrypted", entry.file));
    if (entry.compressed == 0xFFFFFFFFu || entry.size == 0xFFFFFFFFu || entry.header == 0xFFFFFFFFu)
      fail(path_, fmt::format("'{}' is larger than 4 GiB", entry.file));
    at += kDirectorySize + name + rest;
    const bool is_npy = entry.file.size() > 4 && entry.file.compare(entry.file.size() - 4, 4, ".npy") == 0;
    names_.push_back(is_npy ? entry.file.substr(0, entry.file.size() - 4) : entry.file);
    entries_.push_back(std::move(entry));
  }
}

Array Npz::read(const std::string& name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] != name) continue;
    const Entry& entry = entries_[i];
    const std::string inside = path_ + "/" + entry.file;
    if (entry.header > bytes_.size() || bytes_.size() - entry.header < kLocalSize ||
        bytes_.compare(entry.header, 4, "PK\x03\x04") != 0)
      fail(inside, "the zip directory points at no file");
    // The sizes of the local header may be unset: those of the directory count.
    const std::uint64_t begin = entry.header + kLocalSize + little<std::uint16_t>(bytes_, entry.header + 26) +
                                little<std::uint16_t>(bytes_, entry.header + 28);
    if (begin > bytes_.size() || entry.compressed > bytes_.size() - begin) fail(inside, "the array is cut short");
    const std::string_view raw = std::string_view(bytes_).substr(begin, entry.compressed);
    std::string bytes;
    if (entry.method == 0)
      bytes = raw;
    else if (entry.method == 8)
      bytes = inflate(inside, raw, Wrapper::raw, entry.size + 1);
    else
      fail(inside, fmt::format("zip method {} is not supported", entry.method));
    if (bytes.size() != entry.size)
      fail(inside, fmt::format("the zip says {} bytes, but it holds {}", entry.size, bytes.size()));
    const uLong crc = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    if (crc != entry.crc) fail(inside, "the checksum is wrong: the array is damaged");
    return parse_npy(inside, bytes);
  }
  const std::string near = nearest_name(name, names_);
  throw Error(ErrorKind::input, "data.npz", fmt::format("'{}' has no array '{}'", path_, name),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

}  // namespace graphrun::data
