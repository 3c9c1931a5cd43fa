// npy.h: reads and writes NumPy's .npy arrays and .npz archives (zip).
// Contract: versions 1 to 3, C and Fortran order, integers, floats and bools of 8 to 64 bits in either byte order.
// Throws Error that names the file and the array. Allocations are bounded by the length of the file and by
// input_limit.h. An archive is rejected if its entries overlap or share a name. IDX files use the same
// credible_elements() and read_values().
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

// Parsed .npy header.
struct NpyHeader {
  Shape shape;
  std::string type;  // NumPy's type code without the byte order: "f4"
  std::endian order = std::endian::little;
  std::uint64_t begin = 0;  // offset of the values
  std::uint64_t count = 0;  // number of values
  bool is_fortran = false;  // the first axis varies fastest in the file
};

// Returns the element count, or nothing if the values exceed `room` bytes. An extent of 0 does not mask an overflow.
std::optional<std::uint64_t> credible_elements(const Shape& shape, std::uint64_t room);

// `bytes` is a prefix of the file that includes the whole header; `size` is the file size. `name` is for messages.
NpyHeader parse_npy_header(const std::string& name, std::string_view bytes, std::uint64_t size);
Array parse_npy(const std::string& name, std::string_view bytes);
// Reads the values after a header. `what` is for messages: "the array 'x.npy'".
Array read_values(const std::string& name, const std::string& what, std::string_view bytes, const NpyHeader& header);

// npy_header() and npy_bytes() write version 1.0; npz_bytes() writes stored (uncompressed) entries. Throws Error if the
// result exceeds 4 GiB.
std::string npy_header(const HostTensor& tensor);
std::string npy_bytes(const HostTensor& tensor);
std::string npz_bytes(std::span<const std::pair<std::string, HostTensor>> arrays);

class Npz {
 public:
  explicit Npz(std::string path);            // reads the file and its directory
  Npz(std::string path, std::string bytes);  // takes the bytes of the file
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
    std::uint64_t end = 0;  // offset of the next entry, or of the directory
    std::string inside;     // name for messages: "w.npz/W1.npy"
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
  std::unordered_map<std::string, std::size_t> index_;  // index into names_
};

}  // namespace graphrun::data
