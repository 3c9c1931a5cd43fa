// safetensors.h: tensors by name, and texts beside them, in the format of the Python package "safetensors".
// Contract: 8 bytes with the header's length, the header (one JSON object), then the values. Alignment is never asked
// for. Throws Error that names the file and the tensor: a header that is longer than 100 MB or than the file, begins
// with no '{', or has a name twice; texts that are no strings; values beyond the file, that overlap, leave a hole or
// bytes after the last, or are not as long as dtype and shape say. Nothing is allocated that the file's length does not
// bear out, or that is beyond the limit of input_limit.h. Dtypes and ranks that are not known here are an error where
// the tensor is read. Leaves to others: what names and texts mean (session/weights).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/array.h"
#include "data/npy.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // the package's own limit

struct TensorInfo {
  std::string dtype;  // "f32"; of one that is not known here the file's own word, "BF16"
  Shape shape;
};

// Whether a file begins so: no text does, and no archive.
bool is_safetensors(std::string_view bytes);

using Texts = std::vector<std::pair<std::string, std::string>>;

// What stands before the values, which follow in `order` (numbers of the tensors given) without a gap. The widest
// dtypes come first, and the header is a multiple of 64 bytes (the format asks for 8): every tensor is aligned to its
// elements. Equal tensors and texts are equal bytes. Throws Error: a name that is no UTF-8 or the format's own, a
// header of more than 100 MB.
struct SafetensorsHeader {
  std::string bytes;
  std::vector<std::size_t> order;
};
SafetensorsHeader safetensors_header(std::span<const std::pair<std::string, TensorType>> tensors, const Texts& texts);

// The whole file.
std::string safetensors_bytes(std::span<const std::pair<std::string, HostTensor>> tensors, const Texts& texts);

class Safetensors {
 public:
  Safetensors(std::string path, std::shared_ptr<const std::string> bytes);  // reads the header

  const std::vector<std::string>& names() const { return names_; }  // in the header's order
  bool has(const std::string& name) const { return index_.contains(name); }
  TensorInfo info(const std::string& name) const;  // throws Error: more axes than a Shape has
  Array read(const std::string& name) const;
  std::string_view values(const std::string& name) const;  // as they lie in the file
  std::string text(const std::string& key) const;          // "" where there is none

 private:
  struct Entry {
    std::string dtype;  // as the file says it
    std::vector<std::int64_t> extents;
    std::uint64_t begin = 0, end = 0;  // in the file
  };
  void read_texts(const json::Value& texts);
  Entry entry_of(const json::Member& member, std::uint64_t data) const;
  void check_layout(std::uint64_t data) const;
  const Entry& entry(const std::string& name) const;
  [[noreturn]] void fail(std::string_view what, std::string_view hint = {}) const;

  std::string path_;
  std::shared_ptr<const std::string> bytes_;
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> index_;  // of names_
  std::unordered_map<std::string, std::string> texts_;
};

}  // namespace graphrun::data
