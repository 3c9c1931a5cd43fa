// csv.h: comma-separated values (RFC 4180): quotes, quotes in quotes, line ends of either kind, a byte order mark,
// spaces around quotes, Excel's first line "sep=;".
// Contract: every record has as many fields as the first; empty lines and comments are none. Delimiters at the end of
// every line make no column. A header of numbers is refused; two columns may have one name. Errors have the file's line
// and column; bytes that are not UTF-8 are one. Fields and columns are held against the limit of input_limit.h: a
// file of commas takes many times its bytes. Leaves to others: what a field says (text_table.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text_table.h"

namespace graphrun::data {

// How a file is written.
struct Dialect {
  bool header = true;  // whether the first line names the columns
  char delimiter = ',';
  std::string comment = {};  // a line that begins with it is none; empty: there are no comments
  Notation notation = {};
  std::size_t rows_before = 0;  // of a stream of which this is a piece: for messages
  int lines_before = 0;
};

// Excel's first line "sep=;": its delimiter, and where the next line begins.
struct SepLine {
  char delimiter = ',';
  std::size_t end = 0;
};
std::optional<SepLine> sep_line(std::string_view text);

class Csv final : public TextTable {
 public:
  // `on_progress` is told of the bytes.
  Csv(std::string path, std::string text, Dialect dialect, const std::function<void(double done)>& on_progress = {});

  std::size_t rows() const override { return fields_.size() / width_; }
  std::string_view text(std::size_t row, std::size_t column) const override { return content(field(row, column)); }
  bool is_repeated(std::size_t column) const override { return repeated_.contains(names_[column]); }
  Error repeated_error(std::size_t column) const override;
  // Which other delimiter would cut a header that is one column; empty: none.
  std::string delimiter_hint() const;

  Error error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const override;

 private:
  struct Field {
    std::uint64_t begin = 0;   // in text_, without its quotes
    std::uint32_t length = 0;  // in text_, quotes in quotes made one
    bool quoted = false;
  };
  void make_room(std::vector<Field>& fields, std::size_t more) const;
  std::size_t read_field(std::size_t at, Field& field);
  std::size_t read_record(std::size_t at, std::vector<Field>& record);
  bool is_comment(std::size_t at) const;
  void take_width(const std::vector<Field>& record);
  bool is_blank(const std::vector<Field>& fields, std::size_t first, std::size_t step) const;
  void take_header(const std::vector<Field>& record);
  void reject_numbers(const std::vector<Field>& record) const;
  std::string_view content(const Field& field) const;
  const Field& field(std::size_t row, std::size_t column) const { return fields_[row * width_ + column]; }
  Error error(std::size_t offset, std::string message, std::string hint) const;
  [[noreturn]] void fail(std::size_t offset, std::string message, std::string hint = {}) const {
    throw error(offset, std::move(message), std::move(hint));
  }

  std::string path_, text_;
  Dialect dialect_;
  std::uint64_t limit_;
  std::unordered_map<std::string, std::size_t> repeated_;  // names of several columns, and where the second is
  std::vector<Field> fields_;                              // row after row
  std::size_t width_ = 0;  // fields of a row: more than names where they end with delimiters
};

}  // namespace graphrun::data
