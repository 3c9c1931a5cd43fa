// Writes safetensors: no timestamps or random data, so equal tensors give equal bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

#include "base/json_text.h"
#include "data/formats/safetensors.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written in the byte order of the host");

constexpr std::size_t kAlignment = 64, kLength = 8;

[[noreturn]] void cannot_write(std::string message) {
  throw Error(ErrorKind::input, "data.safetensors", std::move(message), "NPZ has no such limit: FILE.npz");
}

// The header's JSON is UTF-8; any other name would change on reading.
void require_name(const std::string& name) {
  if (name == "__metadata__") cannot_write("the name '__metadata__' is reserved in safetensors files");
  if (json::parse("name", json_string(name)).root.string != name)
    cannot_write(fmt::format("'{}' cannot name a tensor of a safetensors file: it is not UTF-8", name));
}

json::Value entry_of(const TensorType& type, std::uint64_t begin) {
  static constexpr std::string_view kWords[] = {"F32", "F64", "I32", "U64", "BOOL"};  // same order as DType
  static_assert(std::size(kWords) == static_cast<std::size_t>(DType::boolean) + 1);
  json::Value shape = json::make_array();
  for (const std::int64_t extent : type.shape.dims()) shape.items.push_back(json::make(extent));
  const auto end = static_cast<std::int64_t>(begin + type.bytes());
  return json::make_object(
      {{"dtype", json::make(kWords[static_cast<std::size_t>(type.dtype)])},
       {"shape", std::move(shape)},
       {"data_offsets", json::make_array({json::make(static_cast<std::int64_t>(begin)), json::make(end)})}});
}

}  // namespace

SafetensorsHeader safetensors_header(std::span<const std::pair<std::string, TensorType>> tensors, const Texts& texts) {
  SafetensorsHeader result;
  result.order.resize(tensors.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  std::stable_sort(result.order.begin(), result.order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].second.dtype) > size_of(tensors[b].second.dtype);
  });
  json::Value header = json::make_object(), notes = json::make_object();
  for (const auto& [key, text] : texts) json::add(notes, key, json::make(text));
  if (!texts.empty()) json::add(header, "__metadata__", std::move(notes));
  std::uint64_t size = 0;
  for (const std::size_t i : result.order) {
    const auto& [name, type] = tensors[i];
    require_name(name);
    json::add(header, name, entry_of(type, size));
    size += type.bytes();
  }
  std::string text = json::line(header);
  text.resize((kLength + text.size() + kAlignment - 1) / kAlignment * kAlignment - kLength, ' ');
  if (text.size() > kMaxSafetensorsHeader)
    cannot_write(fmt::format("the header of the safetensors file would have {} bytes, and {} are the most", text.size(),
                             kMaxSafetensorsHeader));
  for (std::size_t i = 0; i < kLength; ++i) result.bytes += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  result.bytes += text;
  return result;
}

std::string safetensors_bytes(std::span<const std::pair<std::string, HostTensor>> tensors, const Texts& texts) {
  std::vector<std::pair<std::string, TensorType>> types;
  std::size_t size = 0;
  for (const auto& [name, tensor] : tensors) {
    types.emplace_back(name, TensorType{tensor.dtype(), tensor.shape(), 0});
    size += tensor.bytes().size();
  }
  SafetensorsHeader header = safetensors_header(types, texts);
  std::string bytes = std::move(header.bytes);
  bytes.reserve(bytes.size() + size);
  for (const std::size_t i : header.order) {
    const std::span<const std::byte> values = tensors[i].second.bytes();
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
  }
  return bytes;
}

}  // namespace graphrun::data
