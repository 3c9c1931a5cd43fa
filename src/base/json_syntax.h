// json_syntax.h: puts a syntax error of a JSON text into words: what was expected, what stands there, what to do.
// Contract: pure; never throws. Leaves to others: finding the error (json.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun::json {

// What the parser had read when it stopped.
enum class After : std::uint8_t { nothing, open_array, open_object, item, member, key, root };

struct SyntaxError {
  After after = After::nothing;
  std::size_t from = 0;     // the end of the last token that was taken
  std::size_t reached = 0;  // one past the last byte that was looked at
  std::string reason;       // the parser's own words
  int opened_line = 0;      // where the innermost open array or object begins; 0 = none is open
};

// Code, message, hint and place; the file is the caller's to fill.
Diagnostic explain(const SyntaxError& error, std::string_view text);

}  // namespace graphrun::json
