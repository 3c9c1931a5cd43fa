// text.h: C99 identifiers, types and numbers.
// Contract: pure functions. Names() never gives a word of the language, a name that was given before, or one with the
// prefix of what is generated. Leaves to others: what is written with them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "graphrun/tensor.h"

namespace graphrun::c99 {

// Letters, digits and _ of the text, the others as _; not a digit first.
std::string identifier(std::string_view text);

// Identifiers that are all different.
class Names {
 public:
  std::string unique(std::string_view text);

 private:
  std::set<std::string> taken_;
};

std::string_view type_name(DType dtype);          // "float"
std::string literal(double value);                // in double: "0.1", "INFINITY"
std::string elements(const HostTensor& tensor);   // "0.1f, 2.0f", on lines of up to 120 columns
std::string comment_text(std::string_view text);  // what a comment may hold

}  // namespace graphrun::c99
