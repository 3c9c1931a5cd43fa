#include "base/source_text.h"

#include <algorithm>

namespace graphrun {

std::size_t SourceLines::offset_of(int line, int column) {
  const auto index = static_cast<std::size_t>(std::max(line, 1) - 1);
  if (index >= begins().size()) return text_.size();
  return std::min(text_.size(), begins()[index] + static_cast<std::size_t>(std::max(column, 1) - 1));
}

void SourceLines::locate(Diagnostic& diagnostic, std::size_t offset) {
  // Of data that stand on one huge line, a message needs only what is near; beyond the reach, not even that.
  constexpr std::size_t kReach = 10000, kTail = 200;
  offset = std::min(offset, text_.size());
  const auto after = std::upper_bound(begins().begin(), begins().end(), offset);
  const std::size_t begin = *(after - 1);
  diagnostic.line = static_cast<int>(after - begins().begin());
  diagnostic.column = 1 + static_cast<int>(offset - begin);
  diagnostic.source_line.clear();
  if (offset - begin > kReach) return;
  const std::string_view near = text_.substr(begin, offset - begin + kTail);
  std::size_t end = std::min(near.find('\n', offset - begin), near.size());
  const bool whole = begin + end == text_.size() || text_[begin + end] == '\n';
  if (whole && end > 0 && near[end - 1] == '\r') --end;
  diagnostic.source_line = near.substr(0, end);
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
