// text_table.h: a table of text cells, such as a CSV file; converts cells to numbers and detects missing values.
// Contract: a number is finite and follows the Notation; true and false are 1 and 0. Only cells that are read must be
// numbers. Throws Error with the position of the cell. Not here: parsing the file into cells (csv.h), imputation
// (missing.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/array.h"

namespace graphrun::data {

// Notation of numbers, dates and missing values.
struct Notation {
  char decimal = '.';
  char thousands = '\0';        // between groups of three digits; 0: no separator; as in separator_bytes()
  bool percent = false;         // "12 %" is 0.12
  std::vector<std::string> na;  // additional texts for a missing value
  DateOrder dates = DateOrder::unknown;
  std::string currency = {};  // sign before or after a number, which is negative in parentheses; empty: none
  bool is_other = false;      // for messages about a file other than the model's
};

// Decimal and thousands separators that tables use, the simplest first, and currency signs.
inline constexpr std::pair<char, char> kSeparators[] = {{'.', '\0'}, {',', '\0'}, {'.', ','}, {',', '.'},
                                                        {'.', '\''}, {',', '\''}, {'.', ' '}, {',', ' '}};
inline constexpr std::string_view kCurrencies[] = {"$", "€", "£", "¥", "₹", "CHF", "EUR", "USD"};

// Length of the separator at the start of the text, or 0. A blank stands for no-break and thin spaces, too, and an
// apostrophe for a typographic one.
std::size_t separator_bytes(std::string_view text, char separator);

class TextTable {
 public:
  virtual ~TextTable() = default;

  const std::vector<std::string>& names() const { return names_; }  // 0, 1, 2, ... without a header
  virtual std::size_t rows() const = 0;
  virtual std::string_view text(std::size_t row, std::size_t column) const = 0;  // without surrounding spaces
  virtual Error error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const = 0;
  virtual bool is_repeated(std::size_t) const { return false; }  // name shared with another column
  virtual Error repeated_error(std::size_t column) const { return error_at(0, column, "its name is repeated", ""); }
  [[noreturn]] void fail_at(std::size_t row, std::size_t column, std::string_view what, std::string hint = {}) const {
    throw error_at(row, column, what, std::move(hint));
  }

  // Empty, or one of NA, N/A, NaN, nan, null, NULL, ?, or a text of Notation::na.
  bool is_missing(std::size_t row, std::size_t column) const { return stands_for_nothing(text(row, column)); }
  double number(std::size_t row, std::size_t column) const;   // finite; throws Error
  bool is_number(std::size_t row, std::size_t column) const;  // true if number() would succeed

  bool stands_for_nothing(std::string_view text) const;
  bool reads_as_number(std::string_view text) const;
  const Notation& notation() const { return notation_; }
  void read_as(Notation notation) { notation_ = std::move(notation); }  // for later reads

 protected:
  explicit TextTable(Notation notation) : notation_(std::move(notation)) {}

  std::vector<std::string> names_;

 private:
  std::string hint_for(std::string_view text, const std::string& column) const;

  Notation notation_;
};

// A column of a table, restricted to the remaining rows. Reading a cell throws Error if the column name is repeated.
class TextColumn final : public Cells {
 public:
  // `rows`: remaining rows of the table, or null for all; read on each cell access.
  TextColumn(std::shared_ptr<const TextTable> table, std::size_t column,
             std::shared_ptr<const std::vector<std::size_t>> rows)
      : table_(std::move(table)), column_(column), rows_(std::move(rows)), is_repeated_(table_->is_repeated(column)) {}

  std::int64_t rows() const override { return static_cast<std::int64_t>(rows_ ? rows_->size() : table_->rows()); }
  bool is_missing(std::int64_t row) const override { return table_->is_missing(at(row), column_); }
  std::string_view text(std::int64_t row) const override { return table_->text(at(row), column_); }
  double number(std::int64_t row) const override { return table_->number(at(row), column_); }
  Error error(std::int64_t row, std::string_view what, std::string hint) const override {
    return table_->error_at(at(row), column_, what, std::move(hint));
  }

 private:
  std::size_t at(std::int64_t row) const {
    if (is_repeated_) throw table_->repeated_error(column_);
    const auto i = static_cast<std::size_t>(row);
    return rows_ ? (*rows_)[i] : i;
  }

  std::shared_ptr<const TextTable> table_;
  std::size_t column_;
  std::shared_ptr<const std::vector<std::size_t>> rows_;
  bool is_repeated_;
};

}  // namespace graphrun::data
