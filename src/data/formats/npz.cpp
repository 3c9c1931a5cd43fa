// The zip container of an .npz: stored and deflated entries, no zip64 (arrays of more than 4 GiB), no encryption.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "base/file.h"
#include "base/input_limit.h"
#include "data/bytes.h"
#include "data/formats/inflate.h"
#include "data/formats/npy.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

constexpr std::size_t kEndSize = 22, kDirectorySize = 46, kLocalSize = 30;

template <class T>
T little(std::string_view bytes, std::size_t at) {
  return number_at<T>(bytes, at, std::endian::little);
}

[[noreturn]] void fail_npz(const std::string& path, std::string_view what) {
  throw Error(ErrorKind::input, "data.npz", fmt::format("'{}': {}", path, what),
              "the file may have been cut short when it was copied");
}

}  // namespace

Npz::Npz(std::string path) : Npz(path, read_file(path)) {}

Npz::Npz(std::string path, std::string bytes)
    : Npz(std::move(path), std::make_shared<const std::string>(std::move(bytes))) {}

Npz::Npz(std::string path, std::shared_ptr<const std::string> shared)
    : path_(std::move(path)), bytes_(std::move(shared)) {
  const std::string& bytes = *bytes_;
  // The end record is last, except for a comment of at most 65,535 bytes.
  std::size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string::npos || bytes.size() - end < kEndSize || bytes.size() - end > kEndSize + 65535)
    fail_npz(path_, "not an NPZ file: the directory of the zip is missing");
  const std::size_t count = little<std::uint16_t>(bytes, end + 10);
  const std::size_t directory = little<std::uint32_t>(bytes, end + 16);
  std::size_t at = directory;
  for (std::size_t i = 0; i < count; ++i) {
    if (at > end || end - at < kDirectorySize || bytes.compare(at, 4, "PK\x01\x02") != 0)
      fail_npz(path_, "the directory of the zip is damaged");
    Entry entry;
    const auto flags = little<std::uint16_t>(bytes, at + 8);
    entry.method = little<std::uint16_t>(bytes, at + 10);
    entry.crc = little<std::uint32_t>(bytes, at + 16);
    entry.compressed = little<std::uint32_t>(bytes, at + 20);
    entry.size = little<std::uint32_t>(bytes, at + 24);
    const std::size_t name = little<std::uint16_t>(bytes, at + 28);
    const std::size_t rest = std::size_t{little<std::uint16_t>(bytes, at + 30)} + little<std::uint16_t>(bytes, at + 32);
    entry.header = little<std::uint32_t>(bytes, at + 42);
    if (name + rest > end - at - kDirectorySize) fail_npz(path_, "the directory of the zip is damaged");
    entry.file = bytes.substr(at + kDirectorySize, name);
    entry.inside = path_ + "/" + entry.file;
    if ((flags & 1u) != 0) fail_npz(path_, fmt::format("'{}' is encrypted", entry.file));
    if (entry.compressed == 0xFFFFFFFFu || entry.size == 0xFFFFFFFFu || entry.header == 0xFFFFFFFFu)
      fail_npz(path_, fmt::format("'{}' is larger than 4 GiB", entry.file));
    at += kDirectorySize + name + rest;
    const bool is_npy = entry.file.size() > 4 && entry.file.ends_with(".npy");
    names_.push_back(is_npy ? entry.file.substr(0, entry.file.size() - 4) : entry.file);
    if (!index_.emplace(names_.back(), i).second)
      fail_npz(path_, fmt::format("there are two arrays '{}'", names_.back()));
    entries_.push_back(std::move(entry));
  }
  reject_overlaps(directory);
}

// Overlapping entries expand few bytes to many arrays; no tool writes them.
void Npz::reject_overlaps(std::uint64_t directory) {
  std::vector<Entry*> order;
  for (Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->header < b->header; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    Entry& entry = *order[i];
    entry.end = i + 1 < order.size() ? order[i + 1]->header : directory;
    if (entry.header + kLocalSize + entry.compressed > entry.end)
      fail_npz(path_, i + 1 < order.size() ? fmt::format("'{}' and '{}' overlap", entry.file, order[i + 1]->file)
                                           : fmt::format("'{}' overlaps the directory of the zip", entry.file));
  }
}

const Npz::Entry& Npz::entry(const std::string& name) const {
  if (const auto at = index_.find(name); at != index_.end()) return entries_[at->second];
  throw Error(ErrorKind::input, "data.npz", fmt::format("'{}' has no array '{}'", path_, name),
              did_you_mean(name, names_));
}

// Raw (possibly compressed) bytes of the entry.
std::string_view Npz::raw(const Entry& entry) const {
  if (bytes_->compare(entry.header, 4, "PK\x03\x04") != 0)
    fail_npz(entry.inside, "the zip directory points at no file");
  // The local header may lack sizes: use those of the directory.
  const std::uint64_t begin = entry.header + kLocalSize + little<std::uint16_t>(*bytes_, entry.header + 26) +
                              little<std::uint16_t>(*bytes_, entry.header + 28);
  if (begin > entry.end || entry.compressed > entry.end - begin)
    fail_npz(entry.inside, "the array overlaps the next entry of the zip");
  return std::string_view(*bytes_).substr(begin, entry.compressed);
}

// Up to `most` decompressed bytes of the entry.
std::string Npz::first_bytes(const Entry& entry, std::uint64_t most) const {
  const std::string_view bytes = raw(entry);
  if (entry.method == 0) return std::string(bytes.substr(0, most));
  if (entry.method == 8) return inflate(entry.inside, bytes, Wrapper::raw, most);
  fail_npz(entry.inside, fmt::format("zip method {} is not supported", entry.method));
}

NpyHeader Npz::header(const Entry& entry) const {
  constexpr std::uint64_t kShort = 4096, kLong = 12 + (std::uint64_t{1} << 16);
  const std::string bytes = first_bytes(entry, kShort);
  const bool is_short = bytes.size() < kShort || number_at<std::uint16_t>(bytes, 8, std::endian::little) < kShort - 12;
  return parse_npy_header(entry.inside, is_short ? bytes : first_bytes(entry, kLong), entry.size);
}

NpyHeader Npz::header(const std::string& name) const {
  return header(entry(name));
}

Array Npz::read(const std::string& name) const {
  const Entry& entry = this->entry(name);
  header(entry);  // checks that the sizes agree before values are read
  if (entry.method == 8 && entry.size > max_inflated(entry.compressed))
    fail_npz(entry.inside, fmt::format("{} compressed bytes cannot hold {}", entry.compressed, entry.size));
  require_within_input_limit(entry.size, fmt::format("the array '{}'", entry.inside));
  const std::string bytes = first_bytes(entry, entry.size + 1);
  if (bytes.size() != entry.size)
    fail_npz(entry.inside, fmt::format("the zip says {} bytes, but it holds {}", entry.size, bytes.size()));
  const uLong crc = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != entry.crc) fail_npz(entry.inside, "the checksum does not match: the array is damaged");
  return parse_npy(entry.inside, bytes);
}

}  // namespace graphrun::data
