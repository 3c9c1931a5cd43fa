#include "base/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "graphrun/json_string.h"

namespace graphrun::json {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 2;

std::string number_text(double value) {
  if (value == 0 && std::signbit(value)) return "-0.0";  // -0 would be read as the integer 0
  return fmt::format("{}", value);
}

// Writes the value on one line; returns false if it exceeds `room`.
bool flat(const Value& value, std::size_t room, std::string& out) {
  const auto between = [&](bool first) { out += first ? "" : ", "; };
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
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        between(i == 0);
        if (!flat(value.items[i], room, out)) return false;
      }
      out += ']';
      break;
    case Kind::object:
      out += '{';
      for (std::size_t i = 0; i < value.members.size(); ++i) {
        between(i == 0);
        out += json_string(value.members[i].key) + ": ";
        if (!flat(value.members[i].value, room, out)) return false;
      }
      out += '}';
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
    const bool compound = value.kind == Kind::array || value.kind == Kind::object;
    std::string line;
    const std::size_t used = std::min(column() + 1, kWidth);  // a comma may follow
    const bool whole = depth == 0 && !value.members.empty();  // the outermost object lists the sections: expand it
    if (!compound) {
      flat(value, std::string::npos, out_);
    } else if (!whole && flat(value, kWidth - used, line)) {
      out_ += line;
    } else if (value.kind == Kind::object) {
      write_members(value, depth);
    } else {
      write_items(value, depth);
    }
  }

  void next_line(std::size_t depth) { out_ += "\n" + std::string(depth * kIndent, ' '); }

  void write_members(const Value& object, std::size_t depth) {
    out_ += '{';
    for (std::size_t i = 0; i < object.members.size(); ++i) {
      if (i > 0) out_ += ',';
      next_line(depth + 1);
      out_ += json_string(object.members[i].key) + ": ";
      write(object.members[i].value, depth + 1);
    }
    next_line(depth);
    out_ += '}';
  }

  // Numbers are wrapped into lines; every other item gets its own line.
  void write_items(const Value& array, std::size_t depth) {
    out_ += '[';
    for (std::size_t i = 0; i < array.items.size(); ++i) {
      const Value& item = array.items[i];
      if (i > 0) out_ += ',';
      std::string number;
      const bool fills =
          i > 0 && item.is_number() && flat(item, std::string::npos, number) && column() + number.size() + 2 < kWidth;
      if (fills) {
        out_ += ' ';
      } else {
        next_line(depth + 1);
      }
      write(item, depth + 1);
    }
    next_line(depth);
    out_ += ']';
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
