// page.h: files of the page (src/studio/page/), embedded into the program by the build.
#pragma once

#include <span>
#include <string_view>

namespace graphrun::studio {

struct PageFile {
  std::string_view name, text;  // "index.html"
};

extern const std::span<const PageFile> kPageFiles;

std::string_view type_of(std::string_view file_name);  // media type by file extension: "text/html; charset=utf-8"

}  // namespace graphrun::studio
