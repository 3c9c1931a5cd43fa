// source_text.h: from a place in a text to the line and column that a message shows.
// Contract: pure; lines end at '\n' (a '\r' before it is no part of the line); lines and columns count from 1, columns
// in bytes. The text must outlive the object, which keeps the last line it found and walks from there: places in the
// order of the text cost one walk, and no memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun {

class SourceLines {
 public:
  explicit SourceLines(std::string_view text, int first_line = 1) : text_(text), line_(first_line) {}

  std::size_t offset_of(int line, int column);  // the text's size when there is no such place
  // Fills line, column and source_line for the byte at `offset`.
  void locate(Diagnostic& diagnostic, std::size_t offset);

 private:
  bool to_next(std::size_t most);  // false: none begins there or before
  void to_previous();

  std::string_view text_;
  std::size_t begin_ = 0;  // of the line
  int line_;
};

}  // namespace graphrun
