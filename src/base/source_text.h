// source_text.h: from a place in a text to the line and column that a message shows.
// Contract: pure; lines end at '\n' (a '\r' before it is no part of the line); lines and columns count from 1, columns
// in bytes. The text is walked once, when it is first asked for, and must outlive the object.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/error.h"

namespace graphrun {

class SourceLines {
 public:
  explicit SourceLines(std::string_view text) : text_(text) {}

  std::size_t offset_of(int line, int column);  // the text's size when there is no such place
  // Fills line, column and source_line for the byte at `offset`.
  void locate(Diagnostic& diagnostic, std::size_t offset);

 private:
  const std::vector<std::size_t>& begins();

  std::string_view text_;
  std::vector<std::size_t> begins_;
};

}  // namespace graphrun
