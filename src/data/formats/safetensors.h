// safetensors.h: named tensors and metadata texts, in the format of the Python package "safetensors".
// Contract: 8 bytes of header length, the header (one JSON object), then the values, with no alignment required. Throws
// Error that names the file and the tensor if the header is longer than 100 MB or than the file, does not start with
// '{' or repeats a name; if a text is not a string; if values exceed the file, overlap, leave gaps or trailing bytes,
// or do not match dtype and shape. Allocations are bounded by the length of the file and by input_limit.h. Unsupported
// dtypes and ranks are errors on reading the tensor. Not here: meaning of names and texts (session/weights).
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
#include "data/formats/npy.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // the package's own limit

struct TensorInfo {
  std::string dtype;  // "f32"; for an unsupported dtype, the name in the file: "BF16"
  Shape shape;
};

// Checks the first bytes. Text files and archives never match.
bool is_safetensors(std::string_view bytes);

using Texts = std::vector<std::pair<std::string, std::string>>;

// File header. The values follow without gaps in `order` (indices into `tensors`). Wide dtypes come first and the
// header is padded to 64 bytes (the format requires 8), so every tensor is aligned to its elements. Equal tensors and
// texts give equal bytes. Throws Error for a non-UTF-8 or reserved name, or a header of more than 100 MB.
struct SafetensorsHeader {
  std::string bytes;
  std::vector<std::size_t> order;
};
SafetensorsHeader safetensors_header(std::span<const std::pair<std::string, TensorType>> tensors, const Texts& texts);

// Returns the whole file.
std::string safetensors_bytes(std::span<const std::pair<std::string, HostTensor>> tensors, const Texts& texts);

class Safetensors {
 public:
  Safetensors(std::string path, std::shared_ptr<const std::string> bytes);  // reads the header

  const std::vector<std::string>& names() const { return names_; }  // in header order
  bool has(const std::string& name) const { return index_.contains(name); }
  TensorInfo info(const std::string& name) const;  // throws Error if the rank exceeds that of a Shape
  Array read(const std::string& name) const;
  std::string_view values(const std::string& name) const;  // raw bytes of the file
  std::string text(const std::string& key) const;          // "" if missing

 private:
  struct Entry {
    std::string dtype;  // as stored in the file
    std::vector<std::int64_t> extents;
    std::uint64_t begin = 0, end = 0;  // offsets in the file
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
  std::unordered_map<std::string, std::size_t> index_;  // index into names_
  std::unordered_map<std::string, std::string> texts_;
};

}  // namespace graphrun::data
