// Writing safetensors: no time and no chance in it, so that equal tensors are equal bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/json_text.h"
#include "data/safetensors.h"
#include "graphrun/error.h"
#include "graphrun/json_string.h"

namespace graphrun::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr std::size_t kAlignment = 64, kLength = 8;

[[noreturn]] void cannot_write(std::string message) {
  throw Error(ErrorKind::input, "data.safetensors", std::move(message), "NPZ has no such limit: FILE.npz");
}

// The header's JSON is UTF-8; a name that is not would come back as another.
void require_name(const std::string& name) {
  if (name == "__metadata__") cannot_write("a safetensors file has no tensor '__metadata__': its texts stand there");
  if (json::parse("name", json_string(name)).root.string != name)
    cannot_write(fmt::format("'{}' cannot name a tensor of a safetensors file: it is not UTF-8", name));
}

json::Value entry_of(const HostTensor& tensor, std::uint64_t begin) {
  static constexpr std::string_view kWords[] = {"F32", "F64", "I32", "U64", "BOOL"};  // in the order of DType
  static_assert(std::size(kWords) == static_cast<std::size_t>(DType::boolean) + 1);
  json::Value shape = json::make_array();
  for (const std::int64_t extent : tensor.shape().dims()) shape.items.push_back(json::make(extent));
  const auto end = static_cast<std::int64_t>(begin + tensor.bytes().size());
  return json::make_object(
      {{"dtype", json::make(kWords[static_cast<std::size_t>(tensor.dtype())])},
       {"shape", std::move(shape)},
       {"data_offsets", json::make_array({json::make(static_cast<std::int64_t>(begin)), json::make(end)})}});
}

}  // namespace

std::string safetensors_bytes(std::span<const std::pair<std::string, HostTensor>> tensors, const Texts& texts) {
  std::vector<const std::pair<std::string, HostTensor>*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  json::Value header = json::make_object(), notes = json::make_object();
  for (const auto& [key, text] : texts) json::add(notes, key, json::make(text));
  if (!texts.empty()) json::add(header, "__metadata__", std::move(notes));
  std::uint64_t size = 0;
  for (const auto* one : order) {
    require_name(one->first);
    json::add(header, one->first, entry_of(one->second, size));
    size += one->second.bytes().size();
  }
  std::string text = json::line(header);
  text.resize((kLength + text.size() + kAlignment - 1) / kAlignment * kAlignment - kLength, ' ');
  if (text.size() > kMostSafetensorsHeader)
    cannot_write(fmt::format("the header of the safetensors file would have {} bytes, and {} are the most", text.size(),
                             kMostSafetensorsHeader));
  std::string bytes;
  bytes.reserve(kLength + text.size() + size);
  for (std::size_t i = 0; i < kLength; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  bytes += text;
  for (const auto* one : order)
    bytes.append(reinterpret_cast<const char*>(one->second.bytes().data()), one->second.bytes().size());
  return bytes;
}

}  // namespace graphrun::data
