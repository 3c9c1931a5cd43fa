// overrides.h: "--set path=value": changes to a model file's JSON tree before it is read.
// Contract: a path is keys separated by dots; list items are selected by index or "name". The value is
// JSON, or else a string; null removes the key or item. Missing keys are created. A path into an entry like
// "h = dense(x, units=8)" sets a keyword argument. The name of another optimizer, or a path into it, replaces the
// model's optimizer. Throws Error for a path that cannot be followed. model_file.h validates the result; blame() then
// makes the errors point at the override.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "graphrun/error.h"

namespace graphrun {

struct Override {
  std::string path, value;  // as given
  std::string pointer;      // the value that it set, or the outermost object that it created on the path
};

std::vector<Override> apply_overrides(json::Document& document,
                                      const std::vector<std::pair<std::string, std::string>>& settings);

// Returns the same errors; those inside an overridden value name the setting instead of a line of the file.
Error blame(const Error& error, const std::vector<Override>& overrides);

}  // namespace graphrun
