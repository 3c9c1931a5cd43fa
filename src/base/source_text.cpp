#include "base/source_text.h"

#include <algorithm>

namespace graphrun {

std::size_t SourceLines::offset_of(int line, int column) {
  while (line_ > line && begin_ > 0) to_previous();
  while (line_ < line) {
    if (!to_next(text_.size())) return text_.size();
  }
  return std::min(text_.size(), begin_ + static_cast<std::size_t>(std::max(column, 1) - 1));
}

void SourceLines::locate(Diagnostic& diagnostic, std::size_t offset) {
  // In data with one huge line, a message needs only the text near the position; beyond kReach, not even that.
  constexpr std::size_t kReach = 10000, kTail = 200;
  offset = std::min(offset, text_.size());
  while (begin_ > offset) to_previous();
  while (to_next(offset)) {
  }
  const std::size_t begin = begin_;
  diagnostic.line = line_;
  diagnostic.column = 1 + static_cast<int>(offset - begin);
  diagnostic.source_line.clear();
  if (offset - begin > kReach) return;
  const std::string_view near = text_.substr(begin, offset - begin + kTail);
  std::size_t end = std::min(near.find('\n', offset - begin), near.size());
  const bool whole = begin + end == text_.size() || text_[begin + end] == '\n';
  if (whole && end > 0 && near[end - 1] == '\r') --end;
  diagnostic.source_line = near.substr(0, end);
}

bool SourceLines::to_next(std::size_t most) {
  const std::size_t end = text_.substr(0, most).find('\n', begin_);
  if (end == std::string_view::npos) return false;
  begin_ = end + 1;
  ++line_;
  return true;
}

void SourceLines::to_previous() {
  begin_ = text_.substr(0, begin_ - 1).rfind('\n') + 1;  // npos + 1 is 0
  --line_;
}

}  // namespace graphrun
