// npy.h: NumPy's .npy arrays and the .npz files (zip) that hold several, read and written.
// Contract: versions 1 to 3, C order, integers, floats and bools of 8 to 64 bits in either byte order. Throws Error
// that names the file and the array; nothing is allocated that the file's length does not bear out, or that is beyond
// the limit of input_limit.h. IDX files are read with the same credible_elements() and read_values(). An archive is
// refused whose entries share bytes or names.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/array.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

// What stands before the values.
struct NpyHeader {
  Shape shape;
  std::string type;  // as NumPy writes it, without the byte order: "f4"
  std::endian order = std::endian::little;
  std::uint64_t begin = 0;  // of the values
  std::uint64_t count = 0;  // of them
};

// How many elements a shape has; nothing when they cannot lie in `room` bytes. An extent of 0 hides no overflow.
std::optional<std::uint64_t> credible_elements(const Shape& shape, std::uint64_t room);

// `bytes` are the file's first ones, all of the header among them, and `size` is how many it has. `name` is for
// messages.
NpyHeader parse_npy_header(const std::string& name, std::string_view bytes, std::uint64_t size);
Array parse_npy(const std::string& name, std::string_view bytes);
// The values behind a header. `what` is for messages: "the array 'x.npy'".
Array read_values(const std::string& name, const std::string& what, std::string_view bytes, const NpyHeader& header);

// The bytes of a file: version 1.0, and what of them stands before the values; of an archive: stored entries. Throws
// Error: larger than 4 GiB.
std::string npy_header(const HostTensor& tensor);
std::string npy_bytes(const HostTensor& tensor);
std::string npz_bytes(std::span<const std::pair<std::string, HostTensor>> arrays);

class Npz {
 public:
  explicit Npz(std::string path);            // reads the file and its directory
  Npz(std::string path, std::string bytes);  // the file's bytes
  Npz(std::string path, std::shared_ptr<const std::string> bytes);

  const std::vector<std::string>& names() const { return names_; }  // without ".npy", in file order
  NpyHeader header(const std::string& name) const;                  // without reading the values
  Array read(const std::string& name) const;

 private:
  struct Entry {
    std::string file;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t compressed = 0, size = 0, header = 0;
    std::uint64_t end = 0;  // where the next entry, or the directory, begins
    std::string inside;     // for messages: "w.npz/W1.npy"
  };
  void reject_overlaps(std::uint64_t directory);
  const Entry& entry(const std::string& name) const;
  std::string_view raw(const Entry& entry) const;
  std::string first_bytes(const Entry& entry, std::uint64_t most) const;
  NpyHeader header(const Entry& entry) const;

  std::string path_;
  std::shared_ptr<const std::string> bytes_;
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> index_;  // of names_
};

}  // namespace graphrun::data
