#include "base/protobuf.h"

#include <bit>
#include <cstring>

namespace graphrun::protobuf {

static_assert(std::endian::native == std::endian::little, "numbers are read and written in the byte order of the host");

void Writer::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

void Writer::tag(std::uint32_t field, Wire wire) {
  varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(wire));
}

void Writer::number(std::uint32_t field, std::int64_t value) {
  tag(field, Wire::varint);
  varint(static_cast<std::uint64_t>(value));
}

template <class T>
void Writer::fixed(std::uint32_t field, Wire wire, T value) {
  tag(field, wire);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  text_.append(raw, sizeof raw);
}

void Writer::float32(std::uint32_t field, float value) {
  fixed(field, Wire::fixed32, value);
}

void Writer::float64(std::uint32_t field, double value) {
  fixed(field, Wire::fixed64, value);
}

void Writer::bytes(std::uint32_t field, std::string_view value) {
  tag(field, Wire::bytes);
  varint(value.size());
  text_ += value;
}

std::uint64_t Reader::take_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) throw BadWire("it ends within a number");
    const auto byte = static_cast<std::uint8_t>(from.front());
    from.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  throw BadWire("a number has more than 64 bits");
}

float Reader::take_float32(std::string_view& from) {
  float value = 0;
  if (from.size() < sizeof value) throw BadWire("it ends within a number");
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

bool Reader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t tag = take_varint(rest_);
  if (tag >> 3 == 0 || tag >> 32 != 0) throw BadWire("a field has no number");
  field_ = static_cast<std::uint32_t>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  const auto take = [&](std::uint64_t count) {
    if (count > rest_.size()) throw BadWire("a field is longer than the message it is in");
    bytes_ = rest_.substr(0, count);
    rest_.remove_prefix(count);
  };
  switch (wire_) {
    case Wire::varint:
      number_ = take_varint(rest_);
      return true;
    case Wire::fixed64:
      take(8);
      return true;
    case Wire::fixed32:
      take(4);
      return true;
    case Wire::bytes:
      take(take_varint(rest_));
      return true;
  }
  throw BadWire("a field is of no known kind");
}

std::int64_t Reader::number() const {
  if (wire_ != Wire::varint) throw BadWire("a number was expected");
  return static_cast<std::int64_t>(number_);
}

float Reader::float32() const {
  std::string_view from = bytes_;
  if (wire_ != Wire::fixed32) throw BadWire("a number of 32 bits was expected");
  return take_float32(from);
}

std::string_view Reader::bytes() const {
  if (wire_ != Wire::bytes) throw BadWire("bytes were expected");
  return bytes_;
}

}  // namespace graphrun::protobuf
