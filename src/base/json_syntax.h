// json_syntax.h: describes a syntax error of a JSON text: the expected token, the actual text, and a fix.
// Contract: pure; never throws. Not here: detection of the error (json.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun::json {

// Last element that the parser read before it stopped.
enum class After : std::uint8_t { nothing, open_array, open_object, item, member, key, root };

struct SyntaxError {
  After after = After::nothing;
  std::size_t from = 0;     // end of the last accepted token
  std::size_t reached = 0;  // one past the last byte read
  std::string reason;       // message of the parser
  int opened_line = 0;      // line of the innermost open array or object; 0: none
};

// Returns code, message, hint and position; the caller sets the file.
Diagnostic explain(const SyntaxError& error, std::string_view text);

}  // namespace graphrun::json
