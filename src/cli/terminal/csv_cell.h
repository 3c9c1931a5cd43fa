// csv_cell.h: writes and parses CSV cells, and collects the errors of a table's lines.
// Contract: RFC 4180: a cell is quoted if it contains a comma, quote, newline, or a leading or trailing space. A parsed
// cell cannot contain a newline.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/error.h"

namespace graphrun::cli {

inline std::string csv_cell(std::string_view text) {
  const bool is_plain = text.find_first_of(",\"\r\n") == std::string_view::npos &&
                        (text.empty() || (text.front() != ' ' && text.back() != ' '));
  if (is_plain) return std::string(text);
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

struct CsvCell {
  std::string text;        // without quotes and surrounding spaces
  std::size_t column = 1;  // 1-based, in bytes
};
std::vector<CsvCell> csv_cells(std::string_view line);
std::vector<std::string> csv_texts(std::string_view line);  // the cells without their columns

// Collects the errors of a file. Keeps the first kMaxDiagnostics and counts the others.
class LineErrors {
 public:
  explicit LineErrors(std::string file) : file_(std::move(file)) {}

  void add(std::string code, int line, std::size_t column, std::string_view source, std::string message,
           std::string hint = {});
  void check() const;  // throws Error

 private:
  std::string file_;
  std::vector<Diagnostic> list_;
  std::size_t more_ = 0;
};

}  // namespace graphrun::cli
