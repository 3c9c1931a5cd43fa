// json_writer.h: writes one JSON text front to back; commas and escapes are its business.
// Contract: the caller pairs begin and end and gives a key before each value of an object. Numbers are the shortest
// text that reads back to the same bits; a number that is not finite becomes null. Bytes that are not UTF-8 become
// U+FFFD.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

namespace graphrun::cli {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    first_ = true;  // no comma between a key and its value
    return *this;
  }

  JsonWriter& null() { return raw("null"); }
  JsonWriter& value(std::string_view string) {
    separate();
    quote(string);
    return *this;
  }
  JsonWriter& value(const char* string) { return value(std::string_view(string)); }
  template <class T>
  requires std::is_arithmetic_v<T> JsonWriter& value(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(number)) return null();
    }
    return raw(fmt::format("{}", number));  // bool prints as true and false
  }
  template <class T>
  requires requires(const T& list) {
    list.begin();
    list.end();
  } &&(!std::is_convertible_v<const T&, std::string_view>)JsonWriter& value(const T& list) {
    begin_array();
    for (const auto& item : list) value(item);
    return end_array();
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  JsonWriter& raw(std::string_view token) {
    separate();
    text_ += token;
    return *this;
  }
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }

  void quote(std::string_view string) {
    text_ += '"';
    while (!string.empty()) {
      const auto byte = static_cast<unsigned char>(string.front());
      std::size_t taken = 1;
      if (byte == '"' || byte == '\\') {
        text_ += '\\';
        text_ += string.front();
      } else if (byte < 0x20 || byte == 0x7f) {
        text_ += fmt::format("\\u{:04x}", byte);
      } else if (byte < 0x80) {
        text_ += string.front();
      } else if (byte == 0xc2 && utf8_length(string) == 2 && static_cast<unsigned char>(string[1]) < 0xa0) {
        text_ += fmt::format("\\u{:04x}", static_cast<unsigned char>(string[1]));  // a control character, too
        taken = 2;
      } else if (const std::size_t length = utf8_length(string); length > 0) {
        text_ += string.substr(0, length);
        taken = length;
      } else {
        text_ += "\xef\xbf\xbd";
      }
      string.remove_prefix(taken);
    }
    text_ += '"';
  }

  // Bytes of the well-formed sequence at the front (RFC 3629), 0 when there is none.
  static std::size_t utf8_length(std::string_view string) {
    const auto at = [&](std::size_t i) { return i < string.size() ? static_cast<unsigned char>(string[i]) : 0u; };
    const unsigned a = at(0), b = at(1);
    const auto tail = [](unsigned byte) { return (byte & 0xc0u) == 0x80u; };
    if (a >= 0xc2 && a <= 0xdf) return tail(b) ? 2 : 0;
    if (a >= 0xe0 && a <= 0xef) {
      const bool overlong = a == 0xe0 && b < 0xa0, surrogate = a == 0xed && b > 0x9f;
      return tail(b) && tail(at(2)) && !overlong && !surrogate ? 3 : 0;
    }
    if (a >= 0xf0 && a <= 0xf4) {
      const bool overlong = a == 0xf0 && b < 0x90, beyond = a == 0xf4 && b > 0x8f;
      return tail(b) && tail(at(2)) && tail(at(3)) && !overlong && !beyond ? 4 : 0;
    }
    return 0;
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace graphrun::cli
