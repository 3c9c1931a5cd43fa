// json.h: JSON text as a tree with the position of every value.
// Contract: strict JSON only. parse() throws Error (kind input, file, line, column) for a syntax error, a comment (with
// a specific message), NaN and Infinity, a number out of range, nesting beyond 64, duplicate keys (both lines), and a
// text whose tree exceeds the limit of input_limit.h. Only json.cpp includes nlohmann/json. Not here: meaning of keys
// (json_reader.h and its callers).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace graphrun::json {

inline constexpr int kMaxDepth = 64;

enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };
std::string_view name_of(Kind kind);  // "an array", "a number", … for messages

struct Member;

struct Value {
  Kind kind = Kind::null;
  bool boolean = false;  // true for null: removed by --set; find() and readers treat it as absent
  std::int64_t integer = 0;
  double real = 0;  // also set for integers
  std::string string;
  std::vector<Value> items;     // array
  std::vector<Member> members;  // object, in file order
  int line = 0, column = 0;     // start of the value, from 1, in bytes

  bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
  bool is_removed() const { return kind == Kind::null && boolean; }
  const Member* find(std::string_view key) const;
};

struct Member {
  std::string key;
  int line = 0, column = 0;  // position of the key's opening quote
  Value value;
};

struct Document {
  std::string file;  // file name for messages
  std::string text;
  Value root;
  int first_line = 1;  // line of the file at which `text` starts
};

Document parse(std::string file, std::string text, int first_line = 1);
std::string escape_pointer(std::string_view key);  // escapes a key for a JSON pointer: ~0 for ~, ~1 for / (RFC 6901)

}  // namespace graphrun::json
