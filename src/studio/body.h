// body.h: what the page sends: one JSON object whose values are texts, numbers and truth values.
// Contract: a pure function of bytes that anybody may have sent; nothing is nested. Throws Error (kind input, code
// "studio.body") for anything else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace graphrun::studio {

class Body {
 public:
  explicit Body(std::string_view json);

  std::string text(std::string_view name) const;  // throws Error where there is none
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  std::optional<double> number(std::string_view name) const;

 private:
  json::Value object_;
};

// The texts of a JSON file, keys among them, with their escapes undone: enough to see which files it could name. Throws
// Error for a text that is none of JSON.
std::vector<std::string> json_texts(std::string_view json);

}  // namespace graphrun::studio
