#include "support/json_schema.h"

#include <regex.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace graphrun::test {
namespace {

using json::Kind;
using json::Member;
using json::Value;

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.real == b.real;
  if (a.kind != b.kind) return false;
  return a.kind == Kind::string ? a.string == b.string : a.kind == Kind::boolean ? a.boolean == b.boolean : true;
}

bool is_type(const std::string& type, const Value& v) {
  if (type == "null") return v.kind == Kind::null;
  if (type == "boolean") return v.kind == Kind::boolean;
  if (type == "integer") return v.is_number() && v.real == std::floor(v.real);
  if (type == "number") return v.is_number();
  if (type == "string") return v.kind == Kind::string;
  if (type == "array") return v.kind == Kind::array;
  if (type == "object") return v.kind == Kind::object;
  throw std::logic_error("json schema: type " + type);
}

// Uses POSIX extended expressions, which agree on the patterns in use: <regex> takes seconds to compile.
bool matches(const std::string& text, const std::string& pattern) {
  regex_t expression;
  if (::regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    throw std::logic_error("json schema: pattern " + pattern);
  }
  const bool found = ::regexec(&expression, text.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&expression);
  return found;
}

class Checker {
 public:
  explicit Checker(const Value& root) : root_(root) {}

  std::string check(const Value& schema, const Value& v, const std::string& at) const {
    if (schema.kind == Kind::boolean) return schema.boolean ? "" : at + " nothing may stand here";
    for (const Member& keyword : schema.members) {
      std::string wrong = check(schema, keyword, v, at);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  bool fits(const Value& schema, const Value& v) const { return check(schema, v, "").empty(); }

  std::string check(const Value& schema, const Member& keyword, const Value& v, const std::string& at) const {
    const std::string& key = keyword.key;
    const Value& k = keyword.value;
    const auto verdict = [&](bool good) { return good ? std::string() : at + " " + key; };
    const auto count = [&](const Value& of) {
      return static_cast<long>(std::count_if(of.items.begin(), of.items.end(), [&](auto& s) { return fits(s, v); }));
    };
    for (const char* silent : {"$schema", "$defs", "title", "description", "default"}) {
      if (key == silent) return {};
    }
    if (key == "$ref") return check(root_.find("$defs")->value.find(k.string.substr(8))->value, v, at);
    if (key == "type") return verdict(is_type(k.string, v));
    if (key == "const") return verdict(equal(k, v));
    if (key == "enum")
      return verdict(std::any_of(k.items.begin(), k.items.end(), [&](auto& i) { return equal(i, v); }));
    if (key == "not") return verdict(!fits(k, v));
    if (key == "anyOf") return verdict(count(k) > 0);
    if (key == "oneOf") return verdict(count(k) == 1);
    if (key == "minimum") return verdict(!v.is_number() || v.real >= k.real);
    if (key == "maximum") return verdict(!v.is_number() || v.real <= k.real);
    if (key == "exclusiveMinimum") return verdict(!v.is_number() || v.real > k.real);
    if (key == "pattern") return verdict(v.kind != Kind::string || matches(v.string, k.string));
    if (key == "minItems")
      return verdict(v.kind != Kind::array || v.items.size() >= static_cast<std::size_t>(k.integer));
    if (key == "maxItems")
      return verdict(v.kind != Kind::array || v.items.size() <= static_cast<std::size_t>(k.integer));
    if (key == "minProperties") {
      return verdict(v.kind != Kind::object || v.members.size() >= static_cast<std::size_t>(k.integer));
    }
    if (key == "required") {
      return verdict(v.kind != Kind::object ||
                     std::all_of(k.items.begin(), k.items.end(), [&](auto& name) { return v.find(name.string); }));
    }
    return check_parts(schema, key, k, v, at);
  }

  std::string check_parts(const Value& schema, const std::string& key, const Value& k, const Value& v,
                          const std::string& at) const {
    const Member* properties = schema.find("properties");
    const Member* prefix = schema.find("prefixItems");
    if (key == "prefixItems" || key == "items") {
      const std::size_t first = prefix ? prefix->value.items.size() : 0;
      for (std::size_t i = 0; i < v.items.size(); ++i) {
        if ((key == "prefixItems") != (i < first)) continue;
        const Value& wanted = i < first ? k.items[i] : k;
        if (std::string wrong = check(wanted, v.items[i], at + "/" + std::to_string(i)); !wrong.empty()) return wrong;
      }
      return {};
    }
    if (key != "properties" && key != "additionalProperties" && key != "propertyNames") {
      throw std::logic_error("json schema: keyword " + key);
    }
    for (const Member& member : v.members) {
      const Member* known = properties ? properties->value.find(member.key) : nullptr;
      std::string wrong;
      if (key == "propertyNames") {
        Value name;
        name.kind = Kind::string;
        name.string = member.key;
        wrong = check(k, name, at + "/" + member.key);
      } else if (key == "properties" && known) {
        wrong = check(known->value, member.value, at + "/" + member.key);
      } else if (key == "additionalProperties" && !known) {
        wrong = check(k, member.value, at + "/" + member.key);
      }
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  const Value& root_;
};

}  // namespace

std::string violation(const Value& schema, const Value& value) {
  return Checker(schema).check(schema, value, "");
}

}  // namespace graphrun::test
