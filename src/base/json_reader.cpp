#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

namespace graphrun::json {
namespace {

constexpr std::size_t kSuperseded = ~std::size_t{0};
constexpr std::size_t kMaxItemErrors = 10;  // per array; more errors have a common cause
constexpr std::size_t kSmallObject = 16;    // largest object that is searched linearly
constexpr std::size_t kLongestKey = 256;    // longest key copied to pointers, as it repeats for each value below it
constexpr std::size_t kMaxListed = 40;      // names in a hint

Diagnostic make(std::string code, std::string message, std::string hint) {
  return {.code = std::move(code), .message = std::move(message), .hint = std::move(hint)};
}

// One character of a string literal: its length in the file, and in decoded bytes.
struct Written {
  std::size_t length = 1;
  std::size_t decoded = 1;
};

Written written_at(std::string_view text, std::size_t at) {
  if (text[at] != '\\' || at + 1 >= text.size()) return {1, 1};
  if (text[at + 1] != 'u') return {2, 1};
  std::uint32_t code = 0;
  std::from_chars(text.data() + at + 2, text.data() + at + 6, code, 16);
  if (code >= 0xD800 && code < 0xDC00) return {12, 4};  // the parser has verified that the low surrogate follows
  return {6, code < 0x80 ? 1u : code < 0x800 ? 2u : 3u};
}

// Offset in the file of decoded byte `offset` of the string whose opening quote is at `quote`.
std::size_t offset_inside(std::string_view text, std::size_t quote, std::size_t offset) {
  std::size_t at = quote + 1;
  for (std::size_t decoded = 0; at < text.size() && text[at] != '"';) {
    const Written written = written_at(text, at);
    if (offset < decoded + written.decoded) break;
    decoded += written.decoded;
    at += written.length;
  }
  return at;
}

std::string range_text(std::int64_t low, std::int64_t high) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  if (high == kHighest && low == 1) return "> 0";
  if (high == kHighest) return fmt::format(">= {}", low);
  if (low == kLowest) return fmt::format("<= {}", high);
  return fmt::format("from {} to {}", low, high);
}

// Formats a value for a message, shortened if necessary.
std::string shown(const Value& value) {
  switch (value.kind) {
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::real:
      return fmt::format("{}", value.real);
    case Kind::string:
      return value.string.size() <= 40 ? "the string " + json_string(value.string) : "a string";
    default:
      return std::string(name_of(value.kind));
  }
}

std::string must_be(std::string_view expected, const Value& value) {
  return fmt::format("must be {}, got {}", expected, shown(value));
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxListed; ++i) {
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", names[i]);
  }
  return names.size() > kMaxListed ? text + fmt::format(" and {} more", names.size() - kMaxListed) : text;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Ref Ref::item(std::size_t index) const {
  return {&value->items.at(index), pointer + "/" + std::to_string(index)};
}

Ref Ref::member(const Member& member) const {
  const std::string_view key = std::string_view(member.key).substr(0, kLongestKey);
  return {&member.value, pointer + "/" + escape_pointer(key) + (key.size() < member.key.size() ? "..." : "")};
}

// ---- Reader: reports

bool Reader::keeps() {
  if (!full()) return true;
  ++more_;
  return false;
}

void Reader::add(Diagnostic diagnostic, const std::string& pointer, std::size_t offset) {
  if (diagnostic.line == 0 && diagnostic.file.empty()) {
    diagnostic.file = document_.file;
    lines_.locate(diagnostic, offset);
    if (diagnostic.pointer.empty()) diagnostic.pointer = pointer;
  }
  diagnostics_.push_back(std::move(diagnostic));
}

std::size_t Reader::offset(const Ref& at) {
  return lines_.offset_of(at.value->line, at.value->column);
}

std::size_t Reader::offset(const Ref& at, std::size_t inside) {
  return at.value->kind == Kind::string ? offset_inside(document_.text, offset(at), inside) : offset(at);
}

void Reader::report(const Ref& at, std::string code, std::string message, std::string hint) {
  if (keeps()) add(make(std::move(code), std::move(message), std::move(hint)), at.pointer, offset(at));
}

void Reader::report_inside(const Ref& at, std::size_t offset_in_string, std::string code, std::string message,
                           std::string hint) {
  if (!keeps()) return;
  add_inside(at, offset_in_string, make(std::move(code), std::move(message), std::move(hint)));
}

void Reader::report_key(const Ref& object, const Member& member, std::string code, std::string message,
                        std::string hint) {
  if (!keeps()) return;
  add(make(std::move(code), std::move(message), std::move(hint)), object.member(member).pointer,
      lines_.offset_of(member.line, member.column));
}

void Reader::report(const Ref& at, const Error& error) {
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    if (keeps()) add(diagnostic, at.pointer, offset(at));
  }
  more_ += error.more();
}

void Reader::add_inside(const Ref& at, std::size_t offset_in_string, Diagnostic diagnostic) {
  if (at.value->line > 0 || diagnostic.line > 0) {
    add(std::move(diagnostic), at.pointer, offset(at, offset_in_string));
    return;
  }
  // The value has no line in the file, so show the value itself.
  diagnostic.file = document_.file;
  diagnostic.pointer = at.pointer;
  diagnostic.source_line = at.value->string;
  diagnostic.column = static_cast<int>(offset_in_string) + 1;
  diagnostics_.push_back(std::move(diagnostic));
}

void Reader::report_inside(const Ref& at, std::size_t offset_in_string, const Error& error) {
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    if (keeps()) add_inside(at, offset_in_string, diagnostic);
  }
  more_ += error.more();
}

void Reader::supersede(std::size_t index) {
  if (more_ > 0) {  // the last diagnostic was only counted; count both as one error
    --more_;
    return;
  }
  diagnostics_[index] = std::move(diagnostics_.back());
  diagnostics_.pop_back();
}

void Reader::throw_if_failed() const {
  if (!failed()) return;
  std::vector<Diagnostic> sorted = diagnostics_;
  // Diagnostics of other files follow those of this one.
  const auto key = [this](const Diagnostic& d) { return std::tuple(d.file != document_.file, d.line, d.column); };
  std::ranges::stable_sort(sorted, {}, key);
  throw Error(ErrorKind::input, std::move(sorted), more_);
}

// ---- Reader: conversions

std::optional<std::string> Reader::string(const Ref& at) {
  if (at.value->kind == Kind::string) return at.value->string;
  report(at, "model.type", must_be("a string", *at.value));
  return std::nullopt;
}

std::optional<bool> Reader::boolean(const Ref& at) {
  if (at.value->kind == Kind::boolean) return at.value->boolean;
  report(at, "model.type", must_be("true or false", *at.value));
  return std::nullopt;
}

std::optional<double> Reader::number(const Ref& at) {
  if (at.value->is_number()) return at.value->real;
  report(at, "model.type", must_be("a number", *at.value));
  return std::nullopt;
}

std::optional<std::int64_t> Reader::integer(const Ref& at, std::int64_t low, std::int64_t high) {
  const Value& value = *at.value;
  std::int64_t result = value.integer;
  if (value.kind == Kind::real && value.real == std::floor(value.real) && std::abs(value.real) < 0x1p53) {
    result = static_cast<std::int64_t>(value.real);  // 1e3 and 10.0 are integers, too
  } else if (value.kind != Kind::integer) {
    report(at, "model.type", must_be("an integer", value));
    return std::nullopt;
  }
  if (result >= low && result <= high) return result;
  // Omit a very large upper limit from the message if the value is too small.
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  const bool far = result < low && high >= kFar;
  const std::int64_t shown_high = far ? std::numeric_limits<std::int64_t>::max() : high;
  report(at, "model.range", must_be(range_text(low, shown_high), value));
  return std::nullopt;
}

std::optional<std::vector<double>> Reader::numbers(const Ref& at) {
  if (at.value->kind != Kind::array) {
    report(at, "model.type", must_be("an array of numbers", *at.value));
    return std::nullopt;
  }
  std::vector<double> result;
  result.reserve(at.value->items.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < at.value->items.size() && wrong < kMaxItemErrors; ++i) {
    if (at.value->items[i].is_number()) {
      result.push_back(at.value->items[i].real);
    } else {
      number(at.item(i));
      ++wrong;
    }
  }
  if (wrong > 0) return std::nullopt;
  return result;
}

// ---- ObjectReader

ObjectReader::ObjectReader(Reader& reader, const Ref& object) : reader_(reader), object_(object) {
  if (!is_object()) reader_.report(object_, "model.type", must_be("an object", *object_.value));
}

const Member* ObjectReader::find(std::string_view key) {
  const std::vector<Member>& members = object_.value->members;
  if (members.size() <= kSmallObject) return object_.value->find(key);
  if (index_.empty()) {
    index_.reserve(members.size());
    for (const Member& member : members)
      if (!member.value.is_removed()) index_.emplace(member.key, &member);
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : found->second;
}

std::optional<Ref> ObjectReader::get(std::string_view key) {
  if (asked_.emplace(key).second) known_.emplace_back(key);
  const Member* member = find(key);
  if (member == nullptr) return std::nullopt;
  return object_.member(*member);
}

std::optional<Ref> ObjectReader::require(std::string_view key, std::string_view hint) {
  std::optional<Ref> place = get(key);
  if (!place && is_object()) {
    report_missing(key, "model.missing_key", fmt::format("missing key '{}'", key), hint);
  }
  return place;
}

void ObjectReader::report_missing(std::string_view key, std::string code, std::string message, std::string_view hint) {
  missing_.emplace_back(key, reader_.errors());
  reader_.report(object_, std::move(code), std::move(message), std::string(hint));
}

std::optional<std::string> ObjectReader::string(std::string_view key) {
  const std::optional<Ref> place = get(key);
  return place ? reader_.string(*place) : std::nullopt;
}

std::optional<bool> ObjectReader::boolean(std::string_view key) {
  const std::optional<Ref> place = get(key);
  return place ? reader_.boolean(*place) : std::nullopt;
}

std::optional<double> ObjectReader::number(std::string_view key) {
  const std::optional<Ref> place = get(key);
  return place ? reader_.number(*place) : std::nullopt;
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const std::optional<Ref> place = get(key);
  return place ? reader_.integer(*place, low, high) : std::nullopt;
}

void ObjectReader::also_known(std::vector<std::string> keys) {
  for (std::string& key : keys) {
    if (!contains(also_known_, key)) also_known_.push_back(std::move(key));
  }
}

std::vector<const Member*> ObjectReader::unread() const {
  std::vector<const Member*> members;
  for (const Member& member : object_.value->members) {
    if (!asked_.contains(member.key) && !member.value.is_removed()) members.push_back(&member);
  }
  return members;
}

void ObjectReader::finish() {
  std::vector<std::string> names = known_;
  for (const std::string& key : also_known_) {
    if (!asked_.contains(key)) names.push_back(key);
  }
  for (const Member& each : object_.value->members) {
    const Member* const member = &each;
    if (asked_.contains(member->key)) continue;
    if (contains(also_known_, member->key)) {
      if (member->value.is_removed()) continue;
      reader_.report_key(object_, *member, "model.unknown_key",
                         fmt::format("key '{}' has no meaning here", member->key),
                         known_.empty() ? "" : "known keys: " + quoted_list(known_));
      continue;
    }
    std::vector<std::string> wanted;  // suggest the missing keys first
    for (const auto& [key, index] : missing_) {
      if (index != kSuperseded) wanted.push_back(key);
    }
    std::string near = nearest_name(member->key, wanted), hint;
    if (near.empty() && !reader_.full()) near = nearest_name(member->key, names);
    if (!names.empty() && !reader_.full()) hint = "known keys: " + quoted_list(names);
    if (!near.empty()) hint = fmt::format("did you mean '{}'?", near);
    reader_.report_key(object_, *member, "model.unknown_key", fmt::format("unknown key '{}'", member->key), hint);
    for (auto& [key, index] : missing_) {
      if (key != near || index == kSuperseded) continue;
      reader_.supersede(index);
      index = kSuperseded;
      break;
    }
  }
}

}  // namespace graphrun::json
