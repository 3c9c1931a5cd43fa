// body.h: body of a request from the page: one flat JSON object of strings, numbers and booleans.
// Contract: a pure function of untrusted bytes. Throws Error (kind input, code "studio.body") for anything else.
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

  std::string text(std::string_view name) const;  // throws Error if absent
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  std::optional<double> number(std::string_view name) const;

 private:
  json::Value object_;
};

// Strings of a JSON file, including keys, with their escapes decoded: enough to check which files it could name. Throws
// Error if the text is not JSON.
std::vector<std::string> json_texts(std::string_view json);

}  // namespace graphrun::studio
