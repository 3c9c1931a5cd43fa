#include "data/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/input_limit.h"
#include "data/bytes.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

constexpr std::uint64_t kLengthSize = 8;
constexpr std::string_view kTexts = "__metadata__", kCut = "the file may have been cut short when it was copied";

// `type`: as in NpyHeader. `name`: graphrun's name; empty: values are not supported.
struct Dtype {
  std::string_view word, type, name;
  std::uint64_t width;  // bytes
};

constexpr Dtype kDtypes[] = {
    {"F32", "f4", "f32", 4},   {"F64", "f8", "f64", 8},   {"I32", "i4", "i32", 4}, {"I64", "i8", "i64", 8},
    {"U8", "u1", "u8", 1},     {"BOOL", "b1", "bool", 1}, {"I8", "i1", "i8", 1},   {"I16", "i2", "i16", 2},
    {"U16", "u2", "u16", 2},   {"U32", "u4", "u32", 4},   {"U64", "u8", "u64", 8}, {"F16", "f2", "f16", 2},
    {"BF16", "bf", "bf16", 2}, {"F8_E5M2", "", "", 1},    {"F8_E4M3", "", "", 1},  {"C64", "", "", 8},
};

const Dtype* find_dtype(std::string_view word) {
  const auto* found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return d.word == word; });
  return found == std::end(kDtypes) ? nullptr : found;
}

std::optional<Shape> shape_of(const std::vector<std::int64_t>& extents) {
  if (extents.size() > static_cast<std::size_t>(kMaxRank)) return std::nullopt;
  Shape shape;
  for (const std::int64_t extent : extents) shape.push_back(extent);
  return shape;
}

// Nonnegative integers of an array; nothing for any other value.
std::optional<std::vector<std::int64_t>> whole_numbers(const json::Value* list) {
  if (list == nullptr || list->kind != json::Kind::array) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const json::Value& item : list->items) {
    if (item.kind != json::Kind::integer || item.integer < 0) return std::nullopt;
    numbers.push_back(item.integer);
  }
  return numbers;
}

const json::Value* find_value(const json::Value& object, std::string_view key) {
  const json::Member* member = object.find(key);
  return member ? &member->value : nullptr;
}

}  // namespace

bool is_safetensors(std::string_view bytes) {
  return bytes.size() > kLengthSize && bytes.substr(4, 4) == std::string_view("\0\0\0\0", 4) &&
         bytes[kLengthSize] == '{';
}

Safetensors::Safetensors(std::string path, std::shared_ptr<const std::string> bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  const std::string_view all = *bytes_;
  if (all.size() < kLengthSize) fail(fmt::format("no safetensors file: it has {} bytes", all.size()), kCut);
  const auto length = number_at<std::uint64_t>(all, 0, std::endian::little);
  if (length > kMaxSafetensorsHeader)
    fail(fmt::format("no safetensors file: its header would have {} bytes, and {} are the most", length,
                     kMaxSafetensorsHeader));
  if (length > all.size() - kLengthSize)
    fail(fmt::format("the header has {} bytes, but only {} follow", length, all.size() - kLengthSize), kCut);
  const std::string_view header = all.substr(kLengthSize, length);
  if (!header.starts_with('{')) fail("the header is not a JSON object: it must begin with '{'");
  json::Document document;
  try {
    document = json::parse(path_, std::string(header));
  } catch (const Error& error) {
    const Diagnostic& first = error.diagnostics().front();
    if (first.code.starts_with("input.")) throw;
    fail(fmt::format("the header, line {}, column {}: {}", first.line, first.column, first.message));
  }
  const std::uint64_t data = kLengthSize + length;
  for (const json::Member& member : document.root.members) {
    if (member.key == kTexts) {
      read_texts(member.value);
      continue;
    }
    entries_.push_back(entry_of(member, data));
    index_.emplace(member.key, names_.size());
    names_.push_back(member.key);
  }
  check_layout(data);
}

void Safetensors::fail(std::string_view what, std::string_view hint) const {
  throw Error(ErrorKind::input, "data.safetensors", fmt::format("'{}': {}", path_, what), std::string(hint));
}

void Safetensors::read_texts(const json::Value& texts) {
  if (texts.kind != json::Kind::object) fail(fmt::format("'{}' must be an object of strings", kTexts));
  for (const json::Member& member : texts.members) {
    if (member.value.kind != json::Kind::string)
      fail(
          fmt::format("'{}' of '{}' must be a string, it is {}", member.key, kTexts, json::name_of(member.value.kind)));
    texts_.emplace(member.key, member.value.string);
  }
}

Safetensors::Entry Safetensors::entry_of(const json::Member& member, std::uint64_t data) const {
  const std::string& name = member.key;
  const json::Value* dtype = find_value(member.value, "dtype");
  if (dtype == nullptr || dtype->kind != json::Kind::string)
    fail(fmt::format("'{}' has no \"dtype\" that is a string", name));
  const auto extents = whole_numbers(find_value(member.value, "shape")),
             offsets = whole_numbers(find_value(member.value, "data_offsets"));
  if (!extents) fail(fmt::format("'{}' has no \"shape\" of whole numbers from 0 on", name));
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
    fail(fmt::format("'{}' has no \"data_offsets\" [begin, end] of whole numbers from 0 on", name));
  const auto begin = static_cast<std::uint64_t>((*offsets)[0]), end = static_cast<std::uint64_t>((*offsets)[1]);
  const std::uint64_t room = bytes_->size() - data, size = end - begin;
  if (end > room)
    fail(fmt::format("the values of '{}' end at byte {} of {} that follow the header", name, end, room), kCut);
  const Dtype* known = find_dtype(dtype->string);
  const std::optional<Shape> shape = shape_of(*extents);
  if (known && shape) {
    const std::optional<std::uint64_t> elements = credible_elements(*shape, size);
    if (!elements || saturating_product(*elements, known->width) != size)
      fail(fmt::format("'{}' is {} of {}, but its values are {} bytes", name, to_string(*shape), known->word, size));
  }
  return {dtype->string, *extents, data + begin, data + end};
}

// Tensors must be contiguous, so that none overlap and no data is hidden between them.
void Safetensors::check_layout(std::uint64_t data) const {
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(entries_[a].begin, entries_[a].end) < std::pair(entries_[b].begin, entries_[b].end);
  });
  std::uint64_t end = data;
  const std::string* before = nullptr;
  for (const std::size_t i : order) {
    const Entry& entry = entries_[i];
    if (entry.begin < end) fail(fmt::format("the values of '{}' and '{}' overlap", *before, names_[i]));
    if (entry.begin > end)
      fail(fmt::format("{} bytes before the values of '{}' belong to no tensor", entry.begin - end, names_[i]));
    end = entry.end;
    before = &names_[i];
  }
  if (end != bytes_->size()) fail(fmt::format("{} bytes at the end belong to no tensor", bytes_->size() - end));
}

const Safetensors::Entry& Safetensors::entry(const std::string& name) const {
  if (const auto at = index_.find(name); at != index_.end()) return entries_[at->second];
  throw Error(ErrorKind::input, "data.safetensors", fmt::format("'{}' has no tensor '{}'", path_, name),
              did_you_mean(name, names_));
}

TensorInfo Safetensors::info(const std::string& name) const {
  const Entry& entry = this->entry(name);
  const std::optional<Shape> shape = shape_of(entry.extents);
  if (!shape) fail(fmt::format("'{}' has {} axes, and {} are the most", name, entry.extents.size(), kMaxRank));
  const Dtype* known = find_dtype(entry.dtype);
  return {known && !known->name.empty() ? std::string(known->name) : entry.dtype, *shape};
}

Array Safetensors::read(const std::string& name) const {
  const Entry& entry = this->entry(name);
  const Dtype* known = find_dtype(entry.dtype);
  if (known == nullptr || known->type.empty())
    fail(fmt::format("'{}' is {}, which is not read", name, entry.dtype), "save it as float32");
  NpyHeader header;
  header.shape = info(name).shape;
  header.type = known->type;
  header.begin = entry.begin;
  header.count = (entry.end - entry.begin) / known->width;
  return read_values(path_, fmt::format("the tensor '{}' of '{}'", name, path_), *bytes_, header);
}

std::string_view Safetensors::values(const std::string& name) const {
  const Entry& entry = this->entry(name);
  return std::string_view(*bytes_).substr(entry.begin, entry.end - entry.begin);
}

std::string Safetensors::text(const std::string& key) const {
  const auto found = texts_.find(key);
  return found == texts_.end() ? std::string() : found->second;
}

}  // namespace graphrun::data
