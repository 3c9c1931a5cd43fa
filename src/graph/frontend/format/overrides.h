// overrides.h: "--set path=value": changes to a model file's JSON tree before it is read.
// Contract: a path is dotted keys, where an item of a list is its index or the "name" of an object in it; the value is
// JSON, else a string; null removes the key or item, and keys that do not exist are created. A path into an entry like
// "h = dense(x, units=8)" sets a keyword argument. Another optimizer's name, or a path into it, takes the place of the
// model's. Throws Error for a path that leads nowhere. Leaves to others: whether the result makes sense
// (model_file.h); blame() makes its mistakes point at the override.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "graphrun/error.h"

namespace graphrun {

struct Override {
  std::string path, value;  // as given
  std::string pointer;      // of what it set or, when it made objects on the way, of the outermost of these
};

std::vector<Override> apply_overrides(json::Document& document,
                                      const std::vector<std::pair<std::string, std::string>>& settings);

// The same mistakes; those inside a value that was set name the setting instead of a line of the file.
Error blame(const Error& error, const std::vector<Override>& overrides);

}  // namespace graphrun
