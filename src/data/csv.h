// csv.h: comma-separated values (RFC 4180): quotes, quotes in quotes, line ends of either kind, a byte order mark.
// Contract: every record has as many fields as the first. Errors have the file's line and column. Whether a field is a
// number is asked only for the columns that are read.
#pragma once

#include <string>
#include <vector>

#include "data/array.h"

namespace graphrun::data {

class Csv {
 public:
  Csv(std::string path, std::string text, bool header, char delimiter);

  const std::vector<std::string>& names() const { return names_; }  // 0, 1, 2, ... without a header
  std::int64_t rows() const { return static_cast<std::int64_t>(fields_.size() / names_.size()); }
  Array column(std::size_t index) const;  // (rows)

 private:
  struct Field {
    std::size_t begin = 0, length = 0;  // in text_, quotes apart
    int line = 0, column = 0;
  };
  std::size_t read_field(std::size_t at, int& line, std::size_t& line_begin, Field& field);
  std::string_view content(const Field& field) const;
  [[noreturn]] void fail(int line, int column, std::string message) const;

  std::string path_, text_;
  char delimiter_;
  std::vector<std::string> names_;
  std::vector<Field> fields_;  // row after row
};

}  // namespace graphrun::data
