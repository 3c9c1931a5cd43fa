#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_limit.h"
#include "base/json_syntax.h"
#include "base/source_text.h"
#include "graphrun/error.h"

namespace graphrun::json {
namespace {

constexpr std::size_t kMaxDuplicates = 20;  // more duplicates in one file have a common cause

// Tracks the parser's position, because nlohmann reports none for values.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// Builds the tree from nlohmann's events. An event arrives after the parser has read the token and, for numbers only,
// one more byte. The start of a token is therefore derived from the end of the token before it.
class TreeBuilder {
 public:
  explicit TreeBuilder(Document& document)
      : document_(document), text_(document.text), reached_(text_.data()), line_(document.first_line) {}

  void run() {
    const char* end = text_.data() + text_.size();
    nlohmann::json::sax_parse(CountingIterator(text_.data(), &reached_), CountingIterator(end, &reached_), this);
    // The parser treats a zero byte as the end of its input.
    if (errors_.empty() && stray_end()) fail(std::string());
    std::ranges::stable_sort(errors_, {}, [](const Diagnostic& error) { return std::pair(error.line, error.column); });
    if (!errors_.empty()) throw Error(ErrorKind::input, std::move(errors_));
  }

  // ---- events; false stops the parser

  bool null() {
    begin(Kind::null);
    return end_at_reached();
  }
  bool boolean(bool value) {
    begin(Kind::boolean).boolean = value;
    return end_at_reached();
  }
  bool number_integer(std::int64_t value) {
    Value& number = begin(Kind::integer);
    number.integer = value;
    number.real = static_cast<double>(value);
    return end_of_number();
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return number_integer(static_cast<std::int64_t>(value));
    }
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(double value, const std::string&) {
    begin(Kind::real).real = value;
    return end_of_number();
  }
  bool string(std::string& value) {
    begin(Kind::string).string = std::move(value);
    return end_at_reached();
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // does not occur in JSON texts
  bool start_array(std::size_t) { return open(Kind::array, After::open_array); }
  bool start_object(std::size_t) { return open(Kind::object, After::open_object); }
  bool end_array() { return close(); }
  bool end_object() {
    report_duplicates(*open_.back());
    return close();
  }
  bool key(std::string& name) {
    advance();
    make_room(open_.back()->members);
    Member& member = open_.back()->members.emplace_back();
    member.key = std::move(name);
    member.line = line_;
    member.column = column();
    taken_ = offset_of_reached();
    after_ = After::key;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    if (error.id != 406) return fail(error.what());
    advance();  // "number overflow": valid syntax, but out of range for a double
    return fail_at(taken_, "json.number", fmt::format("the number {} is out of range", number_text().substr(0, 40)),
                   "the largest is about 1.8e308");
  }

 private:
  Document& document_;
  const std::string_view text_;
  const char* reached_;
  std::vector<Value*> open_;  // a child is always the last of its parent, so pointers stay valid
  After after_ = After::nothing;
  std::size_t taken_ = 0;  // end of the last token
  std::size_t line_begin_ = 0;
  int line_;
  InputLimit limit_;
  std::uint64_t tree_bytes_ = 0;
  SourceLines lines_{text_, document_.first_line};
  std::vector<Diagnostic> errors_;
  std::vector<const Member*> scratch_;

  std::size_t offset_of_reached() const { return static_cast<std::size_t>(reached_ - text_.data()); }
  int column() const { return static_cast<int>(taken_ - line_begin_) + 1; }

  // Skips from the end of the last token to the start of the next.
  void advance() {
    for (; taken_ < text_.size(); ++taken_) {
      const char c = text_[taken_];
      if (c == '\n') {
        ++line_;
        line_begin_ = taken_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != ',' && c != ':') {
        return;
      }
    }
  }

  // The tree takes many times the size of the text.
  template <class T>
  void make_room(std::vector<T>& items) {
    if (items.size() < items.capacity()) return;
    const std::size_t before = items.capacity(), room = std::max<std::size_t>(2 * before, 1);
    limit_.require(tree_bytes_ + room * sizeof(T), fmt::format("'{}' as a tree", document_.file));
    items.reserve(room);
    tree_bytes_ += (room - before) * sizeof(T);
  }

  Value& begin(Kind kind) {
    advance();
    Value* value = &document_.root;
    if (!open_.empty()) {
      Value& parent = *open_.back();
      if (parent.kind == Kind::array) make_room(parent.items);
      value = parent.kind == Kind::array ? &parent.items.emplace_back() : &parent.members.back().value;
    }
    value->kind = kind;
    value->line = line_;
    value->column = column();
    return *value;
  }

  void value_done() {
    after_ = open_.empty() ? After::root : open_.back()->kind == Kind::array ? After::item : After::member;
  }
  bool end_at_reached() {
    taken_ = offset_of_reached();
    value_done();
    return true;
  }
  std::string_view number_text() const {
    constexpr std::string_view kNumber = "+-.0123456789eE";
    std::size_t end = offset_of_reached();
    // The parser has read one more byte, unless the text ends with the number: 01 is the number 0 and one more byte.
    if (end < text_.size() || kNumber.find(text_[end - 1]) == std::string_view::npos) --end;
    return text_.substr(taken_, end - taken_);
  }
  bool end_of_number() {
    taken_ += number_text().size();
    value_done();
    return true;
  }

  bool open(Kind kind, After after) {
    Value& value = begin(kind);
    if (open_.size() == kMaxDepth) {
      return fail_at(taken_, "json.depth",
                     fmt::format("arrays and objects are nested deeper than {} levels", kMaxDepth), "");
    }
    open_.push_back(&value);
    taken_ = offset_of_reached();
    after_ = after;
    return true;
  }
  bool close() {
    open_.pop_back();
    // Find the closing bracket, to count the lines before it.
    advance();
    return end_at_reached();
  }

  bool stray_end() {
    advance();
    return taken_ < text_.size();
  }

  void report_duplicates(const Value& object) {
    scratch_.clear();
    for (const Member& member : object.members) scratch_.push_back(&member);
    std::ranges::stable_sort(scratch_, {}, &Member::key);
    const Member* first = nullptr;
    for (const Member* member : scratch_) {
      if (first == nullptr || first->key != member->key) {
        first = member;
      } else if (errors_.size() < kMaxDuplicates) {
        fail_at(lines_.offset_of(member->line, member->column), "json.duplicate_key",
                fmt::format("duplicate key {} in line {}, first in line {}", json_string(member->key), member->line,
                            first->line),
                "keep one of the two");
        errors_.back().pointer = pointer_of_open() + "/" + escape_pointer(member->key);
      }
    }
  }

  // Pointer of the innermost open value: each value's last child is the next.
  std::string pointer_of_open() const {
    std::string pointer;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Value& value = *open_[i];
      pointer += "/" + (value.kind == Kind::array ? std::to_string(value.items.size() - 1)
                                                  : escape_pointer(value.members.back().key));
    }
    return pointer;
  }

  bool fail_at(std::size_t offset, std::string code, std::string message, std::string hint) {
    errors_.push_back({std::move(code), std::move(message), std::move(hint), document_.file, 0, 0, {}, {}});
    lines_.locate(errors_.back(), offset);
    return false;
  }
  bool fail(std::string reason) {
    SyntaxError error;
    error.after = after_;
    error.from = taken_;
    error.reached = offset_of_reached();
    error.reason = std::move(reason);
    error.opened_line = open_.empty() ? 0 : open_.back()->line;
    errors_.push_back(explain(error, text_));
    errors_.back().file = document_.file;
    errors_.back().line += document_.first_line - 1;
    return false;
  }
};

// The parser would silently skip the first of these marks and report the others as invalid literals.
void reject_byte_order_mark(const Document& document) {
  const auto starts = [&](std::string_view mark) { return document.text.compare(0, mark.size(), mark) == 0; };
  const bool utf8 = starts("\xEF\xBB\xBF");
  if (!utf8 && !starts("\xFF\xFE") && !starts("\xFE\xFF")) return;
  const char* what = utf8 ? "the file begins with a byte order mark" : "the file is UTF-16, expected UTF-8";
  const char* hint = "save it as UTF-8 without a byte order mark (BOM)";
  throw Error(ErrorKind::input, {{"json.encoding", what, hint, document.file, document.first_line, 1, {}, {}}});
}

}  // namespace

std::string_view name_of(Kind kind) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "a number", "a number",
                                                "a string", "an array",  "an object"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Kind::object) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

const Member* Value::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key && !member.value.is_removed()) return &member;
  }
  return nullptr;
}

Document parse(std::string file, std::string text, int first_line) {
  Document document{std::move(file), std::move(text), {}, first_line};
  reject_byte_order_mark(document);
  TreeBuilder(document).run();
  return document;
}

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) out += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return out;
}

}  // namespace graphrun::json
