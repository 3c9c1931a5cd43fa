// npy.h: NumPy's .npy arrays and the .npz files (zip) that hold several, read and written.
// Contract: versions 1 to 3, C order, integers, floats and bools of 8 to 64 bits in either byte order. Throws Error
// that names the file and the array; nothing is allocated that the file's length does not bear out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/array.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

Array parse_npy(const std::string& name, std::string_view bytes);  // `name` is for messages

// The bytes of a file: version 1.0, and of an archive: stored entries. Throws Error: larger than 4 GiB.
std::string npy_bytes(const HostTensor& tensor);
std::string npz_bytes(std::span<const std::pair<std::string, HostTensor>> arrays);

class Npz {
 public:
  explicit Npz(std::string path);  // reads the file and its directory

  const std::vector<std::string>& names() const { return names_; }  // without ".npy", in file order
  Array read(const std::string& name) const;

 private:
  struct Entry {
    std::string file;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t compressed = 0, size = 0, header = 0;
  };
  std::string path_, bytes_;
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
};

}  // namespace graphrun::data
