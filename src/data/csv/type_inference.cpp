#include "data/csv/type_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "data/csv/categories.h"
#include "data/csv/dates.h"
#include "data/formats/inflate.h"
#include "data/transforms/encoding.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

constexpr std::array<double, 3> kGapNumbers = {-999, -9999, -99999};

// First lines, for guesses that the full text verifies. Ends outside quotes.
std::string head_of(const std::string& text) {
  constexpr std::size_t kHead = std::size_t{1} << 17;
  bool is_quoted = false;
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size() && i < kHead; ++i) {
    is_quoted = is_quoted != (text[i] == '"');
    if (!is_quoted && text[i] == '\n') end = i + 1;
  }
  return text.size() <= kHead || end == 0 ? text : text.substr(0, end);
}

// Whether the first line has the delimiter outside quotes.
bool has_delimiter(std::string_view text, char delimiter) {
  bool is_quoted = false;
  for (const char c : text) {
    is_quoted = is_quoted != (c == '"');
    if (!is_quoted && (c == delimiter || c == '\n' || c == '\r')) return c == delimiter;
  }
  return false;
}

// Number of columns with this dialect, or 0 if lines differ. Sets whether the first line is a header.
std::size_t columns_of(const std::string& path, const std::string& text, Dialect& dialect, bool has_header) {
  for (const bool header : {true, false}) {
    if (header && !has_header) continue;
    dialect.header = header;
    try {
      return Csv(path, text, dialect).names().size();
    } catch (const Error& error) {
      if (error.diagnostics().front().message.find("holds numbers") == std::string::npos) break;
    }
  }
  return 0;
}

// Picks the delimiter that gives every line the same, largest number of fields. A comma is tried last: it may be a
// decimal point. If none fits all lines, picks one of the first line, for an error about the line that differs.
Dialect guess_dialect(const std::string& path, const std::string& text, bool has_header) {
  const std::string head = head_of(text);
  Dialect best;
  if (head.starts_with('#')) best.comment = "#";
  if (const std::optional<SepLine> sep = sep_line(text)) {
    best.delimiter = sep->delimiter;
    columns_of(path, head, best, has_header);
    return best;
  }
  std::size_t most = 1;
  Dialect dialect = best;
  for (const char delimiter : {';', '\t', '|', ','}) {
    dialect.delimiter = delimiter;
    dialect.notation = delimiter == ',' ? Notation{'.', '\0', true, {}} : Notation{',', '.', true, {}};
    const std::size_t columns = delimiter == ',' && !best.header ? 0 : columns_of(path, head, dialect, has_header);
    if (columns > most) most = columns, best = dialect;
  }
  best.delimiter = most == 1 ? ' ' : best.delimiter;
  for (const char delimiter : {',', '|', '\t', ';'}) {
    if (most == 1 && has_delimiter(head, delimiter)) best.delimiter = delimiter;
  }
  if (best.delimiter == ' ' && columns_of(path, head, best, has_header) < 2) best.delimiter = ',';
  if (most == 1) columns_of(path, head, best, has_header);
  return best;
}

// Whether a column is numeric, and its placeholder texts for missing values: one or two, without a digit, in at most a
// fifth of the rows.
struct NumberColumn {
  bool is_numeric = false;
  std::vector<std::string> gaps;
};

NumberColumn detect_numbers(const TextTable& table, std::size_t column) {
  constexpr std::size_t kMaxGapTexts = 2;
  NumberColumn inference;
  std::size_t numbers = 0, words = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.is_missing(row, column)) continue;
    if (table.is_number(row, column)) {
      ++numbers;
      continue;
    }
    const std::string_view text = table.text(row, column);
    ++words;
    if (std::find(inference.gaps.begin(), inference.gaps.end(), text) == inference.gaps.end())
      inference.gaps.emplace_back(text);
    if (inference.gaps.size() > kMaxGapTexts || text.find_first_of("0123456789") != std::string_view::npos) return {};
  }
  inference.is_numeric = numbers > 0 && numbers >= 4 * words;
  return inference;
}

std::vector<NumberColumn> number_columns(const TextTable& table) {
  std::vector<NumberColumn> columns;
  for (std::size_t c = 0; c < table.names().size(); ++c) columns.push_back(detect_numbers(table, c));
  return columns;
}

std::size_t numeric_columns(const std::vector<NumberColumn>& columns) {
  return static_cast<std::size_t>(
      std::count_if(columns.begin(), columns.end(), [](const NumberColumn& one) { return one.is_numeric; }));
}

// Currency sign of the first rows, next to a digit; empty if there is none.
std::string currency_of(const TextTable& table) {
  for (std::size_t i = 0; i < std::min<std::size_t>(table.rows(), 100) * table.names().size(); ++i) {
    const std::string_view text = table.text(i / table.names().size(), i % table.names().size());
    for (const std::string_view sign : kCurrencies) {
      if (text.find(sign) != std::string_view::npos && text.find_first_of("0123456789") != std::string_view::npos)
        return std::string(sign);
    }
  }
  return "";
}

// Finds the simplest notation that makes most columns numeric, and their number. Sets it on the table.
std::size_t guess_notation(TextTable& table, Dialect& dialect) {
  std::optional<std::size_t> most;
  std::vector<std::string> currencies = {""};
  if (const std::string sign = currency_of(table); !sign.empty()) currencies.push_back(sign);
  for (const bool percent : {false, true}) {
    for (const std::string& currency : currencies) {
      for (const auto& [decimal, thousands] : kSeparators) {
        if (most == table.names().size() || (dialect.delimiter == ',' && decimal == ',')) continue;
        const Notation notation{decimal, thousands, percent, {}, DateOrder::unknown, currency};
        table.read_as(notation);
        const std::size_t numeric = numeric_columns(number_columns(table));
        if (most && numeric <= *most) continue;
        most = numeric;
        dialect.notation = notation;
      }
    }
  }
  table.read_as(dialect.notation);
  return *most;
}

// Finds placeholder texts among numbers, and -999 if all other numbers are nonnegative.
void find_gaps(const TextTable& table, const std::vector<NumberColumn>& columns, std::vector<std::string>& gaps) {
  const auto add = [&](const std::string& gap) {
    if (std::find(gaps.begin(), gaps.end(), gap) == gaps.end()) gaps.push_back(gap);
  };
  for (const NumberColumn& column : columns) {
    if (column.is_numeric) std::for_each(column.gaps.begin(), column.gaps.end(), add);
  }
  for (std::size_t column = 0; column < columns.size(); ++column) {
    if (!columns[column].is_numeric) continue;
    std::string found;
    bool others_are_positive = true;
    for (std::size_t row = 0; row < table.rows() && others_are_positive; ++row) {
      if (!table.is_number(row, column)) continue;
      const double value = table.number(row, column);
      if (std::find(kGapNumbers.begin(), kGapNumbers.end(), value) != kGapNumbers.end())
        found = table.text(row, column);
      else
        others_are_positive = value >= 0;
    }
    if (!found.empty() && others_are_positive) add(found);
  }
}

InferredGap located(const Csv& csv, const std::string& text) {
  InferredGap gap{text, {}};
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    for (std::size_t column = 0; column < csv.names().size(); ++column) {
      if (csv.text(row, column) != text || gap.count++ > 0) continue;
      gap.column = csv.names()[column];
      gap.line = csv.error_at(row, column, "", "").diagnostics().front().line;
    }
  }
  return gap;
}

// A first line whose fields all occur in their columns is data in a file without a header; as a header it would be
// lost. Numbers and dates prove nothing, and a line equal to the first may be a repeated header.
void reject_row_as_header(const std::string& path, const TextTable& table) {
  const std::vector<std::string>& names = table.names();
  const auto is_header = [&](std::size_t row) {
    for (std::size_t c = 0; c < names.size(); ++c) {
      if (table.text(row, c) != names[c]) return false;
    }
    return true;
  };
  bool is_row = false;
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (table.stands_for_nothing(names[c])) continue;
    is_row = true;
    if (table.reads_as_number(names[c]) || is_date(names[c])) continue;
    bool is_value = false;
    for (std::size_t row = 0; row < table.rows() && !is_value; ++row)
      is_value = table.text(row, c) == names[c] && !is_header(row);
    if (!is_value) return;
  }
  if (!is_row) return;
  throw Error(ErrorKind::input, "data.csv",
              fmt::format("'{}': the first line should name the columns, and it is a row like those below it", path),
              "put a line of names above it, such as x0,x1; init --no-header names the columns c0, c1, ...");
}

class ColumnInference {
 public:
  explicit ColumnInference(std::string name) { inferred_.name = std::move(name); }

  void see(std::string_view text, std::optional<double> number) {
    if ((is_date_[1] || is_date_[2]) && !is_date(text, DateOrder::unknown)) {
      is_date_[0] = false;
      is_date_[1] = is_date_[1] && is_date(text, DateOrder::day_first);
      is_date_[2] = is_date_[2] && is_date(text, DateOrder::month_first);
    }
    // Only for a column that may be dates: a copy of each text.
    if (inferred_.is_unique) inferred_.is_unique = (is_date_[1] || is_date_[2]) && texts_.emplace(text).second;
    if (number)
      see_number(*number);
    else if (std::exchange(is_number_, false))
      inferred_.example = text;
    if (counts_.size() > kMaxCategories) return;
    const auto [place, is_new] = counts_.try_emplace(category_of(text), inferred_.categories.size());
    if (is_new)
      inferred_.categories.emplace_back(place->first, 1);
    else
      ++inferred_.categories[place->second].second;
  }
  void see_missing() { ++inferred_.missing; }

  InferredColumn result() && {
    using Found = InferredColumn::Kind;
    const bool has_few = counts_.size() <= kMaxCategories;
    const bool is_empty = counts_.empty();
    inferred_.kind = has_few && !is_empty ? Found::categorical : Found::text;
    if ((is_date_[1] || is_date_[2]) && !is_empty) inferred_.kind = Found::date;
    if (is_date_[1] != is_date_[2]) inferred_.dates = is_date_[1] ? DateOrder::day_first : DateOrder::month_first;
    inferred_.is_ambiguous = inferred_.kind == Found::date && is_date_[1] && is_date_[2] && !is_date_[0];
    if (is_number_ && !is_empty) inferred_.kind = Found::number;
    inferred_.is_constant = counts_.size() == 1;
    // A short sequence may be data, unless it starts at 0 or 1.
    inferred_.is_counter = is_number_ && is_counter_ && numbers_ > (first_ == 0 || first_ == 1 ? 2 : 4);
    if (!has_few) inferred_.categories.clear();
    return std::move(inferred_);
  }

 private:
  void see_number(double number) {
    inferred_.min = numbers_ == 0 ? number : std::min(inferred_.min, number);
    inferred_.max = numbers_ == 0 ? number : std::max(inferred_.max, number);
    if (numbers_ == 0) first_ = number;
    is_counter_ =
        is_counter_ && number == std::floor(number) && std::abs(number - first_) == static_cast<double>(numbers_);
    ++numbers_;
  }

  InferredColumn inferred_;
  std::unordered_map<std::string, std::size_t> counts_;  // indices into inferred_.categories
  std::unordered_set<std::string> texts_;
  bool is_number_ = true, is_counter_ = true;
  bool is_date_[3] = {true, true, true};  // index: DateOrder
  std::int64_t numbers_ = 0;
  double first_ = 0;
};

}  // namespace

InferredTable infer_csv_types(const std::string& path, bool has_header) {
  std::string text = inflated_text(path, read_file(path));
  require_utf8(path, text, 0);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  InferredTable inferred;
  Dialect& dialect = inferred.dialect;
  if (is_libsvm(text)) {
    dialect.header = false;
    text = csv_of_libsvm(path, text, dialect);
  } else {
    dialect = guess_dialect(path, text, has_header);
  }
  Csv head(path, head_of(text), dialect);
  const std::size_t in_head = guess_notation(head, dialect);
  if (dialect.header)
    columns_of(path, head_of(text), dialect, has_header);  // with a decimal comma, a first line of 1,5 is numeric
  for (std::size_t i = dialect.names.size(); i < head.names().size() && !dialect.header; ++i)
    dialect.names.push_back(fmt::format("c{}", i));
  Csv csv(path, std::move(text), dialect);
  std::vector<NumberColumn> columns = number_columns(csv);
  if (numeric_columns(columns) != in_head) {
    guess_notation(csv, dialect);
    columns = number_columns(csv);
  }
  find_gaps(csv, columns, dialect.notation.na);
  for (const std::string& gap : dialect.notation.na) inferred.gaps.push_back(located(csv, gap));
  csv.read_as(dialect.notation);
  if (dialect.header) reject_row_as_header(path, csv);
  inferred.rows = static_cast<std::int64_t>(csv.rows());
  bool shown[3] = {};  // orders of day and month
  for (std::size_t column = 0; column < csv.names().size(); ++column) {
    ColumnInference inference(csv.names()[column]);
    for (std::size_t row = 0; row < csv.rows(); ++row) {
      if (csv.is_missing(row, column))
        inference.see_missing();
      else
        inference.see(csv.text(row, column),
                      csv.is_number(row, column) ? std::optional(csv.number(row, column)) : std::nullopt);
    }
    inferred.columns.push_back(std::move(inference).result());
    InferredColumn& last = inferred.columns.back();
    last.present = inferred.rows - last.missing;
    last.is_repeated = csv.is_repeated(column);
    shown[static_cast<std::size_t>(last.dates)] = true;
  }
  if (shown[1] != shown[2]) dialect.notation.dates = shown[1] ? DateOrder::day_first : DateOrder::month_first;
  return inferred;
}

}  // namespace graphrun::data
