// text_table.h: a table whose cells are texts, as a CSV file is one: what a cell says as a number, or that it is
// missing. Contract: a number is finite and written as the Notation says; true and false are 1 and 0. Whether a cell is
// a number is asked only of cells that are read. Throws Error with the cell's place. Leaves to others: how cells are
// found in a file (csv.h), what a missing value becomes (missing.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/array.h"

namespace graphrun::data {

// How numbers and missing values are written.
struct Notation {
  char decimal = '.';
  char thousands = '\0';        // between groups of three digits; 0: none
  bool percent = false;         // "12 %" is 0.12
  std::vector<std::string> na;  // texts that stand for a missing value, beside the usual ones
};

class TextTable {
 public:
  virtual ~TextTable() = default;

  const std::vector<std::string>& names() const { return names_; }  // 0, 1, 2, ... without a header
  virtual std::size_t rows() const = 0;
  virtual std::string_view text(std::size_t row, std::size_t column) const = 0;  // without spaces around it
  virtual Error error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const = 0;
  virtual bool is_repeated(std::size_t) const { return false; }  // another column has the name of this one
  virtual Error repeated_error(std::size_t column) const { return error_at(0, column, "its name is repeated", ""); }
  [[noreturn]] void fail_at(std::size_t row, std::size_t column, std::string_view what, std::string hint = {}) const {
    throw error_at(row, column, what, std::move(hint));
  }

  // An empty cell, or one of the words that stand for one: NA, N/A, NaN, nan, null, NULL, ?; or the notation's own.
  bool is_missing(std::size_t row, std::size_t column) const { return stands_for_nothing(text(row, column)); }
  double number(std::size_t row, std::size_t column) const;   // finite; throws Error
  bool is_number(std::size_t row, std::size_t column) const;  // whether it would give one

  bool stands_for_nothing(std::string_view text) const;
  bool reads_as_number(std::string_view text) const;
  void read_as(Notation notation) { notation_ = std::move(notation); }  // from now on

 protected:
  explicit TextTable(Notation notation) : notation_(std::move(notation)) {}

  std::vector<std::string> names_;

 private:
  std::string hint_for(std::string_view text, const std::string& column) const;

  Notation notation_;
};

// A column of a table: the rows that are left of it. A cell of a column whose name is repeated is an Error.
class TextColumn final : public Cells {
 public:
  // `rows`: those of the table that are left, null: all; they are looked at when a cell is asked for.
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
