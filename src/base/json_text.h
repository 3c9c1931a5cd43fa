// json_text.h: JSON values made and written: what the library itself says in JSON.
// Contract: text(parse(text(v))) == text(v): a number is written with the fewest digits that give it back. What fits a
// line stands on one line. Leaves to others: reading (json.h), what the keys mean.
#pragma once

#include <initializer_list>
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
Value make(float value);   // as the shortest decimal number that is this float
Value make(std::string_view value);
inline Value make(const char* value) {  // which would rather be a bool
  return make(std::string_view(value));
}
Value make_array(std::vector<Value> items = {});
Value make_list(const std::vector<std::string>& strings);
Value make_object(std::vector<std::pair<std::string, Value>> members = {});
void add(Value& object, std::string_view key, Value value);

std::string text(const Value& value);  // ends with a newline
std::string line(const Value& value);  // on one line, however long, and without a newline

}  // namespace graphrun::json
