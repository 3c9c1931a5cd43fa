// source_text.h: converts an offset in a text to the line and column shown in messages.
// Contract: pure; lines end at '\n' (a preceding '\r' is not part of the line). Lines and columns count from 1, columns
// in bytes. The text must outlive the object, which continues from the last line it found: offsets in ascending order
// cost one pass, and no memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun {

class SourceLines {
 public:
  explicit SourceLines(std::string_view text, int first_line = 1) : text_(text), line_(first_line) {}

  std::size_t offset_of(int line, int column);  // size of the text if the position does not exist
  // Fills line, column and source_line for the byte at `offset`.
  void locate(Diagnostic& diagnostic, std::size_t offset);

 private:
  bool to_next(std::size_t most);  // false: no line starts at or before `most`
  void to_previous();

  std::string_view text_;
  std::size_t begin_ = 0;  // start of the line
  int line_;
};

}  // namespace graphrun
