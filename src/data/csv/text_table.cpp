#include "data/csv/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "data/csv/dates.h"

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
  for (std::size_t i = 0, bytes = 0; i < text.size(); i += std::max<std::size_t>(bytes, 1)) {
    const char c = text[i];
    bytes = is_whole && notation.thousands != '\0' ? separator_bytes(text.substr(i), notation.thousands) : 0;
    if (bytes > 0) {
      if (group == 0 || group > 3 || (is_grouped && group != 3)) return std::nullopt;
      if (!is_grouped && plain.find_first_of("0123456789") == plain.find('0')) return std::nullopt;  // 030 123 456
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

// Removes the currency sign, and parentheses around a negative number.
std::string_view without_currency(std::string_view text, std::string_view sign, bool& is_negative) {
  const auto trim = [&] {
    while (const std::size_t bytes = separator_bytes(text, ' ')) text.remove_prefix(bytes);
    for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(3, text.size()); ++bytes) {
      if (separator_bytes(text.substr(text.size() - bytes), ' ') == bytes) text.remove_suffix(bytes), bytes = 0;
    }
  };
  is_negative = text.starts_with('(') && text.ends_with(')');
  if (is_negative) text = text.substr(1, text.size() - 2);
  if (!is_negative && text.starts_with('-')) is_negative = true, text.remove_prefix(1);
  trim();
  if (text.starts_with(sign))
    text.remove_prefix(sign.size());
  else if (text.ends_with(sign))
    text.remove_suffix(sign.size());
  trim();
  if (is_negative && text.starts_with('-')) return {};
  return text;
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
  bool is_negative = false;
  if (!notation.currency.empty()) text = without_currency(text, notation.currency, is_negative);
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
  if (is_negative) parsed.value = -parsed.value;
  return parsed;
}

}  // namespace

std::size_t separator_bytes(std::string_view text, char separator) {
  if (text.starts_with(separator)) return 1;
  static constexpr std::pair<char, std::string_view> kOthers[] = {
      {' ', "\u00A0"}, {' ', "\u2009"}, {' ', "\u202F"}, {'\'', "\u2019"}};
  for (const auto& [sign, other] : kOthers) {
    if (sign == separator && text.starts_with(other)) return other.size();
  }
  return 0;
}

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
  if (would_do(other)) return "\"percent\": true next to the file name reads it as a share of 1";
  if (other = {'.', notation_.decimal, false, {}}; notation_.decimal != '.' && would_do(other))
    return fmt::format("the source says that '{}' is the decimal sign", notation_.decimal);
  for (const auto& [decimal, thousands] : kSeparators) {
    std::string options = fmt::format("\"decimal\": \"{}\"", decimal);
    if (thousands != '\0') options += fmt::format(", \"thousands\": \"{}\"", thousands);
    other = {decimal, thousands, false, {}};
    if (would_do(other)) return options + " next to the file name reads it";
    const auto* sign = std::find_if(std::begin(kCurrencies), std::end(kCurrencies),
                                    [&](std::string_view one) { return text.find(one) != std::string_view::npos; });
    if (sign == std::end(kCurrencies)) continue;
    other.currency = *sign;
    if (would_do(other)) return fmt::format("{}, \"currency\": \"{}\" next to the file name reads it", options, *sign);
  }
  if (notation_.is_other) return "correct the value: the model takes numbers from this column";
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
