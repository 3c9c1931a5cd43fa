// json_string.h: a text as a JSON string, quotes included.
// Contract: always UTF-8: invalid bytes become U+FFFD; control characters, including text-direction ones, are escaped.
#pragma once

#include <string>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

GRAPHRUN_API std::string json_string(std::string_view text);

}  // namespace graphrun
