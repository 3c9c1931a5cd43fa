// protobuf.h: protocol buffers wire format (protobuf.dev/programming-guides/encoding), for ONNX and TensorBoard files.
// Contract: Writer appends fields in the order of the calls. Reader iterates over the fields of one message and never
// reads out of bounds; it throws BadWire for an invalid varint, length or field. Not handled here: meaning of the
// fields (onnx_file.h, event_log.h).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace graphrun::protobuf {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class Writer {
 public:
  void number(std::uint32_t field, std::int64_t value);
  void float32(std::uint32_t field, float value);
  void float64(std::uint32_t field, double value);
  void bytes(std::uint32_t field, std::string_view value);
  const std::string& text() const { return text_; }
  void clear() { text_.clear(); }  // keeps the memory

 private:
  void varint(std::uint64_t value);
  void tag(std::uint32_t field, Wire wire);
  template <class T>
  void fixed(std::uint32_t field, Wire wire, T value);
  std::string text_;
};

struct BadWire : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool next();  // false: end of the message
  std::uint32_t field() const { return field_; }
  Wire wire() const { return wire_; }
  // Value of the current field; throws BadWire if its wire type differs.
  std::int64_t number() const;
  float float32() const;
  std::string_view bytes() const;
  std::string string() const { return std::string(bytes()); }
  // Calls f(number) for each element of a repeated field, packed or not.
  template <class F>
  void each_number(F f) const {
    if (wire_ == Wire::varint) return f(number());
    for (std::string_view packed = bytes(); !packed.empty();) f(static_cast<std::int64_t>(take_varint(packed)));
  }
  template <class F>
  void each_float32(F f) const {
    if (wire_ == Wire::fixed32) return f(float32());
    for (std::string_view packed = bytes(); !packed.empty();) f(take_float32(packed));
  }

 private:
  static std::uint64_t take_varint(std::string_view& from);
  static float take_float32(std::string_view& from);

  std::string_view rest_, bytes_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
};

}  // namespace graphrun::protobuf
