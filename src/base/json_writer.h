// json_writer.h: writes one JSON text sequentially, with commas and escapes.
// Contract: the caller pairs begin and end calls, and calls key() before each member's value. Numbers use the shortest
// text that round-trips; non-finite numbers become null. Invalid UTF-8 becomes U+FFFD. Not here: texts of json::Value
// (json_text.h).
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "graphrun/error.h"

namespace graphrun {

class JsonWriter {
 public:
  enum class Spacing { none, after_signs };  // after_signs: as json::line() writes
  explicit JsonWriter(Spacing spacing = Spacing::none) : space_(spacing == Spacing::none ? "" : " ") {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name) {
    raw(json_string(name));
    text_ += ':';
    text_ += space_;
    first_ = true;  // no comma between a key and its value
    return *this;
  }

  JsonWriter& null() { return raw("null"); }
  JsonWriter& value(std::string_view string) { return raw(json_string(string)); }
  JsonWriter& value(const char* string) { return value(std::string_view(string)); }
  template <class T>
  requires std::is_arithmetic_v<T> JsonWriter& value(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(number)) return null();
    }
    return raw(fmt::format("{}", number));  // bool prints as true or false
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
  JsonWriter& value(const std::optional<T>& content) {
    return content ? value(*content) : null();
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  // Writes an array of objects; write(item) writes the members of one.
  template <class List, class Write>
  JsonWriter& objects(std::string_view name, const List& list, Write write) {
    key(name).begin_array();
    for (const auto& item : list) {
      begin_object();
      write(item);
      end_object();
    }
    return end_array();
  }

  JsonWriter& json(std::string_view text) { return raw(text); }  // value already serialized by another writer

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
    if (!first_) (text_ += ',') += space_;
    first_ = false;
  }

  std::string_view space_;
  std::string text_;
  bool first_ = true;
};

}  // namespace graphrun
