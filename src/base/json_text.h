// json_text.h: creates and writes JSON values, for the library's own output.
// Contract: text(parse(text(v))) == text(v): numbers have the fewest digits that restore them. A value that fits on one
// line is written on one line. Not here: reading (json.h), meaning of the keys.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace graphrun::json {

Value make_null();
Value make(bool value);
Value make(std::int64_t value);
Value make(double value);  // finite; a whole number is written without a point
Value make(float value);   // shortest decimal number that restores this float
Value make(std::string_view value);
inline Value make(const char* value) {  // otherwise it would convert to bool
  return make(std::string_view(value));
}
Value make_array(std::vector<Value> items = {});
Value make_list(const std::vector<std::string>& strings);
Value make_object(std::vector<std::pair<std::string, Value>> members = {});
void add(Value& object, std::string_view key, Value value);

std::string text(const Value& value);  // ends with a newline
std::string line(const Value& value);  // on one line of any length, without a newline

}  // namespace graphrun::json
