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

void locate(Diagnostic& diagnostic, std::string_view text, std::size_t offset) {
  // Of data that stand on one huge line, a message needs only what is near; beyond the reach, not even that.
  constexpr std::size_t kReach = 10000, kTail = 200;
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  diagnostic.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  diagnostic.column = 1 + static_cast<int>(offset - begin);
  diagnostic.source_line.clear();
  if (offset - begin > kReach) return;
  std::size_t end = std::min(text.find('\n', offset), text.size());
  if (end > begin && text[end - 1] == '\r') --end;
  diagnostic.source_line = text.substr(begin, std::min(end - begin, offset - begin + kTail));
}

}  // namespace graphrun
