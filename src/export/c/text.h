// text.h: C99 identifiers, types and numbers.
// Contract: pure functions. Names::unique() never returns a C keyword, a name returned before, or one that generated
// code uses. Not handled here: the code that uses them.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "graphrun/tensor.h"

namespace graphrun::c99 {

// Replaces characters other than letters, digits and _ by _; never starts with a digit.
std::string identifier(std::string_view text);

// Generates distinct identifiers.
class Names {
 public:
  std::string unique(std::string_view text);

 private:
  std::set<std::string> taken_;
};

std::string_view type_name(DType dtype);            // "float"
std::string literal(double value);                  // in double precision: "0.1", "INFINITY"
std::string elements(const HostTensor& tensor);     // "0.1f, 2.0f", wrapped at 120 columns
std::string comment_text(std::string_view text);    // made safe for a C comment
std::string string_literal(std::string_view text);  // in quotes, ASCII

}  // namespace graphrun::c99
