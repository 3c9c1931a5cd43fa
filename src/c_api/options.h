// options.h: the JSON objects of options of c.h.
// Contract: throws Error with every mistake of the text at once, at its line and column.
#pragma once

#include <string>
#include <vector>

#include "graphrun/model.h"
#include "graphrun/verify.h"

namespace graphrun::c_api {

LoadOptions load_options(const char* json);
struct OpenOptions : SessionOptions {
  std::vector<std::string> rows_vary;  // splits
};
OpenOptions open_options(const char* json);
VerifyOptions verify_options(const char* json);

}  // namespace graphrun::c_api
