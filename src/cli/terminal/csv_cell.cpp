#include "cli/terminal/csv_cell.h"

#include <utility>

#include "base/text.h"

namespace graphrun::cli {

std::vector<CsvCell> csv_cells(std::string_view line) {
  std::vector<CsvCell> cells;
  for (std::size_t at = 0;; ++at) {
    at = std::min(line.find_first_not_of(" \t", at), line.size());
    CsvCell& cell = cells.emplace_back(CsvCell{{}, at + 1});
    const bool quoted = at < line.size() && line[at] == '"';
    for (at += quoted; quoted && at < line.size(); ++at) {
      if (line[at] == '"' && (at + 1 == line.size() || line[++at] != '"')) break;
      cell.text += line[at];
    }
    const std::size_t end = std::min(line.find(',', at), line.size());
    if (!quoted) cell.text = trimmed(line.substr(at, end - at));
    if (end == line.size()) return cells;
    at = end;
  }
}

std::vector<std::string> csv_texts(std::string_view line) {
  std::vector<std::string> texts;
  for (CsvCell& cell : csv_cells(line)) texts.push_back(std::move(cell.text));
  return texts;
}

void LineErrors::add(std::string code, int line, std::size_t column, std::string_view source, std::string message,
                     std::string hint) {
  if (list_.size() == kMaxDiagnostics) {
    ++more_;
    return;
  }
  list_.push_back({std::move(code),
                   std::move(message),
                   std::move(hint),
                   file_,
                   line,
                   static_cast<int>(column),
                   {},
                   std::string(source)});
}

void LineErrors::check() const {
  if (!list_.empty()) throw Error(ErrorKind::input, list_, more_);
}

}  // namespace graphrun::cli
