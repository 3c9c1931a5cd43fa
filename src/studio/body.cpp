#include "studio/body.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <vector>

#include "graphrun/error.h"

namespace graphrun::studio {
namespace {

[[noreturn]] void refuse_body(std::string_view why) {
  throw Error(ErrorKind::input, "studio.body", fmt::format("the request is not a flat JSON object: {}", why));
}

void append_utf8(std::string& to, unsigned code) {
  const auto put = [&](unsigned byte) { to += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  char next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void skip() { ++at_; }
  bool at_end() { return next() == '\0' && at_ >= text_.size(); }

  std::string string() {
    if (!take('"')) refuse_body("a text was expected");
    std::string made;
    for (;;) {
      if (at_ >= text_.size()) refuse_body("a text does not end");
      const char c = text_[at_++];
      if (c == '"') return made;
      if (static_cast<unsigned char>(c) < 0x20) refuse_body("a text holds a control character");
      if (c != '\\') {
        made += c;
        continue;
      }
      if (at_ >= text_.size()) refuse_body("a text does not end");
      escape(text_[at_++], made);
    }
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  std::string_view("+-.").find(text_[at_]) != std::string_view::npos))
      ++at_;
    if (at_ == begin) refuse_body("a value was expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

 private:
  void escape(char c, std::string& made) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t which = kLetters.find(c); which != std::string_view::npos) {
      made += kMeanings[which];
      return;
    }
    if (c != 'u') refuse_body("an escape is unknown");
    unsigned code = hex();
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") refuse_body("half of a character is missing");
      at_ += 2;
      const unsigned low = hex();
      if (low < 0xdc00 || low >= 0xe000) refuse_body("half of a character is missing");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      refuse_body("half of a character is missing");
    }
    append_utf8(made, code);
  }
  unsigned hex() {
    unsigned code = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || error != std::errc() || rest != digits.data() + 4) refuse_body("an escape is unknown");
    at_ += 4;
    return code;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_word(std::string_view text) {
  double number = 0;
  if (text == "true" || text == "false" || text == "null") return true;
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return false;  // nan, inf
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size();
}

}  // namespace

Body::Body(std::string_view json) {
  constexpr std::size_t kMostValues = 64;
  Reader reader(json);
  if (!reader.take('{')) refuse_body("it does not begin with {");
  bool first = true;
  while (!reader.take('}')) {
    if (!first && !reader.take(',')) refuse_body("a comma is missing");
    first = false;
    reader.next();
    std::string name = reader.string();
    if (!reader.take(':')) refuse_body("a colon is missing");
    Value value;
    value.is_text = reader.next() == '"';
    value.text = value.is_text ? reader.string() : reader.word();
    if (!value.is_text && !is_word(value.text)) refuse_body("a value is neither a text nor a number");
    if (values_.size() >= kMostValues || !values_.emplace(std::move(name), std::move(value)).second)
      refuse_body("a name is there twice");
  }
  if (!reader.at_end()) refuse_body("something follows the object");
}

std::string Body::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || !found->second.is_text) refuse_body(fmt::format("'{}' is missing", name));
  return found->second.text;
}

std::string Body::text_or(std::string_view name, std::string_view otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() || !found->second.is_text ? std::string(otherwise) : found->second.text;
}

std::optional<double> Body::number(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.is_text) return std::nullopt;
  const std::string& text = found->second.text;
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> json_texts(std::string_view json) {
  std::vector<std::string> texts;
  Reader reader(json);
  while (!reader.at_end()) {
    if (reader.next() == '"')
      texts.push_back(reader.string());
    else
      reader.skip();
  }
  return texts;
}

}  // namespace graphrun::studio
