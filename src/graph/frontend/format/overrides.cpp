#include "graph/frontend/format/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_reader.h"

namespace graphrun {
namespace {

using json::Kind;
using json::Member;
using json::Place;
using json::Value;

std::string shown(const Override& o) {
  return fmt::format("--set {}={}", o.path, o.value);
}

[[noreturn]] void fail(const Override& o, std::string message, std::string hint = {}) {
  Diagnostic d;
  d.code = "set.path";
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.file = shown(o);
  throw Error(ErrorKind::input, std::vector{std::move(d)});
}

void check_path(const Override& o) {
  const bool empty_segment =
      o.path.empty() || o.path.front() == '.' || o.path.back() == '.' || o.path.find("..") != std::string::npos;
  if (empty_segment) fail(o, "the path must be keys with dots between them", "for instance train.epochs=100");
}

// A value that was set stands at no line of the file.
void forget_places(Value& value) {
  value.line = value.column = 0;
  for (Value& item : value.items) forget_places(item);
  for (Member& member : value.members) {
    member.line = member.column = 0;
    forget_places(member.value);
  }
}

Value parsed(const Override& o) {
  Value value;
  try {
    value = json::parse(shown(o), o.value).root;
  } catch (const Error&) {
    const std::size_t first = o.value.find_first_not_of(" \t\n");
    // What begins like JSON was meant as JSON.
    if (first != std::string::npos && std::string_view("{[\"").find(o.value[first]) != std::string_view::npos) throw;
    value.kind = Kind::string;
    value.string = o.value;
  }
  forget_places(value);
  return value;
}

std::size_t item_index(const Override& o, const Value& list, const std::string& segment, const std::string& pointer) {
  std::size_t index = 0;
  const char* end = segment.data() + segment.size();
  if (const auto [rest, problem] = std::from_chars(segment.data(), end, index); problem == std::errc() && rest == end) {
    if (index < list.items.size()) return index;
    fail(o, fmt::format("{} has {} items, there is none with index {}", pointer, list.items.size(), segment));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const Member* name = list.items[i].find("name");
    if (!name || name->value.kind != Kind::string) continue;
    if (name->value.string == segment) return i;
    names.push_back(name->value.string);
  }
  const std::string near = nearest_name(segment, names);
  fail(o, fmt::format("no object in {} has the name {}", pointer, segment),
       near.empty() ? "an index from 0 works too" : fmt::format("did you mean {}?", near));
}

// Names may contain dots: the longest key that the rest of the path begins with wins.
Member* existing_member(Value& object, std::string_view rest) {
  Member* longest = nullptr;
  for (Member& member : object.members) {
    const bool fits =
        rest.starts_with(member.key) && (rest.size() == member.key.size() || rest[member.key.size()] == '.');
    if (fits && (longest == nullptr || longest->key.size() < member.key.size())) longest = &member;
  }
  return longest;
}

std::string_view first_segment(std::string_view path) {
  return path.substr(0, path.find('.'));
}

void apply(Value& root, Override& o) {
  check_path(o);
  Value* value = &root;
  Place place{&root, ""};
  std::string_view rest = o.path;
  for (int depth = 0; !rest.empty(); ++depth) {
    if (depth == json::kMaxDepth) fail(o, fmt::format("the path is deeper than {} levels", json::kMaxDepth));
    std::string_view segment = first_segment(rest);
    if (value->kind == Kind::array) {
      const std::size_t index = item_index(o, *value, std::string(segment), place.pointer);
      place = place.item(index);
      value = &value->items[index];
    } else if (value->kind == Kind::object) {
      Member* member = existing_member(*value, rest);
      if (!member) {
        value->members.push_back({std::string(segment), 0, 0, {}});
        member = &value->members.back();
        if (o.pointer.empty()) o.pointer = place.member(*member).pointer;
        if (segment.size() < rest.size()) member->value.kind = Kind::object;
      }
      segment = member->key;
      place = place.member(*member);
      value = &member->value;
    } else {
      fail(o,
           fmt::format("{} is {}, it has no parts", place.pointer.empty() ? "the file" : place.pointer,
                       json::name_of(value->kind)),
           "set the whole of it with a JSON value");
    }
    rest.remove_prefix(std::min(segment.size() + 1, rest.size()));
  }
  *value = parsed(o);
  if (o.pointer.empty()) o.pointer = place.pointer;
}

bool within(std::string_view pointer, std::string_view outer) {
  return pointer.starts_with(outer) && (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

}  // namespace

std::vector<Override> apply_overrides(json::Document& document,
                                      const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : settings) {
    overrides.push_back({path, value, {}});
    apply(document.root, overrides.back());
  }
  return overrides;
}

Error blame(const Error& error, const std::vector<Override>& overrides) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    for (const Override& o : overrides) {
      if (!within(d.pointer, o.pointer)) continue;
      d.file = shown(o);
      if (d.line == 0) continue;  // it shows the value itself
      d.line = d.column = 0;
      d.source_line.clear();
    }
  }
  return Error(error.kind(), std::move(diagnostics), error.more());
}

}  // namespace graphrun
