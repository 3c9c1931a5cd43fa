#include "base/source_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace graphrun {
namespace {

// SourceLines says of every byte what a walk from the start of the text says.
TEST(SourceLines, AgreesWithTheWalk) {
  for (const std::string text : {"", "\n", "a", "a\nbc\r\n\nd", "x\n", "\r\n\r", "ab\rc\n"}) {
    SourceLines lines(text);
    for (std::size_t offset = 0; offset <= text.size() + 2; ++offset) {
      Diagnostic once, many;
      const std::string before = text.substr(0, offset);
      const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
      once.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
      once.column = 1 + static_cast<int>(before.size() - begin);
      once.source_line = text.substr(begin, text.find('\n', before.size()) - begin);
      if (once.source_line.ends_with('\r')) once.source_line.pop_back();
      lines.locate(many, offset);
      EXPECT_EQ(many.line, once.line) << text << offset;
      EXPECT_EQ(many.column, once.column) << text << offset;
      EXPECT_EQ(many.source_line, once.source_line) << text << offset;
      EXPECT_EQ(lines.offset_of(once.line, once.column), std::min(offset, text.size()));
    }
    EXPECT_EQ(lines.offset_of(9, 1), text.size());
  }
}

TEST(SourceLines, GoesBackAndForth) {
  const std::string text = "\n\nab\n\nc";
  SourceLines lines(text);
  const int line_of[] = {1, 2, 3, 3, 3, 4, 5, 5};
  for (const std::size_t offset : {7u, 0u, 5u, 2u, 1u, 4u, 6u, 3u}) {
    Diagnostic d;
    lines.locate(d, offset);
    EXPECT_EQ(d.line, line_of[offset]) << offset;
    EXPECT_EQ(lines.offset_of(d.line, d.column), offset);
  }
  EXPECT_EQ(lines.offset_of(9, 1), text.size());
  EXPECT_EQ(lines.offset_of(3, 1), 2u);
}

TEST(SourceLines, ALineOfMegabytesIsNotCopied) {
  const std::string text = "a\n" + std::string(3000000, 'b') + "\r\nc";
  SourceLines lines(text);
  Diagnostic d;
  lines.locate(d, 5);
  EXPECT_EQ(d.source_line, std::string(203, 'b'));
  lines.locate(d, 2000000);
  EXPECT_EQ(d.source_line, "");
  EXPECT_EQ(d.column, 1999999);
}

}  // namespace
}  // namespace graphrun
