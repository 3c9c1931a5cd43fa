// page.h: the files of the page (src/studio/page/), which the build puts into the program.
#pragma once

#include <span>
#include <string_view>

namespace graphrun::studio {

struct PageFile {
  std::string_view name, text;  // "index.html"
};

extern const std::span<const PageFile> kPageFiles;

std::string_view type_of(std::string_view file_name);  // by its ending: "text/html; charset=utf-8"

}  // namespace graphrun::studio
