// encoding.h: checks that a text file is UTF-8.
// Contract: throws Error with the line (from `lines_before` + 1) and column of the first invalid byte, the likely
// encoding and a command that converts the file. Checks eight bytes of ASCII at a time.
#pragma once

#include <string>
#include <string_view>

namespace graphrun::data {

void require_utf8(const std::string& path, std::string_view text, int lines_before);

}  // namespace graphrun::data
