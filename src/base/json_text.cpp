#include "base/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "graphrun/error.h"

namespace graphrun::json {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 2;

std::string number_text(double value) {
  if (value == 0 && std::signbit(value)) return "-0.0";  // -0 would be read as the integer 0
  return fmt::format("{}", value);
}

bool is_object(const Value& value) {
  return value.kind == Kind::object;
}

// Items of an array, or members of an object.
std::size_t num_parts(const Value& value) {
  return is_object(value) ? value.members.size() : value.items.size();
}

const Value& part_at(const Value& value, std::size_t i) {
  return is_object(value) ? value.members[i].value : value.items[i];
}

std::string label_at(const Value& value, std::size_t i) {
  return is_object(value) ? json_string(value.members[i].key) + ": " : "";
}

// Writes the value on one line; returns false if it exceeds `room`.
bool flat(const Value& value, std::size_t room, std::string& out) {
  switch (value.kind) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += value.boolean ? "true" : "false";
      break;
    case Kind::integer:
      out += std::to_string(value.integer);
      break;
    case Kind::real:
      out += number_text(value.real);
      break;
    case Kind::string:
      out += json_string(value.string);
      break;
    case Kind::array:
    case Kind::object:
      out += is_object(value) ? '{' : '[';
      for (std::size_t i = 0; i < num_parts(value); ++i) {
        out += (i == 0 ? "" : ", ") + label_at(value, i);
        if (!flat(part_at(value, i), room, out)) return false;
      }
      out += is_object(value) ? '}' : ']';
      break;
  }
  return out.size() <= room;
}

class Writer {
 public:
  std::string run(const Value& value) {
    write(value, 0);
    return std::move(out_) + "\n";
  }

 private:
  std::size_t column() const {
    const std::size_t line = out_.rfind('\n');
    return line == std::string::npos ? out_.size() : out_.size() - line - 1;
  }

  void write(const Value& value, std::size_t depth) {
    const bool compound = is_object(value) || value.kind == Kind::array;
    std::string line;
    const std::size_t used = std::min(column() + 1, kWidth);  // a comma may follow
    const bool whole = depth == 0 && !value.members.empty();  // the outermost object lists the sections: expand it
    if (!compound) {
      flat(value, std::string::npos, out_);
    } else if (!whole && flat(value, kWidth - used, line)) {
      out_ += line;
    } else {
      write_parts(value, depth);
    }
  }

  // Numbers of an array are wrapped into lines; every other part gets its own line.
  void write_parts(const Value& value, std::size_t depth) {
    out_ += is_object(value) ? '{' : '[';
    for (std::size_t i = 0; i < num_parts(value); ++i) {
      const Value& part = part_at(value, i);
      if (i > 0) out_ += ',';
      const bool fills = i > 0 && !is_object(value) && part.is_number() && column() + line(part).size() + 2 < kWidth;
      out_ += fills ? " " : "\n" + std::string((depth + 1) * kIndent, ' ');
      out_ += label_at(value, i);
      write(part, depth + 1);
    }
    out_ += "\n" + std::string(depth * kIndent, ' ') + (is_object(value) ? '}' : ']');
  }

  std::string out_;
};

template <class T>
Value with(Kind kind, T Value::*member, T content) {
  Value value;
  value.kind = kind;
  value.*member = std::move(content);
  return value;
}

}  // namespace

Value make_null() {
  return {};
}

Value make(bool value) {
  return with(Kind::boolean, &Value::boolean, value);
}

Value make(std::int64_t value) {
  Value v = with(Kind::integer, &Value::integer, value);
  v.real = static_cast<double>(value);
  return v;
}

Value make(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53 && !(value == 0 && std::signbit(value))) {
    return make(static_cast<std::int64_t>(value));
  }
  return with(Kind::real, &Value::real, value);
}

Value make(float value) {
  char digits[32];
  const std::to_chars_result written = std::to_chars(digits, digits + sizeof digits, value);
  double shortest = 0;
  std::from_chars(digits, written.ptr, shortest);
  return make(shortest);
}

Value make(std::string_view value) {
  return with(Kind::string, &Value::string, std::string(value));
}

Value make_array(std::vector<Value> items) {
  return with(Kind::array, &Value::items, std::move(items));
}

Value make_list(const std::vector<std::string>& strings) {
  std::vector<Value> items;
  for (const std::string& string : strings) items.push_back(make(string));
  return make_array(std::move(items));
}

Value make_object(std::vector<std::pair<std::string, Value>> members) {
  Value v;
  v.kind = Kind::object;
  for (auto& [key, value] : members) add(v, key, std::move(value));
  return v;
}

void add(Value& object, std::string_view key, Value value) {
  object.members.push_back({std::string(key), 0, 0, std::move(value)});
}

std::string text(const Value& value) {
  return Writer().run(value);
}

std::string line(const Value& value) {
  std::string out;
  flat(value, std::string::npos, out);
  return out;
}

}  // namespace graphrun::json
