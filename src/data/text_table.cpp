#include "data/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "data/dates.h"

namespace graphrun::data {
namespace {

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

// Converts "1.234.567,8" to "1234567.8"; nothing if a group does not have three digits.
std::optional<std::string> in_plain_notation(std::string_view text, const Notation& notation) {
  std::string plain;
  std::size_t group = 0;  // digits since the last separator
  bool is_grouped = false, is_whole = true;
  for (const char c : text) {
    if (is_whole && notation.thousands != '\0' && c == notation.thousands) {
      if (group == 0 || group > 3 || (is_grouped && group != 3)) return std::nullopt;
      is_grouped = true;
      group = 0;
      continue;
    }
    if (is_whole && !is_decimal_digit(c) && c != '+' && c != '-') {
      if (is_grouped && group != 3) return std::nullopt;
      is_whole = false;
    }
    if (c == '.' && notation.decimal != '.') return std::nullopt;
    group += is_decimal_digit(c) ? 1 : 0;
    plain += c == notation.decimal ? '.' : c;
  }
  if (is_whole && is_grouped && group != 3) return std::nullopt;
  return plain;
}

std::optional<double> truth(std::string_view text) {
  for (const std::string_view word : {"true", "True", "TRUE"}) {
    if (text == word) return 1;
  }
  for (const std::string_view word : {"false", "False", "FALSE"}) {
    if (text == word) return 0;
  }
  return std::nullopt;
}

struct Parsed {
  std::errc error{};
  bool is_whole = false;  // no text follows the number
  double value = 0;
};

Parsed parse(std::string_view text, const Notation& notation) {
  Parsed parsed;
  const bool is_share = notation.percent && text.ends_with('%');
  if (is_share) text.remove_suffix(1);
  while (is_share && text.ends_with(' ')) text.remove_suffix(1);
  std::optional<std::string> plain;
  if (notation.decimal != '.' || notation.thousands != '\0') {
    plain = in_plain_notation(text, notation);
    if (!plain) return parsed;
    text = *plain;
  }
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.value);
  parsed.error = error;
  parsed.is_whole = error != std::errc::invalid_argument && end == text.data() + text.size();
  if (is_share) parsed.value /= 100;
  return parsed;
}

}  // namespace

bool TextTable::stands_for_nothing(std::string_view text) const {
  static constexpr std::array<std::string_view, 7> kWords = {"NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
  if (text.empty() || (text.size() <= 4 && std::find(kWords.begin(), kWords.end(), text) != kWords.end())) return true;
  return std::find(notation_.na.begin(), notation_.na.end(), text) != notation_.na.end();
}

bool TextTable::reads_as_number(std::string_view text) const {
  return parse(text, notation_).is_whole;
}

bool TextTable::is_number(std::size_t row, std::size_t column) const {
  const std::string_view text = this->text(row, column);
  const Parsed parsed = parse(text, notation_);
  return (parsed.is_whole && parsed.error == std::errc() && std::isfinite(parsed.value)) || truth(text);
}

// Hint for the model-file option that would parse the text as a number.
std::string TextTable::hint_for(std::string_view text, const std::string& column) const {
  if (is_date(text)) return fmt::format("a date becomes a number by a formula: days({0}), year({0}), ...", column);
  const auto would_do = [&](const Notation& other) { return parse(text, other).is_whole; };
  Notation other = notation_;
  other.percent = true;
  if (would_do(other)) return "\"percent\": true next to the source reads it as a share of 1";
  if (notation_.decimal == '.') {
    other = {',', '.', false, {}};
    if (would_do(other)) return "\"decimal\": \",\" next to the source, with \"thousands\": \".\" where it has them";
    other = {'.', ',', false, {}};
    if (would_do(other)) return "\"thousands\": \",\" next to the source reads it";
  } else if (other = {'.', notation_.decimal, false, {}}; would_do(other)) {
    return fmt::format("the source says that '{}' is the decimal sign", notation_.decimal);
  }
  return fmt::format("words become numbers by \"transform\": {{\"{}\": [\"one_hot\"]}}", column);
}

double TextTable::number(std::size_t row, std::size_t column) const {
  const std::string_view text = this->text(row, column);
  const Parsed parsed = parse(text, notation_);
  if (parsed.error == std::errc::result_out_of_range) fail_at(row, column, fmt::format("'{}' is out of range", text));
  if (!parsed.is_whole) {
    if (const std::optional<double> value = truth(text)) return *value;
    fail_at(row, column, fmt::format("expected a number, got '{}'", text.substr(0, 40)),
            hint_for(text, names_[column]));
  }
  if (!std::isfinite(parsed.value)) fail_at(row, column, fmt::format("'{}' is not a finite number", text));
  return parsed.value;
}

}  // namespace graphrun::data
