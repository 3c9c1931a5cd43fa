// options.h: JSON option objects of c.h.
// Contract: throws one Error that lists every error of the text with its line and column.
#pragma once

#include <string>
#include <vector>

#include "graphrun/model.h"
#include "graphrun/verify.h"

namespace graphrun::c_api {

LoadOptions load_options(const char* json);
struct OpenOptions : SessionOptions {
  std::vector<std::string> rows_vary;  // names of splits
};
OpenOptions open_options(const char* json);
VerifyOptions verify_options(const char* json);

}  // namespace graphrun::c_api
