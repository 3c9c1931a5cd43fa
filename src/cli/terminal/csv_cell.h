// csv_cell.h: a text as a cell of CSV.
// Contract: as RFC 4180 has it: quoted where a comma, a quote, a line end or a space at an end would be lost.
#pragma once

#include <string>
#include <string_view>

namespace graphrun::cli {

inline std::string csv_cell(std::string_view text) {
  const bool is_plain = text.find_first_of(",\"\r\n") == std::string_view::npos &&
                        (text.empty() || (text.front() != ' ' && text.back() != ' '));
  if (is_plain) return std::string(text);
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

}  // namespace graphrun::cli
