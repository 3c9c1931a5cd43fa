// Files of libsvm: lines of a label, then index and value of each feature that is not 0: "1 1:0.5 3:1.2 # note".
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/input_limit.h"
#include "base/text.h"
#include "data/csv/csv.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Removes the first line of the text and returns it without a comment.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line.substr(0, line.find('#'));
}

// Removes the first word of the line and returns it; empty at the end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::optional<std::int64_t> feature_of(std::string_view word) {
  const std::size_t colon = word.find(':');
  return colon == std::string_view::npos ? std::nullopt : parse_number<std::int64_t>(word.substr(0, colon));
}

std::int64_t largest_feature(std::string_view text) {
  std::int64_t largest = 0;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
      largest = std::max(largest, feature_of(word).value_or(0));
  }
  return largest;
}

}  // namespace

bool is_libsvm(std::string_view text) {
  std::string_view line;
  while (!text.empty() && line.find_first_not_of(kBlanks) == std::string_view::npos) line = next_line(text);
  if (next_word(line).empty() || line.find(':') == std::string_view::npos) return false;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    if (!feature_of(word)) return false;
  }
  return true;
}

std::string csv_of_libsvm(const std::string& path, std::string_view text, Dialect& dialect) {
  const std::int64_t features =
      std::min<std::int64_t>(dialect.libsvm > 0 ? dialect.libsvm : largest_feature(text), INT32_MAX);
  const std::uint64_t limit = input_limit();
  int number = dialect.lines_before;
  const auto fail = [&](std::string message, std::string hint = {}) {
    throw Error(ErrorKind::input, {{"data.csv", std::move(message), std::move(hint), path, number, 0, {}, {}}});
  };
  require_within_input_limit(static_cast<std::uint64_t>(features) * sizeof(std::string),
                             fmt::format("the names of the columns of '{}'", path), limit);
  std::string csv;
  while (!text.empty()) {
    ++number;
    std::string_view line = next_line(text);
    require_within_input_limit(csv.size() + 2 * static_cast<std::uint64_t>(features) + line.size(),
                               fmt::format("the table of '{}'", path), limit);
    std::int64_t column = 0;  // last one written
    std::string_view word = next_word(line);
    const bool is_row = !word.empty();
    if (word.find(':') == std::string_view::npos) csv += std::exchange(word, next_word(line));
    for (; !word.empty(); word = next_word(line)) {
      const std::optional<std::int64_t> feature = feature_of(word);
      const std::string_view value = word.substr(std::min(word.find(':'), word.size() - 1) + 1);
      if (!feature || !parse_number<double>(value))
        fail(fmt::format("expected index:value, got '{}'", word.substr(0, 40)), "both are numbers, such as 3:0.5");
      if (*feature < 1)
        fail(fmt::format("a feature has the index {}", *feature), "indices count from 1: save with zero_based=False");
      if (*feature <= column) fail(fmt::format("feature {} follows feature {}", *feature, column), "indices ascend");
      if (*feature > features) fail(fmt::format("feature {} exceeds {}, the value of \"libsvm\"", *feature, features));
      while (++column < *feature) csv += ",0";
      csv += fmt::format(",{}", value);
    }
    while (is_row && ++column <= features) csv += ",0";
    csv += '\n';
  }
  dialect.libsvm = features;
  dialect.delimiter = ',';
  for (std::int64_t i = 0; i <= features; ++i) dialect.names.push_back(fmt::format("c{}", i));
  return csv;
}

}  // namespace graphrun::data
