// csv.h: comma-separated values (RFC 4180): quotes, quotes in quotes, line ends of either kind, a byte order mark.
// Contract: every record has as many fields as the first; empty lines are none. A header of numbers is refused. Errors
// have the file's line and column. Whether a field is a number is asked only of the fields that are read. Fields and
// columns are held against the limit of input_limit.h: a file of commas takes many times its bytes. Leaves to others:
// what a missing value becomes (csv_source.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/array.h"

namespace graphrun::data {

class Csv {
 public:
  Csv(std::string path, std::string text, bool header, char delimiter);

  const std::vector<std::string>& names() const { return names_; }  // 0, 1, 2, ... without a header
  std::size_t rows() const { return fields_.size() / names_.size(); }

  // An empty field, or one of the words that stand for one: NA, N/A, NaN, nan, null, NULL, ?.
  bool is_missing(std::size_t row, std::size_t column) const;
  double number(std::size_t row, std::size_t column) const;  // finite; throws Error
  [[noreturn]] void fail_at(std::size_t row, std::size_t column, std::string_view what, std::string hint = {}) const;

 private:
  struct Field {
    std::uint64_t begin = 0;   // in text_, without its quotes
    std::uint32_t length = 0;  // in text_, quotes in quotes made one
    bool quoted = false;
  };
  void make_room(std::vector<Field>& fields, std::size_t more) const;
  std::size_t read_field(std::size_t at, Field& field);
  std::size_t read_record(std::size_t at, std::vector<Field>& record);
  void take_header(const std::vector<Field>& record, bool header);
  void refuse_numbers(const std::vector<Field>& record) const;
  std::string_view content(const Field& field) const;
  const Field& field(std::size_t row, std::size_t column) const { return fields_[row * names_.size() + column]; }
  [[noreturn]] void fail(std::size_t offset, std::string message, std::string hint = {}) const;

  std::string path_, text_;
  char delimiter_;
  std::uint64_t limit_;
  std::vector<std::string> names_;
  std::vector<Field> fields_;  // row after row
};

}  // namespace graphrun::data
