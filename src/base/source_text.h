// source_text.h: from a place in a text to the line and column that a message shows.
// Contract: pure; lines end at '\n' (a '\r' before it is no part of the line); lines and columns count from 1, columns
// in bytes. Each call walks the text from its start: made for messages, of which there are few.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun {

std::size_t offset_of(std::string_view text, int line, int column);  // text.size() when there is no such place

// Fills line, column and source_line for the byte at `offset`.
void locate(Diagnostic& diagnostic, std::string_view text, std::size_t offset);

}  // namespace graphrun
