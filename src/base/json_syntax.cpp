#include "base/json_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/source_text.h"

namespace graphrun::json {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// Token at which the parser stopped, and the comma or colon before it ('\0': none).
struct Stop {
  std::size_t at = 0;
  char passed = '\0';
  std::string_view word;  // letters and digits with an optional sign; empty for a single character
};

Stop find_stop(const SyntaxError& error, std::string_view text) {
  const bool at_end = error.reason.find("unexpected end of input") != std::string::npos;
  Stop stop;
  stop.at = error.from;
  while (stop.at < text.size()) {
    const char c = text[stop.at];
    const bool passed = (c == ',' || c == ':') && (at_end || stop.at + 1 < error.reached);
    if (passed && stop.passed == '\0') {
      stop.passed = c;
    } else if (passed || !is_space(c)) {
      break;
    }
    ++stop.at;
  }
  std::size_t end = stop.at;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  while (end < text.size() && is_word(text[end])) ++end;
  stop.word = text.substr(stop.at, std::min<std::size_t>(end - stop.at, 40));
  return stop;
}

std::string_view expected(After after, char passed) {
  static constexpr std::string_view kNext[] = {
      "a value", "a value or ']'",     "a key in double quotes or '}'", "',' or ']'", "',' or '}'",
      "':'",     "the end of the file"};  // same order as After
  static_assert(std::size(kNext) == static_cast<std::size_t>(After::root) + 1);
  if (after == After::member && passed == ',') return "a key in double quotes";
  if ((after == After::item && passed == ',') || (after == After::key && passed == ':')) return "a value";
  return kNext[static_cast<std::size_t>(after)];
}

std::string found(const Stop& stop, std::string_view text) {
  if (stop.at >= text.size()) return "the end of the file";
  if (text[stop.at] == '"') return "a string";
  if (text[stop.at] == '\'') return "a single quote";
  if (!stop.word.empty()) return fmt::format("'{}'", stop.word);
  const auto byte = static_cast<unsigned char>(text[stop.at]);
  return byte > 0x20 && byte < 0x7f ? fmt::format("'{}'", text[stop.at]) : fmt::format("the byte 0x{:02X}", byte);
}

bool is_not_finite(std::string_view word) {
  if (!word.empty() && (word[0] == '-' || word[0] == '+')) word.remove_prefix(1);
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array<std::string_view, 3> kNames = {"nan", "inf", "infinity"};
  return std::find(kNames.begin(), kNames.end(), lower) != kNames.end();
}

std::string not_closed(const SyntaxError& error) {
  return error.opened_line == 0 ? "" : fmt::format("the bracket opened in line {} is not closed", error.opened_line);
}

std::string hint_for(const Stop& stop, const SyntaxError& error, std::string_view text) {
  if (stop.at >= text.size()) return not_closed(error);
  const char c = text[stop.at];
  if (stop.passed == ',' && (c == ']' || c == '}'))
    return "remove the comma before it: JSON allows none after the last";
  if (c == '\'') return "JSON strings are written in double quotes";
  if (error.after == After::item && c == ':') return "keys belong in an object: { }, not [ ]";
  const bool after_value = stop.passed == '\0' && (error.after == After::item || error.after == After::member);
  if (after_value && (c == ']' || c == '}')) return not_closed(error);
  const bool touches_number = stop.at == error.from && stop.at > 0 && is_digit(text[stop.at - 1]);
  if (touches_number && text[stop.at - 1] == '0' && is_digit(c)) return "a number has no leading zeros";
  if (touches_number && is_word(c)) return "JSON has decimal numbers only: 16, 0.5, 1e-3";
  if (after_value) return "is a comma missing before it?";
  const bool value_next = expected(error.after, stop.passed).substr(0, 7) == "a value";
  if (value_next && c == '.') return "a number begins with a digit: 0.5, not .5";
  if (value_next && c == '+') return "a number has no plus sign";
  if (value_next && stop.word == "None") return "JSON's word for nothing is null";
  std::string near = value_next ? did_you_mean(stop.word, {"true", "false", "null"}) : "";
  if (!near.empty()) return near;
  const bool key_next = expected(error.after, stop.passed).substr(0, 5) == "a key";
  if ((key_next || value_next) && !stop.word.empty() && std::isalpha(static_cast<unsigned char>(c)) != 0) {
    return fmt::format("write \"{}\", in double quotes", stop.word);
  }
  return "";
}

// Extracts REASON from nlohmann's "[…] parse error at line 1, column 4: syntax error while parsing value - invalid
// string: REASON; last read: '…'"; the rest is described better here.
std::string string_reason(const std::string& reason) {
  constexpr std::string_view kPrefix = "invalid string: ";
  const std::size_t begin = reason.find(kPrefix);
  if (begin == std::string::npos) return "";
  return reason.substr(begin + kPrefix.size(), reason.find("; last read") - begin - kPrefix.size());
}

// Describes an error inside a string with its opening quote at stop.at.
std::size_t explain_string(const Stop& stop, const SyntaxError& error, std::string_view text, Diagnostic& out) {
  const std::size_t last = std::min(error.reached, text.size()) - 1;
  const std::string reason = string_reason(error.reason);
  const bool ends = reason.find("missing closing quote") != std::string::npos || error.reached >= text.size();
  if (ends || text[last] == '\n' || text[last] == '\r') {
    out.message = "this string has no closing quote in its line";
    out.hint = "a line break inside a string is written \\n";
    return stop.at;
  }
  out.message = "invalid string: " + reason;
  if (reason.find("UTF-8") != std::string::npos) {
    out.message = "invalid string: not UTF-8";
    out.hint = "save the file as UTF-8";
  } else if (reason.find("backslash") != std::string::npos) {
    out.hint = "a backslash is written \\\\";
  }
  return last;
}

}  // namespace

Diagnostic explain(const SyntaxError& error, std::string_view text) {
  const Stop stop = find_stop(error, text);
  std::size_t at = stop.at;
  const auto starts = [&](std::string_view token) { return text.substr(at, token.size()) == token; };
  Diagnostic out;
  out.code = "json.syntax";
  if (std::all_of(text.begin(), text.end(), is_space)) {
    out.message = "the file is empty, expected a JSON value";
    text = {};
    at = 0;
  } else if (starts("//") || starts("/*") || starts("#")) {
    out.code = "json.comment";
    out.message = "comments are not allowed: model files are strict JSON";
    out.hint = "remove the comment; \"description\" is the place for a remark";
  } else if (is_not_finite(stop.word)) {
    out.code = "json.number";
    out.message = fmt::format("{} is not a JSON number", stop.word);
    out.hint = "JSON has no NaN and no Infinity: write a finite number";
  } else if (error.reason.find("invalid string") != std::string::npos) {
    at = explain_string(stop, error, text, out);
  } else if (error.reason.find("invalid number") != std::string::npos) {
    std::size_t end = std::min(error.reached, text.size());
    if (end > at && std::string_view("+-.eE").find(text[end - 1]) == std::string_view::npos) --end;  // invalid byte
    out.message = fmt::format("'{}' is not a JSON number", text.substr(at, std::min<std::size_t>(end - at, 40)));
    out.hint = "a digit has to follow '-', '.' and 'e'";
  } else {
    out.message = fmt::format("expected {}, got {}", expected(error.after, stop.passed), found(stop, text));
    out.hint = hint_for(stop, error, text);
  }
  // At the end of the file, point to the last text before it.
  while (at == text.size() && at > 0 && is_space(text[at - 1])) text.remove_suffix(1), --at;
  SourceLines(text).locate(out, at);
  return out;
}

}  // namespace graphrun::json
