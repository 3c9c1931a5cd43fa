#include "base/source_text.h"

#include <algorithm>

namespace graphrun {

std::size_t offset_of(std::string_view text, int line, int column) {
  std::size_t begin = 0;
  for (int at = 1; at < line; ++at) {
    const std::size_t newline = text.find('\n', begin);
    if (newline == std::string_view::npos) return text.size();
    begin = newline + 1;
  }
  return std::min(text.size(), begin + static_cast<std::size_t>(std::max(column, 1) - 1));
}

namespace {

// Of the byte at `offset` in the line of that number, which begins at `begin`.
void fill(Diagnostic& diagnostic, std::string_view text, std::size_t line, std::size_t begin, std::size_t offset) {
  // Of data that stand on one huge line, a message needs only what is near; beyond the reach, not even that.
  constexpr std::size_t kReach = 10000, kTail = 200;
  diagnostic.line = static_cast<int>(line);
  diagnostic.column = 1 + static_cast<int>(offset - begin);
  diagnostic.source_line.clear();
  if (offset - begin > kReach) return;
  const std::string_view near = text.substr(begin, offset - begin + kTail);
  std::size_t end = std::min(near.find('\n', offset - begin), near.size());
  const bool whole = begin + end == text.size() || text[begin + end] == '\n';
  if (whole && end > 0 && near[end - 1] == '\r') --end;
  diagnostic.source_line = near.substr(0, end);
}

}  // namespace

void locate(Diagnostic& diagnostic, std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const auto line = static_cast<std::size_t>(1 + std::count(before.begin(), before.end(), '\n'));
  fill(diagnostic, text, line, newline == std::string_view::npos ? 0 : newline + 1, offset);
}

std::size_t SourceLines::offset_of(int line, int column) {
  const auto index = static_cast<std::size_t>(std::max(line, 1) - 1);
  if (index >= begins().size()) return text_.size();
  return std::min(text_.size(), begins()[index] + static_cast<std::size_t>(std::max(column, 1) - 1));
}

void SourceLines::locate(Diagnostic& diagnostic, std::size_t offset) {
  offset = std::min(offset, text_.size());
  const auto after = std::upper_bound(begins().begin(), begins().end(), offset);
  fill(diagnostic, text_, static_cast<std::size_t>(after - begins().begin()), *(after - 1), offset);
}

const std::vector<std::size_t>& SourceLines::begins() {
  if (!begins_.empty()) return begins_;
  begins_.push_back(0);
  for (std::size_t at = text_.find('\n'); at != std::string_view::npos; at = text_.find('\n', at + 1)) {
    begins_.push_back(at + 1);
  }
  return begins_;
}

}  // namespace graphrun
