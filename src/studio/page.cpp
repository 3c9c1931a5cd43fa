#include "studio/page.h"

#include <utility>

namespace graphrun::studio {

std::string_view type_of(std::string_view file_name) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {{".html", "text/html; charset=utf-8"},
                                                                      {".css", "text/css; charset=utf-8"},
                                                                      {".js", "text/javascript; charset=utf-8"},
                                                                      {".svg", "image/svg+xml"},
                                                                      {".json", "application/json"}};
  for (const auto& [ending, type] : kTypes) {
    if (file_name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

}  // namespace graphrun::studio
